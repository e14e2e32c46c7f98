"""``WorkerHub``: the executor whose runs are made by workers over HTTP.

The coordinator writes jobs to the hub file and reads accepted results from it. The web server of
``polarbear serve --workers`` does the rest. Neither needs the other to be running.
"""

import json
import os
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from polarbear.errors import SolverError
from polarbear.hub.hub_file import HubFile
from polarbear.racing.jobs import Job, RunId
from polarbear.running.backends.shared_folder import describe_race, hash_job
from polarbear.running.solvers.identity import identify
from polarbear.running.solvers.setup import Setup
from polarbear.running.workers.outcomes import LostRun, RevokedRun, RunOutcome, from_plain

REPEATABLE_CLOCKS = ("evaluations", "reported")
"""Clocks on which a run is a function of solver, instance and seed, so that it can be audited."""


@dataclass(frozen=True)
class WorkerHub:
    """An executor that makes runs on every machine where ``polarbear worker URL`` runs.

    Attributes
    ----------
    path
        The hub file of one race, which ``polarbear serve --workers`` serves; it is created if it
        does not exist.
    audit_share
        The share of results that another worker makes again before they count. Results that
        decide an elimination are always made again, unless it is 0.
    pause
        Seconds between readings of the file.

    Examples
    --------
    >>> hub = WorkerHub("race.hub", audit_share=0.2)   # executor=hub in race or check
    """

    path: str | os.PathLike[str]
    audit_share: float = 0.1
    pause: float = 0.1

    def __post_init__(self) -> None:
        if not 0 <= self.audit_share <= 1:
            raise SolverError(f"audit_share={self.audit_share!r}: expected a number from 0 to 1")

    def start_backend(self, setup: Setup) -> "HubBackend":
        """Start the backend of a race; :func:`polarbear.race` calls it."""
        return HubBackend(setup, self)

    def confirm(self, runs: Collection[RunId], counted: Collection[RunId]) -> list[RevokedRun]:
        """Wait until a second worker has made these runs; return ``counted`` runs that are false.

        The next outcomes of the backend have these too.
        """
        if not self.audit_share:
            return []
        hub = HubFile(Path(self.path))
        try:
            if hub.get("repeatable") != "1":
                return []
            names = set(runs)
            sql = "SELECT id, algorithm, instance, repetition FROM jobs WHERE agreed < 2"
            rows = hub.read(f"{sql} AND state IN ('accepted', 'done')")
            ids = {row[0] for row in rows if RunId(*row[1:]) in names}
            hub.write(("INSERT OR IGNORE INTO checks VALUES (?)", (one,)) for one in ids)
            while True:
                is_checked = not hub.read("SELECT 1 FROM checks LIMIT 1")  # before the revoked ones
                revoked = [one for one in _read_revoked(hub) if one.job.key in counted]
                if revoked or is_checked:
                    return revoked
                time.sleep(self.pause)
        finally:
            hub.close()


class HubBackend:
    """A backend that exchanges jobs and results with workers over HTTP, through a hub file."""

    def __init__(self, setup: Setup, options: WorkerHub) -> None:
        self._options = options
        self._hub = HubFile(Path(options.path))
        self._pending: dict[str, Job] = {}  # by id
        self._returned: dict[str, Job] = {}  # results that are not marked as done yet
        self._told_revoked: list[str] = []
        self._is_first = True
        self._write_race(setup)

    @property
    def pending(self) -> int:
        """The number of submitted jobs that have no outcome yet."""
        return len(self._pending)

    def submit(self, jobs: Iterable[Job]) -> None:
        """Write jobs to the hub file; those with an accepted result are not made again.

        The first call after a start has all jobs that the race wants, so other open jobs are
        cancelled.
        """
        fresh = {hash_job(job): job for job in jobs}
        self._pending |= fresh
        with self._hub.transaction() as connection:
            change = self._next_change(connection)
            if self._is_first:
                connection.execute(
                    "UPDATE jobs SET state = CASE state WHEN 'open' THEN 'closing' ELSE 'closed' "
                    "END WHERE state IN ('open', 'accepted')"
                )
            for name, job in fresh.items():
                sql = "DELETE FROM reports WHERE job = (SELECT id FROM jobs WHERE id = ? AND "
                connection.execute(f"{sql} state NOT IN ('closing', 'closed'))", (name,))
                connection.execute(
                    "INSERT INTO jobs (id, algorithm, instance, repetition, body, state, change) "
                    "VALUES (?, ?, ?, ?, ?, 'open', ?) ON CONFLICT (id) DO UPDATE SET "
                    "state = CASE state WHEN 'closed' THEN 'accepted' ELSE 'open' END, "
                    "change = excluded.change",
                    (name, *job.key, json.dumps(job._asdict()), change),
                )
            connection.execute(
                "UPDATE jobs SET state = 'cancelled', change = ? WHERE state = 'closing'", (change,)
            )
            connection.execute("UPDATE jobs SET state = 'done' WHERE state = 'closed'")
        self._is_first = False

    def outcomes(self, timeout: float | None = None) -> list[RunOutcome | LostRun | RevokedRun]:
        """Wait for outcomes, after marking those that were returned before as done."""
        revoked = self._mark_done()
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            false = _read_revoked(self._hub)
            self._told_revoked = [hash_job(one.job) for one in false]
            outcomes = [*revoked, *false, *self._read_results()]
            is_over = end is not None and time.monotonic() >= end
            if outcomes or is_over or not self._pending:
                return outcomes
            time.sleep(self._options.pause)

    def cancel(self, algorithms: Collection[str]) -> list[Job]:
        """Cancel the jobs of these algorithms that have no accepted result, and return them."""
        cancelled: list[Job] = []
        with self._hub.transaction() as connection:
            change = self._next_change(connection)
            for name, job in list(self._pending.items()):
                if job.algorithm in algorithms:
                    sql = "UPDATE jobs SET state = 'cancelled', change = ? WHERE id = ?"
                    cursor = connection.execute(f"{sql} AND state = 'open'", (change, name))
                    if cursor.rowcount:
                        cancelled.append(self._pending.pop(name))
        return cancelled

    def close(self) -> None:
        """Close the hub file; workers go on with their jobs, for the race may be resumed."""
        self._hub.close()

    def _write_race(self, setup: Setup) -> None:
        """Write the description of the race; raise an error if the file has another race."""
        identity = identify(setup)
        race = describe_race(setup) | {
            "solvers": {name: parts["content"] for name, parts in identity.solvers.items()},
            "instances": dict(identity.instances),
        }
        before = json.loads(self._hub.get("race") or json.dumps(race))
        for name in ("times", "direction", "clock"):
            if before.get(name) != race[name]:
                raise SolverError(
                    f"{self._hub.path} is the hub of another race, with {name} "
                    f"{before.get(name)!r}: pass another file"
                )
        repeatable = setup.clock in REPEATABLE_CLOCKS and self._options.audit_share > 0
        options = {"audit_share": self._options.audit_share}
        entries = {
            "race": json.dumps(race),
            "repeatable": str(int(repeatable)),
            "options": json.dumps(options),
        }
        self._hub.write(
            ("INSERT OR REPLACE INTO meta VALUES (?, ?)", entry) for entry in entries.items()
        )

    def _next_change(self, connection: Any) -> int:
        """Return the number of the next change of jobs, by which the server finds the new ones."""
        sql = "UPDATE meta SET value = value + 1 WHERE key = 'change' RETURNING value"
        return int(connection.execute(sql).fetchone()[0])

    def _mark_done(self) -> list[RevokedRun]:
        """Mark returned jobs as done; return those that were revoked since they were returned."""
        revoked: list[RevokedRun] = []
        if not (self._returned or self._told_revoked):
            return revoked
        with self._hub.transaction() as connection:
            for name, job in self._returned.items():
                sql = "UPDATE jobs SET state = 'done' WHERE id = ? AND state = 'accepted'"
                if connection.execute(sql, (name,)).rowcount:
                    connection.execute("UPDATE reports SET body = '' WHERE job = ?", (name,))
                    continue
                change = self._next_change(connection)
                sql = "UPDATE jobs SET state = 'revoked', change = ? WHERE id = ?"
                connection.execute(sql, (change, name))
                revoked.append(RevokedRun(job, "its worker was quarantined"))
            for name in self._told_revoked:
                connection.execute("DELETE FROM revoked WHERE job = ?", (name,))
        self._returned, self._told_revoked = {}, []
        return revoked

    def _read_results(self) -> list[RunOutcome | LostRun]:
        """Read accepted results of pending jobs; a job with a damaged result counts as lost."""
        rows = self._hub.read(
            "SELECT jobs.id, reports.body, reports.worker, workers.contributor FROM jobs "
            "JOIN reports ON reports.job = jobs.id AND reports.worker = jobs.source "
            "LEFT JOIN workers ON workers.id = reports.worker WHERE jobs.state = 'accepted'"
        )
        outcomes: list[RunOutcome | LostRun] = []
        for name, body, worker, contributor in rows:
            job = self._pending.pop(name, None)
            if job is None:
                continue  # stored before this coordinator was started
            outcome = from_plain(json.loads(body))
            details = (("worker", worker), ("contributor", contributor or ""), *outcome.worker)
            outcomes.append(outcome._replace(worker=details))
            self._returned[name] = job
        return outcomes


def leave_out_newcomers(setup: Setup, path: str | os.PathLike[str]) -> Setup:
    """Return the setup without algorithms that the operator allows, but that are not submitted.

    An algorithm that was changed after it was submitted is left out too, unless it races already.
    """
    hub = HubFile(Path(path))
    try:
        racing = json.loads(hub.get("race") or "{}").get("solvers", {})
        allowed, submitted = map(hub.find_newcomers, ("allowed", "submitted"))
    finally:
        hub.close()
    if not (allowed or submitted):
        return setup
    digests = {name: parts["content"] for name, parts in identify(setup).solvers.items()}
    waiting = {
        name
        for name, digest in digests.items()
        if name not in racing and (name in allowed or submitted.get(name, digest) != digest)
    }
    return replace(setup, solvers={n: s for n, s in setup.solvers.items() if n not in waiting})


def _read_revoked(hub: HubFile) -> list[RevokedRun]:
    """Return the results that turned out to be false after the coordinator had stored them."""
    rows = dict(hub.read("SELECT job, why FROM revoked LIMIT 500"))
    return [RevokedRun(Job(**stored.body), rows[stored.id]) for stored in hub.find_jobs(rows)]
