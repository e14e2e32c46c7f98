"""How runs ended: what the data decide where nothing says it, and counts by algorithm.

A run that was cut is unknown after its end; one that ended by itself keeps its value. If a table
does not say which, an optimiser that stops when it has converged looks like one that was cut, and
nothing would be known of it at later times. So an end that the data do not explain stays
*unstated*. It is read as finished, and ``fit`` also reads it as cut.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polarbear._text import escape_text, format_count, format_list
from polarbear.data.names import Codes
from polarbear.data.run import FAILED, STATUSES, Status

Ended = Literal["cut", "finished"]
"""How runs ended whose source does not say it, in the words of the caller."""

NEAR = 0.95
"""A run that was observed for at least this share of the longest one ended together with it."""

MIN_COMMON_ENDS = 3
"""An algorithm with at least this many runs that all end together has a limit of its own."""

MAX_FAILED_SHARE = 0.05
"""An algorithm that fails in a larger share of its runs is recommended with a warning only."""

_CUT, _UNSTATED = STATUSES.index(Status.CUT), STATUSES.index(Status.UNSTATED)


def decide_ends(
    status: NDArray[np.int8],
    until: NDArray[np.float64],
    algorithm: Codes,
    instance: Codes,
) -> NDArray[np.int8]:
    """Return the statuses (runs,), with unstated ones replaced by cut where the data decide it.

    A run was cut if it was observed as long as the longest run of all, or as the longest on its
    instance where at least half of the algorithms end then. So was each run of an algorithm whose
    runs all end at the same time, or at the same share of the longest on their instances; and a run
    that was not observed at all.

    >>> until = np.array([9.0, 9.0, 9.0, 2.0, 3.0, 5.0])
    >>> decided = decide_ends(np.full(6, _UNSTATED), until, np.repeat([0, 1], 3), np.arange(6) % 3)
    >>> [str(STATUSES[code]) for code in decided]
    ['cut', 'cut', 'cut', 'unstated', 'unstated', 'unstated']
    """
    unstated = status == _UNSTATED
    if not unstated.any():
        return status
    n_instances, n = int(instance.max()) + 1, int(algorithm.max()) + 1
    longest = np.zeros(n_instances)
    np.maximum.at(longest, instance, until)
    is_last = until >= NEAR * longest[instance]
    n_algorithms = _count_distinct(instance, algorithm, n_instances, n)
    n_last = _count_distinct(instance[is_last], algorithm[is_last], n_instances, n)
    has_common_end = (n_last >= 2) & (2 * n_last >= n_algorithms)
    is_cut = (until >= NEAR * until.max()) | (is_last & has_common_end[instance]) | (until == 0)
    share = until / np.where(longest > 0, longest, 1.0)[instance]
    may_be_cut = unstated | (status == _CUT)
    for code in np.unique(algorithm[unstated & ~is_cut]).tolist():
        own = may_be_cut & (algorithm == code)
        if np.count_nonzero(own) < MIN_COMMON_ENDS:
            continue
        # That it is always the longest explains no end.
        shares = [share] if share[own].max() < NEAR else []
        is_cut |= own & any(np.ptp(x[own]) <= (1 - NEAR) * x[own].max() for x in (until, *shares))
    return np.where(unstated & is_cut, np.int8(_CUT), status)


def _count_distinct(group: Codes, member: Codes, n_groups: int, n: int) -> NDArray[np.intp]:
    """Return the number of distinct members of each group."""
    pairs = np.unique(group.astype(np.int64) * n + member)
    return np.bincount(pairs // n, minlength=n_groups)


class RunEnds(NamedTuple):
    """How the runs of one algorithm ended.

    Attributes
    ----------
    algorithm, instances
        The name, and the number of instances with runs of it.
    counts
        The number of runs by status, the most frequent first.
    failed_ahead, others_ahead
        The mean share of rivals behind its failed runs, and behind its other runs, at the last
        time. None if there are no such runs.

    Examples
    --------
    >>> ends = RunEnds("a", 9, {"cut": 7, "crashed": 2}, 0.25, 0.75)
    >>> ends.n_runs, ends.n_failed, ends.describe_failures()
    (9, 2, 'a failed in 2 of 9 runs (2 crashed). A failed run keeps its best value: at the last \
time, its failed runs are ahead of 25 % of their rivals, its other runs of 75 %')
    """

    algorithm: str
    instances: int
    counts: Mapping[str, int]
    failed_ahead: float | None = None
    others_ahead: float | None = None

    @property
    def n_runs(self) -> int:
        """The number of runs."""
        return sum(self.counts.values())

    @property
    def n_failed(self) -> int:
        """The number of runs that crashed, were killed, or ran out of memory."""
        return sum(self.counts.get(status, 0) for status in FAILED)

    @property
    def n_unstated(self) -> int:
        """The number of runs of which neither their source nor the data say how they ended."""
        return self.counts.get(Status.UNSTATED, 0)

    @property
    def fails_often(self) -> bool:
        """Whether so many runs failed that the algorithm is not recommended without a warning."""
        return self.n_failed > MAX_FAILED_SHARE * self.n_runs

    def describe_failures(self) -> str:
        """Return how many runs failed, how, and what that did to the algorithm's ranks."""
        failed = {status: n for status, n in self.counts.items() if status in FAILED}
        text = (
            f"{escape_text(self.algorithm)} failed in {self.n_failed:,} of "
            f"{format_count(self.n_runs, 'run')} ({format_counts(failed)})"
        )
        if self.failed_ahead is None:
            return text
        text += (
            ". A failed run keeps its best value: at the last time, its failed runs are ahead of "
            f"{100 * self.failed_ahead:.0f} % of their rivals"
        )
        if self.others_ahead is None:
            return text
        return f"{text}, its other runs of {100 * self.others_ahead:.0f} %"


def count_ends(
    algorithms: Sequence[str],
    algorithm: Codes,
    status: NDArray[np.int8],
    offset: NDArray[np.int64],
    instance: Codes,
    position: NDArray[np.signedinteger],
) -> tuple[RunEnds, ...]:
    """Count how the runs of each algorithm ended; the arrays are those of ``Rankings``.

    ``position`` (entries,) are the positions at the last time, and ``status`` is -1 of entries
    that repeat a run.
    """
    comparison = np.repeat(np.arange(len(instance)), np.diff(offset))
    n_statuses, n_instances = len(STATUSES), int(instance.max(initial=0)) + 1
    own = status >= 0
    code = algorithm[own].astype(np.int64) * n_statuses + status[own]
    table = np.bincount(code, minlength=len(algorithms) * n_statuses)
    n_covered = _count_distinct(
        algorithm[own], instance[comparison[own]], len(algorithms), n_instances
    )
    is_failed = np.isin(status, [STATUSES.index(one) for one in FAILED])
    ahead = _share_behind(position, comparison) if is_failed.any() else np.zeros(0)
    ends: list[RunEnds] = []
    for k, (name, row) in enumerate(zip(algorithms, table.reshape(-1, n_statuses), strict=True)):
        counts = {str(STATUSES[at]): int(row[at]) for at in np.argsort(-row, kind="stable")}
        one = RunEnds(name, int(n_covered[k]), {how: n for how, n in counts.items() if n})
        if one.n_failed:
            here = own & (algorithm == k)
            failed, others = (_mean(ahead[here & kind]) for kind in (is_failed, ~is_failed))
            one = one._replace(failed_ahead=failed, others_ahead=others)
        ends.append(one)
    return tuple(ends)


def _share_behind(
    position: NDArray[np.signedinteger], comparison: NDArray[np.integer]
) -> NDArray[np.float64]:
    """Return the share of its rivals that is behind each entry, ties counting half; nan if none."""
    known = position >= 0
    n_known = np.bincount(comparison[known], minlength=int(comparison.max(initial=0)) + 1)
    group = comparison.astype(np.int64) * (len(position) + 1) + position
    _, member, size = np.unique(group, return_inverse=True, return_counts=True)
    n_ahead = position + (size[member] - 1) / 2
    n_rivals = n_known[comparison] - 1
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(known & (n_rivals > 0), 1 - n_ahead / n_rivals, np.nan)


def _mean(values: NDArray[np.float64]) -> float | None:
    values = values[np.isfinite(values)]
    return float(values.mean()) if len(values) else None


def format_counts(counts: Mapping[str, int]) -> str:
    """Format the number of runs by status.

    >>> format_counts({"cut": 1200, "crashed": 3})
    '1,200 cut, 3 crashed'
    """
    return ", ".join(f"{n:,} {status}" for status, n in counts.items())


def sum_counts(ends: Sequence[RunEnds]) -> dict[str, int]:
    """Return the number of runs of all algorithms by status, the most frequent first."""
    total: dict[str, int] = {}
    for one in ends:
        for status, n in one.counts.items():
            total[status] = total.get(status, 0) + n
    return dict(sorted(total.items(), key=lambda item: -item[1]))


def describe_unstated(ends: Sequence[RunEnds]) -> str:
    """Return whose runs end before the others' without a reason, in words; "" if there are none.

    >>> describe_unstated([RunEnds("NM", 9, {"cut": 7, "unstated": 5})])
    '5 of 12 runs of NM end before the others, and nothing says why'
    """
    parts = [
        f"{one.n_unstated:,} of {format_count(one.n_runs, 'run')} of {escape_text(one.algorithm)}"
        for one in ends
        if one.n_unstated
    ]
    if not parts:
        return ""
    is_one = len(parts) == 1 and parts[0].startswith("1 ")
    whose = " and ".join([format_list(parts[:-1], 4), parts[-1]]) if parts[1:] else parts[0]
    return f"{whose} {'ends' if is_one else 'end'} before the others, and nothing says why"
