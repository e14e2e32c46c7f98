"""Ten million improvement rows from Parquet to ``Runs`` to ``Rankings``, against polars.

    python benchmarks/read_and_rank.py            # writes benchmarks/results/read_and_rank.md
    python benchmarks/read_and_rank.py --quick    # few runs

The file holds 100 improvements for each of 100,000 runs (10 algorithms on 10,000 instances), once
with its rows in order and once shuffled. The baseline is polars, on all cores, reading the same
file and sorting it by algorithm, instance and time. Each measurement runs in a process of its
own, after it has read a file of 10 runs (imports are not what is measured); the two sides take
turns, and a ratio is that of the medians. Peak memory is that of the whole process above what it
was by then, divided by the size of the file's columns in memory (texts as 4-byte dictionary codes,
the smallest honest count).
"""

import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from measuring import RESULTS, Figures, Row, apart, machine, make_parser, peak, table

QUICK_CPU_SECONDS = 5

IMPROVEMENTS = 100
TIMES = 50
LIMIT = 3.0
KINDS = ("in order", "shuffled")


def write_file(path: str, runs: int, shuffle: bool) -> Figures:
    """A Parquet file of so many runs."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(2026)
    instances = runs // 10
    run = np.repeat(np.arange(runs), IMPROVEMENTS)
    # Geometric-looking improvement times up to 10^5 evaluations, distinct within a run.
    gaps = rng.exponential(size=(runs, IMPROVEMENTS)).cumsum(axis=1)
    evaluations = np.ceil(10 ** (5 * gaps / gaps[:, -1:])) + np.arange(IMPROVEMENTS)
    values = 10 ** (2 - rng.exponential(0.1, size=(runs, IMPROVEMENTS)).cumsum(axis=1))
    order = rng.permutation(len(run)) if shuffle else slice(None)
    names = pa.array([f"algorithm-{k}" for k in range(10)])
    problems = pa.array([f"instance-{k:05d}" for k in range(instances)])
    table = pa.table(
        {
            "algorithm": pa.DictionaryArray.from_arrays((run % 10)[order].astype("i4"), names),
            "instance": pa.DictionaryArray.from_arrays((run // 10)[order].astype("i4"), problems),
            "time": evaluations.ravel()[order],
            "value": values.ravel()[order],
        }
    )
    table = table.cast(
        pa.schema(
            [
                ("algorithm", pa.string()),
                ("instance", pa.string()),
                ("time", pa.float64()),
                ("value", pa.float64()),
            ]
        )
    )
    pq.write_table(table, path)
    return {}


def ours(path: str, warm_up: str) -> Figures:
    """From the file to rankings, in this process; the first file takes the imports."""
    import numpy as np

    import polarbear as pb

    pb.rank(pb.read(warm_up, direction="minimize", clock="evaluations", until="instance"), [100.0])
    before, cpu = peak(), time.process_time()
    start = time.perf_counter()
    runs = pb.read(path, direction="minimize", clock="evaluations", until="instance")
    read = time.perf_counter()
    rankings = pb.rank(runs, np.geomspace(100, 1e5, TIMES))
    done = time.perf_counter()
    assert rankings.position.shape == (TIMES, len(runs))
    return {
        "read": read - start,
        "rank": done - read,
        "all": done - start,
        "cpu": time.process_time() - cpu,
        "memory": peak() - before,
        "rows": len(runs.time),
    }


def polars(path: str, warm_up: str) -> Figures:
    """From the file to a sorted frame; the first file takes the imports and starts the threads."""
    import polars as pl

    pl.read_parquet(warm_up).sort("algorithm", "instance", "time")
    before, cpu = peak(), time.process_time()
    start = time.perf_counter()
    frame = pl.read_parquet(path).sort("algorithm", "instance", "time")
    seconds = time.perf_counter() - start
    spent = time.process_time() - cpu
    return {"all": seconds, "cpu": spent, "memory": peak() - before, "rows": len(frame)}


def measured(
    runs: int, rounds: int, kinds: Sequence[str] = KINDS
) -> Iterator[tuple[str, dict[str, list[Figures]]]]:
    """Of each kind of file what both sides took, in turns; polars has all cores."""
    with tempfile.TemporaryDirectory() as folder:
        path, warm_up = (str(Path(folder) / name) for name in ("runs.parquet", "warm_up.parquet"))
        apart(write_file, warm_up, 10, False)
        for kind in kinds:
            apart(write_file, path, runs, kind == "shuffled")
            sides: dict[str, list[Figures]] = {"ours": [], "polars": []}
            for _ in range(rounds):
                sides["ours"].append(apart(ours, path, warm_up))
                sides["polars"].append(apart(polars, path, warm_up))
            rows = {found["rows"] for side in sides.values() for found in side}
            assert rows == {runs * IMPROVEMENTS}
            yield kind, sides


def median(found: list[Figures], part: str) -> float:
    return statistics.median(one[part] for one in found)


def memory(found: list[Figures], runs: int) -> float:
    """The peak, in sizes of the raw columns."""
    return max(one["memory"] for one in found) / (runs * IMPROVEMENTS * (4 + 4 + 8 + 8))


def rows(quick: bool) -> Iterator[Row]:
    """Reading and ranking against reading and sorting."""
    runs = 5000 if quick else 20_000
    for kind, sides in measured(runs, 3, KINDS[:1] if quick else KINDS):
        yield Row(
            "reading",
            f"{runs * IMPROVEMENTS:,} rows {kind}, Parquet to rankings at {TIMES} times",
            "polars: read and sort",
            median(sides["ours"], "all"),
            median(sides["polars"], "all"),
            goal=LIMIT,
            limit=LIMIT,
            remark=f"peak memory {memory(sides['ours'], runs):.1f} times the raw columns, polars "
            f"{memory(sides['polars'], runs):.1f}",
            clock="wall",
        )


def report(runs: int, rounds: int) -> str:
    head = [
        "rows",
        "time / polars",
        "reading",
        "ranking",
        "peak / raw columns",
        "polars' peak / raw",
    ]
    lines = []
    for kind, sides in measured(runs, rounds):
        base = median(sides["polars"], "all")
        parts = [median(sides["ours"], part) / base for part in ("all", "read", "rank")]
        peaks = [memory(sides[side], runs) for side in ("ours", "polars")]
        cells = [f"**{parts[0]:.2f}**", f"{parts[1]:.2f}", f"{parts[2]:.2f}"]
        lines.append([kind, *cells, f"**{peaks[0]:.2f}**", f"{peaks[1]:.2f}"])
    said = machine("numpy", "scipy", "pyarrow", "polars")
    return (
        f"Made by `python benchmarks/read_and_rank.py` on {said}.\n\n"
        f"{runs * IMPROVEMENTS:,} rows of {runs:,} runs, {TIMES} times, {rounds} rounds in "
        f"turns.\n\n{table(head, lines)}\n"
    )


def main() -> None:
    wanted = make_parser(__doc__).parse_args()
    text = report(2000, 1) if wanted.quick else report(100_000, 5)
    print(text)
    if not wanted.quick:
        (RESULTS / "read_and_rank.md").write_text(text)


if __name__ == "__main__":
    main()
