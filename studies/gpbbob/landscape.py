"""Draw an instance of GP-BBOB in two dimensions (figure 13 of the paper) as figures/landscape.png.

python studies/gpbbob/landscape.py            # a few seconds; needs ioh
python studies/gpbbob/landscape.py --seed 3   # another instance
python studies/gpbbob/landscape.py --quick    # few points; writes nothing
"""

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

Floats = NDArray[np.float64]

QUICK_CPU_SECONDS = 3

POINTS = 160
"""Points of the grid along each axis."""

MIN_WEIGHT = 0.001
"""A function is shown if its weight is larger somewhere, as in the paper."""

COLUMNS = 6
LIMIT = 5.0
FILE = "landscape.npz"


def keep(seed: int, path: Path, points: int = POINTS) -> None:
    """Write what the figure shows, so that it is drawn again without ioh."""
    from gpbbob.generator import N, draw

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
    shown = np.flatnonzero(weight.max(axis=(1, 2)) > MIN_WEIGHT)
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        path,
        shown=shown,
        weight=np.rint(255 * weight[shown]).astype(np.uint8),
        number=number.astype(np.int8),
        value=value.astype(np.float32),
    )


def draw_kept(kept: Path, path: Path) -> None:
    """Draw what :func:`keep` has written."""
    from matplotlib import pyplot as plt
    from matplotlib.colors import LogNorm

    with np.load(kept, allow_pickle=False) as file:
        shown, weight = file["shown"], file["weight"] / 255
        number, value = file["number"], file["value"]
    rows = -(-len(shown) // COLUMNS)
    figure = plt.figure(figsize=(9, 1.6 * rows + 4.2), layout="constrained")
    parts: Any = figure.subfigures(2, 1, height_ratios=(1.6 * rows, 4.2))
    above, below = parts
    above.suptitle("(a) weights $w(x)$ of the functions of BBOB")
    panels = above.subplots(rows, COLUMNS, squeeze=False)
    place: dict[str, Any] = {"extent": (-LIMIT, LIMIT, -LIMIT, LIMIT), "origin": "lower"}
    for panel in panels.flat:
        panel.set_axis_off()
    for panel, k, own in zip(panels.flat, shown, weight, strict=False):
        picture = panel.imshow(own, vmin=0, vmax=1, cmap="viridis", **place)
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
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="small: does it run at all?")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) if options.quick else Path(__file__).parent
        kept, path = folder / "results" / FILE, folder / "figures" / "landscape.png"
        keep(options.seed, kept, points=12 if options.quick else POINTS)
        draw_kept(kept, path)
        print(path)


if __name__ == "__main__":
    main()
