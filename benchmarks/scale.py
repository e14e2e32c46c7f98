"""Where it breaks first, as algorithms, instances and workers become many.

Run it from the project's folder: python benchmarks/scale.py [--quick]

Runs are many in ``store.py``, and what a round costs after many is in ``racing.py``. Workers are
threads of four processes of Dask whose runs sleep: what is measured is what it takes to keep them
busy, which is what a cluster asks of its coordinator.
"""

import os
import time
from contextlib import closing

from measuring import Figures, apart, gigabytes, keep, load, make_parser, peak, table
from overhead import jobs_of, setup_of
from simulated import rankings

import polarbear as pb

QUICK_CPU_SECONDS = 18

ALGORITHMS = (30, 100, 300)
INSTANCES = (10_000, 100_000)
WORKERS = (64, 256, 1000)
RATE = 20
"""Runs that end in a second, all workers together: two cores can contain that many."""

ROUNDS = 4
BUSY = (
    "Busy: of the time of all workers, from when as many runs have ended as there are workers "
    "until the last is in, the share that they slept. Before that, two cores start the process "
    "that each worker keeps for its runs, for which a cluster has as many cores as workers. The "
    "CPU is that of coordinator and scheduler, which are one process here."
)


def algorithms(n: int) -> Figures:
    """CPU seconds of a posterior of n algorithms, and of who dominates whom."""
    data = rankings(n, 50, 20)
    begin = time.process_time()
    posterior = pb.fit(data)
    fitted = time.process_time()
    posterior.pareto()
    known = time.process_time()
    posterior.prob_equivalent()
    done = time.process_time()
    return {
        "fit": fitted - begin,
        "pareto": known - fitted,
        "alike": done - known,
        "memory": peak(),
    }


def instances(number: int) -> Figures:
    """CPU seconds of a posterior of seven algorithms on so many instances, and of the verdict."""
    data = rankings(7, number, 20)
    begin = time.process_time()
    posterior = pb.fit(data)
    fitted = time.process_time()
    posterior.pareto()
    return {"fit": fitted - begin, "pareto": time.process_time() - fitted, "memory": peak()}


def napping(job):
    time.sleep(float(os.environ["NAP"]))
    job.report(1.0, time=1)


def workers(number: int) -> Figures:
    """How busy so many workers of Dask are kept, and what that takes the coordinator."""
    from distributed import Client, LocalCluster

    from polarbear.running.backends.interface import start_backend

    nap = number / RATE
    os.environ["NAP"] = str(nap)
    with (
        LocalCluster(
            n_workers=4,
            threads_per_worker=number // 4,
            memory_limit=0,
            dashboard_address=":0",
        ) as cluster,
        Client(cluster) as client,
        closing(start_backend(setup_of(napping), client)) as backend,
    ):
        spent = time.process_time()
        backend.submit(jobs_of(napping, ROUNDS * number))
        ended, began = 0, None
        while backend.pending:
            ended += len(backend.outcomes())
            if began is None and ended >= number:
                began = ended, time.perf_counter()
        spent = time.process_time() - spent
        assert began is not None
        assert ended == ROUNDS * number
        busy = (ended - began[0]) * nap / (number * (time.perf_counter() - began[1]))
    return {"nap": nap, "busy": busy, "cpu": spent / ended, "memory": peak()}


def report(quick: bool) -> str:
    """All as tables."""
    sizes = ((10,), (1000,), (8,)) if quick else (ALGORITHMS, INSTANCES, WORKERS)
    of_n = [
        (f"{n:,}", *(f"{found[name]:.1f}" for name in ("fit", "pareto", "alike")), gigabytes(found))
        for n in sizes[0]
        if (found := apart(algorithms, n))
    ]
    of_p = [
        (f"{number:,}", f"{found['fit']:.1f}", f"{found['pareto']:.1f}", gigabytes(found))
        for number in sizes[1]
        if (found := apart(instances, number))
    ]
    of_w = [
        (f"{w:,}", f"{found['nap']:.0f}", f"{found['busy']:.0%}", f"{1e3 * found['cpu']:.1f}")
        for w in sizes[2]
        if (found := apart(workers, w))
    ]
    return "\n\n".join(
        [
            "## Algorithms (50 instances, 20 times)",
            table(("n", "CPU s: fit", "who dominates whom", "who is alike", "GB"), of_n),
            "## Instances (7 algorithms, 20 times)",
            table(("P", "CPU s: fit", "who dominates whom", "GB"), of_p),
            f"## Workers of Dask, {ROUNDS} runs each",
            table(("workers", "a run sleeps, s", "busy", "ms of CPU per run"), of_w),
            BUSY,
        ]
    )


def main() -> None:
    wanted = make_parser(__doc__).parse_args()
    before = load()
    text = report(wanted.quick)
    print(text)
    if not wanted.quick:
        keep("scale", "Where it breaks first", before, text)


if __name__ == "__main__":
    main()
