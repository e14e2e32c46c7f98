"""A million runs in one store: how fast they are kept and read back, against bare SQLite.

    python benchmarks/store.py                 # writes benchmarks/results/store.md, takes minutes
    python benchmarks/store.py --runs 20000 --no-write      # a quick look

Ten algorithms race on 64 instances a round; a run has 50 improvements. ``append`` gets one, 64 or
4096 events at a time, each call durable before it returns. The baseline, in turns with it, packs
the same numbers and inserts them in the same batches into one plain table of an SQLite file with
the same settings (write-ahead log, ``synchronous=FULL``), without checksums, names, order or
uniqueness. Reading is compared with fetching all rows of that table and unpacking the numbers. Each
part runs in a process of its own; peak memory is what it takes above the imports.
"""

import argparse
import json
import os
import platform
import resource
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

RESULTS = Path(__file__).parent / "results" / "store.md"
IMPROVEMENTS, ALGORITHMS, INSTANCES = 50, 10, 64
SLOW = {1: 0.002, 64: 0.1, 4096: 1.0}
"""The share of the runs that goes in batches of this size: small batches wait for the disk."""


def events(runs):
    """A race that never settles: rounds of runs, and decisions that decide nothing."""
    import numpy as np

    from polarbear.data.run import Run, Status
    from polarbear.racing.events import Added, Asked, Decided, Open, Started, Told
    from polarbear.racing.jobs import Key, job
    from polarbear.racing.rules import Rules

    rng = np.random.default_rng(1)
    times = tuple(float(t) for t in np.geomspace(10, 1e5, 50).round())
    names = [f"algorithm-{k}" for k in range(ALGORITHMS)]
    yield Started(0, times, "minimize", "evaluations", True, Rules())
    yield from map(Added, names)
    open_ = tuple(Open(a, b, 2**50 - 1) for k, a in enumerate(names) for b in names[k + 1 :])
    done = round_ = 0
    while done < runs:
        instances = range(done // ALGORITHMS + 1, done // ALGORITHMS + 1 + INSTANCES)
        jobs = [job(0, Key(a, str(i), 0), 1e5) for i in instances for a in names][: runs - done]
        yield Asked(tuple(jobs), round_)
        time_ = np.sort(rng.uniform(1, 1e5, (len(jobs), IMPROVEMENTS)))
        value = -np.sort(-rng.standard_normal((len(jobs), IMPROVEMENTS)))
        for own, t, v in zip(jobs, time_.tolist(), value.tolist(), strict=True):
            yield Told(Run(own.algorithm, own.instance, tuple(t), tuple(v), 1e5, 0, Status.CUT))
        done += len(jobs)
        yield Decided(round_, (), open_, 64)
        round_ += 1


def batches(runs, size):
    found = events(runs)
    while some := list(islice(found, size)):
        yield some


def append(where, runs, size):
    """Seconds within ``append``; making the events is not counted."""
    from polarbear.store.opening import open_store

    before = peak()
    seconds = 0.0
    with open_store(where) as store:
        for batch in batches(runs, size):
            start = time.perf_counter()
            store.append(batch)
            seconds += time.perf_counter() - start
        bytes_ = store.status().size
    return {"seconds": seconds, "memory": peak() - before, "bytes": bytes_}


def bare_append(where, runs, size):
    from polarbear.racing.events import Told, to_json

    connection = sqlite3.connect(where, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE runs (id INTEGER PRIMARY KEY, data BLOB)")
    seconds = 0.0
    number = 0
    for batch in batches(runs, size):
        start = time.perf_counter()
        rows = []
        for event in batch:
            number += 1
            if isinstance(event, Told):
                run = event.run
                data = struct.pack(f"<{2 * len(run.time)}d", *run.time, *run.value)
                rows.append((number, data))
            else:
                rows.append((number, to_json(event).encode()))
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT INTO runs VALUES (?, ?)", rows)
        connection.execute("COMMIT")
        seconds += time.perf_counter() - start
    connection.close()
    return {"seconds": seconds, "bytes": Path(where).stat().st_size}


def read(where, runs, size):  # noqa: ARG001
    from polarbear.store.opening import open_store

    before, start = peak(), time.perf_counter()
    with open_store(where, read_only=True) as store:
        number = sum(1 for _ in store.read())
    return {"seconds": time.perf_counter() - start, "memory": peak() - before, "events": number}


def bare_read(where, runs, size):  # noqa: ARG001
    before, start = peak(), time.perf_counter()
    connection = sqlite3.connect(where)
    shape = struct.Struct(f"<{2 * IMPROVEMENTS}d")
    for _, data in connection.execute("SELECT * FROM runs ORDER BY id"):
        if len(data) == shape.size:
            shape.unpack(data)
    return {"seconds": time.perf_counter() - start, "memory": peak() - before}


def replay(where, runs, size, **how):  # noqa: ARG001
    """What a coordinator does that comes back; ``keep=False`` is how it does it."""
    from polarbear.racing.core import Race
    from polarbear.store.opening import open_store

    before, start = peak(), time.perf_counter()
    with open_store(where, read_only=True) as store:
        race = Race.from_events(store.read(arrays=bool(how)), **how)
    seconds = time.perf_counter() - start
    assert race.n_runs == runs
    return {"seconds": seconds, "memory": peak() - before}


def resume(where, runs, size):
    return replay(where, runs, size, keep=False)


def table(where, runs, size):  # noqa: ARG001
    from polarbear.store.opening import open_store

    before, start = peak(), time.perf_counter()
    with open_store(where, read_only=True) as store:
        found = store.runs()
    assert len(found) == runs
    return {"seconds": time.perf_counter() - start, "memory": peak() - before}


def status(where, runs, size):  # noqa: ARG001
    from polarbear.store.opening import open_store

    before, start = peak(), time.perf_counter()
    with open_store(where, read_only=True) as store:
        assert store.status().n_runs == runs
    return {"seconds": time.perf_counter() - start, "memory": peak() - before}


def timed(part):
    """With the CPU time that it took, which others on the machine change less."""

    def run(where, runs, size):
        import polarbear.store  # noqa: F401

        if str(where).startswith("postgres"):
            import psycopg  # noqa: F401
        start = time.process_time()
        found = part(where, runs, size)
        return {"cpu": time.process_time() - start, **found}

    return run


PARTS = {
    part.__name__: timed(part)
    for part in (append, bare_append, read, bare_read, replay, resume, table, status)
}


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def apart(part, where, runs, size=0):
    command = [sys.executable, __file__, "--part", part, "--where", str(where)]
    command += ["--runs", str(runs), "--size", str(size)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found = json.loads(done.stdout)
    print(part, where, runs, size, found, file=sys.stderr, flush=True)
    return found


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
    rates, reading = [], []
    for size, share in SLOW.items():
        some = max(int(runs * share), 500)
        ours = apart("append", folder / f"{size}.db", some, size)
        bare = apart("bare_append", folder / f"{size}-bare.db", some, size)
        cells = [f"{some / part['seconds']:,.0f}" for part in (ours, bare)]
        ratio = ours["seconds"] / bare["seconds"]
        remote = "-"
        if server is not None:
            there = apart("append", f"{server.url}#b{size}", some, size)
            remote = f"{some / there['seconds']:,.0f}"
        rates.append((f"{size:,}", f"{some:,}", *cells, f"**{ratio:.2f}**", remote))
    whole, plain, last = folder / "4096.db", folder / "4096-bare.db", max(SLOW)
    bare = apart("bare_read", plain, runs)
    for part, what in READING.items():
        found = apart(part, whole, runs)
        there = apart(part, f"{server.url}#b{last}", runs) if server is not None else {}
        reading.append((what, *cells_of(found, bare, there)))
    reading.append(("bare SQLite: fetch and unpack", *cells_of(bare, bare, {})))
    sizes = ours["bytes"] / runs, whole.stat().st_size / plain.stat().st_size
    return rates, reading, sizes


READING = {
    "status": "`status()`, in a new process",
    "read": "open and `read()` all events, one after the other",
    "replay": "open and `Race.from_events(store.read())`",
    "resume": "the same without keeping the events: a coordinator that comes back",
    "table": "`store.runs()`, for export",
}


REPORT = """\
Made by `python benchmarks/store.py` on {cores} cores, {versions}; it says what is measured.

{runs:,} runs of {improvements} improvements (fewer in the two smaller batches), {each:,.0f} bytes
each, {times:.2f} times the bare file. Read ratios: the machine was busy.

| events per append | runs | durable runs/s | bare SQLite | time / bare | PostgreSQL, runs/s |
|---|---|---|---|---|---|
{rates}

| reading | wall | CPU | CPU / bare read | memory | PostgreSQL, wall |
|---|---|---|---|---|---|
{reading}
"""


def report(runs, rates, reading, sizes):
    return REPORT.format(
        cores=os.cpu_count(),
        versions=f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}",
        runs=runs,
        improvements=IMPROVEMENTS,
        each=sizes[0],
        times=sizes[1],
        rates="\n".join(f"| {' | '.join(row)} |" for row in rates),
        reading="\n".join(f"| {' | '.join(row)} |" for row in reading),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--no-write", action="store_true", help="only print the tables")
    parser.add_argument("--check", action="store_true", help="fail if status takes a second")
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    parser.add_argument("--where", help=argparse.SUPPRESS)
    parser.add_argument("--size", type=int, help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.part:
        print(json.dumps(PARTS[wanted.part](wanted.where, wanted.runs, wanted.size)))
        return
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
    import servers

    server = None if servers.why_not() else servers.Server()
    try:
        with tempfile.TemporaryDirectory() as folder:
            found = measure(Path(folder), wanted.runs, server)
    finally:
        if server is not None:
            server.remove()
    text = report(wanted.runs, *found)
    print(text)
    if not wanted.no_write:
        RESULTS.write_text(text)
    seconds = float(found[1][0][1].removesuffix(" s"))
    if wanted.check and seconds > 1:
        sys.exit(f"status took {seconds} s")


if __name__ == "__main__":
    main()
