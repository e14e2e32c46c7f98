"""Commands about runs that are there: calibration, replay."""

import argparse
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import polarbear

PRIORS = (
    "Dirichlet",
    "HierarchicalDirichlet",
    "BSpline",
    "RandomWalk",
    "SparseGP",
    "HSGP",
    "GP",
)


COLUMNS = ("algorithm", "instance", "time", "value", "repetition", "until")


def add(commands: argparse._SubParsersAction) -> None:
    """Add these commands."""
    _add_calibration(commands)
    _add_replay(commands)


def _add_calibration(commands: argparse._SubParsersAction) -> None:
    about = "how far can certainty be trusted on data like yours?"
    parser = commands.add_parser(
        "calibration",
        help=about,
        description=about.capitalize()
        + " Data sets are drawn from your instances and fitted, and what is claimed is counted "
        "against what is true of all your instances.",
    )
    parser.add_argument("source", help="a file, folder or archive of results")
    _add_reading(parser)
    parser.add_argument("--prior", choices=PRIORS, default="Dirichlet")
    parser.add_argument("--instances", type=int, help="of each data set (as many as yours)")
    parser.add_argument("--replicates", type=int, default=100, help="data sets (100)")
    parser.add_argument("--seed", type=int, default=0)
    parser.set_defaults(run=_calibration)


def _add_replay(commands: argparse._SubParsersAction) -> None:
    about = "what would racing have saved on your results?"
    parser = commands.add_parser(
        "replay",
        help=about,
        description=about.capitalize()
        + " A race over recorded runs: what it would have asked for is looked up.",
    )
    parser.add_argument("source", help="a file, folder or archive of results")
    _add_reading(parser)
    parser.add_argument("--alpha", type=float, default=0.99, help="how sure to be (0.99)")
    parser.add_argument("--epsilon", type=float, default=0.05, help="what is the same (0.05)")
    parser.add_argument("--elimination", choices=("joint", "pointwise"), default="joint")
    parser.add_argument("--resolution", choices=("crossing", "strict"), default="crossing")
    parser.add_argument(
        "--looks",
        choices=("fixed", "shared", "betting"),
        default="fixed",
        help="whether alpha holds for each look (fixed), or for all looks together",
    )
    parser.add_argument("--allocation", choices=("focused", "paper"), default="focused")
    parser.add_argument("--batch", type=int, nargs=2, default=(8, 64), metavar=("LEAST", "MOST"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--repeat", type=int, default=1, help="replay with so many seeds (1)")
    parser.add_argument("--jobs", type=int, default=1, help="so many at once (1)")
    parser.set_defaults(run=_replay)


def _add_reading(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--direction", choices=("minimize", "maximize"), help="which values are good"
    )
    parser.add_argument("--format", help="of the files, if it is not found out")
    parser.add_argument("--clock", help="what times count: evaluations, seconds, ...")
    for name in COLUMNS:
        parser.add_argument(f"--{name}", metavar="COLUMN", help=f"the column of the {name}")
    parser.add_argument("--times", type=int, metavar="N", help="rank at N times (where data are)")


def _runs(wanted: argparse.Namespace) -> polarbear.Runs:
    options = ("direction", "format", "clock", *COLUMNS)
    named = {name: getattr(wanted, name) for name in options}
    return polarbear.read(wanted.source, **{k: v for k, v in named.items() if v is not None})


def _times(runs: polarbear.Runs, wanted: argparse.Namespace) -> Any:
    return None if wanted.times is None else polarbear.grid.from_runs(runs, wanted.times)


def _replay(wanted: argparse.Namespace) -> int:
    runs = _runs(wanted)
    rules = polarbear.Rules(
        wanted.alpha,
        wanted.epsilon,
        wanted.elimination,
        wanted.resolution,
        wanted.looks,
        wanted.allocation,
        batch=tuple(wanted.batch),
    )
    if wanted.repeat > 1:
        seeds = range(wanted.seed, wanted.seed + wanted.repeat)
        with ProcessPoolExecutor(wanted.jobs) as pool:
            print(
                polarbear.replay_many(
                    runs, rules, times=_times(runs, wanted), seeds=seeds, map=pool.map
                )
            )
        return 0
    found = polarbear.replay(runs, rules, times=_times(runs, wanted), seed=wanted.seed)
    print(found)
    for name in found.eliminated:
        print(found.race.verdict(name))
    return 0


def _calibration(wanted: argparse.Namespace) -> int:
    runs = _runs(wanted)
    found = polarbear.calibrate(
        runs,
        times=_times(runs, wanted),
        prior=getattr(polarbear.priors, wanted.prior)(),
        instances=wanted.instances,
        replicates=wanted.replicates,
        seed=wanted.seed,
    )
    print(found)
    return 0
