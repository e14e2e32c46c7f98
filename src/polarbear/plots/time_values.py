"""Figure of the value of time: on which share of instances twice the budget improves the result."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from polarbear.data.colours import TEXT_COLOUR, Cast
from polarbear.data.frozen import FrozenRecord
from polarbear.data.runs import Runs, check_runs
from polarbear.plots.arguments import Floats
from polarbear.plots.canvas import (
    Axes,
    OneOrTwo,
    TimeScale,
    add_note,
    get_line_options,
    prepare_axes,
    set_time_axis,
)
from polarbear.plots.labels import LineEnd, label_line_ends
from polarbear.selection.more_time import PAYS, value_of_time


@dataclass(frozen=True, eq=False)
class TimeValues(FrozenRecord):
    """On which share of instances twice the budget improves the result.

    Attributes
    ----------
    cast
        The algorithms.
    budgets, clock
        Shape (T,): the budgets, and their unit.
    improves
        Shape (T, n): the share of instances of each algorithm.
    best
        Shape (T, 3): the share if the best algorithm is run at each budget, and its bounds of 95 %.
    tolerance
        The relative change of a value that counts as an improvement.
    """

    cast: Cast
    budgets: Floats
    clock: str
    improves: Floats
    best: Floats
    tolerance: float


def time_values_data(
    runs: Runs, *, tolerance: float = 0.01, pareto: Collection[str] = ()
) -> TimeValues:
    """Compute what twice the budget brings each algorithm, and the best choice at each budget.

    Parameters
    ----------
    runs, tolerance
        As in :func:`polarbear.selection.value_of_time`.
    pareto
        The algorithms in colour if there are many, such as ``posterior.pareto()``.

    Examples
    --------
    >>> import polarbear as pb
    >>> time_values_data(pb.example()).best[-1].round(2)
    array([0.62, 0.52, 0.7 ])
    """
    check_runs(runs, "a figure of the value of time")
    best = value_of_time(runs, tolerance=tolerance)
    each = [value_of_time(runs, name, tolerance=tolerance) for name in runs.algorithms]
    return TimeValues(
        cast=Cast.of(runs.algorithms, pareto),
        budgets=best.budgets,
        clock=runs.clock,
        improves=np.stack([one.improves[:, 0] for one in each], axis=1),
        best=best.improves,
        tolerance=tolerance,
    )


def time_values(
    source: Runs | TimeValues,
    ax: Axes | None = None,
    *,
    tolerance: float = 0.01,
    pareto: Collection[str] = (),
    time: TimeScale = "auto",
    columns: OneOrTwo = 1,
) -> Axes:
    """Draw on which share of instances twice the budget improves the result, over budgets.

    The parameters are those of :func:`time_values_data`; ``ax``, ``time`` and ``columns`` are those
    of :func:`ratings`.

    >>> import polarbear as pb
    >>> time_values(pb.example()).get_ylabel()
    'Twice the budget improves'
    """
    data = source
    if not isinstance(data, TimeValues):
        data = time_values_data(data, tolerance=tolerance, pareto=pareto)
    ax = prepare_axes(ax, columns)
    styles, last = data.cast.styles(), float(data.budgets[-1])
    for k, name in enumerate(data.cast.names):
        ax.plot(data.budgets, data.improves[:, k], **get_line_options(styles[name]))
    estimate, *bounds = data.best.T
    ax.fill_between(data.budgets, *bounds, color=TEXT_COLOUR, alpha=0.12, linewidth=0)
    ax.plot(data.budgets, estimate, color=TEXT_COLOUR, linewidth=1.5, zorder=4)
    ax.axhline(PAYS, color=TEXT_COLOUR, linewidth=0.6, linestyle=(0, (1, 2)))
    set_time_axis(ax, data.budgets, data.clock, time)
    ax.set_ylim(0, 1)
    ax.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
    ax.set_ylabel("Twice the budget improves")
    add_note(
        ax,
        f"share of instances, by more than {100 * data.tolerance:g} %; black: the best choice, "
        f"band: 95 % interval, dots: {100 * PAYS:g} %",
    )
    ends = [
        LineEnd(name, last, float(data.improves[-1, k]), styles[name])
        for k, name in enumerate(data.cast.names)
        if not styles[name].muted
    ]
    label_line_ends(ax, ends, "")
    return ax
