"""A whole race (decisions, a store on the disk, containment) against its jobs handed out bare.

Run it from the project's folder: python benchmarks/race.py [--quick]

Two solvers that sleep for 50 ms are raced to 2,000 runs on two workers. The same number of naps is
handed to a process pool and to Dask. Both sides take turns.
"""

import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from measuring import HEAD, Row, cells, keep, load, make_parser, shown, table
from overhead import NAP, bare_dask, bare_processes

import polarbear as pb

QUICK_CPU_SECONDS = 20


def napping(job):
    time.sleep(NAP)
    yield 1, job.rng.random()


def dozing(job):
    time.sleep(NAP)
    yield 1, job.rng.random()


def raced(executor, n, overlap):
    """Seconds of a race of so many runs; nobody is ever eliminated, for both are the same."""
    budget = pb.Budget(runs=n, batch=(64, 64), overlap=overlap)
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        store = Path(folder) / "race.db"
        with pb.race(
            [napping, dozing],
            lambda rng: rng.random(),
            [1],
            direction="minimize",
            question=pb.StrictParetoSet(),
            budget=budget,
            store=store,
            executor=executor,
        ) as found:
            seconds = time.perf_counter() - begin
            assert found.n_runs == n, found
    return seconds


def compared(name, bare, executor, n, parts, overlap):
    size = n // parts // 128 * 128  # whole rounds
    bare(10)
    raced(executor, 128, overlap)  # what is loaded once is not counted
    mine = theirs = 0.0
    for _ in range(parts):
        theirs += bare(size)
        mine += raced(executor, size, overlap)
    done = size * parts
    overlapping = ", rounds overlap" if overlap else ""
    return Row(
        "race",
        f"`race` with a store, {done:,} runs of {1e3 * NAP:.0f} ms, 2 workers{overlapping}",
        f"the same naps, bare {name}",
        mine,
        theirs,
        limit=3.0,  # a bare nap takes no CPU and ours some: the ratio grows with the load
        clock="wall",
    )


def rows(quick: bool, n: int = 256, parts: int = 1) -> Iterator[Row]:
    """Processes of this machine with and without overlap, and Dask."""
    n = 128 if quick else n
    with ProcessPoolExecutor(2) as pool:
        for overlap in (1,) if quick else (0, 1):
            bare = lambda k: bare_processes(pool, k)  # noqa: E731
            yield compared("process pool", bare, 2, n, parts, overlap)
    if quick:
        return
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        bare = lambda k: bare_dask(client, k)  # noqa: E731
        yield compared("Dask", bare, client, n, parts, 1)


def main():
    wanted = make_parser(__doc__).parse_args()
    before = load()
    found = shown(rows(False, *((128, 1) if wanted.quick else (2048, 1))))
    if not wanted.quick:
        keep("race", "A whole race against its jobs", before, table(HEAD, map(cells, found)))


if __name__ == "__main__":
    main()
