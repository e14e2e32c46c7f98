"""Figure of the calibration curve: claimed probabilities against observed frequencies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from polarbear.data.colours import TEXT_COLOUR
from polarbear.data.frozen import FrozenRecord
from polarbear.plots.arguments import Floats
from polarbear.plots.canvas import NOTE_COLOUR, TICK_FONT_POINTS, Axes, OneOrTwo, prepare_axes

ClaimKind = Literal["ahead", "everywhere"]


class _Estimate(Protocol):
    @property
    def value(self) -> float: ...
    @property
    def error(self) -> float: ...
    @property
    def cases(self) -> float: ...


class _Bin(Protocol):
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...
    @property
    def claimed(self) -> float: ...
    @property
    def true(self) -> _Estimate: ...


class HasCurve(Protocol):
    """The interface of objects with a calibration curve, such as a ``Tally``."""

    def curve(self, kind: str = "ahead") -> Sequence[_Bin]:
        """Return claimed probabilities and observed frequencies of claims, bin by bin."""
        ...


class HasTally(Protocol):
    """The interface of results of :func:`polarbear.calibrate`."""

    @property
    def tally(self) -> HasCurve:
        """The counts of claims, and of how many were true."""
        ...


@dataclass(frozen=True, eq=False)
class CalibrationCurve(FrozenRecord):
    """Claims in bins of their probability, with the share that was true; empty bins left out.

    Attributes
    ----------
    kind
        Claims that an algorithm is "ahead" at one time, or "everywhere" (at all times).
    low, high
        Shape (B,): the limits of the bins.
    claimed, true
        Shape (B,): the mean claimed probability, and the share of claims that were true.
    error
        Shape (B,): the standard error of that share, between data sets.
    cases
        Shape (B,): the number of claims.
    """

    kind: ClaimKind
    low: Floats
    high: Floats
    claimed: Floats
    true: Floats
    error: Floats
    cases: Floats


def calibration_data(source: HasTally | HasCurve, kind: ClaimKind = "ahead") -> CalibrationCurve:
    """Compute for each bin the mean claimed probability, and the share of claims that was true.

    >>> import polarbear as pb
    >>> runs = pb.simulation.simulate_runs(np.array([[0.0, 0.4, 1.0]] * 4), 40, persistence=0.5)
    >>> curve = calibration_data(pb.calibrate(runs, replicates=10))
    >>> bool(np.all((curve.low <= curve.claimed) & (curve.claimed <= curve.high)))
    True
    """
    tally: Any = getattr(source, "tally", source)
    bins = [bin_ for bin_ in tally.curve(kind) if bin_.true.cases]
    rows = [
        (bin_.low, bin_.high, bin_.claimed, bin_.true.value, bin_.true.error, bin_.true.cases)
        for bin_ in bins
    ]
    columns = np.array(rows, dtype=np.float64).reshape(-1, 6).T
    return CalibrationCurve(kind, *columns)


def calibration(
    source: HasTally | HasCurve | CalibrationCurve,
    ax: Axes | None = None,
    *,
    kind: ClaimKind = "ahead",
    colour: str = TEXT_COLOUR,
    marker: str = "o",
    label: str | None = None,
    columns: OneOrTwo = 1,
) -> Axes:
    """Draw claimed probabilities against shares of true claims, with two standard errors.

    Calibrated claims lie on the diagonal; overconfident claims lie below it. Several curves can
    share axes, with a ``colour``, a ``marker`` and a ``label`` each.

    >>> import polarbear as pb
    >>> runs = pb.simulation.simulate_runs(np.array([[2.0, 0.0, -2.0]] * 3), 40)
    >>> calibration(pb.calibrate(runs, replicates=5)).get_ylabel()
    'Share of claims that were true'
    """
    data = source if isinstance(source, CalibrationCurve) else calibration_data(source, kind)
    ax = prepare_axes(ax, columns, 2.9 if columns == 1 else 3.6)
    low = 0.5 if data.kind == "ahead" else 0.0
    if not ax.lines:  # the first curve on these axes
        ax.plot([low, 1], [low, 1], color=NOTE_COLOUR, linewidth=0.8)
        ax.fill_between([low, 1], [low, 1], color="#000000", alpha=0.05, linewidth=0)
        place = {"transform": ax.transAxes, "fontsize": TICK_FONT_POINTS, "color": NOTE_COLOUR}
        ax.text(0.95, 0.06, "overconfident", ha="right", **place)
        ax.text(0.05, 0.92, "underconfident", **place)
        what = "ahead" if data.kind == "ahead" else "ahead at all times"
        ax.set_xlabel(f"Claimed P({what})")
        ax.set_ylabel("Share of claims that were true")
        ax.set_xlim(low, 1.0)
        ax.set_ylim(low, 1.0)
        ax.set_aspect("equal")
    line_style = {
        "marker": marker,
        "markersize": 4,
        "linewidth": 1,
        "color": colour,
        "clip_on": False,
    }
    room = np.stack([data.true - low, 1 - data.true]).clip(0)
    error = np.minimum(2 * np.nan_to_num(data.error), room)  # a share is between 0 and 1
    ax.errorbar(data.claimed, data.true, error, elinewidth=0.8, label=label, zorder=3, **line_style)
    return ax
