"""What a coordinator pays that comes back: a resume with a snapshot and without, and the status.

    python benchmarks/resume.py            # writes results/resume.md, takes minutes
    python benchmarks/resume.py --quick    # few runs; seconds

The store, and the plain table that holds the same numbers, are those of ``store.py``. A snapshot is
written at its end. Then the store grows by the share ``GROWTH``, so that the snapshot is as old as
one can be. Its state is that of the race; its rankings have random positions, which take as many
bytes as others. Each part runs in a process of its own, with one thread. Memory is the peak above
the imports; with a snapshot it holds the snapshot itself.
"""

import sqlite3
import struct
import tempfile
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from measuring import RESULTS, apart, machine, make_parser, peak, table
from store import (
    IMPROVEMENTS,
    Stopwatch,
    append,
    bare_append,
    bare_read,
    events,
    reading,
    status,
)

QUICK_CPU_SECONDS = 8

MAX_REPLAYED = 100_000
"""The number of runs up to which a resume without a snapshot is measured as well."""


def own_rows(where, runs):  # noqa: ARG001
    """Fetch all rows of the store, and unpack the numbers: what a reader must do at least."""
    clock, before = Stopwatch(), peak()
    with clock:
        connection = sqlite3.connect(where)
        shape = struct.Struct(f"<{2 * IMPROVEMENTS}d")
        for name in ("events", "runs"):
            for _ in connection.execute(f"SELECT * FROM {name} ORDER BY seq"):
                pass
        for _, data, _ in connection.execute("SELECT * FROM trajectories ORDER BY seq"):
            shape.unpack(data)
    return {**clock.read(), "memory": peak() - before}


def resume(where, runs):
    """What ``race`` does with a store that holds a race."""
    from polarbear.store.restoring import restore_race

    with reading(where) as (store, found):
        assert restore_race(store).n_runs == runs
    return found


def keep(where):
    """Write a snapshot after the last event, unless there is one."""
    import numpy as np

    from polarbear.data.rankings import Rankings
    from polarbear.racing.race import Race
    from polarbear.racing.snapshot import StoredRuns
    from polarbear.store.opening import open_store
    from polarbear.store.race_snapshot import EventHash, read_snapshot, write_snapshot

    with open_store(where) as store:
        last = store.n_events
        if (kept := read_snapshot(store._database)) is not None and kept.last == last:
            return {"bytes": len(kept.data)}
        race = Race.from_events(store.read_facts(last), stored=StoredRuns(lambda _: ()))
        state, ranked = race.state, race._ranked_runs
        names, n = state.members.present(), len(state.pool.order)
        shape = len(state.setup.times), n * len(names)
        position = np.random.default_rng(1).integers(0, len(names), shape, dtype=np.int8)
        offset = np.arange(n + 1) * len(names)
        code = np.tile(np.arange(len(names), dtype=np.int32), n)
        ranked._ranked = Rankings(
            names, tuple(state.pool.order), np.array(state.setup.times), position, code, offset,
            np.arange(n, dtype=np.int32), np.ones(n), state.setup.clock,
            status=np.zeros(len(code), dtype=np.int8),
        )  # fmt: skip
        ranked._names, ranked._new = frozenset(names), {}
        hashed = EventHash()
        assert hashed.extend(store._database, len(store._ids), last)
        data = race.snapshot()
        store._database.write(write_snapshot(data, hashed), last)
    return {"bytes": len(data)}


def grow(where, runs, more):
    """Append further rounds of runs, and decisions that decide nothing."""
    from polarbear.racing.events import Asked, Decided, Told
    from polarbear.store.opening import open_store

    batch: list[Any] = []
    with open_store(where) as store:
        for event in events(more):
            match event:
                case Asked(jobs, round_):
                    new = [job._replace(instance=f"more-{job.instance}") for job in jobs]
                    batch = [Asked(tuple(new), runs + round_)]
                case Told(run):
                    batch.append(Told(run._replace(instance=f"more-{run.instance}")))
                case Decided():
                    store.append([*batch, replace(event, round=runs + event.round)])
    return {}


def measure(folder, runs):
    """Lines of the table for a number of runs; stores that are there already are used again."""
    from polarbear.store.race_snapshot import GROWTH

    where, bare = str(folder / f"{runs}.db"), str(folder / f"{runs}-bare.db")
    for make, place in ((append, where), (bare_append, bare)):
        if not Path(place).exists():
            apart(make, place, runs, 4096)
    lines = []
    if runs <= MAX_REPLAYED:
        lines.append(("resume without a snapshot", apart(resume, where, runs)))
    size = apart(keep, where)["bytes"] / 1e6
    base, rows = apart(bare_read, bare, runs), apart(own_rows, where, runs)
    lines += [
        ("a plain table: fetch and unpack", base),
        ("the store's rows: the same", rows),
        ("`status()`", apart(status, where, runs)),
        (f"resume with a new snapshot of {size:,.0f} MB", apart(resume, where, runs)),
    ]
    more = int(GROWTH * runs)
    apart(grow, where, runs, more)
    words = f"resume with the oldest snapshot, after {more:,} more runs"
    lines.append((words, apart(resume, where, runs + more)))
    return [
        (
            f"{runs:,}",
            what,
            f"{found['cpu']:.2f} s",
            f"**{found['cpu'] / base['cpu']:.2f}**",
            f"{found['cpu'] / rows['cpu']:.2f}",
            f"{found['memory'] / 1e6:,.0f} MB",
        )
        for what, found in lines
    ]


REPORT = """\
Made by `python benchmarks/resume.py` on {machine}, SQLite {sqlite}; it says what is measured.
Runs have {improvements} improvements. Read ratios: the machine was busy.

{rows}
"""


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--folder", type=Path, help="keep the stores here, and use them again")
    wanted = parser.parse_args()
    sizes = [2000] if wanted.quick else [40_000, 1_000_000]
    place = tempfile.TemporaryDirectory() if wanted.folder is None else nullcontext(wanted.folder)
    with place as folder:
        rows = [row for runs in sizes for row in measure(Path(folder), runs)]
    head = ["runs", "what", "CPU", "/ plain table", "/ the store's rows", "memory"]
    text = REPORT.format(
        machine=machine(), sqlite=sqlite3.sqlite_version, improvements=IMPROVEMENTS,
        rows=table(head, rows),
    )  # fmt: skip
    print(text)
    if not wanted.quick:
        (RESULTS / "resume.md").write_text(text)


if __name__ == "__main__":
    main()
