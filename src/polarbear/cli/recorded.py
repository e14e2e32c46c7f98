"""Commands that resample or replay results: calibration, replay."""

import argparse
import shlex
from dataclasses import replace

import polarbear
from polarbear.cli.activity import activity
from polarbear.cli.answers import print_answer
from polarbear.cli.inputs import RESULT_OPTIONS, choose_times, get_model, get_question, load_runs
from polarbear.cli.options import (
    INSTANCES_HELP,
    RESULTS_HELP,
    Subcommand,
    add_between_option,
    add_certainty_option,
    add_data_options,
    add_parameters,
    add_question_fields,
    add_question_options,
    add_workers_option,
    pick_given,
)
from polarbear.cli.output import fit_facts, pick, print_conclusion, write_option
from polarbear.errors import Argument, DataError
from polarbear.racing.budget import Budget


def _add_calibration_options(parser: argparse.ArgumentParser) -> None:
    from polarbear.calibration.resampling import calibrate

    parser.add_argument("--instances", type=int, metavar="N", help=INSTANCES_HELP)
    add_parameters(parser, [calibrate], ["replicates"])
    add_data_options(parser, f"{RESULTS_HELP}, or the store of a race")


def _run_calibration(arguments: argparse.Namespace) -> int:
    runs = load_runs(arguments)
    activity.says("calibrating")
    model = get_model(arguments)
    calibration = polarbear.calibrate(
        polarbear.rank(runs, choose_times(runs, arguments), **model.rank_options()),
        instances=arguments.instances,
        replicates=100 if arguments.replicates is None else arguments.replicates,
        seed=arguments.seed or 0,
        **model.fit_options(),
    )
    plain = {
        **pick(calibration, "algorithms", "clock", "times", "instances", "drawn", "prior"),
        "replicates": len(calibration.tally),
        "coverage": calibration.tally.coverage,
        "claims": calibration.tally.claims(0.95),
        "everywhere": calibration.tally.claims(0.95, 1.0, "everywhere"),
        **pick(calibration, "verdict", "assumption_holds"),
        "misfit": None if calibration.misfit is None else calibration.misfit._asdict(),
    }
    print_answer(arguments, calibration, plain, runs=runs, model=get_model(arguments).describe())
    return 0


def _add_replay_options(parser: argparse.ArgumentParser) -> None:
    from polarbear.selection.decision import select

    add_question_options(parser)
    add_certainty_option(parser, "0.95; 0.99 for PaperParetoSet")
    add_question_fields(parser, QUESTION_OPTIONS)
    add_parameters(parser, [Budget], ["batch"])
    when = parser.add_argument_group("race for the choice alone, if you know when you will stop")
    add_between_option(when)
    add_question_fields(when, ["regret"])
    add_parameters(when, [select], ["size"])
    parser.add_argument(
        "--repeat", type=int, default=1, metavar="N", help="replay with N seeds (1)"
    )
    add_workers_option(parser, "1")
    add_data_options(parser, f"{RESULTS_HELP}, or the store of a race")


QUESTION_OPTIONS = ("margin", "width", "epsilon", "elimination", "resolution", "errors")
"""Fields of questions that are options of ``replay``, beside those of a choice."""


def _make_question(arguments: argparse.Namespace) -> "polarbear.Question":
    """Make the question that the options describe; a range of times makes it a choice."""
    from polarbear.racing.questions.stored import question_from_plain, question_to_plain

    names = ("over_time", "certainty", *QUESTION_OPTIONS, "regret", "size")
    given, asked = pick_given(arguments, names), get_question(arguments)
    if arguments.between is None:
        if {"regret", "size"} & given.keys():
            raise DataError("--regret and --size are about a choice: pass --between as well")
        given = {**question_to_plain(asked), **given}
    elif arguments.question not in (None, "ParetoSet"):
        raise DataError(f"--between asks for a choice, not for {arguments.question}: pass only one")
    else:
        given |= {"kind": "Choice", "preference": {"between": list(arguments.between)}}
    return replace(question_from_plain(given), fit=asked.fit)


def _make_budget(arguments: argparse.Namespace) -> "polarbear.Budget":
    least, most = arguments.batch or polarbear.Budget().batch
    return polarbear.Budget(batch=(least, most))


def _run_replay(arguments: argparse.Namespace) -> int:
    runs = load_runs(arguments)
    question = _make_question(arguments)
    activity.says("replaying")
    if arguments.repeat > 1:
        return _run_replays(arguments, runs, question)
    replayed = polarbear.replay(
        runs,
        question,
        budget=_make_budget(arguments),
        times=choose_times(runs, arguments),
        seed=arguments.seed or 0,
    )
    status = replayed.status.with_best(replayed.posterior)
    plain = {
        **status.to_dict(),
        **pick(replayed, "used", "full", "saved"),
    }
    print_answer(arguments, fit_facts(replayed), plain, posterior=replayed.posterior, runs=runs)
    if not arguments.json:
        print_conclusion(status, _format_source(arguments))
    return 0


def _format_source(arguments: argparse.Namespace) -> str:
    """Return the source as it was typed, with the options for reading it."""
    words = [arguments.source] if arguments.example is None else ["--example", arguments.example]
    given = pick_given(arguments, RESULT_OPTIONS)
    given |= {name: dict(given[name]) for name in ("columns", "weights") if name in given}
    options = [write_option(Argument(*one), arguments) for one in given.items()]
    return " ".join([shlex.join(words), *options])


def _run_replays(
    arguments: argparse.Namespace, runs: "polarbear.Runs", question: "polarbear.Question"
) -> int:
    from concurrent.futures import ProcessPoolExecutor

    first, times = arguments.seed or 0, choose_times(runs, arguments)
    seeds = range(first, first + arguments.repeat)
    with ProcessPoolExecutor(arguments.workers or 1) as pool:
        replays = polarbear.simulation.replay_many(
            runs,
            question,
            budget=_make_budget(arguments),
            times=times,
            seeds=seeds,
            map=pool.map,
        )
    plain = {"full": replays.full, "saved": replays.saved, "replays": replays.outcomes}
    print_answer(arguments, replays, plain, runs=runs, model=get_model(arguments).describe())
    return 0


COMMANDS = (
    Subcommand(
        "calibration",
        "are the stated probabilities calibrated on data like yours?",
        "Draws data sets from your instances with replacement, fits each, and counts how often its "
        "claims are true of all your instances.",
        positionals="SOURCE",
        examples=(
            "calibration --example --replicates 20",
            "calibration results/ --direction minimize --replicates 50",
        ),
        run=_run_calibration,
        add_options=_add_calibration_options,
    ),
    Subcommand(
        "replay",
        "what would racing have saved on your results?",
        "Races over recorded runs: the runs that the race requests are looked up.",
        positionals="SOURCE",
        examples=(
            "replay --example --certainty 0.95",
            "replay results/ --direction minimize --certainty 0.95",
            "replay results/ --direction minimize --repeat 20 --workers 4",
        ),
        run=_run_replay,
        add_options=_add_replay_options,
    ),
)
