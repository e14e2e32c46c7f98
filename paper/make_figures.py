"""Make the figure of the paper: ``python paper/make_figures.py``. It takes seconds."""

from pathlib import Path

from matplotlib import pyplot

import polarbear as pb

HERE = Path(__file__).resolve().parent


def main() -> None:
    """Draw the ratings of the example, and the course of a race on the same runs."""
    posterior = pb.fit(pb.example("cma-variants"))
    sheet, (left, right) = pyplot.subplots(1, 2, figsize=(8.4, 3.2), layout="constrained")
    pb.plots.ratings(posterior, left)
    pb.plots.evolution(pb.replay(pb.example("cma-variants"), pb.ParetoSet(certainty=0.95)), right)
    for letter, place in zip("AB", (left, right), strict=True):
        place.set_title(letter, loc="left", x=-0.12, fontweight="bold")
    sheet.savefig(HERE / "figure.png", dpi=200)


if __name__ == "__main__":
    main()
