"""``Verdict``: what is known of an algorithm with respect to the anytime Pareto set.

One definition for races, posteriors and data (:func:`derive_verdicts`), so that all agree.

Certain claims (:class:`Claims`) come from e-values or from a posterior.

- *dominated*: another algorithm is ahead at all times, with the certainty asked for.
- *equivalent* to a rival: the pair is settled, the algorithm is certain to tie with the rival
  within epsilon at some time, and there is no time at which it is certain to be ahead. Of several
  rivals, the one closest to dominating it is named. E-values may show that each of the two is at
  par (not behind by more than epsilon) somewhere, but a common time for neither: then there is no
  time of the tie, and the text says "at par" instead of "equivalent".
- *member*: every pair is settled; by a posterior also if P(not dominated) reaches the certainty.
- *undecided*: neither.
- *removed*: it left the race.
- *chosen*, *not chosen*: the race is about a choice for a known budget (``Choice(...)``),
  and this is settled; others are undecided.
- *passed*, *failed*: at par with the *baseline* at every time, or behind it by more than epsilon at
  some time (``NoWorse(...)``).
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from polarbear._text import escape_text, format_count, format_list, format_range
from polarbear.data.rankings import Rankings
from polarbear.data.run_ends import RunEnds, describe_unstated
from polarbear.inference.decisive import find_decisive_instances
from polarbear.inference.dominance import Bools, Floats, Resolution, eliminate, find_open_times
from polarbear.inference.e_values import Evidence, log_mean_over_times

Kind = Literal[
    "member",
    "equivalent",
    "dominated",
    "undecided",
    "removed",
    "chosen",
    "not chosen",
    "passed",
    "failed",
    "baseline",
]


class Unsettled(NamedTuple):
    """The pairs of an algorithm that are not settled, and the forecast of what settles them.

    Attributes
    ----------
    rivals
        The rivals, with the last time at which the relation to each is open.
    instances, time
        How many more instances settle all of these pairs, and the time of their runs; None without
        a forecast.
    left
        The number of unused instances; None if instances do not come to an end.
    """

    rivals: Mapping[str, float]
    instances: float | None = None
    time: float | None = None
    left: int | None = None

    def __str__(self) -> str:
        text = f"not settled with {format_list(list(self.rivals))}"
        if self.instances is None:
            return f"{text}; no instance left" if self.left == 0 else text
        # An open pair takes at least one more instance, however close to certain it is.
        more = max(1, round(self.instances))
        needed = format_count(more, "more instance")
        return f"{text}, about {needed}{describe_shortage(more, self.left)}"


class Verdict(NamedTuple):
    """What is known of one algorithm: the verdict of a posterior, a race, a judge or a test.

    Attributes
    ----------
    algorithm, kind
        The name, and "member" of the Pareto set, "equivalent", "dominated", "undecided" or
        "removed"; for other questions of a race "chosen", "not chosen", "passed" or "failed".
    probability
        P(no algorithm is ahead of it at all times); of a dominated one, P(the rival is). None
        without a posterior.
    rival
        The algorithm that dominates it, or that it is equivalent to.
    epsilon, since, until, clock
        It is equivalent within epsilon from ``since`` to ``until``, on this clock. Both are None
        if no time is known at which the two tie.
    why
        The reason for which it was removed, or runs no more although it is undecided.
    unsettled
        The pairs for which it is undecided; None if there are none.
    decisive
        The fewest instances without which it would not be dominated, or not certain to be a
        member or equivalent.
    certainty
        The certainty with which a race has to prove its claims by e-values; they may lack a proof
        of which the posterior is certain. None if the posterior decides.

    Examples
    --------
    >>> print(Verdict("CSA", "member", 0.998))
    CSA is a member of the Pareto set (P = 0.998)
    >>> print(Verdict("RS", "dominated", 0.9999, rival="CSA"))
    RS is dominated by CSA (P > 0.999)
    """

    algorithm: str
    kind: Kind
    probability: float | None = None
    rival: str | None = None
    since: float | None = None
    until: float | None = None
    clock: str = "time"
    epsilon: float | None = None
    certainty: float | None = None
    why: str = ""
    unsettled: Unsettled | None = None
    decisive: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = [str(self.unsettled)] if self.unsettled and self.kind == "undecided" else []
        if self.why and self.kind in ("undecided", "removed"):
            parts.append(escape_text(self.why))
        elif self.kind == "undecided" and not parts and self.probability is not None:
            parts.append("none of its pairs is open for the question of the race")
        return f"{self.claim()}: {'; '.join(parts)}" if parts else self.claim()

    @property
    def is_candidate(self) -> bool:
        """Whether the algorithm is neither dominated nor removed."""
        return self.kind not in ("dominated", "removed")

    def brief(self) -> str:
        """Return the verdict and its probability in a few words, without the algorithm's name.

        >>> Verdict("CSA", "member", 0.998).brief()
        'member (P = 0.998)'
        >>> Verdict("CSA", "undecided", 0.998, certainty=0.95).brief()
        'undecided (P = 0.998 that it is a member, which is not proven)'
        """
        rival = escape_text(self.rival or "")
        if self.kind == "dominated":
            return f"dominated by {rival}{self._describe_probability()}"
        if self.kind == "equivalent":
            same = "equivalent to" if self.since is not None else "at times at par with"
            return f"{same} {rival}{self._describe_probability()}"
        return f"{self.kind}{self._describe_probability()}"

    def claim(self) -> str:
        """Return the name, verdict and probability in words, without rivals and forecast.

        >>> Verdict("CSA", "undecided", 0.6, unsettled=Unsettled({"RS": 10.0})).claim()
        'CSA is undecided (P = 0.600 that it is a member)'
        """
        name, rival = escape_text(self.algorithm), escape_text(self.rival or "")
        sure = self._describe_probability()
        if self.kind == "member":
            return f"{name} is a member of the Pareto set{sure}"
        if self.kind != "equivalent":
            return f"{name} is {self.brief()}"
        if self.since is None or self.until is None:
            return (
                f"{name} is at par with {rival} within {self.epsilon:g} at some times, and not "
                f"proven to be ahead at any{sure}"
            )
        word = "at" if self.since == self.until else "from"
        when = f"{word} {format_range(self.since, self.until, self.clock)}"
        return f"{name} is equivalent to {rival} within {self.epsilon:g} {when}{sure}"

    def _describe_probability(self) -> str:
        """Return the probability, and whether a race by e-values lacks a proof; "" if unknown."""
        if self.probability is None:
            return ""
        sure, required = format_probability(self.probability), self.certainty or 2.0
        if self.kind in ("member", "dominated"):
            doubts = self.kind == "member" and self.probability < 0.5
            return f" ({sure}{', so the posterior doubts it' if doubts else ''})"
        note = ""
        if self.kind == "undecided" and self.probability >= required:
            note = ", which is not proven"
        elif self.kind == "undecided" and 1 - self.probability >= required:
            note = ", but not proven that it is dominated"
        return f" ({sure} that it is a member{note})"


def describe_shortage(wanted: float, left: int | None) -> str:
    """Return a note if fewer instances are unused than the forecast needs, else ""."""
    if left is None or left >= wanted:
        return ""
    return (
        f"; only {format_count(left, 'unused instance')} left"
        if left
        else "; no unused instance left"
    )


def format_probability(probability: float) -> str:
    """Format a probability with three digits, never rounded to exactly 0 or 1.

    >>> format_probability(0.98765), format_probability(0.99999), format_probability(0.0)
    ('P = 0.988', 'P > 0.999', 'P < 0.001')
    """
    if probability > 0.9995:
        return "P > 0.999"
    return "P < 0.001" if probability < 0.0005 else f"P = {probability:.3f}"


class Claims(NamedTuple):
    """The claims about pairs of algorithms that are certain, by a posterior or by e-values."""

    algorithms: Sequence[str]
    times: Sequence[float] | Floats
    clock: str
    beats: Bools  # (n, n): row dominates column
    strength: Floats  # (n, n): how certain that is
    least: Floats  # (n, n): how certain row is to be ahead of column at the worst time
    equal: Bools  # (n, n): row ties with column somewhere, and leads nowhere, as far as is certain
    ties: Bools  # (T, n, n): row and column are equivalent
    open_at: Bools  # (T, n, n): the pair is not settled
    members: Bools  # (n,): members, although some of their pairs may be open
    prob_in_pareto: Floats | None  # (n,)
    prob_dominates: Floats | None  # (n, n)

    @classmethod
    def from_probabilities(
        cls,
        names: Sequence[str],
        times: Sequence[float] | Floats,
        clock: str,
        *,
        ahead: Floats,
        alike: Floats,
        prob_in_pareto: Floats,
        beats: Bools,
        sure: Floats,
        certainty: float,
        resolution: Resolution,
    ) -> "Claims":
        """Return the claims that a posterior makes certain; valid if data are analysed only once.

        ``ahead`` and ``alike`` (T, n, n) are P(row ahead of column) and P(equivalent), ``beats``
        and ``sure`` (n, n) say whether row dominates column, and P of that.
        """
        ties, least = alike >= certainty, ahead.min(axis=0)
        leads: Bools = np.any(ahead >= certainty, axis=0)
        return cls(
            algorithms=names,
            times=times,
            clock=clock,
            beats=beats,
            strength=sure,
            least=least,
            equal=ties.any(axis=0) & ~leads,
            ties=ties,
            open_at=find_open_times(ahead, alike, beats, certainty, resolution),
            members=prob_in_pareto >= certainty,
            prob_in_pareto=prob_in_pareto,
            prob_dominates=sure,
        )

    @classmethod
    def from_e_values(
        cls,
        names: Sequence[str],
        times: Sequence[float] | Floats,
        clock: str,
        evidence: Evidence,
        *,
        log_k: Floats,
        certainty: float,
        resolution: Resolution,
    ) -> "Claims":
        """Return the claims that e-values support, given log-thresholds of dominance for each pair.

        "at_par": a pair is settled when each of the two is at par somewhere. "crossing": and one
        of them leads somewhere. "strict": when one leads, or both are at par, at each time.
        """
        least, level = evidence.lead.min(axis=0), -np.log1p(-certainty)
        beats = evidence.dominates(log_k)
        leads, at_par = (log_mean_over_times(log_e) >= level for log_e in evidence)
        ties = (evidence.par >= level) & (evidence.par.swapaxes(1, 2) >= level)
        if resolution == "strict":
            certain, closed = _certain_at_each_time(evidence.lead, ties, log_k, level)
        else:
            closed = at_par & at_par.T
            if resolution == "crossing":
                closed = (leads & at_par.T) | (leads.T & at_par) | ties.all(axis=0)
            # More evidence at such a time changes nothing: alone it would carry the mean.
            certain = evidence.lead >= np.maximum(log_k, level + np.log(len(ties)))
        return cls(
            algorithms=names,
            times=times,
            clock=clock,
            beats=beats,
            strength=least - log_k,
            least=least,
            equal=at_par & at_par.T & ~leads,
            ties=ties,
            open_at=_open_times_of(certain | certain.swapaxes(1, 2), closed | beats | beats.T),
            members=np.zeros(len(names), dtype=bool),
            prob_in_pareto=None,
            prob_dominates=None,
        )


def _certain_at_each_time(
    lead: Floats, ties: Bools, log_k: Floats, level: float
) -> tuple[Bools, Bools]:
    """Return where row certainly leads or ties, and the pairs that this decides at all times."""
    # A lead at every time is dominance, which takes more evidence than a lead at one time.
    certain = (lead >= np.where(np.all(lead >= level, axis=0), log_k, level)) | ties
    closed: Bools = np.all(certain | certain.swapaxes(1, 2), axis=0)
    return certain, closed


def _open_times_of(certain: Bools, settled: Bools) -> Bools:
    """Return a mask of the undecided times of each undecided pair; all times if there are none."""
    open_pair = ~(settled | np.eye(len(settled), dtype=bool))
    open_at = ~certain & open_pair
    return open_at | (open_pair & ~open_at.any(axis=0))


def derive_verdicts(claims: Claims, epsilon: float) -> list[Verdict]:
    """Return the verdict about each algorithm that follows from claims about pairs."""
    names, times, open_at = claims.algorithms, claims.times, claims.open_at
    out = eliminate(claims.beats, claims.strength)
    open_ = open_at.any(axis=0) & ~out & ~out[:, None]
    equal = claims.equal & ~out
    np.fill_diagonal(equal, False)
    verdicts: list[Verdict] = []
    for k, name in enumerate(names):
        verdict = Verdict(name, "member", _at(claims.prob_in_pareto, k), clock=claims.clock)
        if out[k]:
            by = pick_dominator(claims.beats, claims.strength, out, k)
            sure = _at(claims.prob_dominates, (by, k))
            verdict = verdict._replace(kind="dominated", rival=names[by], probability=sure)
        elif equal[k].any() and not open_[k].any():
            rival = int(np.argmax(np.where(equal[k], claims.least[:, k], -np.inf)))
            verdict = verdict._replace(kind="equivalent", rival=names[rival], epsilon=epsilon)
            ties = claims.ties[:, k, rival]
            if ties.any():
                since, until = (float(times[t]) for t in _longest_stretch(ties))
                verdict = verdict._replace(since=since, until=until)
        elif open_[k].any() and not claims.members[k]:
            undecided = np.flatnonzero(open_[k]).tolist()
            last = [int(np.flatnonzero(open_at[:, k, j])[-1]) for j in undecided]
            rivals = {names[j]: float(times[t]) for j, t in zip(undecided, last, strict=True)}
            verdict = verdict._replace(kind="undecided", unsettled=Unsettled(rivals))
        verdicts.append(verdict)
    return verdicts


def compare_readings(
    ends: Sequence[RunEnds],
    finished: Sequence[Verdict],
    cut: Sequence[Verdict],
    leaders: tuple[str, str] | None = None,
) -> str:
    """Return what hangs on whether runs with unstated ends finished by themselves or were cut.

    ``finished`` and ``cut`` are the verdicts about all algorithms under the two readings, and
    ``leaders`` the algorithms that are most likely the best at the last time.

    >>> ends = [RunEnds("NM", 9, {"unstated": 9})]
    >>> print(compare_readings(ends, [Verdict("NM", "dominated")],
    ...                        [Verdict("NM", "member")]))
    The answer hangs on how runs ended. 9 of 9 runs of NM end before the others, and nothing says
    why. NM is dominated if they finished by themselves, and a member if they were cut. Say which
    with ended='finished' or ended='cut' (--ended on the command line); if they differ, in a column
    'status'.
    """
    why = describe_unstated(ends)
    words = {"member": "a member", "equivalent": "equivalent to another"}
    differing = [
        f"{escape_text(one.algorithm)} is {words.get(one.kind, one.kind)} if they finished by "
        f"themselves, and {words.get(other.kind, other.kind)} if they were cut"
        for one, other in zip(finished, cut, strict=True)
        if one.kind != other.kind
    ]
    more = f"; and {len(differing) - 4} more differ" if len(differing) > 4 else ""
    changes = "; ".join(differing[:4]) + more
    if leaders is not None and leaders[0] != leaders[1]:
        first, second = map(escape_text, leaders)
        best = f"the most likely best at the end is {first} if they finished, {second} if cut"
        changes = f"{changes}; {best}" if changes else f"T{best[1:]}"
    if not changes:
        return f"{why}. Read as finished or as cut, the verdict about every algorithm is the same."
    which = (
        "Say which with ended='finished' or ended='cut' (--ended on the command line); if they "
        "differ, in a column 'status'"
    )
    return f"The answer hangs on how runs ended. {why}. {changes}. {which}."


def find_decisive_of_member(
    verdict: Verdict,
    others: Sequence[Verdict],
    rankings: Rankings,
    certainty: float,
    epsilon: float,
) -> tuple[str, ...]:
    """Return the fewest instances without which an algorithm would be undecided with a rival.

    For members and algorithms that are equivalent to another: each of a pair is at par at some
    time. Rivals are the other algorithms that are not dominated. Empty for any other verdict.
    """
    if verdict.kind not in ("member", "equivalent"):
        return ()
    rivals = [
        one.algorithm for one in others if one.is_candidate and one.algorithm != verdict.algorithm
    ]
    sets = [
        find_decisive_instances(
            rankings, first, second, "at par somewhere", -np.log1p(-certainty), epsilon
        )
        for rival in rivals
        if rival in rankings.algorithms
        for first, second in ((verdict.algorithm, rival), (rival, verdict.algorithm))
    ]
    return min(filter(None, sets), key=len, default=())


def _at(values: Floats | None, index: int | tuple[int, int]) -> float | None:
    """Return the element at an index as a float; None if there is no array."""
    return None if values is None else float(values[index])


def pick_dominator(beats: Bools, sure: Floats, out: Bools, k: int) -> int:
    """Return the index of an algorithm's surest dominator; prefer one that is not eliminated."""
    rivals = beats[:, k] & ~out if (beats[:, k] & ~out).any() else beats[:, k]
    return int(np.argmax(np.where(rivals, sure[:, k], -np.inf)))


def _longest_stretch(holds: Bools) -> tuple[int, int]:
    """Return the first and last index of the longest stretch of true values in a mask."""
    edges = np.flatnonzero(np.diff(holds.astype(int), prepend=0, append=0))
    start, stop = edges[::2], edges[1::2]
    longest = int(np.argmax(stop - start))
    return int(start[longest]), int(stop[longest]) - 1
