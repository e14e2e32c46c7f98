"""What containment and the engines cost, against the same jobs handed bare to the same executor.

Run it from the project's folder: python benchmarks/overhead.py [--quick] [--no-write]

Jobs sleep for 50 ms, so that the machine's other work disturbs both sides alike. Both are run in
turns, a part of the jobs each time. A run of ours is a process of its own; a bare job is a call in
a worker that is there already.
"""

import argparse
import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import closing
from itertools import count
from pathlib import Path

import numpy as np

from polarbear.racing.jobs import Key, job
from polarbear.running.engines import start
from polarbear.running.local import Local
from polarbear.running.setup import Setup

NAP = 0.05
RESULTS = Path(__file__).parent / "results" / "overhead.md"
_numbers = count()


def nap(_):
    time.sleep(NAP)


def sleeper(job):
    time.sleep(NAP)
    job.report(1.0, time=1)


def heavy_tailed(job):
    """Seconds of a log-normal distribution, mean about one and a half."""
    seconds = min(float(job.rng.lognormal(0.0, 0.9)), 20.0)
    time.sleep(seconds)
    job.report(seconds, time=1)


def setup_of(solver):
    return Setup.of([solver], [0], times=[10], direction="minimize")


def jobs_of(solver, n):
    return [job(0, Key(solver.__name__, "0", next(_numbers)), 10.0) for _ in range(n)]


def ours(engine, n):
    start_ = time.perf_counter()
    engine.submit(jobs_of(sleeper, n))
    got = []
    while engine.pending:
        got += engine.outcomes()
    assert len(got) == n
    return time.perf_counter() - start_, sum(outcome.cpu for outcome in got)


def bare_processes(pool, n):
    start_ = time.perf_counter()
    for future in as_completed([pool.submit(nap, k) for k in range(n)]):
        future.result()
    return time.perf_counter() - start_


def bare_dask(client, n):
    from distributed import as_completed as completed

    start_ = time.perf_counter()
    futures = [client.submit(nap, next(_numbers), pure=False) for _ in range(n)]
    for _ in completed(futures, with_results=True):
        pass
    return time.perf_counter() - start_


def compared(name, bare, engine, n, parts):
    """Both in turns; the ratio of all their seconds."""
    size = n // parts
    ours(engine, 10)
    bare(10)
    mine, cpu, theirs = 0.0, 0.0, 0.0
    for _ in range(parts):
        theirs += bare(size)
        seconds, used = ours(engine, size)
        mine, cpu = mine + seconds, cpu + used
    done = size * parts
    ratio = mine / theirs
    cost = 1e3 * cpu / done
    line = f"| {name} | {done:,} | {theirs:.1f} | {mine:.1f} | **{ratio:.3f}** | {cost:.1f} |"
    print(line, flush=True)
    return line


def utilisation(n, slots):
    """How much of the time of so many slots is spent in solvers, while jobs are waiting."""
    with closing(start(setup_of(heavy_tailed), Local(slots))) as engine:
        start_ = time.perf_counter()
        engine.submit(jobs_of(heavy_tailed, n))
        ends, asleep = [], []
        while engine.pending:
            for outcome in engine.outcomes():
                ends.append(time.perf_counter() - start_)
                asleep.append(outcome.run.value[0])
        ends, asleep = np.array(ends), np.array(asleep)
    # The last one starts when no more than all slots are left; what runs then was begun before.
    full = np.sort(ends)[n - slots]
    inside = np.clip(full - (ends - asleep), 0.0, asleep).sum()
    share = inside / (slots * full)
    line = f"{n:,} runs, {slots} slots, {full:.0f} s until none waits: utilisation **{share:.1%}**"
    print(line, flush=True)
    return line


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the jobs")
    parser.add_argument("--no-write", action="store_true")
    wanted = parser.parse_args()
    n = 200 if wanted.quick else 2_000
    parts = 2 if wanted.quick else 10
    load = os.getloadavg()[0]
    lines = [
        "| engine, 2 workers | jobs of 50 ms | bare s | ours s | ratio | CPU ms per run |",
        "|---|---|---|---|---|---|",
    ]
    print("\n".join(lines))
    with ProcessPoolExecutor(2) as pool, closing(start(setup_of(sleeper), Local(2))) as engine:
        lines.append(
            compared("local processes", lambda k: bare_processes(pool, k), engine, n, parts)
        )
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
        closing(start(setup_of(sleeper), client)) as engine,
    ):
        lines.append(compared("Dask", lambda k: bare_dask(client, k), engine, n, parts))
    lines += ["", utilisation(n // 2 if wanted.quick else n, 64)]
    lines += ["", f"{os.cpu_count()} cores, load average {load:.1f} at the start."]
    if not wanted.no_write:
        title = "# Overhead of runs\n\nMade by `python benchmarks/overhead.py`.\n\n"
        RESULTS.write_text(title + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
