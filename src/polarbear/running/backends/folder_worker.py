"""``polarbear worker FOLDER``: makes the runs that a coordinator puts into a folder.

Solvers and instances are code, which does not go through the folder: a worker takes them from a
Python file or module that has ``solvers`` and ``instances``, as they are passed to a race.
"""

import os
import runpy
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

from polarbear._text import escape_text, format_list
from polarbear.errors import DataError, SolverError
from polarbear.racing.jobs import Job
from polarbear.running.backends.shared_folder import (
    CLAIMS,
    CLOSED,
    JOBS,
    LOST,
    RACE,
    REFUSED,
    RESULTS,
    read,
    read_job,
    taken,
    write,
)
from polarbear.running.solvers.configuration import load
from polarbear.running.solvers.exceptions import describe_exception
from polarbear.running.solvers.processes import start_when_possible
from polarbear.running.solvers.setup import Limits, Setup
from polarbear.running.workers.outcomes import to_plain
from polarbear.running.workers.worker_process import Slot, SlotGone

SIGNS = 5
"""Signs of life that a worker gives before it is taken for dead."""


def work_on(
    folder: str | os.PathLike[str],
    solvers: str,
    *,
    idle: float = 600.0,
    most: int | None = None,
    pause: float = 0.5,
    say: Callable[[str], None] = lambda _: None,
) -> int:
    """Make runs until the race is closed: how many it were.

    Parameters
    ----------
    folder
        The folder of a :class:`~polarbear.running.backends.shared_folder.Spool`.
    solvers
        A Python file ("race.py") or an importable module ("project.race") that has ``solvers`` and
        ``instances``, or the race as a TOML file ("race.toml").
    idle
        Seconds without a job after which the worker leaves.
    most
        The number of runs after which the worker leaves.
    """
    place = Path(folder)
    setup, patience = _setup(place, solvers, idle, pause)
    slot: Slot | None = None
    ignored: set[str] = set()  # names of files that can be neither claimed nor moved
    made, last = 0, time.monotonic()
    try:
        while most is None or made < most:
            claim = _claimed(place, ignored)
            job = None if claim is None else _job(place, claim, ignored, say)
            if claim is None:
                if (place / CLOSED).exists() or time.monotonic() > last + idle:
                    break
                time.sleep(pause)
                continue
            if job is None:
                continue
            slot = Slot(setup) if slot is None else slot
            _perform(place, claim, job, slot, patience, say)
            made += 1
            slot = None if slot.gone else slot
            last = time.monotonic()
    finally:
        if slot is not None:
            slot.close()
    return made


def _job(place: Path, claim: Path, ignored: set[str], say: Callable[[str], None]) -> Job | None:
    """The job of a claim; a file that holds none is set aside, and said."""
    name = claim.name.partition(".")[0]
    try:
        return read_job(claim, name)
    except (DataError, SolverError) as error:
        aside = place / REFUSED / claim.name
        try:
            aside.parent.mkdir(exist_ok=True)
            claim.rename(aside)
        except OSError:
            ignored.add(name)
        say(escape_text(f"{JOBS}/{name}.json is set aside, in {REFUSED}: {error}"))
        return None


def _perform(
    place: Path,
    claim: Path,
    job: Job,
    slot: Slot,
    patience: float,
    say: Callable[[str], None],
) -> None:
    name = claim.name.partition(".")[0]
    try:
        with _alive(claim, patience / SIGNS):
            outcome = slot.run(job)
    except SlotGone as error:  # the coordinator knows how often this run was lost already
        write(place / RESULTS / f"{name}.json", {LOST: str(error)})
        claim.unlink(missing_ok=True)
        say(escape_text(f"{job.algorithm} on {job.instance}: lost, {error}"))
        return
    except BaseException:
        # A worker that is told to end lets another one have the job at once.
        taken(claim, place / JOBS / f"{name}.json")
        raise
    write(place / RESULTS / f"{name}.json", to_plain(outcome))
    claim.unlink(missing_ok=True)
    said = f"{job.algorithm} on {job.instance}: {outcome.run.status} {outcome.why}".rstrip()
    say(escape_text(said))


def _claimed(place: Path, ignored: set[str]) -> Path | None:
    """Claim any job that is there."""
    waiting = [path for path in (place / JOBS).glob("*.json") if path.stem not in ignored]
    # Not all in the same order, for then all workers would want the same one.
    Random(os.getpid() ^ time.time_ns()).shuffle(waiting)  # noqa: S311
    for path in waiting:
        claim = place / CLAIMS / f"{path.stem}.{socket.gethostname()}-{os.getpid()}"
        try:
            # A claim is as old as its last touch, and renaming is none.
            os.utime(path)
            if taken(path, claim):
                return claim
        except FileNotFoundError:
            continue
        except OSError:  # of somebody else, who does not let us have it
            ignored.add(path.stem)
    return None


@contextmanager
def _alive(claim: Path, pause: float) -> Iterator[None]:
    """Touch a claim as long as its run goes on."""
    over = threading.Event()

    def touch() -> None:
        while not over.wait(pause):
            try:
                os.utime(claim)
            except OSError:
                return  # given to somebody else

    thread = threading.Thread(target=touch, daemon=True)
    start_when_possible(thread.start)
    try:
        yield
    finally:
        over.set()
        thread.join()


def _setup(place: Path, solvers: str, idle: float, pause: float) -> tuple[Setup, float]:
    """What to run, by the coordinator's description and our own code."""
    end = time.monotonic() + idle
    while not (place / RACE).exists():
        if time.monotonic() > end:
            raise SolverError(f"no race has come to {place} within {idle:g} seconds")
        time.sleep(pause)
    race = read(place / RACE)
    code = code_of(solvers)
    try:
        setup = Setup.of(
            code["solvers"],
            code["instances"],
            times=race["times"],
            direction=race["direction"],
            clock=race["clock"],
            limits=Limits(**race["limits"]),
        ).renamed(race.get("aliases", {}))
        patience = float(race["patience"])
        missing = [name for name in race["solvers"] if name not in setup.solvers]
    except (KeyError, TypeError) as error:
        raise SolverError(f"{place / RACE} and {solvers} do not go together: {error}") from None
    if missing:
        raise SolverError(f"{solvers} has no solver named {format_list(missing)}")
    return setup, patience


def code_of(solvers: str) -> Mapping[str, Any]:
    """The names that a Python file or module defines, or those of a race as a TOML file."""
    if solvers.endswith(".toml"):
        setup = load(solvers).setup
        return {"solvers": setup.solvers, "instances": setup.instances}
    try:
        if solvers.endswith(".py"):
            found: Mapping[str, Any] = runpy.run_path(solvers, run_name="polarbear_worker")
        else:
            found = vars(import_module(solvers))
    except Exception as error:
        raise SolverError(f"{solvers} cannot be loaded: {describe_exception(error)}") from None
    for name in ("solvers", "instances"):
        if name not in found:
            raise SolverError(f"{solvers} defines no {name!r}")
    return found
