"""A whole race (decisions, a store on the disk, containment) against its jobs handed out bare.

Run it from the project's folder: python benchmarks/race.py [--quick] [--no-write]

Two solvers that sleep for 50 ms are raced to 2,000 runs on two workers. The same number of naps is
handed to a process pool and to Dask. Both sides take turns.
"""

import argparse
import os
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from overhead import NAP, bare_dask, bare_processes

import polarbear as pb

RESULTS = Path(__file__).parent / "results" / "race.md"


def napping(job):
    time.sleep(NAP)
    yield 1, job.rng.random()


def dozing(job):
    time.sleep(NAP)
    yield 1, job.rng.random()


def raced(executor, n, overlap):
    """Seconds of a race of so many runs; nobody is ever eliminated, for both are the same."""
    rules = pb.Rules(max_runs=n, epsilon=0.0, looks="betting", batch=(64, 64), overlap=overlap)
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        store = Path(folder) / "race.db"
        with pb.race(
            [napping, dozing],
            lambda rng: rng.random(),
            [1],
            direction="minimize",
            rules=rules,
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
    done, ratio = size * parts, mine / theirs
    line = f"| {name} | {overlap} | {done:,} | {theirs:.1f} | {mine:.1f} | {ratio:.3f} |"
    print(line, flush=True)
    return line


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the jobs")
    parser.add_argument("--no-write", action="store_true")
    wanted = parser.parse_args()
    n, parts = (256, 1) if wanted.quick else (2_048, 2)
    load = os.getloadavg()[0]
    lines = [
        "| where, 2 workers | rounds that overlap | runs of 50 ms | bare s | race s | ratio |",
        "|---|---|---|---|---|---|",
    ]
    print("\n".join(lines))
    with ProcessPoolExecutor(2) as pool:
        for overlap in (0, 1):
            bare = lambda k: bare_processes(pool, k)  # noqa: E731
            lines.append(compared("local processes", bare, 2, n, parts, overlap))
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        bare = lambda k: bare_dask(client, k)  # noqa: E731
        lines.append(compared("Dask", bare, client, n, parts, 1))
    lines += ["", f"{os.cpu_count()} cores, load average {load:.1f} at the start."]
    if not wanted.no_write:
        title = "# A whole race against its jobs\n\nMade by `python benchmarks/race.py`.\n\n"
        RESULTS.write_text(title + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
