"""Commands that run solvers: check, race, worker."""

import argparse
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from polarbear.cli.answers import provenance, say
from polarbear.cli.options import (
    add_file,
    add_json,
    add_output,
    add_seed,
    add_workers,
    command,
)
from polarbear.cli.output import complain, shown, to_json, typed, without_password
from polarbear.errors import SolverError
from polarbear.racing.deadlines import parse_deadline

if TYPE_CHECKING:
    from polarbear.coordinator.run_race import Result, Watch
    from polarbear.running.solvers.configuration import Configuration
    from polarbear.running.solvers.instances import Instances


STORE = "where to keep the race, in place of what a file says: the same command resumes it"


def add(commands: argparse._SubParsersAction) -> None:
    """Add these commands."""
    _add_check(commands)
    _add_race(commands)
    _add_worker(commands)
    _add_gate(commands)


def _add_race(commands: argparse._SubParsersAction) -> None:
    parser = command(
        commands,
        "race",
        "race solvers until it is settled who belongs to the Pareto set",
        "Results are kept in a store; the same command resumes the race.",
        takes="FILE",
        examples=("race race.toml", "race race.toml --workers 4 --json > race.log"),
        run=_race,
    )
    add_file(parser, "file", help="a TOML file with solvers, instances, times and rules")
    add_workers(parser, "one for each core")
    add_file(parser, "--store", help=STORE)
    parser.add_argument(
        "--deadline",
        metavar="WHEN",
        help="when to stop, in place of what the file says: 8h from now, the next 18:30, or "
        "2030-01-31T18:30",
    )
    parser.add_argument(
        "--dask", metavar="ADDRESS", help="run on the Dask cluster with this scheduler"
    )
    add_file(
        parser,
        "--spool",
        metavar="FOLDER",
        help="leave the runs to `polarbear worker`s that share it",
    )
    parser.add_argument(
        "--accept-changes",
        action="store_true",
        help="resume although instances, solvers or limits changed under their names; recorded",
    )
    parser.add_argument("--quiet", action="store_true", help="print nothing before the end")
    add_json(parser, "a line of JSON for each thing that happens, and the answer")


def _race(wanted: argparse.Namespace) -> int:
    from polarbear.running.solvers.configuration import load

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
    wanted.store = store
    if wanted.deadline is not None:
        moment = parse_deadline(wanted.deadline, time.time())
        race = replace(race, rules=replace(race.rules, deadline=moment))
    try:
        with _ended_by(signal.SIGTERM):
            _conduct(wanted, race, store)
    except KeyboardInterrupt as ended:
        complain(f"interrupted: all that came in is in {store}. To go on: {typed(wanted)}")
        return 143 if isinstance(ended, _Terminated) else 130
    return 0


def _conduct(wanted: argparse.Namespace, race: "Configuration", store: str) -> None:
    from polarbear.coordinator.run_race import conducted

    with _view(wanted, store) as watch:
        result = conducted(
            race.setup,
            race.rules,
            store=store,
            executor=_executor(wanted),
            seed=race.seed,
            fit=race.fit,
            progress=watch,
            accept_changes=wanted.accept_changes,
        )
    with result:
        statuses = result.statuses()
        if not wanted.json:
            print(shown("\n".join(map(str, [result, *statuses]))))
        else:
            kept = without_password(store)
            plain = {"verdict": statuses, "failures": result.failures, "store": kept}
            plain["provenance"] = provenance(wanted, posterior=result.posterior)
            print(to_json({**_summary(result), **plain}, indent=None), flush=True)


def _summary(result: "Result") -> dict[str, object]:
    names = ("pareto", "eliminated", "resolved", "ended", "rounds", "n_runs", "spent")
    return {name: getattr(result, name) for name in names}


@contextmanager
def _view(wanted: argparse.Namespace, store: str) -> "Iterator[bool | Watch]":
    """What shows the race: a screen if there is one, and else lines."""
    from polarbear.live.json_lines import writer

    if wanted.quiet:
        yield False
    elif wanted.json:
        yield writer(lambda line: print(line, flush=True))
    elif not _is_drawable():
        yield True
    else:
        from polarbear.live.terminal import Screen

        named = without_password(store)
        hint = f"Ctrl-C stops; the same command goes on. In a browser: polarbear serve {named}"
        with Screen(f"race {Path(wanted.file).name}", hint) as screen:
            yield screen


def _is_drawable() -> bool:
    """Whether there is a terminal that can move its cursor, and what draws on it."""
    from importlib.util import find_spec

    able = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    return able and find_spec("rich") is not None


class _Terminated(KeyboardInterrupt):
    """Somebody wants this process to end, as batch systems do when the time is over."""


@contextmanager
def _ended_by(number: int) -> Iterator[None]:
    def end(*_: object) -> None:
        raise _Terminated

    before = signal.signal(number, end)
    try:
        yield
    finally:
        signal.signal(number, before)


def _executor(wanted: argparse.Namespace) -> object:
    if wanted.dask is not None:
        from polarbear.errors import require

        return require("distributed", extra="dask").Client(wanted.dask)
    if wanted.spool is not None:
        from polarbear.running.backends.shared_folder import Spool

        return Spool(wanted.spool)
    return wanted.workers


GATE_EXAMPLE = (
    "gate --old './v1 {instance}' --new './v2 {instance}' --pattern '(?P<value>.*)' "
    "--direction minimize --budgets 1,10,60 instances/"
)
REPEATED = " #"
"""Before the number of a repeated instance in its name."""

GATE_ERROR = 3
"""Exit code of a gate that could not be run: 0, 1 and 2 are its answers."""


def _add_gate(commands: argparse._SubParsersAction) -> None:
    parser = command(
        commands,
        "gate",
        "test that a new version of a program is no worse than the old one, at every budget",
        "Exit code 0: pass. 1: fail. 2: undecided. 3: it could not be run.",
        takes="--old COMMAND --new COMMAND --budgets T,T,... INSTANCE ...",
        examples=(GATE_EXAMPLE,),
        run=_gate,
    )
    add_file(parser, "instances", nargs="+", help="files, or folders of files")
    add = parser.add_argument
    for name in ("old", "new"):
        add(f"--{name}", required=True, metavar="COMMAND", help=f"the {name} program: see Command")
    add_output(parser)
    add("--budgets", required=True, help="the times at which the two are compared: 1,10,60")
    add("--epsilon", type=float, help="the margin within which algorithms are equivalent (0.05)")
    add("--alpha", type=float, default=0.95, help="the certainty of the answer (0.95)")
    add(
        "--reuse",
        type=int,
        default=1,
        metavar="N",
        help="use each instance up to N times, with other seeds (1)",
    )
    add("--max-runs", type=int, help="make at most this many runs; the answer may be undecided")
    add_file(parser, "--store", help=STORE)
    add_file(parser, "--markdown", metavar="FILE", help="write a summary for a pull request")
    add_seed(parser)
    add_workers(parser, "one for each core")
    add("--quiet", action="store_true", help="print nothing before the end")
    add_json(parser)


def _gate(wanted: argparse.Namespace) -> int:
    from polarbear.coordinator.gate import gate
    from polarbear.errors import PolarBearError
    from polarbear.running.solvers.commands import Command

    try:
        answer = gate(
            Command(wanted.old, pattern=wanted.pattern),
            Command(wanted.new, pattern=wanted.pattern),
            _instances(wanted.instances, wanted.reuse),
            [float(time) for time in wanted.budgets.split(",")],
            direction=wanted.direction,
            epsilon=0.05 if wanted.epsilon is None else wanted.epsilon,
            alpha=wanted.alpha,
            max_runs=wanted.max_runs,
            store=wanted.store,
            executor=wanted.workers,
            seed=wanted.seed,
            progress=False if wanted.quiet or wanted.json else None,
        )
    except (PolarBearError, ValueError) as error:
        complain(error, wanted)
        return GATE_ERROR
    if wanted.markdown:
        Path(wanted.markdown).write_text(answer.markdown())
    say(wanted, answer, answer.to_dict())
    return answer.exit_code


def _instances(given: list[str], repeat: int) -> "dict[str, str] | Instances":
    """Return the paths of instances by name; one that is used again has a number in its name."""
    from polarbear.running.solvers.instances import Instances

    paths: list[Path] = []
    for one in map(Path, given):
        if not one.exists():
            raise SolverError(f"{one}: there is no such file or folder")
        inside = (
            sorted(path for path in one.rglob("*") if path.is_file()) if one.is_dir() else [one]
        )
        paths += inside
    if not paths:
        raise SolverError(f"{', '.join(given)}: there are no files in it")
    if repeat <= 1:
        return {str(path): str(path) for path in paths}
    names = [f"{path}{REPEATED}{k}" for k in range(1, repeat + 1) for path in paths]
    return Instances(tuple(names), _path_of)


def _path_of(name: str) -> str:
    """Return the path of an instance that is used several times."""
    return name.rpartition(REPEATED)[0]


def _add_check(commands: argparse._SubParsersAction) -> None:
    parser = command(
        commands,
        "check",
        "run each solver of a race once, for a moment",
        "Says how each was understood and what it found, before a race is paid for.",
        takes="FILE",
        examples=("check race.toml --seconds 5",),
        run=_check,
    )
    add_file(parser, "file", help="a TOML file with solvers, instances, times and rules")
    parser.add_argument(
        "--seconds", type=float, default=2.0, metavar="S", help="how long each solver may run (2)"
    )
    add_json(parser)


def _check(wanted: argparse.Namespace) -> int:
    from polarbear.running.backends.checking import checked
    from polarbear.running.solvers.configuration import load
    from polarbear.running.workers.outcomes import Outcome

    race = load(wanted.file)
    checks = checked(race.setup, seconds=wanted.seconds, seed=race.seed)
    plain = {
        "solvers": {
            name: {"status": made.run.status, "until": made.run.until, "seconds": made.seconds}
            for name, made in checks.outcomes.items()
            if isinstance(made, Outcome)
        },
        "direction": race.setup.direction,
        "clock": race.setup.clock,
        "times": race.setup.times,
        "problems": checks.problems,
    }
    say(wanted, checks, plain)
    return 1 if checks.problems else 0


def _add_worker(commands: argparse._SubParsersAction) -> None:
    parser = command(
        commands,
        "worker",
        "make runs for a race that was started with --spool FOLDER",
        "One run at a time, in a process of its own.",
        takes="--solvers FILE FOLDER",
        examples=(
            "worker /scratch/race --solvers race.toml",
            "worker /scratch/race --solvers solvers.py --most 100",
        ),
        run=_worker,
    )
    add_file(parser, "folder", help="the folder that `polarbear race --spool` was given")
    add_file(
        parser,
        "--solvers",
        required=True,
        metavar="FILE",
        help="race.toml, or a Python file or module that has `solvers` and `instances`",
    )
    parser.add_argument(
        "--idle",
        type=float,
        default=600.0,
        metavar="S",
        help="end after this many seconds without a run to make (600)",
    )
    parser.add_argument("--most", type=int, metavar="N", help="end after this many runs")


def _worker(wanted: argparse.Namespace) -> int:
    from polarbear.running.backends.folder_worker import work_on

    def say(line: str) -> None:
        print(line, flush=True)

    # What a batch system sends when the time is over: leave in good order.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))

    made = work_on(wanted.folder, wanted.solvers, idle=wanted.idle, most=wanted.most, say=say)
    print(f"{made} runs made")
    return 0
