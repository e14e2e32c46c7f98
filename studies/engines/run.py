"""Are the paper's statements about inference engines true? Writes table.md and figures.

python studies/engines/run.py             # less than an hour of CPU; goes on where it was
python studies/engines/run.py --sets 2    # with a second data set
python studies/engines/run.py --table     # table and figures again from results/
python studies/engines/run.py --quick     # half a minute: does it run at all?
"""

import argparse
import json
import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import numpy as np
from engines.optimiser import final_width
from tools.figures import possible, sheet
from tools.markdown import table
from tools.records import Records

QUICK_CPU_SECONDS = 20

HERE = Path(__file__).parent
BENCHMARKS = HERE.parents[1] / "benchmarks"
N, INSTANCES, TIMES = 5, 30, 10
TEMPORAL = ("RandomWalk", "HSGP", "BSpline", "SparseGP", "GP")
PRIORS = ("Dirichlet", *TEMPORAL)
DIRICHLET_TIME = 4
"""The independent model is fitted at this one of the times."""

MAIN = ("NUTS", "PolarBear", "Pathfinder")
OTHERS = ("PyMC Laplace", "ADVI mean-field", "ADVI full-rank")
MORE = tuple(
    f"ADVI {family}, {change}"
    for change in ("100,000 steps", "10 samples a step")
    for family in ("full-rank", "mean-field")
)
SAMPLES = (1, 2, 5, 10, 20)
"""Of a gradient of ADVI, in the one-dimensional example."""
REFERENCES = ("NUTS", "NUTS, short")

Cell = tuple[str, str, int, int, int, int, int | None]
KEY = ("engine", "prior", "n", "instances", "times", "seed", "only")
SUMMARY = ("mean", "sd", "half_difference", "ahead", "dominates")


def plan_quality(seed: int, engines: Sequence[str], priors: Sequence[str]) -> Iterator[Cell]:
    """Yield the fits that are compared with NUTS, on one data set."""
    for prior in priors:
        for engine in engines:
            yield engine, prior, N, INSTANCES, TIMES, seed, select_time(prior)


def select_time(prior: str) -> int | None:
    """Return the one time of the independent model, None for a model of all times."""
    return DIRICHLET_TIME if prior == "Dirichlet" else None


def plan_one_time() -> Iterator[Cell]:
    """Yield the fits of figure 1a: the independent Dirichlet model at one time."""
    for n in (5, 10, 30):
        for instances in (10, 100, 1000):
            for engine in ("PolarBear", "Pathfinder"):
                yield engine, "Dirichlet", n, instances, 1, 1, None
    yield "NUTS", "Dirichlet", 30, 100, 1, 1, None


def plan_many_times(engine: str, numbers: Sequence[int]) -> Iterator[Cell]:
    """Yield the fits of figure 1b: temporal priors against the number of times."""
    for times in numbers:
        for prior in TEMPORAL:
            yield engine, prior, N, INSTANCES, times, 1, None


def plan_quick() -> Iterator[Cell]:
    """Yield a few small fits."""
    for engine in ("NUTS, short", "PolarBear", "Pathfinder"):
        yield engine, "Dirichlet", 3, 5, 1, 1, None


def measure_missing(records: Records, cells: Iterable[Cell], summary: bool) -> None:
    """Measure the cells that are not recorded yet."""
    from engines.engine_fits import measure  # PyMC, which --table does not need

    for cell in cells:
        if cell in records:
            continue
        row = measure(*cell)
        row = row if summary else {key: row[key] for key in row if key not in SUMMARY}
        records.add(dict(zip(KEY, cell, strict=True)) | row)
        shown = {key: value for key, value in row.items() if key not in SUMMARY}
        print(*cell, shown, flush=True)


# Table


def compare(row: dict[str, Any], reference: dict[str, Any]) -> dict[str, Any]:
    """Return the distances of a fit from the reference, over all ratings and pairs."""
    mean, sd, ahead, dominates = (
        (np.array(row[key]), np.array(reference[key]))
        for key in ("mean", "sd", "ahead", "dominates")
    )
    ratio = sd[0] / sd[1]
    return {
        "mean": float(np.max(np.abs(mean[0] - mean[1]) / sd[1])),
        "noise": float(np.max(np.abs(reference["half_difference"]) / sd[1])),
        "ratio": (float(np.median(ratio)), float(ratio.min()), float(ratio.max())),
        "ahead": float(np.abs(ahead[0] - ahead[1]).max()),
        "dominates": float(np.abs(dominates[0] - dominates[1]).max()),
    }


def find_reference(rows: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the longest NUTS run among the fits of one model."""
    by_engine = {row["engine"]: row for row in rows}
    return next((by_engine[name] for name in REFERENCES if name in by_engine), None)


def quality_table(rows: list[dict[str, Any]]) -> str:
    """Return the table of all fits beside the reference of their model."""
    cells = []
    for model in dict.fromkeys((row["prior"], row["seed"], row["only"]) for row in rows):
        group = [row for row in rows if (row["prior"], row["seed"], row["only"]) == model]
        reference = find_reference(group)
        if reference is None:
            continue
        others = [row for row in group if row is not reference]
        cells += [
            [row["prior"], row["seed"], row["engine"], *describe(row, reference)]
            for row in (reference, *others)
        ]
    head = ["prior", "set", "engine", "CPU s", "to compile", "largest error of a mean"]
    head += ["sd / sd of NUTS", "P(ahead)", "P(ahead at all times)", "diagnostics"]
    return table(head, cells)


def describe(row: dict[str, Any], reference: dict[str, Any]) -> list[str]:
    """Return the figures of a fit as text."""
    if "failed" in row:
        return ["", "", "", "", "", "", f"failed: {row['failed']}"]
    compiling = row["compiling"]
    if compiling is None:
        spent = [f"{row['computing']:.1f} in all", ""]
    else:
        spent = [f"{row['computing']:.2f}", f"{compiling:.1f}"]
    distance = compare(row, reference)
    if row is reference:
        figures = [f"({distance['noise']:.2f})", "1", "", ""]
    else:
        middle, low, high = distance["ratio"]
        figures = [f"{distance['mean']:.2f}", f"{middle:.2f} ({low:.2f} to {high:.2f})"]
        figures += [f"{distance['ahead']:.3f}", f"{distance['dominates']:.3f}"]
    names = ("R-hat", "ESS", "divergences", "k-hat", "total variation", "ELBO rise")
    measured = row["diagnostics"]
    said = [f"{name} {measured[name]:{_form(name)}}" for name in names if name in measured]
    return [*spent, *figures, ", ".join(said)]


def _form(name: str) -> str:
    return {"R-hat": ".3f", "ESS": ".0f", "divergences": ".0f"}.get(name, ".2f")


def width_table() -> str:
    """Return the table of widths at which PyMC's optimiser ends, which takes seconds."""
    widths = [f"{final_width(samples):.2f}" for samples in SAMPLES]
    return table(["samples of a gradient", *map(str, SAMPLES)], [["width / sd", *widths]])


def times_table(rows: list[dict[str, Any]]) -> str:
    """Return the times behind the figures."""
    cells = [
        [
            row["engine"],
            row["prior"],
            row["n"],
            row["instances"],
            row["times"],
            f"{row['computing']:.3f}",
            f"{row['compiling']:.1f}",
            *(
                f"{row['diagnostics'][k]:{form}}" if k in row["diagnostics"] else ""
                for k, form in (("k-hat", ".2f"), ("R-hat", ".3f"), ("ESS", ".0f"))
            ),
        ]
        for row in rows
        if "failed" not in row
    ]
    head = ["engine", "prior", "n", "P", "T", "CPU s", "to compile", "k-hat", "R-hat", "ESS"]
    return table(head, cells)


# Figures


def draw(quality: list[dict[str, Any]], times: list[dict[str, Any]], folder: Path) -> None:
    """Draw figures 1a and 1b of the paper."""
    alone = [row for row in times if row["prior"] == "Dirichlet" and row["times"] == 1]
    chains = [
        row
        for row in (*quality, *times)
        if row["engine"] == "NUTS" and row["prior"] in TEMPORAL and row["seed"] == 1
    ]
    own = [row for row in times if row["engine"] == "PolarBear" and row["prior"] in TEMPORAL]
    sheet(
        folder / "figures" / "times.png",
        [
            ("1a: independent Dirichlet model at one time", lambda ax: draw_one_time(alone, ax)),
            ("1b: temporal priors, n=5, P=30", lambda ax: draw_many_times(chains, own, ax)),
        ],
    )


COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000")


def draw_one_time(rows: list[dict[str, Any]], ax: Any) -> None:
    """Draw CPU seconds against instances, a line for each engine and number of algorithms."""
    styles = {"NUTS": "D", "Pathfinder": "o-", "PolarBear": "s--"}
    for colour, n in zip(COLOURS, (5, 10, 30), strict=False):
        for engine, style in styles.items():
            some = sorted(
                (row["instances"], row["computing"])
                for row in rows
                if row["n"] == n and row["engine"] == engine
            )
            if some:
                ax.plot(
                    *zip(*some, strict=True), style, color=colour, ms=4, label=f"{engine}, n={n}"
                )
    _finish(ax, "instances P")


def draw_many_times(chains: list[dict[str, Any]], own: list[dict[str, Any]], ax: Any) -> None:
    """Draw CPU seconds against times, two lines for each prior.

    NUTS at 100 times was measured by ``benchmarks/inference.py``, on other simulated rankings.
    """
    measured = json.loads((BENCHMARKS / "results" / "inference.json").read_text())["speed"]
    for rows, style, engine in ((chains, "o-", "NUTS"), (own, "s--", "PolarBear")):
        for colour, prior in zip(COLOURS, TEMPORAL, strict=True):
            some = sorted((r["times"], r["computing"]) for r in rows if r["prior"] == prior)
            if some and engine == "NUTS":
                some.append((100, measured[prior]["sampling"]))
                ax.plot(*some[-1], "o", color=colour, ms=4, mfc="white", zorder=3)
            if some:
                label = f"{engine}, {prior}"
                ax.plot(*zip(*some, strict=True), style, color=colour, ms=4, label=label)
    _finish(ax, "times T")


def _finish(ax: Any, label: str) -> None:
    ax.set(xscale="log", yscale="log", xlabel=label, ylabel="CPU seconds without compiling")
    ax.grid(alpha=0.3)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(fontsize=7, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))


EXPLANATION = f"""\
n={N}, P={INSTANCES}, T={TIMES}; the Dirichlet model is fitted at one of these times. The error of a
mean rating is in standard deviations of NUTS. The error of NUTS itself is in brackets: half the
difference between two chains and the other two. The next column has the standard deviation of a
rating, divided by that of NUTS: the median over ratings, the smallest and the largest. The two
columns of probabilities have the largest difference from NUTS. Pathfinder, Laplace and ADVI compile
with PyTensor in C: for long if its cache on disk is empty, for seconds otherwise."""


OPTIMISER = """\
The posterior is a normal distribution in one dimension, which ADVI could match exactly. The steps
are those of PyMC's default optimiser (`optimiser.py`)."""


def write(folder: Path) -> str:
    """Write table.md and the figures from the records of a folder."""
    quality, times = (open_records(folder, name).rows for name in ("quality", "times"))
    parts = [
        f"{len(quality) + len(times)} fits; made by `python studies/engines/run.py`.",
        "## Distance from NUTS",
        EXPLANATION,
        quality_table(quality),
        "## Which width ADVI's optimiser ends at",
        OPTIMISER,
        width_table(),
        "## Times",
        times_table(times),
    ]
    if possible():
        draw(quality, times, folder)
        parts.insert(8, "![CPU seconds of the engines](figures/times.png)")
    text = "\n\n".join(parts) + "\n"
    (folder / "table.md").write_text(text)
    return text


def open_records(folder: Path, name: str) -> Records:
    return Records(folder / "results" / f"{name}.jsonl", KEY)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", type=int, default=1, help="data sets to compare with NUTS")
    parser.add_argument("--table", action="store_true", help="table and figures from results/")
    parser.add_argument("--quick", action="store_true", help="small: does it run at all?")
    wanted = parser.parse_args()
    warnings.simplefilter("ignore")  # PyTensor's of its BLAS, and of poor approximations
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) if wanted.quick else HERE
        quality, times = open_records(folder, "quality"), open_records(folder, "times")
        if wanted.quick:
            measure_missing(quality, plan_quick(), summary=True)
        elif not wanted.table:
            for seed in range(1, wanted.sets + 1):
                first = plan_quality(seed, MAIN, PRIORS), plan_quality(seed, OTHERS, PRIORS[:1])
                then = plan_quality(seed, MORE, PRIORS[:1]), plan_quality(seed, OTHERS, TEMPORAL)
                short = plan_many_times("PolarBear", (10, 20, 40, 100)), plan_one_time()
                measure_missing(quality, chain(*first), summary=True)
                measure_missing(times, chain(*short), summary=False)
                measure_missing(quality, chain(*then), summary=True)
            measure_missing(times, plan_many_times("NUTS", (20, 40)), summary=False)
        print(write(folder))


if __name__ == "__main__":
    main()
