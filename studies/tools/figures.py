"""Figures of races, from what :mod:`tools.story` has kept."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from polarbear.plots.evolution import evolution
from polarbear.plots.rating_curves import ratings
from polarbear.plots.run_allocation import allocation
from polarbear.plots.values import values
from tools.story import FILE, Story, load

Panel = tuple[str, Callable[[Any], Any]]
"""What is said above axes, and what draws on them."""

WIDTH, HEIGHT, DOTS = 4.0, 3.0, 120
"""Of a panel in inches, and dots per inch."""

COLOURS = 200
"""Of a picture: few, so that files are small."""


def possible() -> bool:
    """Whether there is matplotlib; without it there are tables only."""
    return find_spec("matplotlib") is not None


def draw_kept(results: Path, stem: Path) -> list[Path]:
    """The pictures of a race whose story is in a folder, if they can be drawn."""
    path = results / FILE
    return draw(load(path), stem) if path.exists() and possible() else []


def draw(story: Story, stem: Path) -> list[Path]:
    """The three pictures of a race: its rounds, how it went, and what came of it."""
    paths = [stem.with_name(f"{stem.name}-{what}.png") for what in ("rounds", "course", "end")]
    sheet(paths[0], rounds(story))
    draw_course(story, paths[1])
    sheet(paths[2], end(story))
    return paths


def draw_course(story: Story, path: Path) -> None:
    """How a race went, and where its runs went."""
    sheet(path, [went(story), spent(story)])


def overview(story: Story, path: Path, clock: str) -> None:
    """A race in one picture: who is ahead when, what that is worth, and how it was found out.

    ``clock``: what programs count that say the time themselves.
    """
    last = replace(list(story.rounds.values())[-1], clock=clock)
    story = replace(story, allocation=replace(story.allocation, clock=clock))
    panels = [("who is ahead when", _ratings(last)), worth(story, "log"), went(story), spent(story)]
    sheet(path, panels)


def rounds(story: Story) -> list[Panel]:
    """Ratings after rounds in which something happened."""
    return [(said, _ratings(one)) for said, one in story.rounds.items()]


def went(story: Story) -> Panel:
    """Draw the probability of being dominated, round by round."""
    return "who was out or settled when", lambda ax: evolution(story.evolution, ax)


def spent(story: Story) -> Panel:
    """Draw on how many instances each algorithm ran, and for how long."""
    return "where the runs went", lambda ax: allocation(story.allocation, ax)


def worth(story: Story, scale: str) -> Panel:
    """Draw the value of each algorithm."""
    said = {"linear": "any time may be the last", "log": "any order of magnitude may be the last"}
    return said[scale], lambda ax: values(story.values[scale], ax=ax)


def end(story: Story) -> list[Panel]:
    """The last ratings and what follows; on both scales of time, if these differ."""
    last = list(story.rounds.values())[-1]
    if last.times[-1] < 100 * last.times[0]:
        return [("ratings at the end", _ratings(last)), worth(story, "linear")]
    return [
        ("ratings at the end", _ratings(last)),
        ("the same, time on a linear scale", _ratings(last, time="linear")),
        worth(story, "log"),
        worth(story, "linear"),
    ]


def sheet(path: Path, panels: Sequence[Panel]) -> None:
    """Panels in rows of two, as a small PNG: wider ones could not be read on a page."""
    # Loaded here: without matplotlib there are tables, and no figures.
    from matplotlib import pyplot

    columns, rows = min(2, len(panels)), -(-len(panels) // 2)
    size = (WIDTH * columns, HEIGHT * rows)
    figure, axes = pyplot.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
    engine: Any = figure.get_layout_engine()
    engine.set(w_pad=0.08, h_pad=0.08)
    places = axes.ravel().tolist()
    for ax, (_, drawn) in zip(places, panels, strict=False):
        drawn(ax)
    above = [_above(ax) for ax in places]
    for k, (ax, (said, _)) in enumerate(zip(places, panels, strict=False)):
        row = k // columns * columns
        pad = max(18.0, *(top + 4 for top in above[row : row + columns]))
        ax.set_title(said, fontsize=9, loc="left", pad=pad)  # above what the figure says itself
    for ax in places[len(panels) :]:
        ax.set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=DOTS)
    pyplot.close(figure)
    _shrink(path)


def _above(ax: Any) -> float:
    """How far what a figure says reaches beyond the top of its axes, in points."""
    renderer = ax.figure.canvas.get_renderer()
    tops = [text.get_window_extent(renderer).y1 for text in ax.texts]
    return (max(tops, default=0.0) - ax.bbox.y1) * 72 / ax.figure.dpi


def _shrink(path: Path) -> None:
    """Fewer colours; matplotlib comes with what it takes."""
    from PIL import Image

    with Image.open(path) as picture:
        picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)


def _ratings(data: Any, **options: Any) -> Callable[[Any], Any]:
    return lambda ax: ratings(data, ax, **options)
