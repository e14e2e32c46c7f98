"""How cost grows with algorithms n, instances P, times T, runs and workers, with fitted slopes.

    python benchmarks/growth.py growth.svg            # measures, and draws this file
    python benchmarks/growth.py growth.png --axes T P # times and instances only, for every prior
    python benchmarks/growth.py --quick               # the two smallest sizes of each

Seconds of CPU, but for workers, where they are what the clock on the wall says: each worker has
eight runs to make that sleep for 200 ms, so that twice the workers should take as long.
"""

import json
import math
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import overhead
import read_and_rank
import samplers
import store
from measuring import apart, make_parser, table

QUICK_CPU_SECONDS = 13

Points = dict[str, dict[str, list[list[float]]]]

NAMES = {
    "n": "algorithms n  (P=50, T=1)",
    "P": "instances P  (n=7, T=20)",
    "T": "times T  (n=7, P=50)",
    "runs": "runs of 50 to 100 improvements",
    "workers": "workers, 8 runs of 200 ms each",
}
READ_IT = """\
Powers are fitted over the last
factor of ten: what grows as $x^{1.0}$
takes ten times as long for ten
times as much.

Hollow: importance weights were
not enough, and draws were moved
by Hamiltonian Monte Carlo."""
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKS = "os^Dv<>"

PRIORS = ("Dirichlet", "BSpline", "GP")
OTHER_PRIORS = ("HierarchicalDirichlet", "RandomWalk", "SparseGP", "HSGP")
ALGORITHMS = (4, 7, 12, 13, 30, 70, 200)
INSTANCES = (10, 100, 1000, 10_000)
TIMES = (10, 30, 100, 300)
MORE_INSTANCES, MORE_TIMES = 100_000, 1000
"""The largest sizes, measured once, where only instances and times are asked for."""

RUNS = (1000, 3000, 10_000, 30_000)
WORKERS = (1, 2, 4, 8, 16, 32, 64)


def fits(
    prior: str, along: int, sizes: Iterable[tuple[int, int, int]], repeat: int = 3
) -> list[list[float]]:
    """Of each size: what grows, CPU seconds of a posterior, and whether draws had to be moved."""
    found = []
    for size in sizes:
        run = apart(samplers.ours, prior, *size, 0, repeat)
        found.append([size[along], run["cpu"], run["moved"]])
    return found


def of_runs(sizes: Iterable[int]) -> dict[str, list[list[float]]]:
    """From a file to rankings, into a store, and back from it."""
    found = {"file to rankings": [], "into a store": [], "out of a store": []}
    with TemporaryDirectory() as folder:
        warm_up = f"{folder}/warm_up.parquet"
        apart(read_and_rank.write_file, warm_up, 10, False)
        for runs in sizes:
            file, kept = f"{folder}/{runs}.parquet", f"{folder}/{runs}.db"
            apart(read_and_rank.write_file, file, runs, False)
            spent = [
                apart(read_and_rank.ours, file, warm_up)["cpu"],
                apart(store.append, kept, runs, 4096)["cpu"],
                apart(store.table, kept, runs)["cpu"],
            ]
            for points, cpu in zip(found.values(), spent, strict=True):
                points.append([runs, cpu])
    return found


def napped(workers: int) -> float:
    """Wall seconds until all workers of this machine have made their eight runs."""
    from polarbear.running.backends.interface import start_backend
    from polarbear.running.backends.local_processes import LocalProcesses

    with closing(
        start_backend(overhead.setup_of(overhead.long_sleeper), LocalProcesses(workers))
    ) as backend:
        overhead.ours(backend, workers, overhead.long_sleeper)  # slots are there
        return overhead.ours(backend, 8 * workers, overhead.long_sleeper)[0]


def measured(quick: bool = False) -> Points:
    """Everything, smallest first; in a quick run, two sizes and one prior."""
    some, repeat = slice(2 if quick else None), 1 if quick else 3
    found: Points = {name: {} for name in NAMES}
    found["n"]["Dirichlet"] = fits("Dirichlet", 0, [(n, 50, 1) for n in ALGORITHMS[some]], repeat)
    for prior in PRIORS[: 1 if quick else None]:
        found["P"][prior] = fits(prior, 1, [(7, p, 20) for p in INSTANCES[some]], repeat)
        found["T"][prior] = fits(prior, 2, [(7, 50, t) for t in TIMES[some]], repeat)
    found["runs"] = of_runs(RUNS[some])
    found["workers"]["local processes"] = [[w, napped(w)] for w in WORKERS[some]]
    return found


def measured_fits(axes: Iterable[str]) -> Points:
    """Times and instances for every prior, to larger sizes."""
    found: Points = {axis: {} for axis in axes}
    for prior in (*PRIORS, *OTHER_PRIORS):
        for axis in found:
            sizes = (*INSTANCES, MORE_INSTANCES) if axis == "P" else (*TIMES, MORE_TIMES)
            of = [(7, size, 20) if axis == "P" else (7, 50, size) for size in sizes]
            found[axis][prior] = fits(prior, 1 if axis == "P" else 2, of, 1)
            print(axis, prior, found[axis][prior], flush=True)
    return found


def slopes(found: Points) -> str:
    """The measured seconds and fitted exponents as a table."""
    rows = [
        (axis, name, ", ".join(f"{p[0]:,}: {p[1]:.2f}" for p in points), f"{slope(points):.2f}")
        for axis, series in found.items()
        for name, points in series.items()
    ]
    return table(("along", "prior", "CPU s by size", "exponent, last decade"), rows)


def slope(points: list[list[float]]) -> float:
    """The exponent of the growth over the last decade of sizes.

    >>> round(slope([[1, 1], [10, 1], [100, 10]]), 2)
    1.0
    """
    late = [(math.log(x), math.log(y)) for x, y, *_ in points if x >= points[-1][0] / 10.01]
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
    width = 3.4 if max(map(len, found.values())) <= len(PRIORS) else 5.2
    figure, axes = plt.subplots(
        rows, columns, figsize=(width * columns, 2.9 * rows), layout="constrained", squeeze=False
    )
    look = dict(zip(_series(found), zip(COLOURS * 2, MARKS * 2, strict=True), strict=False))
    for panel, (axis, series) in zip(axes.flat, found.items(), strict=False):
        for name, points in series.items():
            colour, mark = look[name]
            text = f"{name}: {_power(slope(points))}"
            panel.loglog(*_columns(points), f"{mark}-", color=colour, ms=4, label=text)
            moved = [point for point in points if any(point[2:])]
            panel.loglog(*_columns(moved), mark, color=colour, ms=4, mfc="white", zorder=3)
        if axis == "workers":
            panel.axhline(8 * 0.2, color="0.5", ls=":", label="the naps alone")
        place = (0.0, 1.0) if len(series) <= len(PRIORS) else (1.0, 1.0)  # many: beside the panel
        panel.legend(
            frameon=False, loc="upper left", bbox_to_anchor=place, fontsize=8, handlelength=1.4
        )
        panel.set_xlabel(NAMES.get(axis, axis))
        panel.set_ylabel("wall seconds" if axis == "workers" else "CPU seconds")
        panel.margins(y=0.3)
        panel.grid(alpha=0.3, which="major")
        panel.spines[["top", "right"]].set_visible(False)
    for panel in list(axes.flat)[len(found) :]:
        panel.axis("off")
        panel.text(0.05, 0.5, READ_IT, va="center", linespacing=1.5)
    figure.savefig(path, dpi=130, metadata={"Date": None} if path.suffix == ".svg" else None)


def _columns(points: list[list[float]]) -> tuple[list[float], list[float]]:
    return [point[0] for point in points], [point[1] for point in points]


def _series(found: Points) -> list[str]:
    return list(dict.fromkeys(name for series in found.values() for name in series))


def _power(exponent: float) -> str:
    return f"$x^{{{exponent:.1f}}}$".replace("-0.0", "0.0")


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("file", nargs="?", type=Path, help="an SVG or PNG to write")
    parser.add_argument("--axes", nargs="+", choices=["T", "P"], help="only these, for every prior")
    wanted = parser.parse_args()
    if wanted.file is None and not wanted.quick:
        parser.error("name an SVG or PNG to write, or pass --quick")
    found = measured_fits(wanted.axes) if wanted.axes else measured(wanted.quick)
    print(json.dumps(found))
    print(slopes(found))
    with TemporaryDirectory() as scratch:
        draw(found, wanted.file or Path(scratch) / "growth.svg")


if __name__ == "__main__":
    main()
