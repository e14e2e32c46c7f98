"""Commands that ask more of results: calibration, replay."""

import argparse
from typing import Any

import polarbear
from polarbear.cli.answers import say
from polarbear.cli.inputs import fit_of, model_of, runs_of, times_of
from polarbear.cli.options import (
    RESULTS,
    add_between,
    add_fit,
    add_json,
    add_reading,
    add_seed,
    add_source,
    add_workers,
    command,
)


def add(commands: argparse._SubParsersAction) -> None:
    """Add these commands."""
    _add_calibration(commands)
    _add_replay(commands)


def _add_calibration(commands: argparse._SubParsersAction) -> None:
    parser = command(
        commands,
        "calibration",
        "are the stated probabilities calibrated on data like yours?",
        "Draws data sets from your instances with replacement, fits each, and counts how often its "
        "claims are true of all your instances.",
        takes="SOURCE",
        examples=(
            "calibration --example --replicates 20",
            "calibration results/ --direction minimize --replicates 50",
        ),
        run=_calibration,
    )
    add_source(parser, f"{RESULTS}, or the store of a race")
    add_fit(parser)
    parser.add_argument(
        "--instances", type=int, metavar="N", help="instances per data set (as many as yours)"
    )
    parser.add_argument(
        "--replicates", type=int, default=100, metavar="N", help="number of data sets (100)"
    )
    add_seed(parser)
    add_json(parser)
    add_reading(parser)


def _calibration(wanted: argparse.Namespace) -> int:
    runs = runs_of(wanted)
    calibration = polarbear.calibrate(
        runs,
        times=times_of(runs, wanted),
        instances=wanted.instances,
        replicates=wanted.replicates,
        seed=wanted.seed,
        **fit_of(wanted),
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
    say(wanted, calibration, plain, runs=runs, model=model_of(wanted))
    return 0


def _add_replay(commands: argparse._SubParsersAction) -> None:
    parser = command(
        commands,
        "replay",
        "what would racing have saved on your results?",
        "A race over recorded runs: what it would have asked for is looked up.",
        takes="SOURCE",
        examples=(
            "replay --example --alpha 0.95",
            "replay results/ --direction minimize --alpha 0.95",
            "replay results/ --direction minimize --repeat 20 --workers 4",
        ),
        run=_replay,
    )
    add_source(parser, f"{RESULTS}, or the store of a race")
    _add_rules(parser)
    parser.add_argument(
        "--repeat", type=int, default=1, metavar="N", help="replay with N seeds (1)"
    )
    add_workers(parser, "1")
    add_fit(parser)
    add_seed(parser)
    add_json(parser)
    add_reading(parser)


RULES = (
    "alpha",
    "epsilon",
    "elimination",
    "resolution",
    "closing",
    "error_control",
    "allocation",
    "batch",
)


def _add_rules(parser: argparse.ArgumentParser) -> None:
    """Options for the rules of a race; what is not given is as in the preset."""
    add = parser.add_argument
    add(
        "--preset",
        choices=("default", "paper"),
        default="default",
        help="rules to begin with: our defaults, or algorithm 1 of the paper",
    )
    add("--alpha", type=float, help="the certainty asked for (0.95; 0.99 with the preset paper)")
    add("--epsilon", type=float, help="the margin within which algorithms are equivalent (0.05)")
    add(
        "--elimination",
        choices=("joint", "pointwise"),
        help="a dominated algorithm is behind at all times at once (joint), or at each by itself",
    )
    add(
        "--resolution",
        choices=("at_par", "crossing", "strict"),
        help="a pair is settled when each leads or ties somewhere (at_par), when one of them also "
        "leads (crossing), or when its relation is certain at every time (strict)",
    )
    add(
        "--closing",
        choices=("current", "permanent"),
        help="a settled pair stays so while the posterior is certain (current), or for good",
    )
    add(
        "--error-control",
        choices=("per_member", "whole_race", "per_look"),
        help="what alpha bounds: the probability that a given member of the Pareto set is ever "
        "eliminated (per_member, the default), that any member is (whole_race), or the posterior "
        "probability at each look (per_look, as in the paper)",
    )
    add(
        "--allocation",
        choices=("focused", "paper"),
        help="which runs come next: the cheapest way to know (focused), or the rule of the paper",
    )
    add(
        "--batch",
        type=int,
        nargs=2,
        metavar=("LEAST", "MOST"),
        help="instances of a round (8 64)",
    )
    when = parser.add_argument_group("race for the choice alone, if you know when you will stop")
    add_between(when)
    add(
        "--regret",
        type=float,
        help="with --between: end when the regret of the choice is at most this",
    )
    when.add_argument(
        "--portfolio", type=int, help="with --between: the number of algorithms to choose (1)"
    )


def _rules(wanted: argparse.Namespace) -> "polarbear.Rules":
    given = {name: getattr(wanted, name) for name in RULES if getattr(wanted, name) is not None}
    if wanted.between is not None:
        given["preference"] = {"between": wanted.between}
    return polarbear.Rules.from_plain({"preset": wanted.preset, **given})


def _fit(wanted: argparse.Namespace) -> dict[str, Any]:
    """Options of ``fit``; the paper's preset counts rankings as evidence unless told otherwise."""
    from polarbear.racing.rules import PAPER_FIT

    given = getattr(wanted, "given", ())
    preset = PAPER_FIT if wanted.preset == "paper" and "evidence" not in given else {}
    return {**fit_of(wanted), **preset}


def _replay(wanted: argparse.Namespace) -> int:
    runs = runs_of(wanted)
    rules = _rules(wanted)
    if wanted.repeat > 1:
        return _replay_many(wanted, runs, rules)
    replayed = polarbear.replay(
        runs, rules, times=times_of(runs, wanted), seed=wanted.seed, fit=_fit(wanted)
    )
    said = [str(replayed), *(str(one) for one in replayed.statuses())]
    plain = {
        "pareto": replayed.pareto,
        "chosen": replayed.race.chosen,
        "eliminated": replayed.eliminated,
        "ended": replayed.ended,
        "rounds": replayed.rounds,
        "spent": replayed.spent,
        "used": replayed.used,
        "full": replayed.full,
        "saved": replayed.saved,
    }
    say(wanted, "\n".join(said), plain, posterior=replayed.race.posterior, runs=runs)
    return 0


def _replay_many(
    wanted: argparse.Namespace, runs: "polarbear.Runs", rules: "polarbear.Rules"
) -> int:
    from concurrent.futures import ProcessPoolExecutor

    seeds, times = range(wanted.seed, wanted.seed + wanted.repeat), times_of(runs, wanted)
    fit = _fit(wanted)
    with ProcessPoolExecutor(wanted.workers or 1) as pool:
        replays = polarbear.replay_many(
            runs, rules, times=times, seeds=seeds, fit=fit, map=pool.map
        )
    plain = {"full": replays.full, "saved": replays.saved, "replays": replays.outcomes}
    say(wanted, replays, plain, runs=runs, model=model_of(wanted))
    return 0
