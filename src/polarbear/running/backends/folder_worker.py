"""``run_folder_jobs``: make the runs of a shared folder, as ``polarbear worker FOLDER`` does.

Solvers and instances are code, which is not sent through the folder: a worker imports them from a
Python file or module that defines ``solvers`` and ``instances``, as they are passed to a race.
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
    read_file,
    read_job,
    rename_if_present,
    write_file,
)
from polarbear.running.solvers.configuration import load
from polarbear.running.solvers.exceptions import describe_exception
from polarbear.running.solvers.processes import start_when_possible
from polarbear.running.solvers.setup import Limits, Setup
from polarbear.running.workers.outcomes import to_plain
from polarbear.running.workers.worker_process import WorkerLost, WorkerProcess

TOUCHES_PER_PATIENCE = 5
"""How often a worker touches its claim in the time after which an untouched claim is stale."""


def run_folder_jobs(
    folder: str | os.PathLike[str],
    solvers: str,
    *,
    idle_seconds: float = 600.0,
    max_runs: int | None = None,
    pause: float = 0.5,
    report: Callable[[str], None] = lambda _: None,
) -> int:
    """Make the runs of a shared folder until its race is closed; return their number.

    Parameters
    ----------
    folder
        The folder of a :class:`~polarbear.running.backends.shared_folder.SharedFolder`.
    solvers
        A Python file ("race.py") or an importable module ("project.race") that defines ``solvers``
        and ``instances``, or a race file ("race.toml").
    idle_seconds
        Seconds without a job after which the worker leaves.
    max_runs
        The number of runs after which the worker leaves.
    pause
        Seconds between readings of the folder while there is no job.
    report
        Is called with a line of text about each run.
    """
    folder = Path(folder)
    setup, patience = _load_setup(folder, solvers, idle_seconds, pause)
    worker: WorkerProcess | None = None
    ignored: set[str] = set()  # names of files that can be neither claimed nor moved
    n_runs, last_run_at = 0, time.monotonic()
    try:
        while max_runs is None or n_runs < max_runs:
            claim = _claim_job(folder, ignored)
            job = None if claim is None else _read_claim(folder, claim, ignored, report)
            if claim is None:
                if (folder / CLOSED).exists() or time.monotonic() > last_run_at + idle_seconds:
                    break
                time.sleep(pause)
                continue
            if job is None:
                continue
            worker = WorkerProcess(setup) if worker is None else worker
            _make_run(folder, claim, job, worker, patience, report)
            n_runs += 1
            worker = None if worker.is_gone else worker
            last_run_at = time.monotonic()
    finally:
        if worker is not None:
            worker.close()
    return n_runs


def _read_claim(
    folder: Path, claim: Path, ignored: set[str], report: Callable[[str], None]
) -> Job | None:
    """Read a claimed job; a file that is not a job is moved to ``refused`` and reported."""
    name = claim.name.partition(".")[0]
    try:
        return read_job(claim, name)
    except (DataError, SolverError) as error:
        refused = folder / REFUSED / claim.name
        try:
            refused.parent.mkdir(exist_ok=True)
            claim.rename(refused)
        except OSError:
            ignored.add(name)
        report(escape_text(f"{JOBS}/{name}.json is set aside, in {REFUSED}: {error}"))
        return None


def _make_run(
    folder: Path,
    claim: Path,
    job: Job,
    worker: WorkerProcess,
    patience: float,
    report: Callable[[str], None],
) -> None:
    """Make the run of a claimed job, and write its result file."""
    name = claim.name.partition(".")[0]
    result = folder / RESULTS / f"{name}.json"
    try:
        with _keep_claim(claim, patience / TOUCHES_PER_PATIENCE):
            outcome = worker.make_run(job)
    except WorkerLost as error:  # the coordinator counts how often this job was lost
        write_file(result, {LOST: str(error)})
        claim.unlink(missing_ok=True)
        report(escape_text(f"{job.algorithm} on {job.instance}: lost, {error}"))
        return
    except BaseException:
        # If this worker is interrupted, another one can have the job at once.
        rename_if_present(claim, folder / JOBS / f"{name}.json")
        raise
    write_file(result, to_plain(outcome))
    claim.unlink(missing_ok=True)
    line = f"{job.algorithm} on {job.instance}: {outcome.run.status} {outcome.why}".rstrip()
    report(escape_text(line))


def _claim_job(folder: Path, ignored: set[str]) -> Path | None:
    """Claim a job of the folder by renaming its file; None if there is no job."""
    paths = [path for path in (folder / JOBS).glob("*.json") if path.stem not in ignored]
    # In random order: otherwise all workers would try to claim the same job.
    Random(os.getpid() ^ time.time_ns()).shuffle(paths)  # noqa: S311
    for path in paths:
        claim = folder / CLAIMS / f"{path.stem}.{socket.gethostname()}-{os.getpid()}"
        try:
            # The age of a claim is that of its last touch, and renaming does not touch.
            os.utime(path)
            if rename_if_present(path, claim):
                return claim
        except FileNotFoundError:
            continue
        except OSError:  # another user's file, without permission for us
            ignored.add(path.stem)
    return None


@contextmanager
def _keep_claim(claim: Path, pause: float) -> Iterator[None]:
    """Update the time stamp of a claimed job regularly, during the ``with`` statement."""
    is_over = threading.Event()

    def touch() -> None:
        while not is_over.wait(pause):
            try:
                os.utime(claim)
            except OSError:
                return  # the job was given to another worker

    thread = threading.Thread(target=touch, daemon=True)
    start_when_possible(thread.start)
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _load_setup(
    folder: Path, solvers: str, idle_seconds: float, pause: float
) -> tuple[Setup, float]:
    """Wait until the race's description is in the folder, and add this machine's solvers to it.

    Returns the setup, and the seconds after which an untouched claim is stale.
    """
    end = time.monotonic() + idle_seconds
    while not (folder / RACE).exists():
        if time.monotonic() > end:
            raise SolverError(
                f"no race was started in {folder} within {idle_seconds:g} seconds: start the race "
                "with this folder first"
            )
        time.sleep(pause)
    race = read_file(folder / RACE)
    code = load_code(solvers)
    try:
        setup = Setup.of(
            code["solvers"],
            code["instances"],
            times=race["times"],
            direction=race["direction"],
            clock=race["clock"],
            limits=Limits.from_stored(race["limits"]),
        ).rename_instances(race.get("aliases", {}))
        patience = float(race["patience"])
        missing = [name for name in race["solvers"] if name not in setup.solvers]
    except (KeyError, TypeError) as error:
        raise SolverError(
            f"the race in {folder / RACE} does not match {solvers}, pass the race's solvers: "
            f"{error}"
        ) from None
    if missing:
        raise SolverError(
            f"{solvers} does not define all solvers of the race: add {format_list(missing)}"
        )
    return setup, patience


def load_code(solvers: str) -> Mapping[str, Any]:
    """Return the objects that a Python file, a module or a race file defines, by name."""
    if solvers.endswith(".toml"):
        setup = load(solvers).setup
        return {"solvers": setup.solvers, "instances": setup.instances}
    try:
        if solvers.endswith(".py"):
            code: Mapping[str, Any] = runpy.run_path(solvers, run_name="polarbear_worker")
        else:
            code = vars(import_module(solvers))
    except Exception as error:
        raise SolverError(f"{solvers} cannot be loaded: {describe_exception(error)}") from None
    for name in ("solvers", "instances"):
        if name not in code:
            raise SolverError(f"{solvers} must define {name!r} at its top level")
    return code
