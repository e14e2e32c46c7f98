"""Figures of an example: the truth, ratings at key rounds, values, progress."""

from functools import partial
from pathlib import Path
from typing import Any

from tools.figures import draw_course, rounds, sheet, worth
from tools.story import Story

from polarbear.plots.canvas import get_line_options, prepare_axes
from polarbear.plots.labels import LineEnd, label_line_ends
from polarbear.plots.rating_curves import RatingCurves

PANELS = 4
"""Rounds that are shown, at most."""


def draw(story: Story, stem: Path) -> None:
    """Two files: the panels of the paper's figures 2, 4 and 5, and how the race went (figure 3)."""
    first = next(iter(story.rounds.values()))  # no algorithm was eliminated before
    panels = [("true ratings", partial(_truth, first)), *rounds(story), worth(story, "linear")]
    sheet(stem.with_name(f"{stem.name}-rounds.png"), panels)
    draw_course(story, stem.with_name(f"{stem.name}-course.png"))


def _truth(data: RatingCurves, ax: Any) -> None:
    prepare_axes(ax, 1)
    assert data.truth is not None
    styles, ends = data.cast.styles(), []
    for name, rating in zip(data.algorithms, data.truth.T, strict=True):
        ax.plot(data.times, rating, **get_line_options(styles[name]))
        if not styles[name].muted:
            ends.append(LineEnd(name, float(data.times[-1]), float(rating[-1]), styles[name]))
    ax.set_xlim(data.times[0], data.times[-1])
    ax.set_ylim(0, 1.05 * data.truth.max())
    ax.set_xlabel("Time")
    ax.set_ylabel("Rating = P(comes first)")
    left = len(data.algorithms) - len(ends)
    label_line_ends(ax, ends, f"+ {left} dominated" if left else "")
