"""A store in a PostgreSQL database: the same tables as in SQLite, in a schema for each race.

1. The writer holds an advisory lock of its session. The epoch in the head also stops an earlier
   writer that has lost its lock.
2. A server that restarts or does not answer is waited for. If the connection breaks during a
   commit, the head shows whether the commit succeeded; if not, it is repeated.
3. A frozen server still acknowledges TCP packets, so neither keepalives nor its own timeouts end a
   wait for it. The client therefore closes a connection from which nothing comes.
"""

import math
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from selectors import EVENT_READ, DefaultSelector
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit, urlunsplit

from polarbear.errors import StoreError, require, warn
from polarbear.store.database import (
    FORMAT,
    HEAD,
    TABLES,
    TAKE_OVER,
    Conflict,
    Statement,
    advance_head,
    encode_this_process,
    replaced_writer_error,
    second_writer_error,
)
from polarbear.store.rows import Head

RECONNECT_SECONDS = 60.0
"""The time for which a server that has stopped answering is waited for, with new connections."""

ANSWER_SECONDS = 20.0
"""The time without a sign of the server after which a connection is given up."""

NOTICE_SECONDS = 5.0
"""The time without a sign of the server after which the user is told."""

POLL_SECONDS = 0.1
"""The time after which a wait for the server is checked again."""

CONNECT_SECONDS = 10
"""The time in which a connection must be made, unless the URL has another ``connect_timeout``."""

LOCK_SECONDS = 2.0
"""The time in which the server must notice that an earlier writer has ended."""

DEFAULT_RACE = "polarbear"
"""The name of the race if the URL has none."""

T = TypeVar("T")

_TYPES = {"integer": "bigint", "blob": "bytea", "text": "text", "real": "double precision"}
_CONNECTION = {
    "application_name": "polarbear",
    "keepalives": 1,  # find a machine that is gone, and keep idle connections in routers' tables
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": round(1000 * ANSWER_SECONDS),
}
_SESSION = (
    "SET synchronous_commit = on",  # durable on return, whatever the server's default is
    "SET tcp_keepalives_idle = 10",  # the lock ends soon after the machine of its holder
    "SET tcp_keepalives_interval = 5",
    "SET tcp_keepalives_count = 3",
)
# The key has two halves: a number of this package, and the race in the database.
_LOCK = "SELECT pg_try_advisory_lock((1347374146::bigint << 32) | ?::regnamespace::oid::bigint)"
_HOLDERS = (
    "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND classid = 1347374146 AND granted "
    "AND objid = ?::regnamespace::oid "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


class PostgreSQL:
    """Reads and writes the rows of a store in a schema of a PostgreSQL database."""

    def __init__(self, url: str, *, read_only: bool = False) -> None:
        self._psycopg = require("psycopg", extra="postgres")
        parts = urlsplit(url)
        race = unquote(parts.fragment) or DEFAULT_RACE
        if "\0" in race or len(race.encode()) > 63:
            raise StoreError(
                f"the name of the race {race!r} is too long: PostgreSQL takes up to 63 bytes"
            )
        self._url = urlunsplit(parts._replace(fragment=""))
        self._schema = '"' + race.replace('"', '""') + '"'
        # Without user and password: names are shown.
        self.name = f"postgresql://{parts.hostname or ''}{parts.path}#{race}"
        self.read_only = read_only
        self._connection: Any = None
        self._backend = 0
        self._heard = time.monotonic()  # when there was a sign of the server, or a query began
        self._give_up = math.inf  # when to stop waiting for the server
        self._told = False
        self.head = Head.of(0, 0, b"")
        self._entered = False
        try:
            with self._translate_errors():
                self._connect()
        except BaseException:
            self.close()
            raise

    def query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Execute an SQL query, and return all of its rows."""
        return self._retry(lambda: self._execute(sql, values).fetchall())

    def write(self, statements: Sequence[Statement], last: int) -> None:
        """Execute all SQL statements or none, durably."""
        old = self.head
        new = Head.of(old.epoch, last, old.holder)

        def attempt() -> None:
            if self.head != old:  # the connection broke during the commit, which succeeded
                return
            with self._connection.transaction():
                sql, rows = advance_head(old, new)
                if self._execute(sql, rows[0]).rowcount != 1:
                    raise replaced_writer_error(self.name, Head(*self._execute(HEAD).fetchone()))
                with self._connection.cursor() as cursor:
                    for statement in statements:
                        cursor.executemany(_with_placeholders(statement.sql), statement.rows)

        self._retry(attempt)
        self.head = new

    def refresh(self) -> None:
        """Read the head row again; raise an error if another process has become the writer."""
        self._retry(self._refresh_head)

    def size(self) -> int:
        """Return the size of the store's tables in bytes."""
        sql = (
            "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c "
            "WHERE relkind = 'r' AND relnamespace = ?::regnamespace"
        )
        return int(self.query(sql, self._schema)[0][0] or 0)

    def close(self) -> None:
        """Close the connection to the server, which releases the lock."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(self._psycopg.Error):
                connection.close()

    # Inside

    def _execute(self, sql: str, values: Sequence[Any] = ()) -> Any:
        return self._connection.execute(_with_placeholders(sql), values or None)

    def _retry(self, work: Callable[[], T]) -> T:
        """Call ``work``; call it again with a new connection if the connection was lost."""
        self._heard, self._give_up, self._told = time.monotonic(), math.inf, False
        pause = 0.05
        with self._translate_errors():
            while True:
                try:
                    if self._connection is None or self._connection.closed:
                        self._connect()
                    return work()
                except (self._psycopg.OperationalError, self._psycopg.InterfaceError) as error:
                    if not _is_connection_lost(error):
                        raise
                    # The old connection may be in the middle of a transaction.
                    self.close()
                    self._give_up = min(self._give_up, self._heard + RECONNECT_SECONDS)
                    if time.monotonic() > self._give_up:
                        raise StoreError(
                            f"{self.name}: the database server has been away for "
                            f"{RECONNECT_SECONDS:g} s ({_one_line(error)}); stored events are "
                            "safe: repeat the call when the server is back"
                        ) from None
                    self._tell_of_silence()
                    time.sleep(pause)
                    pause = min(2 * pause, 1.0)

    def _tell_of_silence(self) -> None:
        """Warn once, if the server has given no sign for some time."""
        seconds = time.monotonic() - self._heard
        if seconds >= NOTICE_SECONDS and not self._told:
            self._told = True
            since = time.strftime("%H:%M:%S", time.localtime(time.time() - seconds))
            warn(
                f"{self.name}: the database server has not answered since {since}; waiting for it "
                f"for up to {RECONNECT_SECONDS:g} s"
            )

    def _drive(self, connection: Any, statement: Generator[int, int | None, T]) -> T:
        """Drive a generator of psycopg, which yields what it waits for; wait for a limited time."""
        self._heard = time.monotonic()
        ready = None
        with DefaultSelector() as selector:
            selector.register(connection, EVENT_READ)
            try:
                while True:
                    selector.modify(connection, statement.send(ready))
                    ready = self._wait(selector, connection)
            except StopIteration as end:
                return end.value

    def _wait(self, selector: DefaultSelector, connection: Any) -> int:
        """Return for what a connection is ready; raise an error if the server stays silent."""
        try:
            while not (events := selector.select(POLL_SECONDS)):
                now = time.monotonic()
                if now > min(self._heard + ANSWER_SECONDS, self._give_up):
                    seconds = now - self._heard
                    raise self._psycopg.OperationalError(f"no answer for {seconds:.0f} s")
                self._tell_of_silence()
        except BaseException:  # to roll back over this connection would take as long again
            connection.close()
            raise
        self._heard = time.monotonic()
        return events[0][1]

    def _connect(self) -> None:
        """Connect to the server, and become the writer again unless the store is read-only."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None
        given = self._psycopg.conninfo.conninfo_to_dict(self._url)
        options = {**_CONNECTION, "connect_timeout": CONNECT_SECONDS, **given}
        if math.isfinite(self._give_up):
            longest = int(options["connect_timeout"]) or CONNECT_SECONDS
            left = self._give_up - time.monotonic()
            options["connect_timeout"] = max(1, min(int(left), longest))
        connections = _driven_connections(self._psycopg, self._drive)
        connection = connections.connect(autocommit=True, **options)
        self._connection = connection
        try:
            for statement in _SESSION:
                connection.execute(statement)
            if self.read_only:
                connection.execute("SET default_transaction_read_only = on")
            connection.execute(f"SET search_path = {self._schema}")
            self._enter()
        except BaseException:
            connection.close()
            raise

    def _enter(self) -> None:
        """Check the store's format, create missing tables, and become the writer."""
        if self._execute("SELECT to_regclass('head')").fetchone()[0] is None:
            if self.read_only or self._entered:
                raise StoreError(
                    f"{self.name}: there is no such race in this database; check the name in the "
                    "URL"
                )
            self._build()
        version = self._execute("SELECT number FROM format").fetchone()[0]
        if version > FORMAT:
            raise StoreError(
                f"{self.name} was written by a newer PolarBear (format {version}, this one reads "
                f"up to {FORMAT}): upgrade to open it"
            )
        if self.read_only:
            self.head = Head(*self._execute(HEAD).fetchone())
            return
        self._lock()
        if self._execute("SHOW fsync").fetchone()[0] == "off":
            warn(f"{self.name}: the server has fsync = off, so runs may be lost with the power")
        if self._entered:
            self._refresh_head()
            return
        with self._connection.transaction():
            old = Head(*self._execute(HEAD + " FOR UPDATE").fetchone())
            new = Head.of(old.epoch + 1, old.last, encode_this_process())
            self._execute(TAKE_OVER, new)
        self.head = new
        self._entered = True

    def _build(self) -> None:
        """Create the tables of a store and its head row, in one transaction."""
        with self._connection.transaction():
            self._execute(f"CREATE SCHEMA IF NOT EXISTS {self._schema}")
            self._execute("SELECT pg_advisory_xact_lock(1347374146)")
            self._execute("CREATE TABLE IF NOT EXISTS format (number integer PRIMARY KEY)")
            self._execute("INSERT INTO format VALUES (?) ON CONFLICT DO NOTHING", [FORMAT])
            for name, columns in TABLES.items():
                self._execute(f"CREATE TABLE IF NOT EXISTS {name} ({columns.format(**_TYPES)})")
            first = "INSERT INTO head VALUES (1, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
            self._execute(first, Head.of(0, 0, b""))

    def _lock(self) -> None:
        """Take the writer's lock; wait for ending sessions, and end this process's earlier one."""
        end = time.monotonic() + LOCK_SECONDS
        while not self._execute(_LOCK, [self._schema]).fetchone()[0]:
            holders = [row[0] for row in self._execute(_HOLDERS, [self._schema]).fetchall()]
            ours = self._backend in holders
            if ours:
                self._execute("SELECT pg_terminate_backend(?)", [self._backend])
            if time.monotonic() > end:
                if ours:  # the server is slow to end it, so try again with a new connection
                    raise self._psycopg.OperationalError("the earlier session has not ended yet")
                raise second_writer_error(self.name, Head(*self._execute(HEAD).fetchone()).holder)
            time.sleep(0.05)
        self._backend = self._connection.info.backend_pid

    def _refresh_head(self) -> None:
        head = Head(*self._execute(HEAD).fetchone())
        if head.epoch != self.head.epoch:
            raise replaced_writer_error(self.name, head)
        self.head = head

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Raise server exceptions inside ``with`` as ``StoreError`` or ``Conflict``."""
        try:
            yield
        except self._psycopg.errors.UniqueViolation as error:
            raise Conflict(str(error)) from None
        except self._psycopg.errors.DiskFull:
            raise StoreError(
                f"{self.name}: the disk of the server is full, and the last events were not "
                "stored; free some space and repeat the call"
            ) from None
        except self._psycopg.Error as error:
            raise StoreError(
                f"{self.name}: the database server failed: {_one_line(error)}"
            ) from None


def _is_connection_lost(error: Any) -> bool:
    """Return whether an error means a lost connection, rather than a refused SQL statement."""
    state = error.sqlstate
    return state is None or state.startswith(("57P", "08"))


def _one_line(error: Exception) -> str:
    """Return the message of an error without line breaks."""
    return " ".join(str(error).split())


def _driven_connections(psycopg: Any, drive: Callable[[Any, Any], Any]) -> Any:
    """Return a class of connections of which ``drive`` makes all waits."""

    class DrivenConnection(psycopg.Connection):
        def wait(self, gen: Any, *_: Any, **__: Any) -> Any:
            return drive(self, gen)

    return DrivenConnection


def _with_placeholders(sql: str) -> str:
    """Return an SQL statement with question marks replaced by psycopg's placeholders."""
    return sql.replace("?", "%s")
