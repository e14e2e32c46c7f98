"""How did the race get there? Dominance over rounds, who was out or resolved when."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from polarbear.data.frozen import Frozen
from polarbear.errors import require
from polarbear.plots.arguments import Bools, Floats, Ints, Racing, cast_of, race_of
from polarbear.plots.canvas import (
    FAINT,
    SMALL,
    TEXT,
    TINY,
    UNDECIDED,
    Axes,
    Columns,
    axes,
    ink,
    line,
    nothing,
    points,
    shown,
)
from polarbear.plots.colours import INK, Cast
from polarbear.plots.labels import End, line_ends, spread
from polarbear.racing.race import Race
from polarbear.selection.ratings import thinned

TURN, TOP = 0.9, 0.9999
"""From where on the axis of probabilities is logarithmic, and where it ends."""

DOTTED: dict[str, Any] = {"color": INK, "linestyle": (0, (1, 1.5)), "linewidth": 0.8}
"""The line above which one is certain enough."""


@dataclass(frozen=True, eq=False)
class Evolution(Frozen):
    """A race, round by round: R rounds, n algorithms in the order of the cast.

    Attributes
    ----------
    cast
        Everybody.
    instances, runs
        Shape (R,): on how many instances a decision rests, and how many runs were asked for.
    dominance
        Shape (R, n): the highest probability with which another one is ahead at all times; nan of
        those who were not racing, or when nobody could be compared.
    rival
        Shape (R, n): who that is, as a place in the cast; -1 where there is none.
    certainty
        Shape (R,): the probability from which on one is out.
    eliminated, resolved
        Shape (R, n): whether it was out, or known to belong, after this round.
    share
        Shape (R,): the share of pairs whose relation is known, after this round.
    """

    cast: Cast
    instances: Ints
    runs: Ints
    dominance: Floats
    rival: Ints
    certainty: Floats
    eliminated: Bools
    resolved: Bools
    share: Floats

    def __len__(self) -> int:
        return len(self.share)


def evolution_data(source: Racing, *, refits: int | None = None) -> Evolution:
    """How a race went. The posterior of each round is made again, which takes as long as then.

    ``refits``: of so many rounds at most, evenly chosen; there is no dominance of the others.

    >>> import polarbear as pb
    >>> runs = pb.simulation.simulate_runs(np.array([[2.0, 0.0, -2.0]] * 3), 40, persistence=np.inf)
    >>> found = evolution_data(pb.replay(runs))
    >>> found.share[-1], found.eliminated[-1].tolist()
    (np.float64(1.0), [False, True, True])
    """
    race, cast = race_of(source), cast_of(source)
    n, place = len(cast.names), {name: k for k, name in enumerate(cast.names)}
    stages = Race.after_each_round(source.events, fit=race.fit)
    backwards = np.arange(race.rounds)[::-1]  # so that the last one is always chosen
    chosen = {*(backwards if refits is None else thinned(backwards, refits)).tolist()}
    rows = [_row(stage, cast, place, k in chosen) for k, stage in enumerate(stages)]
    instances, runs, dominance, rival, certainty, out, settled, share = (
        zip(*rows, strict=True) if rows else ((),) * 8
    )
    return Evolution(
        cast,
        np.array(instances, dtype=np.int64),
        np.array(runs, dtype=np.int64),
        np.array(dominance, dtype=np.float64).reshape(-1, n),
        np.array(rival, dtype=np.int64).reshape(-1, n),
        np.array(certainty, dtype=np.float64),
        np.array(out, dtype=bool).reshape(-1, n),
        np.array(settled, dtype=bool).reshape(-1, n),
        np.array(share, dtype=np.float64),
    )


def _row(race: Race, cast: Cast, place: dict[str, int], refit: bool) -> tuple[object, ...]:
    """What a round adds."""
    state, n = race.state, len(cast.names)
    dominance, rival = np.full(n, np.nan), np.full(n, -1)
    posterior = race.posterior if refit else None
    if posterior is not None:
        everywhere = posterior.better_everywhere_matrix()
        if state.rules.elimination == "pointwise":
            # What the race goes by then: how sure one is at the worst time.
            everywhere = posterior.better_matrix().min(axis=0)
            np.fill_diagonal(everywhere, 0.0)
        codes = [place[name] for name in posterior.algorithms]
        dominance[codes] = everywhere.max(axis=0)
        rival[codes] = np.array(codes)[everywhere.argmax(axis=0)]
    open_ones = {name for names in state.open for name in names}
    known = len(state.racing) + len(state.eliminated)
    pairs = known * (known - 1) // 2
    return (
        len(state.order) if posterior is None else posterior.instances,
        state.spent_runs,
        dominance,
        rival,
        state.rules.alpha,
        [name in state.eliminated for name in cast.names],
        [name in state.racing and name not in open_ones for name in cast.names],
        1 - len(state.open) / pairs if pairs else 1.0,
    )


def evolution(source: Racing | Evolution, ax: Axes | None = None, *, columns: Columns = 1) -> Axes:
    """Draw how a race went: how close each algorithm was to being dominated, round by round.

    The axis of probabilities is linear up to 0.9 and logarithmic above, as in the paper. A cross is
    an elimination; a diamond, that an algorithm is known to belong to the Pareto set. The black
    line is the share of pairs whose relation is known, on the axis at the right.

    >>> import polarbear as pb
    >>> runs = pb.simulation.simulate_runs(np.array([[2.0, 0.0, -2.0]] * 3), 40)
    >>> evolution(pb.replay(runs)).get_ylabel()
    'P(dominated)'
    """
    data = source if isinstance(source, Evolution) else evolution_data(source)
    ax = axes(ax, columns)
    if not len(data):
        return nothing(ax, UNDECIDED)
    rounds = np.arange(1, len(data) + 1)
    _split_axis(ax)
    _share_axis(ax, data)
    styles = data.cast.styles()
    for k, name in enumerate(data.cast.names):
        seen = ~np.isnan(data.dominance[:, k])
        height = np.minimum(data.dominance[:, k], TOP)
        dots = {"marker": styles[name].marker, "markersize": 2.2 if seen.sum() < 40 else 0}
        ax.plot(rounds[seen], height[seen], **line(styles[name]) | dots)
        for mark, when in (("X", data.eliminated[:, k]), ("D", data.resolved[:, k])):
            begins = np.flatnonzero(np.diff(when.astype(int), prepend=0) > 0)
            look = {"markersize": 6, "markeredgecolor": "white", "markeredgewidth": 0.5}
            ax.plot(
                rounds[begins], height[begins], mark, color=styles[name].colour, zorder=5, **look
            )
    _steps(ax, np.minimum(data.certainty, TOP), **DOTTED)
    ax.set_xlabel("Round")
    ax.set_ylabel("P(dominated)")
    _name_racing(ax, data)
    step = max(1, len(data) // 6)
    ax.set_xticks(range(1 if step == 1 else step, len(data) + 1, step))
    _name_eliminated(ax, data)
    _legend(ax)
    return ax


def _split_axis(ax: Axes) -> None:
    """Half of the axis is linear, up to ``TURN``, and half of it logarithmic in what is left."""
    decades = np.log10((1 - TURN) / (1 - TOP))

    def up(p: Any) -> Any:
        left = np.log10((1 - TURN) / np.clip(1 - np.asarray(p), 1e-12, None))
        return np.where(np.asarray(p) <= TURN, 0.5 * np.asarray(p) / TURN, 0.5 + left / decades / 2)

    def down(y: Any) -> Any:
        left = 1 - (1 - TURN) * 10.0 ** (-2 * decades * (np.asarray(y) - 0.5))
        return np.where(np.asarray(y) <= 0.5, TURN * np.asarray(y) / 0.5, left)

    ax.set_yscale("function", functions=(up, down))
    ax.set_ylim(-0.02, 1 - (1 - TOP) / 1.5)
    ax.set_yticks([0, 0.3, 0.6, 0.9, 0.99, 0.999, 0.9999])
    ax.set_yticklabels(["0", "0.3", "0.6", "0.9", "0.99", "0.999", "0.9999"])
    ax.axhspan(TURN, 1.0, color="#000000", alpha=0.04, linewidth=0)


def _share_axis(ax: Axes, data: Evolution) -> None:
    right = ax.twinx()
    _steps(right, 100 * data.share, color=INK, linewidth=1.2, zorder=1)
    right.set_ylim(-1, 104)
    right.set_yticks([0, 50, 100], ["0", "50", "100 %"])
    right.tick_params(labelsize=SMALL)
    right.set_ylabel("Pairs resolved (black)", fontsize=TEXT)
    right.spines["top"].set_visible(False)
    # The lines of algorithms are what one looks at: above those of the other axes.
    ax.set_zorder(right.get_zorder() + 1)
    ax.patch.set_visible(False)


def _steps(ax: Axes, heights: Floats, **look: Any) -> None:
    """A height for each round, as wide as the round, so that one round is a line as well."""
    ax.stairs(heights, np.arange(len(heights) + 1) + 0.5, baseline=None, **look)


def _name_racing(ax: Axes, data: Evolution) -> None:
    """Names of those who are racing at the end, inside of the axes at the right."""
    last, styles = len(data), data.cast.styles()
    racing = [
        k
        for k, name in enumerate(data.cast.names)
        if not (styles[name].muted or data.eliminated[-1, k] or np.isnan(data.dominance[-1, k]))
    ]
    names = [data.cast.names[k] for k in racing]
    longest = max((len(shown(name)) for name in names), default=0)
    share = min(0.4, (0.62 * SMALL * longest + 16) / points(ax)[0])
    ax.set_xlim(0.5, last + 0.5 + share / (1 - share) * max(1, last - 0.2))
    ends = [
        End(name, last, min(float(data.dominance[-1, k]), TOP), styles[name])
        for k, name in zip(racing, names, strict=True)
    ]
    end_of_lines = (ax.transData + ax.transAxes.inverted()).transform((last, 0.5))[0]
    line_ends(ax, ends, x=float(end_of_lines) + 0.03, low=0.04)


def _name_eliminated(ax: Axes, data: Evolution) -> None:
    """Names of those who are out, above the round in which that was decided."""
    styles = data.cast.styles()
    out = np.diff(data.eliminated.astype(int), axis=0, prepend=0) > 0
    rounds = np.flatnonzero(out.any(axis=1))
    if not len(rounds):
        return
    stacks = [[data.cast.names[k] for k in np.flatnonzero(out[r])] for r in rounds]
    longest = max(len(shown(name)) for stack in stacks for name in stack)
    to_axes = ax.transData + ax.transAxes.inverted()
    wanted = np.array([to_axes.transform((r + 1, 0.5))[0] for r in rounds.tolist()])
    places = spread(wanted, 0.62 * SMALL * max(longest, 6) / points(ax)[0], 0.03, 0.97)
    faint = {"color": FAINT, "linewidth": 0.4, "clip_on": False}
    for stack, at, place in zip(stacks, wanted, places, strict=True):
        lines = stack if len(stack) <= 3 else [*stack[:2], f"{len(stack) - 2} more"]
        ax.plot([at, place], [1.0, 1.03], transform=ax.transAxes, **faint)
        for level, name in enumerate(reversed(lines)):
            ax.annotate(
                shown(name),
                (place, 1.03),
                (0, 1 + level * SMALL * 1.05),
                xycoords="axes fraction",
                textcoords="offset points",
                ha="center",
                fontsize=SMALL - 0.5,
                color=ink(styles[name]) if name in styles else FAINT,
            )


def _legend(ax: Axes) -> None:
    """What the marks mean, below the label of the axis."""
    lines, transforms = require("matplotlib.lines"), require("matplotlib.transforms")
    grey = {"color": FAINT, "linestyle": "none", "markersize": 5}
    marks = [
        lines.Line2D([], [], marker="X", label="eliminated", **grey),
        lines.Line2D([], [], marker="D", label="in the Pareto set", **grey),
        lines.Line2D([], [], label="certain enough", **DOTTED),
    ]
    below = transforms.offset_copy(ax.transAxes, ax.figure, y=-27, units="points")
    ax.legend(
        handles=marks,
        fontsize=TINY,
        frameon=False,
        loc="upper center",
        bbox_to_anchor=(0.5, 0),
        bbox_transform=below,
        ncols=3,
        handletextpad=0.3,
        columnspacing=1.0,
        borderaxespad=0,
    )
