"""How cost grows with algorithms n, instances P, times T, runs and workers, with fitted slopes.

    python benchmarks/growth.py        # writes growth.json and growth.svg into benchmarks/results

Seconds of CPU, but for workers, where they are what the clock on the wall says: each worker has
eight runs to make that sleep for 200 ms, so that twice the workers should take as long.
"""

import argparse
import json
import math
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import overhead
import peers
import read_and_rank
from measuring import RESULTS, apart

import store

Points = dict[str, dict[str, list[list[float]]]]

NAMES = {
    "n": "algorithms n  (P=50, T=1)",
    "P": "instances P  (n=7, T=20)",
    "T": "times T  (n=7, P=50)",
    "runs": "runs of 50 to 100 improvements",
    "workers": "workers, 8 runs of 200 ms each",
}
READ_IT = """\
Powers are fitted over the
last factor of ten: what grows
as $x^{1.0}$ takes ten times as long
for ten times as much."""
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
MARKS = "os^D"

PRIORS = ("Dirichlet", "BSpline", "GP")
ALGORITHMS = (4, 7, 12, 13, 30, 70, 200)
INSTANCES = (10, 100, 1000, 10_000)
TIMES = (10, 30, 100, 300)
RUNS = (1000, 3000, 10_000, 30_000)
WORKERS = (1, 2, 4, 8, 16, 32, 64)


def fits(prior: str, sizes: Iterable[tuple[int, int, int]]) -> list[float]:
    """CPU seconds of a posterior at each size."""
    return [apart(peers.ours, prior, *size, 0, 3)["cpu"] for size in sizes]


def of_runs() -> dict[str, list[list[float]]]:
    """From a file to rankings, into a store, and back from it."""
    found = {"file to rankings": [], "into a store": [], "out of a store": []}
    with TemporaryDirectory() as folder:
        for runs in RUNS:
            file, kept = f"{folder}/{runs}.parquet", f"{folder}/{runs}.db"
            apart(read_and_rank.write_file, file, runs, False)
            spent = [
                apart(read_and_rank.ours, file)["cpu"],
                apart(store.append, kept, runs, 4096)["cpu"],
                apart(store.table, kept, runs)["cpu"],
            ]
            for points, cpu in zip(found.values(), spent, strict=True):
                points.append([runs, cpu])
    return found


def napped(workers: int) -> float:
    """Wall seconds until all workers of this machine have made their eight runs."""
    from polarbear.running.engines import start
    from polarbear.running.local import Local

    with closing(start(overhead.setup_of(overhead.long_sleeper), Local(workers))) as engine:
        overhead.ours(engine, workers, overhead.long_sleeper)  # slots are there
        return overhead.ours(engine, 8 * workers, overhead.long_sleeper)[0]


def measured() -> Points:
    """Everything, smallest first."""
    found: Points = {name: {} for name in NAMES}
    sizes = [(n, 50, 1) for n in ALGORITHMS]
    found["n"]["Dirichlet"] = _points(ALGORITHMS, fits("Dirichlet", sizes))
    for prior in PRIORS:
        found["P"][prior] = _points(INSTANCES, fits(prior, [(7, p, 20) for p in INSTANCES]))
        found["T"][prior] = _points(TIMES, fits(prior, [(7, 50, t) for t in TIMES]))
    found["runs"] = of_runs()
    found["workers"]["local processes"] = _points(WORKERS, [napped(w) for w in WORKERS])
    return found


def _points(sizes: Iterable[float], spent: Iterable[float]) -> list[list[float]]:
    return [[size, cpu] for size, cpu in zip(sizes, spent, strict=True)]


def slope(points: list[list[float]]) -> float:
    """The exponent of the growth over the last decade of sizes.

    >>> round(slope([[1, 1], [10, 1], [100, 10]]), 2)
    1.0
    """
    late = [(math.log(x), math.log(y)) for x, y in points if x >= points[-1][0] / 10 * 0.999]
    mean = [sum(part) / len(late) for part in zip(*late, strict=True)]
    rise = sum((x - mean[0]) * (y - mean[1]) for x, y in late)
    return rise / sum((x - mean[0]) ** 2 for x, _ in late)


def draw(found: Points, path: Path) -> None:
    """A panel for each thing that grows, on logarithmic axes."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    mpl.rcParams |= {"svg.hashsalt": "growth", "svg.fonttype": "path", "font.size": 9}
    columns = min(3, len(found))
    rows = -(-len(found) // columns)
    figure, axes = plt.subplots(
        rows, columns, figsize=(3.4 * columns, 2.9 * rows), layout="constrained", squeeze=False
    )
    look = dict(zip(_series(found), zip(COLOURS * 2, MARKS * 2, strict=True), strict=False))
    for panel, (axis, series) in zip(axes.flat, found.items(), strict=False):
        for name, points in series.items():
            colour, mark = look[name]
            text = f"{name}: {_power(slope(points))}"
            panel.loglog(*zip(*points, strict=True), f"{mark}-", color=colour, ms=4, label=text)
        panel.legend(frameon=False, loc="upper left", fontsize=8, handlelength=1.4)
        panel.set_xlabel(NAMES.get(axis, axis))
        panel.set_ylabel("wall seconds" if axis == "workers" else "CPU seconds")
        panel.margins(y=0.3)
        panel.grid(alpha=0.3, which="major")
        panel.spines[["top", "right"]].set_visible(False)
    for panel in list(axes.flat)[len(found) :]:
        panel.axis("off")
        panel.text(0.05, 0.5, READ_IT, va="center", linespacing=1.5)
    figure.savefig(path, dpi=130, metadata={"Date": None} if path.suffix == ".svg" else None)


def _series(found: Points) -> list[str]:
    return list(dict.fromkeys(name for series in found.values() for name in series))


def _power(exponent: float) -> str:
    return f"$x^{{{exponent:.1f}}}$".replace("-0.0", "0.0")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draw", action="store_true", help="draw again what was measured")
    wanted = parser.parse_args()
    kept = RESULTS / "growth.json"
    if not wanted.draw:
        kept.write_text(json.dumps(measured()) + "\n")
    draw(json.loads(kept.read_text()), RESULTS / "growth.svg")


if __name__ == "__main__":
    main()
