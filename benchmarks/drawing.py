"""What figures and the report cost: against bare matplotlib, and against the fit behind them.

    python benchmarks/drawing.py [--quick]

The other side of a figure has as many lines, collections, patches, images and texts on its axes,
the same size and layout, and nothing to compute; both are drawn as a PNG. The posterior is there
already.
"""

import io
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from measuring import Figures, Row, apart, measure_rows

QUICK_CPU_SECONDS = 7

EXAMPLE = Path(__file__).parent.parent / "examples" / "mabbob_d5.csv"
FIGURES = ("ratings", "values", "pairs", "crossings", "evolution", "allocation")


def painted(draw: Callable[[], Any]) -> Any:
    """The axes, after they were drawn as a PNG."""
    axes = draw()
    axes.figure.savefig(io.BytesIO(), format="png")
    return axes


def bare(axes) -> Callable[[], object]:
    """As many artists of each kind as these axes have, on a figure of the same size."""
    from matplotlib import pyplot

    size, layout = axes.figure.get_size_inches(), axes.figure.get_layout_engine()
    counts = {
        kind: len(getattr(axes, kind))
        for kind in ("lines", "collections", "patches", "images", "texts")
    }

    def draw():
        figure, plain = pyplot.subplots(figsize=size, layout="constrained" if layout else None)
        for k in range(counts["lines"]):
            plain.plot([0, 1], [k, k + 1])
        for k in range(counts["collections"]):
            plain.fill_between([0, 1], [k, k], [k + 1, k + 2], alpha=0.2)
        for k in range(counts["patches"]):
            plain.bar(k, 1)
        for _ in range(counts["images"]):
            plain.imshow([[0, 1], [1, 0]])
        for k in range(counts["texts"]):
            plain.text(0.5, k, "some text")
        return figure.axes[0]

    return draw


def figures(names: list[str], rounds: int) -> Figures:
    """CPU seconds of each figure, of its bare twin, of the report and of the fit, in turns."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    import polarbear as pb

    runs = pb.read(EXAMPLE, direction="minimize", clock="evaluations")
    posterior = pb.fit(pb.rank(runs))
    calls = {
        "ratings": lambda: pb.plots.ratings(posterior),
        "values": lambda: pb.plots.values(posterior),
        "pairs": lambda: pb.plots.pairs(posterior),
        "crossings": lambda: pb.plots.crossings(posterior, "CSA", "XNES", certainty=0.95),
    }
    if {"evolution", "allocation"} & set(names):
        race = pb.replay(runs, pb.ParetoSet(certainty=0.95))
        calls["evolution"] = lambda: pb.plots.evolution(race)
        calls["allocation"] = lambda: pb.plots.allocation(race)
    sides = {}
    for name in names:
        sides[name] = lambda call=calls[name]: painted(call)
        plain = bare(painted(calls[name]))
        sides[f"bare {name}"] = lambda draw=plain: painted(draw)
    with tempfile.TemporaryDirectory() as folder:
        sides["report"] = lambda: pb.report(posterior, f"{folder}/report.html")
        sides["fit"] = lambda: pb.fit(pb.rank(runs))
        spent: dict[str, list[float]] = {name: [] for name in sides}
        for _ in range(rounds):
            for name, side in sides.items():
                begin = time.process_time()
                side()
                spent[name].append(time.process_time() - begin)
                pyplot.close("all")
    return {name: statistics.median(values) for name, values in spent.items()}


def rows(quick: bool) -> Iterator[Row]:
    """Each figure, and the report."""
    names: list[str] = ["ratings", "pairs"] if quick else [*FIGURES]
    found = apart(figures, names, 3)
    remarks = {"evolution": "fits again after each round, for a race keeps no posteriors"}
    for name in names:
        yield Row(
            "drawing",
            f"`plots.{name}`, 7 algorithms",
            "bare matplotlib, as many artists",
            found[name],
            found[f"bare {name}"],
            limit=None if name in remarks else 10.0,
            remark=remarks.get(name, ""),
        )
    yield Row(
        "drawing",
        "`report`, n=7, P=60, T=30",
        "the fit that it is of",
        found["report"],
        found["fit"],
        limit=10.0,
    )


if __name__ == "__main__":
    measure_rows(__doc__, rows)
