"""Figures of an example: ratings at key rounds, how the race went, what algorithms are worth."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from examples import Floats, Raced, Round

import polarbear as pb

PANELS = 5
"""Rounds that are shown, at most."""

WIDTH, HEIGHT = 3.7, 3.2
"""Of a panel, in inches."""


def draw(found: Raced, path: Path) -> None:
    """Two files: the panels of the paper's figures 3, 5 and 6, and how the race went (figure 4)."""
    # Loaded here: without matplotlib there is a table, and no figures.
    import matplotlib.pyplot as plt

    from polarbear.plots.sources import cast_of

    cast = cast_of(found.race)  # so that an algorithm has one colour in all panels
    rounds = found.key_rounds(PANELS)
    columns = 2 if len(rounds) < 4 else 3
    rows = -(-(len(rounds) + 1) // columns)
    size = (WIDTH * columns, HEIGHT * rows)
    figure, axes = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
    places: list[Any] = axes.ravel().tolist()
    for ax, one in zip(places, rounds, strict=False):
        data = pb.plots.ratings_data(one.posterior, truth=_truth(found, one))
        pb.plots.ratings(replace(data, cast=cast), ax)
        _title(ax, _said(one))
    worth = pb.plots.values_data(found.rounds[-1].posterior, pb.preferences.between())
    pb.plots.values(replace(worth, cast=cast), ax=places[len(rounds)])
    _title(places[len(rounds)], "any time may be the last")
    for ax in places[len(rounds) + 1 :]:
        ax.set_visible(False)
    figure.savefig(path.with_suffix(".png"), dpi=150)
    plt.close(figure)
    figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
    pb.plots.evolution(found.race, ax)
    figure.savefig(path.with_name(path.stem + "-evolution.png"), dpi=150)
    plt.close(figure)


def _title(ax: Any, said: str) -> None:
    ax.set_title(said, fontsize=9, loc="left", pad=16)  # above what the figure says about itself


def _said(one: Round) -> str:
    what = f"round {one.number}, {one.instances} instances"
    if one.eliminated:
        return f"{what}: {', '.join(one.eliminated)} out"
    return f"{what}: {', '.join(one.settled)} settled" if one.settled else what


def _truth(found: Raced, one: Round) -> Floats:
    """Of those who are rated."""
    return found.truth[:, ["ABCDEFGHIJ".index(name) for name in one.posterior.algorithms]]
