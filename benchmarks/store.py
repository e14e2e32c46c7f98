"""A million runs in one store: how fast they are kept and read back, against bare SQLite.

    python benchmarks/store.py            # writes benchmarks/results/store.md, takes minutes
    python benchmarks/store.py --quick    # few runs; seconds

Ten algorithms race on 64 instances a round; a run has 50 improvements. ``append`` gets one, 64 or
4096 events at a time, each call durable before it returns. The baseline, in turns with it, packs
the same numbers and inserts them in the same batches into one plain table of an SQLite file with
the same settings (write-ahead log, ``synchronous=FULL``), without checksums, names, order or
uniqueness. Reading is compared with fetching all rows of that table and unpacking the numbers. Each
part runs in a process of its own; peak memory is what it takes above the imports.
"""

import sqlite3
import struct
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from measuring import RESULTS, Row, apart, machine, make_parser, medians, peak
from measuring import table as markdown

QUICK_CPU_SECONDS = 18

IMPROVEMENTS, ALGORITHMS, INSTANCES = 50, 10, 64
SLOW = {1: 0.002, 64: 0.1, 4096: 1.0}
"""The share of the runs that goes in batches of this size: small batches wait for the disk."""


def events(runs):
    """A race that never settles: rounds of runs, and decisions that decide nothing."""
    import numpy as np

    from polarbear.data.run import Run, Status
    from polarbear.racing.budget import Budget
    from polarbear.racing.decisions import Decision, Open
    from polarbear.racing.events import Added, Asked, Decided, Started, Told
    from polarbear.racing.jobs import RunId, job
    from polarbear.racing.model import Model
    from polarbear.racing.questions.pareto_set import ParetoSet

    rng = np.random.default_rng(1)
    times = tuple(float(t) for t in np.geomspace(10, 1e5, 50).round())
    names = [f"algorithm-{k}" for k in range(ALGORITHMS)]
    yield Started(0, times, "minimize", "evaluations", True, ParetoSet(), Budget(), Model())
    yield from map(Added, names)
    open_ = tuple(Open(a, b, 2**50 - 1) for k, a in enumerate(names) for b in names[k + 1 :])
    done = round_ = 0
    while done < runs:
        instances = range(done // ALGORITHMS + 1, done // ALGORITHMS + 1 + INSTANCES)
        jobs = [job(0, RunId(a, str(i), 0), 1e5) for i in instances for a in names][: runs - done]
        yield Asked(tuple(jobs), round_)
        time_ = np.sort(rng.uniform(1, 1e5, (len(jobs), IMPROVEMENTS)))
        value = -np.sort(-rng.standard_normal((len(jobs), IMPROVEMENTS)))
        for own, t, v in zip(jobs, time_.tolist(), value.tolist(), strict=True):
            yield Told(Run(own.algorithm, own.instance, tuple(t), tuple(v), 1e5, 0, Status.CUT))
        done += len(jobs)
        yield Decided(round_, Decision(open_, 64))
        round_ += 1


def batches(runs, size):
    found = events(runs)
    while some := list(islice(found, size)):
        yield some


def append(where, runs, size):
    """Seconds within ``append``; making the events is not counted."""
    from polarbear.racing.events import Ended
    from polarbear.store.opening import open_store

    loaded(where)
    before, clock = peak(), Stopwatch()
    with open_store(where) as store:
        for batch in batches(runs, size):
            with clock:
                store.append(batch)
        memory, status = peak() - before, store.status()
        # A race keeps its status with every decision.
        why = "budget of runs spent"
        store.append([Ended(why)], status=replace(status, ended=why, store=None))
    assert status.store is not None
    return {**clock.read(), "memory": memory, "bytes": status.store.n_bytes}


def bare_append(where, runs, size):
    """The same numbers into one plain table of the same database, as durable."""
    loaded(where)
    execute, insert, close = bare_database(where)
    clock, number = Stopwatch(), 0
    for batch in batches(runs, size):
        with clock:
            rows = [(number + k, packed(event)) for k, event in enumerate(batch, 1)]
            number += len(rows)
            execute("BEGIN")
            insert(rows)
            execute("COMMIT")
    close()
    local = not str(where).startswith("postgres")
    return {**clock.read(), "bytes": Path(where).stat().st_size if local else 0}


def bare_database(where):
    """How to execute, to insert rows and to close, with the settings that the store has."""
    if str(where).startswith("postgres"):
        import psycopg

        connection = psycopg.connect(where, autocommit=True)
        connection.execute("DROP TABLE IF EXISTS bare")
        connection.execute("CREATE TABLE bare (id BIGINT PRIMARY KEY, data BYTEA)")
        cursor = connection.cursor()
        command = "INSERT INTO bare VALUES (%s, %s)"
    else:
        connection = sqlite3.connect(where, isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("CREATE TABLE runs (id INTEGER PRIMARY KEY, data BLOB)")
        cursor = connection.cursor()
        command = "INSERT INTO runs VALUES (?, ?)"
    return connection.execute, lambda rows: cursor.executemany(command, rows), connection.close


def packed(event):
    """Numbers as bytes; whatever is no run as text."""
    from polarbear.racing.events import Told, to_json

    if not isinstance(event, Told):
        return to_json(event).encode()
    run: Any = event.run
    return struct.pack(f"<{2 * len(run.time)}d", *run.time, *run.value)


def read(where, runs):  # noqa: ARG001
    """All events, one after the other."""
    with reading(where) as (store, found):
        found["events"] = sum(1 for _ in store.read())
    return found


def bare_read(where, runs):  # noqa: ARG001
    """Fetch all rows of the plain table, and unpack the numbers."""
    clock, before = Stopwatch(), peak()
    with clock:
        connection = sqlite3.connect(where)
        shape = struct.Struct(f"<{2 * IMPROVEMENTS}d")
        for _, data in connection.execute("SELECT * FROM runs ORDER BY id"):
            if len(data) == shape.size:
                shape.unpack(data)
    return {**clock.read(), "memory": peak() - before}


def replay(where, runs):
    """The race with all its events."""
    from polarbear.racing.race import Race

    with reading(where) as (store, found):
        race = Race.from_events(store.read())
    assert race.n_runs == runs
    return found


def resume(where, runs):
    """What a coordinator does that comes back, without a snapshot; see ``resume.py`` for those."""
    from polarbear.store.restoring import restore_race

    with reading(where) as (store, found):
        assert restore_race(store).n_runs == runs
    return found


def table(where, runs):
    """All runs, for export."""
    with reading(where) as (store, found):
        assert len(store.runs()) == runs
    return found


def status(where, runs):
    """Where the race stands."""
    with reading(where) as (store, found):
        assert store.status().n_runs == runs
    return found


@contextmanager
def reading(where):
    """A store that is open, and a record that is filled when it is closed again."""
    from polarbear.store.opening import open_store

    loaded(where)
    before, clock, found = peak(), Stopwatch(), {}
    with clock, open_store(where, read_only=True) as store:
        yield store, found
    found |= {**clock.read(), "memory": peak() - before}


def loaded(where):
    """Import what is needed, so that this is not what is measured."""
    import polarbear.racing.race
    import polarbear.store  # noqa: F401

    if str(where).startswith("postgres"):
        import psycopg  # noqa: F401


class Stopwatch:
    """Adds up seconds, and those of CPU, which others on the machine change less."""

    def __init__(self):
        self.seconds = self.cpu = 0.0

    def __enter__(self):
        self.begin = time.perf_counter(), time.process_time()

    def __exit__(self, *_):
        self.seconds += time.perf_counter() - self.begin[0]
        self.cpu += time.process_time() - self.begin[1]

    def read(self):
        return {"seconds": self.seconds, "cpu": self.cpu}


# Tables


def cells_of(found, bare, there):
    return (
        f"{found['seconds']:.2f} s",
        f"{found['cpu']:.2f} s",
        f"{found['cpu'] / bare['cpu']:.2f}",
        f"{found['memory'] / 1e6:,.0f} MB",
        f"{there['seconds']:.2f} s" if there else "-",
    )


def measure(folder, runs, server):
    """All figures, as lines of tables."""
    rates, reading, ours = [], [], {}
    for size, share in SLOW.items():
        some = max(int(runs * share), 500)
        ours = apart(append, str(folder / f"{size}.db"), some, size)
        bare = apart(bare_append, str(folder / f"{size}-bare.db"), some, size)
        cells = [f"{some / part['seconds']:,.0f}" for part in (ours, bare)]
        ratio = ours["seconds"] / bare["seconds"]
        remote = "-"
        if server is not None:
            there = apart(append, f"{server.url}#b{size}", some, size)
            remote = f"{some / there['seconds']:,.0f}"
        rates.append((f"{size:,}", f"{some:,}", *cells, f"**{ratio:.2f}**", remote))
    whole, plain, last = folder / "4096.db", folder / "4096-bare.db", max(SLOW)
    bare = apart(bare_read, str(plain), runs)
    for part, what in READING.items():
        found = apart(part, str(whole), runs)
        there = apart(part, f"{server.url}#b{last}", runs) if server is not None else {}
        reading.append((what, *cells_of(found, bare, there)))
    reading.append(("bare SQLite: fetch and unpack", *cells_of(bare, bare, {})))
    sizes = ours["bytes"] / runs, whole.stat().st_size / plain.stat().st_size
    return rates, reading, sizes


READING = {
    status: "`status()`, in a new process",
    read: "open and `read()` all events, one after the other",
    replay: "open and `Race.from_events(store.read())`",
    resume: "open and resume without a snapshot",
    table: "`store.runs()`, for export",
}


@contextmanager
def a_server(wanted=True):
    """A PostgreSQL server of one's own, or none where none is installed."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))
    import servers

    server = None if servers.why_not() or not wanted else servers.Server()
    try:
        yield server
    finally:
        if server is not None:
            server.remove()


REPORT = """\
Made by `python benchmarks/store.py` on {machine}; it says what is measured.

{runs:,} runs of {improvements} improvements (fewer in the two smaller batches), {each:,.0f} bytes
each, {times:.2f} times the bare file. Read ratios: the machine was busy.

{rates}

{reading}
"""


def report(runs, rates, reading, sizes):
    head = "events per append|runs|durable runs/s|bare SQLite|time / bare|PostgreSQL, runs/s"
    second = "reading|wall|CPU|CPU / bare read|memory|PostgreSQL, wall"
    return REPORT.format(
        machine=f"{machine()}, SQLite {sqlite3.sqlite_version}",
        runs=runs,
        improvements=IMPROVEMENTS,
        each=sizes[0],
        times=sizes[1],
        rates=markdown(head.split("|"), rates),
        reading=markdown(second.split("|"), reading),
    )


def rows(quick: bool) -> Iterator[Row]:
    """Writing in three sizes of batches, and reading, against bare tables."""
    runs = {1: 300, 64: 2000, 4096: 8000} if quick else {1: 500, 64: 6400, 4096: 40_000}
    rounds = 1 if quick else 3
    with tempfile.TemporaryDirectory() as folder, a_server(wanted=not quick) as server:
        places = {"SQLite": (f"{folder}/{{}}.db", f"{folder}/{{}}-bare.db")}
        if server is not None:
            places["PostgreSQL"] = f"{server.url}#b{{}}", server.url
        for name, (where, bare) in places.items():
            for size, some in runs.items():
                yield written(name, where, bare, some, size, rounds)
        kept, plain = (place.format("4096-1") for place in places["SQLite"])
        base = apart(bare_read, plain, runs[4096])
        for part in (status, read, resume):
            yield had(part, kept, base, runs[4096])


def written(database: str, where: str, bare: str, runs: int, size: int, rounds: int) -> Row:
    """Both in turns, into a new place each time."""
    turns = []
    for k in range(1, rounds + 1):
        place = f"{size}-{k}"
        turns.append(apart(append, where.format(place), runs, size))
        turns.append(apart(bare_append, bare.format(place), runs, size))
    mine, theirs = medians(turns[::2]), medians(turns[1::2])
    return Row(
        "store",
        f"{runs:,} runs into {database}, {size:,} at a time",
        f"bare {database} inserts",
        mine["seconds"],
        theirs["seconds"],
        limit=10.0,
        remark=f"{runs / mine['seconds']:,.0f} durable runs a second; CPU "
        f"{mine['cpu'] / theirs['cpu']:.1f} times as much",
        clock="wall",
    )


def had(part, where: str, base: dict, runs: int) -> Row:
    words = {status: "`status()` of", read: "to read all events of", resume: "to resume a race of"}
    limit = {status: 2.0, read: 40.0, resume: 60.0}[part]
    mine = apart(part, where, runs)
    what = f"{words[part]} {runs:,} runs"
    against = "bare SQLite: fetch and unpack"
    return Row("store", what, against, mine["cpu"], base["cpu"], limit=limit)


def main():
    wanted = make_parser(__doc__).parse_args()
    runs = 2000 if wanted.quick else 1_000_000
    with tempfile.TemporaryDirectory() as folder, a_server() as server:
        text = report(runs, *measure(Path(folder), runs, server))
    print(text)
    if not wanted.quick:
        (RESULTS / "store.md").write_text(text)


if __name__ == "__main__":
    main()
