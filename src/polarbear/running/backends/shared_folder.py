"""``SharedFolder``: exchange job files and result files with workers through a folder.

For clusters on which no process may listen to connections. The coordinator and any number of
``polarbear worker FOLDER`` share a folder, on one machine or on a network file system. They need
not run at the same time.

1. A file is written under another name and renamed when it is complete, so that no reader sees a
   part of it.
2. A worker claims a job by renaming it: one worker succeeds, for the others the file is missing.
   During the run it touches the claim. A claim that is not touched for long becomes a job again.
3. A result stays until the coordinator asks for the next ones. If the coordinator is killed before,
   it finds the results when it submits the same jobs again.
4. Files are JSON. Nothing in them is evaluated or unpickled. Their names are hashes, so that
   algorithms and instances may have any name. A file among the jobs that is not a job is moved to
   ``refused``.
"""

import json
import os
import stat
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, get_type_hints
from uuid import uuid4

from polarbear.errors import DataError, SolverError
from polarbear.racing.jobs import Job
from polarbear.running.solvers.identity import BUILD_FUNCTION, identify
from polarbear.running.solvers.setup import Setup
from polarbear.running.workers.outcomes import LostRun, RunOutcome, from_plain

JOBS, CLAIMS, RESULTS, REFUSED = "jobs", "claims", "results", "refused"
RACE, CLOSED = "race.json", "closed"

MAX_FILE_BYTES = 16_000_000
"""Larger files are refused."""

VERSION = 1

LOST = "lost"
"""The key of the reason in the result file of a run that was lost with its worker process."""


@dataclass(frozen=True)
class SharedFolder:
    """An executor that makes runs on every machine where ``polarbear worker FOLDER`` runs.

    Attributes
    ----------
    folder
        The folder of one race; it is created if it does not exist.
    patience
        Seconds without a sign of life after which the job of a worker is given to another one.
    pause
        Seconds between readings of the folder.

    Examples
    --------
    >>> folder = SharedFolder("/shared/race-1", patience=300)   # executor=folder in race or check
    """

    folder: str | os.PathLike[str]
    patience: float = 120.0
    pause: float = 0.2

    def start_backend(self, setup: Setup) -> "SharedFolderBackend":
        """Start the backend of a race; :func:`polarbear.race` calls it."""
        return SharedFolderBackend(setup, self)


class SharedFolderBackend:
    """A backend that exchanges jobs and results with workers through a folder."""

    def __init__(self, setup: Setup, options: SharedFolder) -> None:
        self._options = options
        self._identity = identify(setup)
        self._folder = Path(options.folder)
        self._pending: dict[str, Job] = {}  # by the name of the file
        self._returned: list[str] = []  # names of results that are not deleted yet
        self._checked_claims_at = 0.0
        for name in (JOBS, CLAIMS, RESULTS, REFUSED):
            (self._folder / name).mkdir(parents=True, exist_ok=True)
        self._write_race(_describe_race(setup) | {"patience": options.patience})
        (self._folder / CLOSED).unlink(missing_ok=True)

    @property
    def pending(self) -> int:
        """The number of submitted jobs that have no outcome yet."""
        return len(self._pending)

    def submit(self, jobs: Iterable[Job]) -> None:
        """Write jobs to the folder, unless they are claimed or have results already."""
        claimed = {path.name.partition(".")[0] for path in (self._folder / CLAIMS).iterdir()}
        for job in jobs:
            code = self._fingerprint(job)
            name = hash_job(job, code)
            self._pending[name] = job
            if name in self._returned:  # the coordinator does not keep that result
                self._returned.remove(name)
                self._path(RESULTS, name).unlink(missing_ok=True)
            if name not in claimed and not self._path(RESULTS, name).exists():
                content = {"version": VERSION, "job": job._asdict(), "code": code}
                write_file(self._path(JOBS, name), content)

    def outcomes(self, timeout: float | None = None) -> list[RunOutcome | LostRun]:
        """Wait for outcomes, after deleting the result files that were returned before."""
        for name in self._returned:
            self._path(RESULTS, name).unlink(missing_ok=True)
        self._returned = []
        end = None if timeout is None else time.monotonic() + timeout
        while self._pending:
            outcomes = self._read_results()
            if outcomes or (end is not None and time.monotonic() >= end):
                return outcomes
            self._release_stale_claims()
            time.sleep(self._options.pause)
        return []

    def cancel(self, algorithms: Collection[str]) -> list[Job]:
        """Cancel the jobs of these algorithms that no worker has claimed, and return them."""
        cancelled = []
        for name, job in list(self._pending.items()):
            if job.algorithm in algorithms and delete_if_present(self._path(JOBS, name)):
                cancelled.append(self._pending.pop(name))
        return cancelled

    def close(self) -> None:
        """Cancel the jobs that no worker has claimed, and tell the workers to exit."""
        self.cancel({job.algorithm for job in self._pending.values()})
        (self._folder / CLOSED).touch()

    def _write_race(self, race: dict[str, Any]) -> None:
        """Write the description of the race; raise an error if the folder has another race."""
        path = self._folder / RACE
        before = read_file(path) if path.exists() else race
        for name in ("times", "direction", "clock"):
            if before.get(name) != race[name]:
                raise SolverError(
                    f"{self._folder} is the folder of another race, with {name} "
                    f"{before.get(name)!r}: pass another folder"
                )
        write_file(path, race)

    def _fingerprint(self, job: Job) -> str:
        """Return the fingerprints of a job's solver and instance: other code, other results."""
        solver = self._identity.solvers.get(job.algorithm, {}).get("content", "")
        known = self._identity.instances
        return f"{solver} {known.get(job.instance, '')} {known.get(BUILD_FUNCTION, '')}"

    def _path(self, kind: str, name: str) -> Path:
        return self._folder / kind / f"{name}.json"

    def _read_results(self) -> list[RunOutcome | LostRun]:
        """Read the result files of pending jobs; a job with a damaged file counts as lost."""
        outcomes: list[RunOutcome | LostRun] = []
        for path in sorted((self._folder / RESULTS).glob("*.json")):
            if path.stem not in self._pending:
                continue  # late, or of another race that used the folder
            job = self._pending.pop(path.stem)
            for claim in (self._folder / CLAIMS).glob(f"{path.stem}.*"):
                claim.unlink(missing_ok=True)  # its worker may not have done so yet
            try:
                content = read_file(path)
                if isinstance(content.get(LOST), str):
                    path.unlink(missing_ok=True)
                    outcomes.append(LostRun(job, content[LOST]))
                    continue
                outcome = from_plain(content)
                if outcome.job != job:
                    raise DataError("the file holds the result of another job")
                outcomes.append(outcome)
                self._returned.append(path.stem)
            except DataError as error:
                path.unlink(missing_ok=True)
                outcomes.append(LostRun(job, f"{path.name}: {error}"))
        return outcomes

    def _release_stale_claims(self) -> None:
        """Release claimed jobs whose workers have not touched them for a long time."""
        if time.monotonic() < self._checked_claims_at + self._options.patience / 10:
            return
        self._checked_claims_at = time.monotonic()
        # By the clock of the file system, which is the same for all machines that share it.
        clock_file = self._folder / f"now-{uuid4().hex}"
        clock_file.touch()
        oldest = clock_file.stat().st_mtime - self._options.patience
        clock_file.unlink()
        for claim in (self._folder / CLAIMS).iterdir():
            name = claim.name.partition(".")[0]
            try:
                if name in self._pending and claim.stat().st_mtime < oldest:
                    rename_if_present(claim, self._path(JOBS, name))
            except FileNotFoundError:
                continue  # done meanwhile


def hash_job(job: Job, code: str) -> str:
    """Return the base name of a job's files: a hash of the job, and of the code that it runs."""
    return blake2b(json.dumps([job, code]).encode(), digest_size=16).hexdigest()


def _describe_race(setup: Setup) -> dict[str, Any]:
    """Return all that workers need to know of a race, except the code of solvers and instances."""
    return {
        "version": VERSION,
        "solvers": list(setup.solvers),
        "times": list(setup.times),
        "direction": setup.direction,
        "clock": setup.clock,
        "limits": setup.limits.to_stored(),
        "aliases": dict(setup.aliases),
    }


def rename_if_present(path: Path, target: Path) -> bool:
    """Rename a file; return false if another process renamed or deleted it before."""
    try:
        path.rename(target)
    except FileNotFoundError:
        return False
    return True


def delete_if_present(path: Path) -> bool:
    """Delete a file; return false if another process renamed or deleted it before."""
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    return True


def write_file(path: Path, content: dict[str, Any]) -> None:
    """Write a JSON file under another name, and rename it when it is complete."""
    temporary = path.with_name(f"writing-{uuid4().hex}")
    with temporary.open("x", encoding="utf-8") as file:
        json.dump(content, file, allow_nan=False)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def read_job(path: Path, name: str) -> Job:
    """Read a job from a file and check it; ``name`` is the name under which it was written."""
    content = read_file(path)
    job = _check_job(content.get("job"))
    if hash_job(job, str(content.get("code"))) != name:
        raise DataError(
            "the name of the file does not match the job in it: it was renamed or changed"
        )
    return job


def _check_job(plain: Any) -> Job:
    """Make a job from plain data of another process, after checking the type of each field."""
    types = get_type_hints(Job)
    if not isinstance(plain, dict) or not set(plain) <= set(types):
        raise DataError("the file does not hold a valid job: its fields are not those of a job")
    try:
        job = Job(**plain)
    except TypeError as error:
        raise DataError(f"the file does not hold a valid job: {error}") from None
    for field, value in job._asdict().items():
        if not isinstance(value, types[field]) or isinstance(value, bool):
            raise DataError(f"the file does not hold a valid job: its {field} is {value!r}")
    return job


def read_file(path: Path) -> dict[str, Any]:
    """Read a JSON file of a shared folder, and check its size, kind and version."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would wait for a writer
            raise DataError(f"{path.name} is not a regular file")
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
        if len(data) > MAX_FILE_BYTES:
            raise DataError(f"{path.name} is too large: it has more than {MAX_FILE_BYTES:,} bytes")
        content = json.loads(data)
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path.name} cannot be read: {error}") from None
    if not isinstance(content, dict):
        raise DataError(f"{path.name} was not written by PolarBear: it holds no JSON object")
    version = content.pop("version", VERSION)
    if version != VERSION:
        raise SolverError(
            f"{path.name} has format {version}, but this program writes format {VERSION}: use the "
            "same "
            "version of PolarBear on all machines"
        )
    return content
