"""Figure of a race over its rounds: probabilities of dominance, eliminations, resolved pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polarbear.data.colours import TEXT_COLOUR, Cast
from polarbear.data.frozen import FrozenRecord
from polarbear.errors import require
from polarbear.plots.arguments import Bools, Floats, Ints, check_race, get_cast
from polarbear.plots.canvas import (
    AXIS_FONT_POINTS,
    NO_DECISION_MESSAGE,
    NOTE_COLOUR,
    NOTE_FONT_POINTS,
    TICK_FONT_POINTS,
    Axes,
    OneOrTwo,
    format_name,
    get_line_options,
    get_text_colour,
    measure_axes,
    prepare_axes,
    show_message,
)
from polarbear.plots.labels import LineEnd, label_line_ends, space_apart
from polarbear.racing.race import Race
from polarbear.selection.ratings import thin_draws

LOG_FROM_PROBABILITY, MAX_PROBABILITY = 0.9, 0.9999
"""The axis of probabilities is logarithmic from the first of these and ends at the second."""

THRESHOLD_STYLE: dict[str, Any] = {
    "color": TEXT_COLOUR,
    "linestyle": (0, (1, 1.5)),
    "linewidth": 0.8,
}
"""The line of the certainty that an elimination requires."""


@dataclass(frozen=True, eq=False)
class Evolution(FrozenRecord):
    """The state of a race after each round, for all algorithms.

    There are R rounds, and n algorithms in the order of the cast.

    Attributes
    ----------
    cast
        All algorithms.
    instances, runs
        Shape (R,): the number of instances behind the decision, and of runs requested so far.
    dominance
        Shape (R, n): the highest probability that another algorithm replaces it or, if posteriors
        decide, is ahead at all times; nan for algorithms that were not racing, or if the round was
        not fitted again.
    rival
        Shape (R, n): the index in the cast of that other algorithm; -1 if there is none.
    certainty
        Shape (R,): the probability that an elimination requires.
    eliminated, resolved
        Shape (R, n): whether the algorithm was eliminated, or certain to be in the Pareto set.
    share
        Shape (R,): the share of pairs that are decided.
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


def evolution_data(source: Race, *, refits: int | None = None) -> Evolution:
    """Compute the probability that each algorithm is dominated, round by round.

    The posterior of each round is fitted again, which takes as long as in the race. ``refits``
    is the most rounds to fit, evenly chosen; ``dominance`` of the others is nan.

    >>> import polarbear as pb
    >>> runs = pb.simulation.simulate_runs(np.array([[2.0, 0.0, -2.0]] * 3), 40, persistence=np.inf)
    >>> rounds = evolution_data(pb.replay(runs))
    >>> rounds.share[-1], rounds.eliminated[-1].tolist()
    (np.float64(1.0), [False, True, True])
    """
    race, cast = check_race(source), get_cast(source)
    n, index = len(cast.names), {name: k for k, name in enumerate(cast.names)}
    stages = Race.after_each_round(source.events, question=race.question)
    backwards = np.arange(race.rounds)[::-1]  # so that the last one is always chosen
    chosen = {*(backwards if refits is None else thin_draws(backwards, refits)).tolist()}
    # A decision that is made again with all draws replaces the first one of its round.
    rounds = {
        stage.rounds: _summarise_round(stage, cast, index, stage.rounds - 1 in chosen)
        for stage in stages
    }
    rows = list(rounds.values())
    instances, runs, dominance, rival, certainty, eliminated, resolved, share = (
        zip(*rows, strict=True) if rows else ((),) * 8
    )
    return Evolution(
        cast=cast,
        instances=np.array(instances, dtype=np.int64),
        runs=np.array(runs, dtype=np.int64),
        dominance=np.array(dominance, dtype=np.float64).reshape(-1, n),
        rival=np.array(rival, dtype=np.int64).reshape(-1, n),
        certainty=np.array(certainty, dtype=np.float64),
        eliminated=np.array(eliminated, dtype=bool).reshape(-1, n),
        resolved=np.array(resolved, dtype=bool).reshape(-1, n),
        share=np.array(share, dtype=np.float64),
    )


def _summarise_round(
    race: Race, cast: Cast, index: dict[str, int], refit: bool
) -> tuple[object, ...]:
    """Return the values of one round, in the order of the fields of ``Evolution``."""
    state, n = race.state, len(cast.names)
    dominance, rival = np.full(n, np.nan), np.full(n, -1)
    decided = state.setup.question.posterior_for == "decision"
    posterior = race.posterior if refit and decided else None
    for one in () if decided else [*state.members.verdicts.values()]:
        if one.probability is not None and one.algorithm in index:
            is_out = one.kind == "dominated"
            dominance[index[one.algorithm]] = one.probability if is_out else 1 - one.probability
            rival[index[one.algorithm]] = index.get(one.rival or "", -1)
    if posterior is not None:
        everywhere = posterior.prob_dominates()
        if getattr(state.setup.question, "elimination", "joint") == "pointwise":
            # Pointwise elimination decides by the lowest probability over times.
            everywhere = posterior.prob_better().min(axis=0)
            np.fill_diagonal(everywhere, 0.0)
        codes = [index[name] for name in posterior.algorithms]
        dominance[codes] = everywhere.max(axis=0)
        first = np.array(codes)[everywhere.argmax(axis=0)]
        rival[codes] = np.where(everywhere.max(axis=0) > 0, first, -1)
    undecided = {name for names in state.pairs.open for name in names}
    known = [*state.members.racing, *state.members.eliminated]
    pairs = len(state.setup.question.undecided(known, len(state.setup.times)))
    return (
        state.pool.n_observed if posterior is None else posterior.instances,
        state.ledger.requested.runs,
        dominance,
        rival,
        state.setup.question.certainty,
        [name in state.members.eliminated for name in cast.names],
        [name in state.members.racing and name not in undecided for name in cast.names],
        1 - len(state.pairs.open) / pairs if pairs else 1.0,
    )


def evolution(source: Race | Evolution, ax: Axes | None = None, *, columns: OneOrTwo = 1) -> Axes:
    """Draw the probability that each algorithm is dominated, round by round.

    The axis of probabilities is linear up to 0.9 and logarithmic above, as in the paper. A cross
    marks an elimination; a diamond, that an algorithm is certain to be in the Pareto set. The
    black line is the share of pairs that are decided, on the axis at the right.

    >>> import polarbear as pb
    >>> runs = pb.simulation.simulate_runs(np.array([[2.0, 0.0, -2.0]] * 3), 40)
    >>> evolution(pb.replay(runs)).get_ylabel()
    'P(dominated)'
    """
    data = source if isinstance(source, Evolution) else evolution_data(source)
    ax = prepare_axes(ax, columns)
    if not len(data):
        return show_message(ax, NO_DECISION_MESSAGE)
    rounds = np.arange(1, len(data) + 1)
    _set_probability_axis(ax)
    _draw_resolved_share(ax, data)
    styles = data.cast.styles()
    for k, name in enumerate(data.cast.names):
        is_known = ~np.isnan(data.dominance[:, k])
        height = np.minimum(data.dominance[:, k], MAX_PROBABILITY)
        marker_style = {
            "marker": styles[name].marker,
            "markersize": 2.2 if is_known.sum() < 40 else 0,
        }
        ax.plot(rounds[is_known], height[is_known], **get_line_options(styles[name]) | marker_style)
        for mark, when in (("X", data.eliminated[:, k]), ("D", data.resolved[:, k])):
            begins = np.flatnonzero(np.diff(when.astype(int), prepend=0) > 0)
            edge_style = {"markersize": 6, "markeredgecolor": "white", "markeredgewidth": 0.5}
            ax.plot(
                rounds[begins],
                height[begins],
                mark,
                color=styles[name].colour,
                zorder=5,
                **edge_style,
            )
    _draw_steps(ax, np.minimum(data.certainty, MAX_PROBABILITY), **THRESHOLD_STYLE)
    ax.set_xlabel("Round")
    ax.set_ylabel("P(dominated)")
    _label_racing(ax, data)
    step = max(1, len(data) // 6)
    ax.set_xticks(range(1 if step == 1 else step, len(data) + 1, step))
    _label_eliminated(ax, data)
    _add_legend(ax)
    return ax


def _set_probability_axis(ax: Axes) -> None:
    """Make the lower half of the axis linear in p, and the upper half logarithmic in 1 - p."""
    decades = np.log10((1 - LOG_FROM_PROBABILITY) / (1 - MAX_PROBABILITY))

    def up(p: Any) -> Any:
        left = np.log10((1 - LOG_FROM_PROBABILITY) / np.clip(1 - np.asarray(p), 1e-12, None))
        return np.where(
            np.asarray(p) <= LOG_FROM_PROBABILITY,
            0.5 * np.asarray(p) / LOG_FROM_PROBABILITY,
            0.5 + left / decades / 2,
        )

    def down(y: Any) -> Any:
        left = 1 - (1 - LOG_FROM_PROBABILITY) * 10.0 ** (-2 * decades * (np.asarray(y) - 0.5))
        return np.where(np.asarray(y) <= 0.5, LOG_FROM_PROBABILITY * np.asarray(y) / 0.5, left)

    ax.set_yscale("function", functions=(up, down))
    ax.set_ylim(-0.02, 1 - (1 - MAX_PROBABILITY) / 1.5)
    ax.set_yticks([0, 0.3, 0.6, 0.9, 0.99, 0.999, 0.9999])
    ax.set_yticklabels(["0", "0.3", "0.6", "0.9", "0.99", "0.999", "0.9999"])
    ax.axhspan(LOG_FROM_PROBABILITY, 1.0, color="#000000", alpha=0.04, linewidth=0)


def _draw_resolved_share(ax: Axes, data: Evolution) -> None:
    """Draw the share of pairs of algorithms that are decided, on a second axis at the right."""
    right = ax.twinx()
    _draw_steps(right, 100 * data.share, color=TEXT_COLOUR, linewidth=1.2, zorder=1)
    right.set_ylim(-1, 104)
    right.set_yticks([0, 50, 100], ["0", "50", "100 %"])
    right.tick_params(labelsize=TICK_FONT_POINTS)
    right.set_ylabel("Pairs decided (black)", fontsize=AXIS_FONT_POINTS)
    right.spines["top"].set_visible(False)
    # The lines of algorithms matter most: draw them above those of the other axes.
    ax.set_zorder(right.get_zorder() + 1)
    ax.patch.set_visible(False)


def _draw_steps(ax: Axes, heights: Floats, **look: Any) -> None:
    """Draw a horizontal line for each round, as wide as the round."""
    ax.stairs(heights, np.arange(len(heights) + 1) + 0.5, baseline=None, **look)


def _label_racing(ax: Axes, data: Evolution) -> None:
    """Write the names of algorithms still racing inside the axes, at the right."""
    last, styles = len(data), data.cast.styles()
    racing = [
        k
        for k, name in enumerate(data.cast.names)
        if not (styles[name].muted or data.eliminated[-1, k] or np.isnan(data.dominance[-1, k]))
    ]
    names = [data.cast.names[k] for k in racing]
    longest = max((len(format_name(name)) for name in names), default=0)
    share = min(0.4, (0.62 * TICK_FONT_POINTS * longest + 16) / measure_axes(ax)[0])
    ax.set_xlim(0.5, last + 0.5 + share / (1 - share) * max(1, last - 0.2))
    ends = [
        LineEnd(name, last, min(float(data.dominance[-1, k]), MAX_PROBABILITY), styles[name])
        for k, name in zip(racing, names, strict=True)
    ]
    end_of_lines = (ax.transData + ax.transAxes.inverted()).transform((last, 0.5))[0]
    label_line_ends(ax, ends, x=float(end_of_lines) + 0.03, low=0.04)


def _label_eliminated(ax: Axes, data: Evolution) -> None:
    """Write the names of eliminated algorithms above the rounds of their elimination."""
    styles = data.cast.styles()
    newly_eliminated = np.diff(data.eliminated.astype(int), axis=0, prepend=0) > 0
    rounds = np.flatnonzero(newly_eliminated.any(axis=1))
    if not len(rounds):
        return
    stacks = [[data.cast.names[k] for k in np.flatnonzero(newly_eliminated[r])] for r in rounds]
    longest = max(len(format_name(name)) for stack in stacks for name in stack)
    to_axes = ax.transData + ax.transAxes.inverted()
    wanted = np.array([to_axes.transform((r + 1, 0.5))[0] for r in rounds.tolist()])
    places = space_apart(
        wanted, 0.62 * TICK_FONT_POINTS * max(longest, 6) / measure_axes(ax)[0], 0.03, 0.97
    )
    faint = {"color": NOTE_COLOUR, "linewidth": 0.4, "clip_on": False}
    for stack, at, place in zip(stacks, wanted, places, strict=True):
        lines = stack if len(stack) <= 3 else [*stack[:2], f"{len(stack) - 2} more"]
        ax.plot([at, place], [1.0, 1.03], transform=ax.transAxes, **faint)
        for level, name in enumerate(reversed(lines)):
            ax.annotate(
                format_name(name),
                (place, 1.03),
                (0, 1 + level * TICK_FONT_POINTS * 1.05),
                xycoords="axes fraction",
                textcoords="offset points",
                ha="center",
                fontsize=TICK_FONT_POINTS - 0.5,
                color=get_text_colour(styles[name]) if name in styles else NOTE_COLOUR,
            )


def _add_legend(ax: Axes) -> None:
    """Add a legend of the marks below the label of the axis."""
    lines, transforms = require("matplotlib.lines"), require("matplotlib.transforms")
    grey = {"color": NOTE_COLOUR, "linestyle": "none", "markersize": 5}
    marks = [
        lines.Line2D([], [], marker="X", label="eliminated", **grey),
        lines.Line2D([], [], marker="D", label="in the Pareto set", **grey),
        lines.Line2D([], [], label="required certainty", **THRESHOLD_STYLE),
    ]
    below = transforms.offset_copy(ax.transAxes, ax.figure, y=-27, units="points")
    ax.legend(
        handles=marks,
        fontsize=NOTE_FONT_POINTS,
        frameon=False,
        loc="upper center",
        bbox_to_anchor=(0.5, 0),
        bbox_transform=below,
        ncols=3,
        handletextpad=0.3,
        columnspacing=1.0,
        borderaxespad=0,
    )
