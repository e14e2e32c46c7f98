"""Ten million improvement rows from Parquet to ``Runs`` to ``Rankings``, against polars.

    python benchmarks/read_and_rank.py            # writes benchmarks/results/read_and_rank.md
    python benchmarks/read_and_rank.py --runs 2000 --rounds 1 --no-write    # a quick look

The file holds 100 improvements for each of 100,000 runs (10 algorithms on 10,000 instances), once
with its rows in order and once shuffled. The baseline is polars, on all cores, reading the same
file and sorting it by algorithm, instance and time. Each measurement runs in a process of its
own; the two sides take turns, and a ratio is that of the medians. Peak memory is that of the whole
process above the same process with the packages imported, divided by the size of the file's
columns in memory (texts as 4-byte dictionary codes, the smallest honest count).
"""

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path

IMPROVEMENTS = 100
TIMES = 50
LIMIT = 3.0
RESULTS = Path(__file__).parent / "results" / "read_and_rank.md"


def write_file(path: str, runs: int, *, shuffle: bool) -> None:
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


def ours(path: str) -> dict[str, float]:
    import numpy as np
    import pyarrow.parquet  # noqa: F401  (imports are not what is measured)

    import polarbear as pb

    pb.rank, pb.read  # noqa: B018
    before = peak()
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
        "memory": peak() - before,
        "rows": len(runs.time),
    }


def polars(path: str) -> dict[str, float]:
    import polars as pl

    before = peak()
    start = time.perf_counter()
    frame = pl.read_parquet(path).sort("algorithm", "instance", "time")
    seconds = time.perf_counter() - start
    return {"all": seconds, "memory": peak() - before, "rows": len(frame)}


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def apart(part: str, path: Path, runs: int) -> dict[str, float]:
    """Run one part in a process of its own (a child inherits its parent's peak, so all of them)."""
    command = [sys.executable, __file__, "--part", part, "--file", str(path), "--runs", str(runs)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def machine() -> str:
    packages = ("numpy", "scipy", "pyarrow", "polars")
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in packages)
    return f"{os.cpu_count()} cores, Python {platform.python_version()}, {versions}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--check", action="store_true", help="fail beyond 3 times polars")
    parser.add_argument("--no-write", action="store_true", help="print the table only")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    parser.add_argument("--file", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part in ("in order", "shuffled"):
        write_file(options.file, options.runs, shuffle=options.part == "shuffled")
    if options.part:
        sides = {"ours": ours, "polars": polars}
        print(json.dumps(sides[options.part](options.file) if options.part in sides else {}))
        return

    rows = options.runs * IMPROVEMENTS
    raw = rows * (4 + 4 + 8 + 8)
    lines = [
        f"{rows:,} rows of {options.runs:,} runs, {TIMES} times, {options.rounds} rounds in turns.",
        "",
        "| rows | time / polars | reading | ranking | peak / raw columns | polars' peak / raw |",
        "|---|---|---|---|---|---|",
    ]
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        for label in ("in order", "shuffled"):
            path = Path(folder) / f"{label.replace(' ', '_')}.parquet"
            apart(label, path, options.runs)
            sides: dict[str, list[dict[str, float]]] = {"ours": [], "polars": []}
            for _ in range(options.rounds):
                for side, found in sides.items():
                    found.append(apart(side, path, options.runs))
            assert {found["rows"] for side in sides.values() for found in side} == {rows}
            base = statistics.median(found["all"] for found in sides["polars"])

            def ratio(part: str, sides=sides, base=base) -> float:
                return statistics.median(found[part] for found in sides["ours"]) / base

            memory = {s: max(found["memory"] for found in sides[s]) / raw for s in sides}
            ratios.append(ratio("all"))
            lines.append(
                f"| {label} | **{ratio('all'):.2f}** | {ratio('read'):.2f} | {ratio('rank'):.2f} "
                f"| **{memory['ours']:.2f}** | {memory['polars']:.2f} |"
            )
    text = "\n".join(lines) + "\n"
    print(text)
    if options.check and max(ratios) > LIMIT:
        sys.exit(f"{max(ratios):.2f} times polars is more than {LIMIT}")
    if not options.no_write:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(
            f"Made by `python benchmarks/read_and_rank.py` on {machine()}.\n\n{text}"
        )


if __name__ == "__main__":
    main()
