"""The command line."""

import argparse
import signal
import sys
from collections.abc import Sequence
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``polarbear`` with these arguments, by default those of the process."""
    parser = argparse.ArgumentParser(
        prog="polarbear",
        description="Which optimisation algorithm should I run when I do not know my budget?",
    )
    parser.add_argument("--version", action="version", version=f"polarbear {polarbear.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    _add_calibration(commands)
    _add_replay(commands)
    _add_check(commands)
    _add_worker(commands)
    _add_store(commands)
    wanted = parser.parse_args(arguments)
    if "run" not in wanted:
        parser.print_help()
        return 0
    try:
        return wanted.run(wanted)
    except polarbear.PolarBearError as error:
        print(f"polarbear: {error}", file=sys.stderr)
        return 1


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


def _add_check(commands: argparse._SubParsersAction) -> None:
    about = "run each solver of a race once, for a moment"
    parser = commands.add_parser(
        "check",
        help=about,
        description=about.capitalize() + ", and say what was understood, before it gets expensive.",
    )
    parser.add_argument("file", help="the race, as TOML")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each solver (2)")
    parser.set_defaults(run=_check)


def _check(wanted: argparse.Namespace) -> int:
    from polarbear.running.checking import checked
    from polarbear.running.configuration import load

    race = load(wanted.file)
    found = checked(race.setup, seconds=wanted.seconds, seed=race.seed)
    print(found)
    return 1 if found.problems else 0


def _add_worker(commands: argparse._SubParsersAction) -> None:
    about = "make the runs of a race that shares a folder with you"
    parser = commands.add_parser(
        "worker",
        help=about,
        description=about.capitalize() + ": one run at a time, in a process of its own.",
    )
    parser.add_argument("folder", help="the folder of the race: executor=Spool(folder)")
    parser.add_argument(
        "--solvers",
        required=True,
        metavar="FILE",
        help="a Python file or module that has `solvers` and `instances`",
    )
    parser.add_argument(
        "--idle", type=float, default=600.0, help="leave after so many seconds without a job (600)"
    )
    parser.add_argument("--most", type=int, help="leave after so many runs")
    parser.set_defaults(run=_worker)


def _worker(wanted: argparse.Namespace) -> int:
    from polarbear.running.worker import work_on

    def say(line: str) -> None:
        print(line, flush=True)

    # What a batch system sends when the time is over: leave in good order.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))

    made = work_on(wanted.folder, wanted.solvers, idle=wanted.idle, most=wanted.most, say=say)
    print(f"{made} runs made")
    return 0


def _add_store(commands: argparse._SubParsersAction) -> None:
    where = "the store of a race: a file, or a postgresql:// URL; it may be in use"
    status = commands.add_parser("status", help="where does a race stand?")
    status.add_argument("store", help=where)
    status.set_defaults(run=_status)
    export = commands.add_parser("export", help="the runs of a race as a Parquet file")
    export.add_argument("store", help=where)
    export.add_argument("target", help="a Parquet file")
    export.set_defaults(run=_export)
    merge = commands.add_parser("merge", help="the runs of races at several sites in one store")
    merge.add_argument("sources", nargs="+", metavar="store", help=where)
    merge.add_argument("target", help="a new store, or that of a race")
    merge.set_defaults(run=_merge)
    salvage = commands.add_parser(
        "salvage", help="copy what is sound in a damaged store, or one of an earlier format"
    )
    salvage.add_argument("damaged", help="the file, which is only read")
    salvage.add_argument("repaired", help="a new file")
    salvage.set_defaults(run=_salvage)


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


def _status(wanted: argparse.Namespace) -> int:
    with polarbear.open_store(wanted.store, read_only=True) as store:
        print(store.status())
    return 0


def _export(wanted: argparse.Namespace) -> int:
    with polarbear.open_store(wanted.store, read_only=True) as store:
        runs = store.runs()
    runs.to_parquet(wanted.target)
    print(runs)
    return 0


def _merge(wanted: argparse.Namespace) -> int:
    merged = polarbear.store.merge(wanted.sources, wanted.target)
    print(merged)
    for remark in merged.conflicts:
        run = remark.refused.run
        print(f"repetition {run.repetition} of {run.algorithm!r} on instance {run.instance!r}")
    return 0


def _salvage(wanted: argparse.Namespace) -> int:
    print(polarbear.store.salvage(wanted.damaged, wanted.repaired))
    return 0
