"""Commands that run solvers: check, race, worker."""

import argparse
import signal
import sys

from polarbear.cli.options import add_file, add_json, add_workers, command
from polarbear.cli.output import say
from polarbear.errors import SolverError


def add(commands: argparse._SubParsersAction) -> None:
    """Add these commands."""
    _add_check(commands)
    _add_race(commands)
    _add_worker(commands)


def _add_race(commands: argparse._SubParsersAction) -> None:
    parser = command(
        commands,
        "race",
        "race solvers until it is settled who belongs to the Pareto set",
        "What was found is kept in a store; the same command goes on where it was.",
        takes="FILE",
        examples=("race race.toml", "race race.toml --workers 4 --json > race.log"),
        run=_race,
    )
    add_file(parser, "file", help="a TOML file that says what to run")
    add_workers(parser, "one for each core")
    add_file(parser, "--store", help="where to keep the race, if not where the file says")
    parser.add_argument("--dask", metavar="ADDRESS", help="run on the cluster of this scheduler")
    add_file(parser, "--spool", metavar="FOLDER", help="run by workers that share this folder")
    parser.add_argument("--quiet", action="store_true", help="say nothing on the way")
    add_json(parser, "a line of JSON for each thing that happens, and the answer")


def _race(wanted: argparse.Namespace) -> int:
    from polarbear.coordinator import conducted
    from polarbear.running.configuration import load

    ways = {"--workers": wanted.workers, "--dask": wanted.dask, "--spool": wanted.spool}
    chosen = [name for name, value in ways.items() if value is not None]
    if len(chosen) > 1:
        raise SolverError(f"{' and '.join(chosen)}: a race runs in one place")
    race = load(wanted.file)
    store = wanted.store or race.store
    if store is None:
        raise SolverError(
            f"{wanted.file} has no store, and there is no --store: nothing would last"
        )
    with conducted(
        race.setup,
        race.rules,
        store=store,
        executor=_executor(wanted),
        seed=race.seed,
        progress=not wanted.quiet,
    ) as found:
        print(found)
        for name in (*found.eliminated, *found.pareto):
            print(found.verdict(name))
    return 0


def _executor(wanted: argparse.Namespace) -> object:
    if wanted.dask is not None:
        from polarbear.errors import require

        return require("distributed", extra="dask").Client(wanted.dask)
    if wanted.spool is not None:
        from polarbear.running.spool import Spool

        return Spool(wanted.spool)
    return wanted.workers


def _add_check(commands: argparse._SubParsersAction) -> None:
    parser = command(
        commands,
        "check",
        "run each solver of a race once, for a moment",
        "Says what was understood, before it gets expensive.",
        takes="FILE",
        examples=("check race.toml --seconds 5",),
        run=_check,
    )
    add_file(parser, "file", help="a TOML file that says what to run")
    parser.add_argument(
        "--seconds", type=float, default=2.0, metavar="S", help="for each solver (2)"
    )
    add_json(parser)


def _check(wanted: argparse.Namespace) -> int:
    from polarbear.running.checking import checked
    from polarbear.running.configuration import load
    from polarbear.running.outcomes import Outcome

    race = load(wanted.file)
    found = checked(race.setup, seconds=wanted.seconds, seed=race.seed)
    plain = {
        "solvers": {
            name: {"status": made.run.status, "until": made.run.until, "seconds": made.seconds}
            for name, made in found.outcomes.items()
            if isinstance(made, Outcome)
        },
        "direction": race.setup.direction,
        "clock": race.setup.clock,
        "times": race.setup.times,
        "problems": found.problems,
    }
    say(wanted, found, plain)
    return 1 if found.problems else 0


def _add_worker(commands: argparse._SubParsersAction) -> None:
    parser = command(
        commands,
        "worker",
        "make the runs of a race that shares a folder with you",
        "One run at a time, in a process of its own.",
        takes="--solvers FILE FOLDER",
        examples=("worker /scratch/race --solvers solvers.py",),
        run=_worker,
    )
    add_file(parser, "folder", help="the folder that `polarbear race --spool` was given")
    add_file(
        parser,
        "--solvers",
        required=True,
        metavar="FILE",
        help="a Python file or module that has `solvers` and `instances`",
    )
    parser.add_argument(
        "--idle",
        type=float,
        default=600.0,
        metavar="S",
        help="leave after so many seconds without a job (600)",
    )
    parser.add_argument("--most", type=int, metavar="N", help="leave after so many runs")


def _worker(wanted: argparse.Namespace) -> int:
    from polarbear.running.worker import work_on

    def say(line: str) -> None:
        print(line, flush=True)

    # What a batch system sends when the time is over: leave in good order.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))

    made = work_on(wanted.folder, wanted.solvers, idle=wanted.idle, most=wanted.most, say=say)
    print(f"{made} runs made")
    return 0
