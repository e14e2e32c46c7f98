"""``audit``: which adjacent ranks of a board cannot be separated.

Algorithms are ordered by the share of all others that they beat on an instance, ties as a half: of
solved or not, that is the order by the share of solved instances. Whether one is ahead of the next
is asked of their duels on the same instances, by the Bayesian bootstrap of instances.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarbear._text import align_columns, capitalise, format_duration, format_share
from polarbear.data.grid import from_runs
from polarbear.data.runs import Runs, check_runs
from polarbear.errors import DataError
from polarbear.selection.preferences import Linear, Preference, to_preference
from polarbear.selection.schedules import (
    N_TIMES,
    costs_at,
    draw_mean_leads,
    find_probability,
    find_rows,
)

Floats = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class Board:
    """Algorithms by rank, and with which probability each is ahead of the next one.

    Attributes
    ----------
    algorithms
        The names, the best first.
    score
        (n,): the share of all others that each beats, ties as a half.
    ahead
        (n - 1,): the probability that each is ahead of the next one on more such instances.
    certainty
        The probability from which on two ranks are separated.
    preference
        For which budgets.
    """

    algorithms: tuple[str, ...]
    score: Floats
    ahead: Floats
    certainty: float
    preference: str

    @property
    def groups(self) -> list[tuple[str, ...]]:
        """The algorithms in groups within which no rank is separated from the next."""
        cuts = np.flatnonzero(self.ahead >= self.certainty) + 1
        return [tuple(part.tolist()) for part in np.split(np.array(self.algorithms), cuts)]

    def __str__(self) -> str:
        n = len(self.ahead)
        count = int(np.sum(self.ahead >= self.certainty))
        said = f"{count} of {n} ranks are separated from the next with {100 * self.certainty:g} %"
        cells = [["rank", "algorithm", "beats", "P(ahead of the next)"]]
        for k, name in enumerate(self.algorithms):
            ahead = format_share(self.ahead[k]) if k < n else ""
            mark = "" if k == n or self.ahead[k] >= self.certainty else "  not separated"
            cells.append([str(k + 1), name, f"{100 * self.score[k]:.1f} %", f"{ahead}{mark}"])
        return f"{capitalise(self.preference)}: {said}\n{align_columns(cells)}"

    __repr__ = __str__

    def to_plain(self) -> dict[str, Any]:
        """Return what the board says for JSON."""
        return {
            "algorithms": self.algorithms,
            "score": self.score,
            "ahead": self.ahead,
            "groups": self.groups,
            "preference": self.preference,
        }


def audit(
    runs: Runs,
    budget: float | Preference | None = None,
    *,
    certainty: float = 0.95,
    seed: int = 0,
) -> Board:
    """Say which adjacent ranks of a board cannot be separated.

    Parameters
    ----------
    runs
        Runs of all algorithms on the same instances.
    budget
        The budget, or a preference over budgets as in :func:`select`; by default the last budget,
        as boards do.
    certainty
        The probability from which on two ranks are separated.
    seed
        Determines the draws.

    Examples
    --------
    >>> import polarbear as pb
    >>> board = audit(pb.example("cma-variants"))
    >>> board.groups
    [('XNES', 'MSR'), ('CSA', 'LPXNES', 'TPA'), ('MXNES',), ('RS',)]
    """
    check_runs(runs, "audit")
    if not 0.5 < certainty < 1:
        raise DataError("expected a probability above 0.5, such as 0.95", certainty=certainty)
    rows, grid = find_rows(runs), from_runs(runs, N_TIMES)
    if budget is None or isinstance(budget, int | float):
        grid, weights = np.array([grid[-1] if budget is None else float(budget)]), np.ones(1)
        says = f"at {format_duration(grid[0], runs.clock)}"
    else:
        wanted = to_preference(budget, grid)
        if not isinstance(wanted, Linear):
            raise DataError("an audit needs a budget, or a preference that weights budgets")
        weights, says = wanted.weights(grid, runs.clock), wanted.says
    # No value is worse than every value.
    cost = np.minimum(costs_at(runs, rows, grid), np.finfo(float).max / 2)  # (n, R, K)
    instance = np.unique(runs.instance[rows[0]], return_inverse=True)[1]
    share = 1 / np.bincount(instance)[instance]  # an instance counts once, with all its repetitions
    beaten = [np.mean(np.sign(cost - own) @ weights, axis=0) for own in cost]
    mean = np.array(beaten) @ (share / share.sum())
    order = np.argsort(-mean, kind="stable")
    rng, ahead = np.random.default_rng(seed), list[float]()
    for a, b in pairwise(order.tolist()):
        lead = np.bincount(instance, np.sign(cost[b] - cost[a]) @ weights) / np.bincount(instance)
        ahead.append(find_probability(draw_mean_leads(lead, rng)))
    return Board(
        algorithms=tuple(runs.algorithms[k] for k in order),
        score=(1 + mean[order] * len(mean) / (len(mean) - 1)) / 2,
        ahead=np.array(ahead),
        certainty=certainty,
        preference=says,
    )
