"""``Spool``: a folder in place of a connection. Job files go in, result files come out.

For clusters on which nothing may listen: the coordinator and any number of ``polarbear worker
FOLDER`` share a folder, on one machine or on a network file system, and need not run at the same
time.

1. A file is written under another name and renamed when it is complete: nobody reads half of one.
2. A job is claimed by renaming it: one worker succeeds, for the others it is not there any more.
   While it runs, the worker touches the claim. One that was not touched for long is given back.
3. A result stays until the coordinator has asked for the next ones. If it dies before, the same
   jobs submitted again find their results.
4. Files are JSON. Nothing in them is evaluated or unpickled. Their names are hashes, so that what
   is run may be called anything. A file among the jobs that is none is moved to ``refused``.
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
from polarbear.running.solvers.setup import Setup
from polarbear.running.workers.outcomes import Lost, Outcome, from_plain

JOBS, CLAIMS, RESULTS, REFUSED = "jobs", "claims", "results", "refused"
RACE, CLOSED = "race.json", "closed"

LARGEST = 16_000_000
"""Bytes of a file beyond which it is not one of ours."""

VERSION = 1

LOST = "lost"
"""Stands in place of a result if the process that made the run is gone, with the reason."""


@dataclass(frozen=True)
class Spool:
    """Run wherever ``polarbear worker FOLDER`` runs.

    Attributes
    ----------
    folder
        Is made if it is not there. It belongs to one race.
    patience
        Seconds without a sign of life after which the job of a worker is given to another one.
    pause
        Seconds between looks into the folder.

    Examples
    --------
    >>> where = Spool("/shared/race-1", patience=300)    # executor=where, in race or check
    """

    folder: str | os.PathLike[str]
    patience: float = 120.0
    pause: float = 0.2


class SpoolEngine:
    """An engine (see :mod:`polarbear.running.backends.interface`) over a folder."""

    def __init__(self, setup: Setup, spool: Spool) -> None:
        self._spool = spool
        self._folder = Path(spool.folder)
        self._wanted: dict[str, Job] = {}
        self._given: list[str] = []  # not deleted yet
        self._looked = 0.0
        for name in (JOBS, CLAIMS, RESULTS, REFUSED):
            (self._folder / name).mkdir(parents=True, exist_ok=True)
        self._announce(description(setup) | {"patience": spool.patience})
        (self._folder / CLOSED).unlink(missing_ok=True)

    @property
    def pending(self) -> int:
        """How many jobs have no outcome yet."""
        return len(self._wanted)

    def submit(self, jobs: Iterable[Job]) -> None:
        """Put jobs into the folder, unless they are there, claimed, or done already."""
        known = {path.name.partition(".")[0] for path in (self._folder / CLAIMS).iterdir()}
        for job in jobs:
            name = name_of(job)
            self._wanted[name] = job
            if name not in known and not self._path(RESULTS, name).exists():
                write(self._path(JOBS, name), {"version": VERSION, "job": job._asdict()})

    def outcomes(self, timeout: float | None = None) -> list[Outcome | Lost]:
        """What has come in; to ask says that what was given before is safe."""
        for name in self._given:
            self._path(RESULTS, name).unlink(missing_ok=True)
        self._given = []
        end = None if timeout is None else time.monotonic() + timeout
        while self._wanted:
            found = self._found()
            if found or (end is not None and time.monotonic() >= end):
                return found
            self._give_back()
            time.sleep(self._spool.pause)
        return []

    def cancel(self, algorithms: Collection[str]) -> list[Job]:
        """Take back the jobs of these algorithms that nobody has claimed."""
        back = []
        for name, job in list(self._wanted.items()):
            if job.algorithm in algorithms and taken(self._path(JOBS, name), None):
                back.append(self._wanted.pop(name))
        return back

    def close(self) -> None:
        """Take back what nobody has claimed, and tell the workers that they can go."""
        self.cancel({job.algorithm for job in self._wanted.values()})
        (self._folder / CLOSED).touch()

    def _announce(self, race: dict[str, Any]) -> None:
        path = self._folder / RACE
        before = read(path) if path.exists() else race
        for name in ("times", "direction", "clock"):
            if before.get(name) != race[name]:
                raise SolverError(
                    f"{self._folder} is the folder of another race, with {name} "
                    f"{before.get(name)!r}: take another folder"
                )
        write(path, race)

    def _path(self, kind: str, name: str) -> Path:
        return self._folder / kind / f"{name}.json"

    def _found(self) -> list[Outcome | Lost]:
        found: list[Outcome | Lost] = []
        for path in sorted((self._folder / RESULTS).glob("*.json")):
            if path.stem not in self._wanted:
                continue  # late, or of another race that used the folder
            job = self._wanted.pop(path.stem)
            try:
                content = read(path)
                if isinstance(content.get(LOST), str):
                    path.unlink(missing_ok=True)
                    found.append(Lost(job, content[LOST]))
                    continue
                outcome = from_plain(content)
                if outcome.job != job:
                    raise DataError("it is the result of another job")
                found.append(outcome)
                self._given.append(path.stem)
            except DataError as error:
                path.unlink(missing_ok=True)
                found.append(Lost(job, f"{path.name}: {error}"))
        return found

    def _give_back(self) -> None:
        """Return the jobs of workers that have not been heard of for long."""
        if time.monotonic() < self._looked + self._spool.patience / 10:
            return
        self._looked = time.monotonic()
        # The clock of the file system, which all who share it have in common.
        now = self._folder / f"now-{uuid4().hex}"
        now.touch()
        stale = now.stat().st_mtime - self._spool.patience
        now.unlink()
        for claim in (self._folder / CLAIMS).iterdir():
            name = claim.name.partition(".")[0]
            try:
                if name in self._wanted and claim.stat().st_mtime < stale:
                    taken(claim, self._path(JOBS, name))
            except FileNotFoundError:
                continue  # done meanwhile


def name_of(job: Job) -> str:
    """What tells a job from all others, as a file name."""
    return blake2b(json.dumps(job).encode(), digest_size=16).hexdigest()


def description(setup: Setup) -> dict[str, Any]:
    """What workers have to know beside solvers and instances, which they have as code."""
    return {
        "version": VERSION,
        "solvers": list(setup.solvers),
        "times": list(setup.times),
        "direction": setup.direction,
        "clock": setup.clock,
        "limits": vars(setup.limits),
        "aliases": dict(setup.aliases),
    }


def taken(path: Path, to: Path | None) -> bool:
    """Rename or delete a file, if nobody else was faster."""
    try:
        if to is None:
            path.unlink()
        else:
            path.rename(to)
    except FileNotFoundError:
        return False
    return True


def write(path: Path, content: dict[str, Any]) -> None:
    """Write a file that is whole whenever it is there."""
    temporary = path.with_name(f"writing-{uuid4().hex}")
    with temporary.open("x", encoding="utf-8") as file:
        json.dump(content, file, allow_nan=False)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def read_job(path: Path, name: str) -> Job:
    """The job in the file that was put into the folder under this name."""
    content = read(path)
    plain = content.get("job")
    kinds = get_type_hints(Job)
    if not isinstance(plain, dict) or not set(plain) <= set(kinds):
        raise DataError("it is not a job")
    try:
        job = Job(**plain)
    except TypeError as error:
        raise DataError(f"it is not a job: {error}") from None
    for field, value in job._asdict().items():
        if not isinstance(value, kinds[field]) or isinstance(value, bool):
            raise DataError(f"it is not a job: {field} is {value!r}")
    if name_of(job) != name:
        raise DataError("it is not named for the job that it holds")
    return job


def read(path: Path) -> dict[str, Any]:
    """The content of such a file."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # to open a pipe would wait for a writer
            raise DataError(f"{path.name} is not a file")
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise DataError(f"{path.name} has more than {LARGEST:,} bytes")
        found = json.loads(content)
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path.name} cannot be read: {error}") from None
    if not isinstance(found, dict):
        raise DataError(f"{path.name} is not one of our files")
    version = found.pop("version", VERSION)
    if version != VERSION:
        raise SolverError(f"{path.name} is of version {version}, and this program of {VERSION}")
    return found
