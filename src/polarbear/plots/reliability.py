"""Is what is claimed true as often as said? The calibration curve."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from polarbear.data.frozen import Frozen
from polarbear.plots.arguments import Floats
from polarbear.plots.canvas import FAINT, SMALL, Axes, Columns, axes
from polarbear.plots.colours import INK

Kind = Literal["ahead", "everywhere"]


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


class Counted(Protocol):
    """Claims that were counted: a :class:`polarbear.calibration.Tally`."""

    def curve(self, kind: str = "ahead") -> Sequence[_Bin]:
        """Claimed against true, bin by bin."""
        ...


class Calibrated(Protocol):
    """What :func:`polarbear.calibrate` returns."""

    @property
    def tally(self) -> Counted:
        """The claims."""
        ...


@dataclass(frozen=True, eq=False)
class CalibrationCurve(Frozen):
    """Claims of about one size each: B bins that hold any.

    Attributes
    ----------
    kind
        Claims of who is "ahead" at a time, or "everywhere".
    low, high
        Shape (B,): the claims of a bin are between these.
    claimed, true
        Shape (B,): the mean probability claimed, and how often that was true.
    error
        Shape (B,): the standard error of the latter, between data sets.
    cases
        Shape (B,): how many claims.
    """

    kind: Kind
    low: Floats
    high: Floats
    claimed: Floats
    true: Floats
    error: Floats
    cases: Floats


def calibration_data(source: Calibrated | Counted, kind: Kind = "ahead") -> CalibrationCurve:
    """What was claimed against how often it was true.

    >>> import polarbear as pb
    >>> runs = pb.simulation.simulate_runs(np.array([[0.0, 0.4, 1.0]] * 4), 40, persistence=0.5)
    >>> found = calibration_data(pb.calibrate(runs, replicates=10))
    >>> bool(np.all((found.low <= found.claimed) & (found.claimed <= found.high)))
    True
    """
    tally: Any = getattr(source, "tally", source)
    bins = [one for one in tally.curve(kind) if one.true.cases]
    rows = [
        (one.low, one.high, one.claimed, one.true.value, one.true.error, one.true.cases)
        for one in bins
    ]
    columns = np.array(rows, dtype=np.float64).reshape(-1, 6).T
    columns[4] = np.nan_to_num(columns[4])
    return CalibrationCurve(kind, *columns)


def calibration(
    source: Calibrated | Counted | CalibrationCurve,
    ax: Axes | None = None,
    *,
    kind: Kind = "ahead",
    colour: str = INK,
    marker: str = "o",
    label: str | None = None,
    columns: Columns = 1,
) -> Axes:
    """Draw what was claimed against how often it was true, with two standard errors.

    Honest claims are on the diagonal; below it claims are too sure. Several curves go on the same
    axes with a ``colour``, a ``marker`` and a ``label`` each.

    >>> import polarbear as pb
    >>> runs = pb.simulation.simulate_runs(np.array([[2.0, 0.0, -2.0]] * 3), 40)
    >>> calibration(pb.calibrate(runs, replicates=5)).get_ylabel()
    'Share of claims that were true'
    """
    data = source if isinstance(source, CalibrationCurve) else calibration_data(source, kind)
    ax = axes(ax, columns, 2.9 if columns == 1 else 3.6)
    low = 0.5 if data.kind == "ahead" else 0.0
    if not ax.lines:  # the first curve on these axes
        ax.plot([low, 1], [low, 1], color=FAINT, linewidth=0.8)
        ax.fill_between([low, 1], [low, 1], color="#000000", alpha=0.05, linewidth=0)
        place = {"transform": ax.transAxes, "fontsize": SMALL, "color": FAINT}
        ax.text(0.95, 0.06, "too sure", ha="right", **place)
        ax.text(0.05, 0.92, "not sure enough", **place)
        what = "ahead" if data.kind == "ahead" else "ahead at all times"
        ax.set_xlabel(f"P({what}), claimed")
        ax.set_ylabel("Share of claims that were true")
        ax.set_xlim(low, 1.0)
        ax.set_ylim(low, 1.0)
        ax.set_aspect("equal")
    look = {"marker": marker, "markersize": 4, "linewidth": 1, "color": colour, "clip_on": False}
    room = np.stack([data.true - low, 1 - data.true]).clip(0)
    error = np.minimum(2 * data.error, room)  # a share is a share
    ax.errorbar(data.claimed, data.true, error, elinewidth=0.8, label=label, zorder=3, **look)
    return ax
