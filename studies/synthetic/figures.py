"""Figures of an example: ratings at key rounds, how the race went, what algorithms are worth."""

from pathlib import Path

from examples import Raced, Round

import polarbear as pb

PANELS = 4
"""Rounds that are shown before the last."""


def draw(found: Raced, path: Path) -> None:
    """Ratings at key rounds with the truth dotted, and values if any time may be the last."""
    import matplotlib.pyplot as plt

    rounds = found.key_rounds(PANELS)
    last = found.rounds[-1]
    figure, axes = plt.subplots(2, 3, figsize=(11, 6), layout="constrained")
    places = axes.ravel().tolist()
    for ax, one in zip(places, [*rounds, last][: PANELS + 1], strict=False):
        pb.plots.ratings(one.posterior, ax, truth=_truth(found, one))
        ax.set_title(_said(one, last), fontsize=9)
    for ax in places[min(len(rounds), PANELS) + 1 : -1]:
        ax.set_visible(False)
    pb.plots.values(last.posterior, pb.preferences.between(), places[-1])
    places[-1].set_title("what they are worth if any time may be the last", fontsize=9)
    figure.savefig(path.with_suffix(".png"), dpi=150)
    plt.close(figure)
    figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
    pb.plots.evolution(found.race, ax)
    figure.savefig(path.with_name(path.stem + "-evolution.png"), dpi=150)
    plt.close(figure)


def _said(one: Round, last: Round) -> str:
    what = f"round {one.number}, {one.instances} instances"
    if one.eliminated:
        what += f": {', '.join(one.eliminated)} out"
    elif one.settled:
        what += f": {', '.join(one.settled)} settled"
    return what if one is not last else f"the end: {what}"


def _truth(found: Raced, one: Round):
    """Of those who are rated."""
    return found.truth[:, ["ABCDEFGHIJ".index(name) for name in one.posterior.algorithms]]
