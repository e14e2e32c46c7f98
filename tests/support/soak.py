"""A very long race of very short runs: nothing grows that should not.

    python tests/support/soak.py           # 100,000 runs, half an hour; writes faults/soak.md
    python tests/support/soak.py --runs 5000 --no-write

Two solvers that are equally good race on two slots, so that nothing is ever settled. While they do,
one looks at the coordinator from time to time: its memory, open files, threads and children, and
the write-ahead log of its store.
"""

import argparse
import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

import course
import polarbear as pb
from polarbear.running.solvers.processes import find_descendants
from racers import quick_fit

RESULTS = Path(__file__).parents[1] / "faults" / "soak.md"


REPORT = """\
# A long race of short runs

Made by `python tests/support/soak.py --runs {}`, which took {:.0f} minutes.
Each run makes the coordinator {:,.0f} bytes larger; nothing else grows.

| runs | memory | open files | threads | processes below | log of the store |
|---|---|---|---|---|---|
"""


class Look(NamedTuple):
    """What there is at a moment."""

    runs: int
    memory: int
    files: int
    threads: int
    processes: int
    log: int


def look(path, runs):
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    log = path.with_name(path.name + "-wal")
    return Look(
        runs,
        pages * os.sysconf("SC_PAGE_SIZE"),
        sum(1 for _ in Path("/proc/self/fd").iterdir()),
        threading.active_count(),
        len(find_descendants(os.getpid())),
        log.stat().st_size if log.exists() else 0,
    )


def soak(runs, folder, seconds=0.0033, looks=10):
    """Race so many runs: what there was while they were made, and how long it took."""
    path, seen = Path(folder) / "race.db", []

    def fit(rankings, *, seed):
        made = rankings.offset[-1]
        if not seen or made >= (len(seen) + 1) * runs // looks:
            seen.append(look(path, int(made)))
        return quick_fit(rankings, seed=seed)

    begin = time.monotonic()
    solver = course.solver((1.0,) * 3, seconds)
    pb.race(
        {"one": solver, "other": solver},
        course.instance,
        course.TIMES,
        direction="maximize",
        question=pb.StrictParetoSet(certainty=0.999, fit=fit),
        budget=pb.Budget(batch=(64, 512), runs=runs),
        store=path,
        executor=2,
    ).close()
    return seen, time.monotonic() - begin


def per_run(seen):
    """Bytes by which the coordinator grew with each run, once it was warm."""
    first, last = seen[len(seen) // 3], seen[-1]
    return (last.memory - first.memory) / max(last.runs - first.runs, 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--no-write", action="store_true", help="only print the table")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        seen, seconds = soak(wanted.runs, folder)
    rows = [
        f"| {s.runs:,} | {s.memory / 1e6:.0f} MB | {s.files} | {s.threads} | {s.processes} | "
        f"{s.log / 1e6:.1f} MB |\n"
        for s in seen
    ]
    text = REPORT.format(wanted.runs, seconds / 60, per_run(seen)) + "".join(rows)
    sys.stdout.write(text)
    if not wanted.no_write:
        RESULTS.write_text(text)


if __name__ == "__main__":
    main()
