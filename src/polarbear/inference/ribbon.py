"""``Ribbon``: what to run if you stop here, as data for all pictures of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from polarbear._text import (
    escape_text,
    format_range,
    format_share_range,
    format_time,
    round_time,
)
from polarbear.data.frozen import FrozenRecord
from polarbear.data.time_axis import is_log_axis

Floats = NDArray[np.float64]

CERTAIN = 0.95
"""A leader is certain if it is the best with at least this probability; else it is hatched."""

MAX_SHOWN = 3
"""The number of algorithms whose probabilities are shown at each time."""

TOSS_UP = 0.02
"""Probabilities to be the best that differ by no more are as likely: draws move them as much."""

MAX_STRETCHES = 2
"""The most stretches of time of one leader that are listed in words."""

MIN_OPACITY, PALE_SHARE = 0.3, 0.3
"""The opacity of the least certain leader, and the probability up to which it is that pale."""


class Lead(NamedTuple):
    """A stretch of time over which one algorithm is most likely the best.

    Attributes
    ----------
    algorithm
        The index of the algorithm.
    start, stop
        Where it begins and ends: times at which the leader changes, rounded to two significant
        digits, or the ends of the grid.
    first, last
        The indices of its first and last time.
    least, most
        The lowest and the highest P(best) of the algorithm over the stretch.
    """

    algorithm: int
    start: float
    stop: float
    first: int
    last: int
    least: float
    most: float

    @property
    def is_certain(self) -> bool:
        """Whether the algorithm is certain to be the best at some time of the stretch."""
        return self.most >= CERTAIN


@dataclass(frozen=True, eq=False)
class Ribbon(FrozenRecord):
    """The leader at each time, its rivals, and the times at which it changes.

    Attributes
    ----------
    algorithms, times, clock
        The algorithms, none of a race without a decision; and the grid of times.
    is_log
        Whether the time axis is logarithmic.
    edges
        Shape (T + 1,): the ends of the cell of each time. Inside they are midpoints of the grid,
        geometric on a log axis.
    top
        Shape (T, at most 3): the indices of the algorithms that are most likely the best, the
        leader first.
    probability
        Shape (T, at most 3): P(best) of these.
    others
        Algorithms of the same comparison that have left, whose colours are not free.

    Examples
    --------
    >>> best = np.array([[0.9, 0.1], [0.4, 0.6], [0.0, 1.0]])
    >>> ribbon = Ribbon.of(["a", "b"], np.array([1.0, 10.0, 100.0]), "evaluations", best)
    >>> ribbon.switches, ribbon.describe()
    ([3.2], 'a up to 3 evaluations (90 %, not certain), then b (60 to > 99 %)')
    """

    algorithms: tuple[str, ...]
    times: Floats
    clock: str
    is_log: bool
    edges: Floats
    top: NDArray[np.intp]
    probability: Floats
    others: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        algorithms: Sequence[str],
        times: Floats,
        clock: str,
        best: Floats,
        is_log: bool | None = None,
    ) -> Ribbon:
        """Return the ribbon of P(best) (T, n); by default the grid decides on the axis."""
        is_log = is_log_axis(times) if is_log is None else is_log
        place, back = (np.log, np.exp) if is_log else (np.asarray, np.asarray)
        middles = back((place(times[1:]) + place(times[:-1])) / 2)
        # Of those that are as likely, the one that leads most: not one that another one replaces.
        is_near = best >= best.max(axis=1, keepdims=True, initial=0.0) - TOSS_UP
        order = np.where(is_near, 1.0 + best.mean(axis=0), best)
        top = np.argsort(-order, axis=1, kind="stable")[:, :MAX_SHOWN]
        return cls(
            algorithms=tuple(algorithms),
            times=times,
            clock=clock,
            is_log=is_log,
            edges=np.concatenate([times[:1], middles, times[-1:]]),
            top=top,
            probability=np.take_along_axis(best, top, axis=1),
        )

    @property
    def leads(self) -> tuple[Lead, ...]:
        """The stretches of time with one leader, in order."""
        if not self.algorithms:
            return ()
        leader, sure = self.top[:, 0], self.probability[:, 0]
        changes = np.flatnonzero(np.diff(leader)) + 1
        starts, stops = [0, *changes.tolist()], [*changes.tolist(), len(leader)]
        rounded = [round_time(float(self.edges[k]), self.clock, 2) for k in changes]
        inside = np.clip(rounded, self.times[0], self.times[-1]).tolist()
        ends = [float(self.times[0]), *inside, float(self.times[-1])]
        return tuple(
            Lead(
                algorithm=int(leader[first]),
                start=ends[k],
                stop=ends[k + 1],
                first=first,
                last=stop - 1,
                least=float(sure[first:stop].min()),
                most=float(sure[first:stop].max()),
            )
            for k, (first, stop) in enumerate(zip(starts, stops, strict=True))
        )

    @property
    def switches(self) -> list[float]:
        """The times at which the leader changes, rounded to two significant digits."""
        return [one.start for one in self.leads[1:]]

    @property
    def opacity(self) -> Floats:
        """How strong the colour of each cell is: 1 if the leader is certain, paler if not."""
        share = (self.probability[:, 0] - PALE_SHARE) / (CERTAIN - PALE_SHARE)
        return np.clip(MIN_OPACITY + (1 - MIN_OPACITY) * share, MIN_OPACITY, 1.0)

    def place(self, time: Floats | float) -> Floats:
        """Return where times lie on the axis, from 0 to 1; all of a single time are at 0 and 1."""
        edges = np.log(self.edges) if self.is_log else self.edges
        if edges[0] == edges[-1]:
            return np.asarray(time > self.edges[0], dtype=np.float64)
        where = np.log(time) if self.is_log else np.asarray(time, dtype=np.float64)
        return (where - edges[0]) / (edges[-1] - edges[0])

    def describe(self) -> str:
        """Return what to run over time in words: the text for those who do not see the picture.

        Where algorithms alternate because they are close, stretches without a certain leader are
        one.
        """
        if not self.algorithms:
            return "nothing is known yet"
        parts, leads = list[str](), self.leads
        for is_certain, group in groupby(range(len(leads)), lambda k: leads[k].is_certain):
            at = list(group)
            near = [one.algorithm for one in leads[max(at[0] - 1, 0) : at[-1] + 2]]
            alternate = not is_certain and len(set(near)) < len(near)
            stretches = [at] if alternate else [[k] for k in at]
            parts += (self._describe_stretch([leads[k] for k in one]) for one in stretches)
        return ", then ".join(parts)

    def _describe_stretch(self, leads: Sequence[Lead]) -> str:
        """Return the leaders of a stretch of time, its end and their probabilities in words."""
        names = dict.fromkeys(escape_text(self.algorithms[one.algorithm]) for one in leads)
        sure = format_share_range(min(one.least for one in leads), max(one.most for one in leads))
        sure += "" if leads[0].is_certain else ", not certain"
        stop, until = leads[-1].stop, ""
        if leads[-1].last < len(self.times) - 1:
            until = f" up to {format_range(stop, stop, self.clock)}"
        return f"{' or '.join(names)}{until} ({sure})"

    def describe_when(self, algorithm: int) -> str:
        """Return when an algorithm is most likely the best, in a few words; "" if never.

        >>> best = np.array([[0.97, 0.03], [0.4, 0.6], [0.2, 0.8]])
        >>> ribbon = Ribbon.of(["a", "b"], np.array([1.0, 10.0, 100.0]), "seconds", best)
        >>> ribbon.describe_when(0), ribbon.describe_when(1)
        ('up to 3.2', 'perhaps from 3.2')
        """
        leads = self.leads
        parts: list[str] = []
        for k, one in enumerate(leads):
            if one.algorithm != algorithm:
                continue
            start, stop = (format_time(end, self.clock) for end in (one.start, one.stop))
            when = f"{start} – {stop}"  # noqa: RUF001
            if len(leads) == 1:
                when = "at all times" if len(self.times) > 1 else f"at {start}"
            elif k == 0:
                when = f"up to {stop}"
            elif k == len(leads) - 1:
                when = f"from {start}"
            parts.append(when if one.is_certain else f"perhaps {when}")
        if len(parts) > MAX_STRETCHES:
            return f"{parts[0]} and {len(parts) - 1} more stretches"
        return ", ".join(parts)
