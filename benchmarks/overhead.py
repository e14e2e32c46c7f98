"""What containment and the engines cost, against the same jobs handed bare to the same executor.

Run it from the project's folder: python benchmarks/overhead.py [--quick]

Jobs sleep for 50 ms, so that the machine's other work disturbs both sides alike. Both are run in
turns, a part of the jobs each time. A run of ours is a process of its own; a bare job is a call in
a worker that is there already.
"""

import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import closing
from itertools import count

import numpy as np
from measuring import HEAD, Row, cells, keep, load, make_parser, shown, table

from polarbear.racing.jobs import RunId, job
from polarbear.running.backends.interface import start_backend
from polarbear.running.backends.local_processes import LocalProcesses
from polarbear.running.solvers.setup import Setup
from polarbear.running.workers.outcomes import RunOutcome

QUICK_CPU_SECONDS = 8

NAP = 0.05
_numbers = count()


def nap(_):
    time.sleep(NAP)


def sleeper(job):
    time.sleep(NAP)
    job.report(1.0, time=1)


def long_sleeper(job):
    time.sleep(0.2)
    job.report(1.0, time=1)


def heavy_tailed(job):
    """Seconds of a log-normal distribution, mean about one and a half."""
    seconds = min(float(job.rng.lognormal(0.0, 0.9)), 20.0)
    time.sleep(seconds)
    job.report(seconds, time=1)


def setup_of(solver):
    return Setup.of([solver], [0], times=[10], direction="minimize")


def jobs_of(solver, n):
    return [job(0, RunId(solver.__name__, "0", next(_numbers)), 10.0) for _ in range(n)]


def ours(backend, n, solver=sleeper):
    """Wall seconds of so many runs, and CPU seconds of what contains them."""
    start_ = time.perf_counter()
    backend.submit(jobs_of(solver, n))
    got = []
    while backend.pending:
        got += backend.outcomes()
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


def compared(name, bare, backend, n, parts):
    """Both in turns; the ratio of all their seconds."""
    size = n // parts
    ours(backend, 10)
    bare(10)
    mine, cpu, theirs = 0.0, 0.0, 0.0
    for _ in range(parts):
        theirs += bare(size)
        seconds, used = ours(backend, size)
        mine, cpu = mine + seconds, cpu + used
    done = size * parts
    return Row(
        "race",
        f"{done:,} contained runs of {1e3 * NAP:.0f} ms, 2 workers",
        f"the same naps, bare {name}",
        mine,
        theirs,
        limit=2.0,
        remark=f"{1e3 * cpu / done:.1f} ms of CPU a run",
        clock="wall",
    )


def rows(quick: bool, n: int = 400, parts: int = 4) -> Iterator[Row]:
    """Processes of this machine, and Dask; in a hurry, ``race.py`` has it all."""
    if quick:
        return
    with (
        ProcessPoolExecutor(2) as pool,
        closing(start_backend(setup_of(sleeper), LocalProcesses(2))) as backend,
    ):
        yield compared("process pool", lambda k: bare_processes(pool, k), backend, n, parts)
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
        closing(start_backend(setup_of(sleeper), client)) as backend,
    ):
        yield compared("Dask", lambda k: bare_dask(client, k), backend, n, parts)


def utilisation(n, slots):
    """How much of the time of so many slots is spent in solvers, while jobs are waiting."""
    with closing(start_backend(setup_of(heavy_tailed), LocalProcesses(slots))) as backend:
        start_ = time.perf_counter()
        backend.submit(jobs_of(heavy_tailed, n))
        ends, asleep = [], []
        while backend.pending:
            for outcome in backend.outcomes():
                ends.append(time.perf_counter() - start_)
                assert isinstance(outcome, RunOutcome)
                asleep.append(np.asarray(outcome.run.value)[0])
        ends, asleep = np.array(ends), np.array(asleep)
    # The last one starts when no more than all slots are left; what runs then was begun before.
    full = np.sort(ends)[n - slots]
    inside = np.clip(full - (ends - asleep), 0.0, asleep).sum()
    share = inside / (slots * full)
    line = f"{n:,} runs, {slots} slots, {full:.0f} s until none waits: utilisation **{share:.1%}**"
    print(line, flush=True)
    return line


def main():
    wanted = make_parser(__doc__).parse_args()
    before = load()
    n, parts, slots = (40, 2, 8) if wanted.quick else (2000, 10, 64)
    found = shown(rows(False, n, parts))
    used = utilisation(n, slots)
    if not wanted.quick:
        keep("overhead", "Overhead of runs", before, table(HEAD, map(cells, found)), used)


if __name__ == "__main__":
    main()
