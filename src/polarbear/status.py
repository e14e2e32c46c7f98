"""``AlgorithmStatus``: what is known of an algorithm's membership in the anytime Pareto set.

One definition for races and posteriors (:func:`assess`), so that both say the same.

- *dominated*: another algorithm is ahead at all times, with the certainty asked for.
- *equivalent* to a rival: the pair is settled, the algorithm is certain to tie with the rival
  within epsilon at some time, and there is no time at which it is certain to be ahead. Of several
  rivals, the one closest to dominating it is named.
- *member*: P(not dominated) reaches the certainty asked for, or every pair is settled.
- *undecided*: neither.
- *removed*: it left the race.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple

import numpy as np

from polarbear.data.names import count, listing, shown, span
from polarbear.relations import Bools, Floats, eliminate

Kind = Literal["member", "equivalent", "dominated", "undecided", "removed"]

NO_RIVALS: Mapping[str, float] = MappingProxyType({})


class AlgorithmStatus(NamedTuple):
    """What is known of an algorithm's membership in the anytime Pareto set.

    Attributes
    ----------
    algorithm, status
        The name, and "member", "equivalent", "dominated", "undecided" or "removed".
    prob_in_pareto
        P(no algorithm is ahead of it at all times). None before the first decision, and of
        algorithms that a race eliminated or removed.
    rival
        The algorithm that dominates it, or that it is equivalent to.
    prob_dominated
        P(the rival is ahead at all times) when it was eliminated.
    epsilon, since, until, clock
        It is equivalent within epsilon from ``since`` to ``until``, on this clock.
    why
        The reason for which it was removed.
    open
        The rivals with which it is undecided, and the last time at which that is open.
    instances, time
        The forecast of what settles these pairs: instances, and the total time of their runs.
        None if there is no forecast.
    left
        The number of unused instances. None if instances do not come to an end.

    Examples
    --------
    >>> print(AlgorithmStatus("CSA", "member", 0.998))
    CSA is a member of the Pareto set (P = 0.998)
    >>> print(AlgorithmStatus("RS", "dominated", rival="CSA", prob_dominated=0.9999))
    RS is dominated by CSA (P > 0.999)
    """

    algorithm: str
    status: Kind
    prob_in_pareto: float | None = None
    rival: str | None = None
    prob_dominated: float | None = None
    epsilon: float | None = None
    since: float | None = None
    until: float | None = None
    clock: str = "time"
    why: str = ""
    open: Mapping[str, float] = NO_RIVALS
    instances: float | None = None
    time: float | None = None
    left: int | None = None

    def __str__(self) -> str:
        if self.status == "removed":
            return f"{self.claim()}{f': {shown(self.why)}' if self.why else ''}"
        if self.status == "undecided" and self.open:
            return f"{self.claim()}: not settled with {listing(list(self.open))}{self._cost()}"
        if self.status == "undecided" and self.prob_in_pareto is not None:
            return f"{self.claim()}: none of its pairs is open under the rules of the race"
        return self.claim()

    @property
    def is_candidate(self) -> bool:
        """Whether it is neither dominated nor removed."""
        return self.status not in ("dominated", "removed")

    def brief(self) -> str:
        """Return the status and its probability in a few words, without the name."""
        belongs = "" if self.prob_in_pareto is None else f" ({chance(self.prob_in_pareto)})"
        if self.status == "dominated":
            belongs = "" if self.prob_dominated is None else f" ({chance(self.prob_dominated)})"
            return f"dominated by {shown(self.rival or '')}{belongs}"
        if self.status == "equivalent":
            return f"equivalent to {shown(self.rival or '')}{belongs}"
        return f"{self.status}{belongs}"

    def claim(self) -> str:
        """Return the status and its probability, without rivals and forecast."""
        name, rival = shown(self.algorithm), shown(self.rival or "")
        belongs = "" if self.prob_in_pareto is None else f" ({chance(self.prob_in_pareto)}"
        if self.status == "dominated":
            return f"{name} is {self.brief()}"
        if self.status == "member":
            return f"{name} is a member of the Pareto set{belongs and f'{belongs})'}"
        belongs = belongs and f"{belongs} that it is a member)"
        if self.status == "equivalent":
            return f"{name} is equivalent to {rival} within {self.epsilon:g}{self._when()}{belongs}"
        return f"{name} is {self.status}{belongs}"

    def _when(self) -> str:
        if self.since is None or self.until is None:
            return ""
        word = "at" if self.since == self.until else "from"
        return f" {word} {span(self.since, self.until, self.clock)}"

    def _cost(self) -> str:
        if self.instances is None:
            return "" if self.left != 0 else "; no instance left"
        # An open pair takes at least one more instance, however close to certain it is.
        more = max(1, round(self.instances))
        return f", about {count(more, 'more instance')}{few_left(more, self.left)}"


def few_left(wanted: float, left: int | None) -> str:
    """Say that fewer instances are left than a forecast asks for; "" if there are enough."""
    if left is None or left >= wanted:
        return ""
    return f"; only {count(left, 'unused instance')} left" if left else "; no unused instance left"


def chance(probability: float) -> str:
    """Format a probability with three digits, and never as a flat 0 or 1.

    >>> chance(0.98765), chance(0.99999), chance(0.0)
    ('P = 0.988', 'P > 0.999', 'P < 0.001')
    """
    if probability > 0.9995:
        return "P > 0.999"
    return "P < 0.001" if probability < 0.0005 else f"P = {probability:.3f}"


class Probabilities(NamedTuple):
    """The posterior probabilities that :func:`assess` needs, of n algorithms at T times."""

    algorithms: Sequence[str]
    times: Sequence[float] | Floats
    clock: str
    ahead: Floats  # (T, n, n): P(row ahead of column)
    alike: Floats  # (T, n, n): P(row and column equivalent within epsilon)
    free: Floats  # (n,): P(no algorithm is ahead at all times)
    beats: Bools  # (n, n): whether row dominates column with the certainty asked for
    sure: Floats  # (n, n): P(row dominates column)


def assess(
    posterior: Probabilities, *, alpha: float, epsilon: float, open_at: Bools
) -> list[AlgorithmStatus]:
    """Return the status of each algorithm, where pairs are open at these times (T, n, n)."""
    names, times = posterior.algorithms, posterior.times
    out = eliminate(posterior.beats, posterior.sure)
    ties, open_ = posterior.alike >= alpha, open_at.any(axis=0) & ~out & ~out[:, None]
    # Equivalent: certain to tie somewhere, and nowhere certain to be ahead.
    equal = ties.any(axis=0) & ~np.any(posterior.ahead >= alpha, axis=0) & ~out
    np.fill_diagonal(equal, False)
    least = posterior.ahead.min(axis=0)
    statuses: list[AlgorithmStatus] = []
    for k, name in enumerate(names):
        status = AlgorithmStatus(name, "member", float(posterior.free[k]), clock=posterior.clock)
        if out[k]:
            by = dominator(posterior.beats, posterior.sure, out, k)
            sure = float(posterior.sure[by, k])
            status = status._replace(status="dominated", rival=names[by], prob_dominated=sure)
        elif equal[k].any() and not open_[k].any():
            rival = int(np.argmax(np.where(equal[k], least[:, k], -1.0)))
            since, until = _longest_stretch(ties[:, k, rival])
            status = status._replace(
                status="equivalent",
                rival=names[rival],
                epsilon=epsilon,
                since=float(times[since]),
                until=float(times[until]),
            )
        elif open_[k].any() and posterior.free[k] < alpha:
            undecided = np.flatnonzero(open_[k]).tolist()
            last = [int(np.flatnonzero(open_at[:, k, j])[-1]) for j in undecided]
            rivals = {names[j]: float(times[t]) for j, t in zip(undecided, last, strict=True)}
            status = status._replace(status="undecided", open=rivals)
        statuses.append(status)
    return statuses


def dominator(beats: Bools, sure: Floats, out: Bools, k: int) -> int:
    """Return the algorithm that most certainly dominates k; one that is not out, if there is."""
    rivals = beats[:, k] & ~out if (beats[:, k] & ~out).any() else beats[:, k]
    return int(np.argmax(np.where(rivals, sure[:, k], -1.0)))


def _longest_stretch(holds: Bools) -> tuple[int, int]:
    """First and last index of the longest run of true values."""
    edges = np.flatnonzero(np.diff(holds.astype(int), prepend=0, append=0))
    start, stop = edges[::2], edges[1::2]
    longest = int(np.argmax(stop - start))
    return int(start[longest]), int(stop[longest]) - 1
