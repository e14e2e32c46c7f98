"""Commands that resample or replay results: calibration, replay."""

import argparse
import shlex
from dataclasses import replace

import polarbear
from polarbear.cli.answers import print_answer
from polarbear.cli.inputs import choose_times, get_model, load_runs
from polarbear.cli.options import (
    INSTANCES_HELP,
    RESULTS_HELP,
    add_between_option,
    add_command,
    add_fit_options,
    add_json_option,
    add_question_options,
    add_reading_options,
    add_seed_option,
    add_size_option,
    add_source_argument,
    add_workers_option,
)
from polarbear.cli.output import fit_facts, get_option_name, print_conclusion
from polarbear.errors import DataError


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Add the commands of this module to the parser."""
    _add_calibration(commands)
    _add_replay(commands)


def _add_calibration(commands: argparse._SubParsersAction) -> None:
    parser = add_command(
        commands,
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
    )
    add_source_argument(parser, f"{RESULTS_HELP}, or the store of a race")
    add_fit_options(parser)
    parser.add_argument("--instances", type=int, metavar="N", help=INSTANCES_HELP)
    parser.add_argument(
        "--replicates", type=int, default=100, metavar="N", help="number of data sets (100)"
    )
    add_seed_option(parser)
    add_json_option(parser)
    add_reading_options(parser)


def _run_calibration(arguments: argparse.Namespace) -> int:
    runs = load_runs(arguments)
    model = get_model(arguments)
    calibration = polarbear.calibrate(
        polarbear.rank(runs, choose_times(runs, arguments), **model.rank_options()),
        instances=arguments.instances,
        replicates=arguments.replicates,
        seed=arguments.seed,
        **model.fit_options(),
    )
    plain = {
        "algorithms": calibration.algorithms,
        "clock": calibration.clock,
        "times": calibration.times,
        "instances": calibration.instances,
        "drawn": calibration.drawn,
        "replicates": len(calibration.tally),
        "prior": calibration.prior,
        "coverage": calibration.tally.coverage,
        "claims": calibration.tally.claims(0.95),
        "everywhere": calibration.tally.claims(0.95, 1.0, "everywhere"),
        "verdict": calibration.verdict,
        "assumption_holds": calibration.assumption_holds,
        "misfit": None if calibration.misfit is None else calibration.misfit._asdict(),
    }
    print_answer(arguments, calibration, plain, runs=runs, model=get_model(arguments).describe())
    return 0


def _add_replay(commands: argparse._SubParsersAction) -> None:
    parser = add_command(
        commands,
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
    )
    add_source_argument(parser, f"{RESULTS_HELP}, or the store of a race")
    _add_question_options(parser)
    parser.add_argument(
        "--repeat", type=int, default=1, metavar="N", help="replay with N seeds (1)"
    )
    add_workers_option(parser, "1")
    add_fit_options(parser)
    add_seed_option(parser)
    add_json_option(parser)
    add_reading_options(parser)


QUESTION_OPTIONS = (
    *("over_time", "certainty", "margin", "width", "epsilon"),
    *("elimination", "resolution", "errors", "regret", "size"),
)
"""The options of a race that are fields of its question."""


def _add_question_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for the question of a race; its own defaults supply those not given."""
    add = parser.add_argument
    add_question_options(parser)
    add("--certainty", type=float, help="the required certainty (0.95; 0.99 for PaperParetoSet)")
    add("--margin", type=float, help="how much worse a rival, or a new version, may be (0.1)")
    add("--width", type=float, help="ParetoSet: on stretches of this share of the time axis (0.1)")
    add("--epsilon", type=float, help="the margin within which algorithms are equivalent (0.05)")
    add(
        "--elimination",
        choices=("joint", "pointwise"),
        help="PaperParetoSet: an algorithm is eliminated if it is certainly behind at all times "
        "jointly (joint), or at each time separately (pointwise)",
    )
    add(
        "--resolution",
        choices=("at_par", "crossing", "strict"),
        help="PaperParetoSet: a pair is resolved when each leads or ties somewhere (at_par), when "
        "one of them also leads (crossing), or when its relation is certain at every time (strict)",
    )
    add(
        "--errors",
        choices=("per_member", "whole_race"),
        help="ParetoSet: what certainty bounds: the probability that a given algorithm is ever "
        "dropped wrongly (per_member), or that any is (whole_race)",
    )
    add(
        "--batch",
        type=int,
        nargs=2,
        metavar=("LEAST", "MOST"),
        help="instances of a round (8 64)",
    )
    when = parser.add_argument_group("race for the choice alone, if you know when you will stop")
    add_between_option(when)
    when.add_argument(
        "--regret",
        type=float,
        help="with --between: end when the regret of the choice is at most this",
    )
    add_size_option(when)


def _make_question(arguments: argparse.Namespace) -> "polarbear.Question":
    """Make the question that the options describe; a range of times makes it a choice."""
    from polarbear.racing.questions.stored import question_from_plain

    given = {
        name: getattr(arguments, name)
        for name in QUESTION_OPTIONS
        if getattr(arguments, name) is not None
    }
    if arguments.between is None:
        if {"regret", "size"} & given.keys():
            raise DataError("--regret and --size are about a choice: pass --between as well")
        given["kind"] = arguments.question
    elif arguments.question != "ParetoSet":
        raise DataError(f"--between asks for a choice, not for {arguments.question}: pass only one")
    else:
        given |= {"kind": "Choice", "preference": {"between": list(arguments.between)}}
    # Options that are the default of fit are said too: a question may have another default.
    model = get_model(arguments)
    fit = {**model.fit_options(), "ties": model.ties, **model.rank_options()}
    return replace(question_from_plain(given), fit=fit)


def _make_budget(arguments: argparse.Namespace) -> "polarbear.Budget":
    least, most = arguments.batch or polarbear.Budget().batch
    return polarbear.Budget(batch=(least, most))


def _run_replay(arguments: argparse.Namespace) -> int:
    runs = load_runs(arguments)
    question = _make_question(arguments)
    if arguments.repeat > 1:
        return _run_replays(arguments, runs, question)
    replayed = polarbear.replay(
        runs,
        question,
        budget=_make_budget(arguments),
        times=choose_times(runs, arguments),
        seed=arguments.seed,
    )
    status = replayed.status.with_best(replayed.posterior)
    plain = {
        **status.to_dict(),
        "used": replayed.used,
        "full": replayed.full,
        "saved": replayed.saved,
    }
    print_answer(arguments, fit_facts(replayed), plain, posterior=replayed.posterior, runs=runs)
    if not arguments.json:
        print_conclusion(status, _format_source(arguments))
    return 0


def _format_source(arguments: argparse.Namespace) -> str:
    """Return the source as it was typed, with the options for reading it."""
    words = [arguments.source] if arguments.example is None else ["--example", arguments.example]
    for name in sorted(getattr(arguments, "given_options", ())):
        values = getattr(arguments, name)
        for value in values if isinstance(values, tuple) else (values,):
            words += [get_option_name(name), str(value)]
    return shlex.join(words)


def _run_replays(
    arguments: argparse.Namespace, runs: "polarbear.Runs", question: "polarbear.Question"
) -> int:
    from concurrent.futures import ProcessPoolExecutor

    seeds, times = (
        range(arguments.seed, arguments.seed + arguments.repeat),
        choose_times(runs, arguments),
    )
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
