"""Draw an instance of GP-BBOB in two dimensions (figure 13 of the paper) as figures/landscape.png.

python studies/gpbbob/landscape.py            # a few seconds
python studies/gpbbob/landscape.py --seed 3   # another instance
python studies/gpbbob/landscape.py --quick    # few points; writes nothing
"""

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.colors import LogNorm

sys.path.insert(0, str(Path(__file__).parents[1]))

from gpbbob.generator import LIMIT, Floats, N, draw

QUICK_CPU_SECONDS = 3

POINTS = 160
"""Points of the grid along each axis."""

MIN_WEIGHT = 0.001
"""A function is shown if its weight is larger somewhere, as in the paper."""

COLUMNS = 6


def evaluate(seed: int, points: int) -> tuple[Floats, Floats, Floats]:
    """Return the weights (24, G, G), the numbers of functions (G, G) and the values (G, G)."""
    instance = draw(np.random.default_rng(seed), (2.0, 1e-9))
    axis = np.linspace(-LIMIT, LIMIT, points)
    weight = np.zeros((N, points, points))
    number, value = np.zeros((2, points, points))
    for row, y in enumerate(axis):
        for column, x in enumerate(axis):
            point = np.array([x, y])
            chosen, parts = instance.weights(point)
            weight[chosen, row, column] = parts
            number[row, column] = instance.active(point)
            value[row, column] = instance(point)
    return weight, number, value


def draw_figure(seed: int, path: Path, points: int = POINTS) -> None:
    weight, number, value = evaluate(seed, points)
    shown = np.flatnonzero(weight.max(axis=(1, 2)) > MIN_WEIGHT)
    rows = -(-len(shown) // COLUMNS)
    figure = plt.figure(figsize=(9, 1.6 * rows + 4.2), layout="constrained")
    parts: Any = figure.subfigures(2, 1, height_ratios=(1.6 * rows, 4.2))
    above, below = parts
    above.suptitle("(a) weights $w(x)$ of the functions of BBOB")
    panels = above.subplots(rows, COLUMNS, squeeze=False)
    place: dict[str, Any] = {"extent": (-LIMIT, LIMIT, -LIMIT, LIMIT), "origin": "lower"}
    for panel in panels.flat:
        panel.set_axis_off()
    for panel, k in zip(panels.flat, shown, strict=False):
        picture = panel.imshow(weight[k], vmin=0, vmax=1, cmap="viridis", **place)
        panel.set_title(f"$f_{{{k + 1}}}$", fontsize=9)
    above.colorbar(picture, ax=panels, shrink=0.8)
    left, right = below.subplots(1, 2)
    left.set_title("(b) functions with a weight, $k(x)$")
    picture = left.imshow(number, cmap="cividis", **place)
    below.colorbar(picture, ax=left, ticks=np.unique(number), shrink=0.85)
    right.set_title("(c) $f(x) - f_{min}$, log scale")
    height = value - value.min()
    norm = LogNorm(np.quantile(height[height > 0], 0.001), height.max(), clip=True)
    below.colorbar(right.imshow(height, norm=norm, cmap="magma", **place), ax=right, shrink=0.85)
    for panel in (left, right):
        panel.set(xlabel="$x_1$", ylabel="$x_2$")
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="small: does it run at all?")
    options = parser.parse_args()
    if options.quick:
        with tempfile.TemporaryDirectory() as scratch:
            draw_figure(options.seed, Path(scratch) / "landscape.png", points=12)
        return
    path = Path(__file__).parent / "figures" / "landscape.png"
    draw_figure(options.seed, path)
    print(path)


if __name__ == "__main__":
    main()
