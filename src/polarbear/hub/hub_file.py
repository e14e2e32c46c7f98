"""``HubFile``: the SQLite file in which a coordinator and a web server exchange jobs and results.

It does for workers over HTTP what the folder does for :class:`~polarbear.SharedFolder`: the
coordinator writes jobs and reads results, the server leases jobs and writes results. Both may be
killed at any time. It also has contributors, workers and the audit log.

A job is *open*, then *accepted* (its result counts), then *done* (the coordinator has stored it).
It is *cancelled* if the race does not want it any more, and *revoked* if its result was false.
"""

import json
import sqlite3
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any

from polarbear.errors import StoreError

FORMAT = 1

TABLES = (
    "meta(key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    (
        "jobs(id TEXT PRIMARY KEY, algorithm TEXT NOT NULL, instance TEXT NOT NULL, "
        "repetition INTEGER NOT NULL, body TEXT NOT NULL, state TEXT NOT NULL, "
        "source TEXT NOT NULL DEFAULT '', agreed INTEGER NOT NULL DEFAULT 0, "
        "change INTEGER NOT NULL)"
    ),
    (
        "reports(job TEXT NOT NULL, worker TEXT NOT NULL, digest TEXT NOT NULL, "
        "body TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (job, worker))"
    ),
    "checks(job TEXT PRIMARY KEY)",
    "newcomers(name TEXT PRIMARY KEY, digest TEXT NOT NULL, state TEXT NOT NULL)",
    "revoked(job TEXT PRIMARY KEY, why TEXT NOT NULL)",
    (
        "contributors(name TEXT PRIMARY KEY, role TEXT NOT NULL, token TEXT NOT NULL UNIQUE, "
        "hash TEXT NOT NULL, expires REAL NOT NULL, quota INTEGER NOT NULL, state TEXT NOT NULL)"
    ),
    (
        "workers(id TEXT PRIMARY KEY, contributor TEXT NOT NULL, about TEXT NOT NULL, "
        "state TEXT NOT NULL, agreed INTEGER NOT NULL DEFAULT 0, joined REAL NOT NULL)"
    ),
    (
        "log(number INTEGER PRIMARY KEY, at REAL NOT NULL, actor TEXT NOT NULL, "
        "action TEXT NOT NULL, detail TEXT NOT NULL)"
    ),
)
INDEXES = (
    "jobs_by_change ON jobs(change)",
    "jobs_by_state ON jobs(state, id)",
    "jobs_by_source ON jobs(source)",
    "reports_by_worker ON reports(worker)",
    "jobs_by_run ON jobs(algorithm, instance, repetition)",
)

Statement = tuple[str, Sequence[Any]]


@dataclass(frozen=True)
class StoredJob:
    """A job of the hub file: its body, its state, and the worker whose result was accepted."""

    id: str
    body: dict[str, Any]
    state: str
    source: str
    agreed: int


class HubFile:
    """The file of a hub: ``read`` returns rows, ``write`` executes statements durably.

    >>> from tempfile import mkdtemp
    >>> hub = HubFile(Path(mkdtemp()) / "race.hub")
    >>> hub.write([make_log_entry("ann", "join", "w1", at=0.0)])
    >>> hub.read("SELECT actor, action, detail FROM log")
    [('ann', 'join', 'w1')]
    >>> hub.close()
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        with self._explain():
            # Not in autocommit: every write below begins and commits its own transaction.
            self._connection = sqlite3.connect(
                self.path, timeout=30.0, isolation_level=None, check_same_thread=False
            )
            for pragma in ("journal_mode = WAL", "synchronous = FULL", "trusted_schema = OFF"):
                self._connection.execute(f"PRAGMA {pragma}")
            self._create_tables()

    def read(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        with self._explain():
            return self._connection.execute(sql, values).fetchall()

    def write(self, statements: Iterable[Statement]) -> None:
        """Execute all statements in one durable transaction, or none of them."""
        with self.transaction() as connection:
            for sql, values in statements:
                connection.execute(sql, values)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection within a transaction, which is rolled back after an error."""
        with self._explain():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def get(self, key: str) -> str:
        """Return an entry of the table ``meta``; "" if there is none."""
        rows = self.read("SELECT value FROM meta WHERE key = ?", key)
        return rows[0][0] if rows else ""

    def set(self, key: str, value: str) -> None:
        """Write an entry of the table ``meta``."""
        self.write([("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))])

    def allow_newcomers(self, digests: Mapping[str, str]) -> list[str]:
        """Allow that algorithms with these digests are submitted; return the names that are new.

        An algorithm of the race, or one that was submitted, stays as it is.
        """
        racing = json.loads(self.get("race") or "{}").get("solvers", {})
        known = racing.keys() | self.find_newcomers("submitted").keys()
        fresh = {name: digest for name, digest in digests.items() if name not in known}
        sql = "INSERT OR REPLACE INTO newcomers VALUES (?, ?, 'allowed')"
        entry = make_log_entry("operator", "allow", ", ".join(fresh))
        self.write([*((sql, item) for item in fresh.items()), entry])
        return list(fresh)

    def find_newcomers(self, state: str) -> dict[str, str]:
        """Return the digests of the newcomers that are "allowed", or were "submitted"."""
        return dict(self.read("SELECT name, digest FROM newcomers WHERE state = ?", state))

    def find_jobs(self, ids: Collection[str]) -> list[StoredJob]:
        """Return the stored jobs with these ids."""
        marks = ", ".join("?" * len(ids))
        sql = f"SELECT id, body, state, source, agreed FROM jobs WHERE id IN ({marks})"  # noqa: S608
        return [StoredJob(row[0], json.loads(row[1]), *row[2:]) for row in self.read(sql, *ids)]

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _create_tables(self) -> None:
        """Create the tables of a new file; raise an error if the file has another format."""
        with self.transaction() as connection:
            for table in TABLES:
                connection.execute(f"CREATE TABLE IF NOT EXISTS {table} STRICT")
            for index in INDEXES:
                connection.execute(f"CREATE INDEX IF NOT EXISTS {index}")
            first = [("format", str(FORMAT)), ("secret", token_hex(32)), ("change", "0")]
            connection.executemany("INSERT OR IGNORE INTO meta VALUES (?, ?)", first)
        if self.get("format") != str(FORMAT):
            raise StoreError(
                f"{self.path} has format {self.get('format')}, but this program reads format "
                f"{FORMAT}: use the version of PolarBear that wrote it"
            )

    @contextmanager
    def _explain(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StoreError(f"{self.path}: {error}") from error


def make_log_entry(actor: str, action: str, detail: str, *, at: float | None = None) -> Statement:
    """Return the statement that adds a line to the audit log."""
    moment = time.time() if at is None else at
    sql = "INSERT INTO log (at, actor, action, detail) VALUES (?, ?, ?, ?)"
    return sql, (moment, actor, action, detail[:500])
