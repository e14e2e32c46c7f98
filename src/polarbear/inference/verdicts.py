"""``Verdict``: what is known of an algorithm, and the sentence that says it.

- *member*: worth running. No other algorithm replaces it; or, for the paper's method, none is ahead
  of it at all times.
- *dominated*: a rival replaces it: better on average, and nowhere worse by more than the margin
  (:mod:`polarbear.inference.replacing`). Without a margin, the rival is ahead at all times.
- *equivalent* to a rival: neither is worse than the other by more than the margin, on any stretch
  of time; without a race, from one time to another.
- *undecided*: none of these is certain.
- *removed*: it left the race.
- *chosen*, *not chosen*: the race is about a choice for a known budget (``Choice(...)``),
  and this is settled; others are undecided.
- *passed*, *failed*: no worse than the *baseline* by more than the margin, or worse at some time
  (``NoWorse(...)``).
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from polarbear._text import escape_text, format_count, format_list, format_range, format_share
from polarbear.data.run_ends import RunEnds, describe_unstated
from polarbear.inference.dominance import Bools, Floats, Resolution, eliminate, find_open_times

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


MIN_LIKELY = 0.8
"""From this probability on, a claim that is not certain is called likely."""


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
        P(it is worth running); of a dominated one, P(the rival replaces it). None without a
        posterior.
    rival
        The algorithm that replaces it, that it is equivalent to, or that is closest to replacing
        it.
    proof
        Of an undecided algorithm in a race: how far the proof is that the rival replaces it, from
        0 to 1.
    margin
        The margin of the claim; None if the claim is about single times without a margin.
    during, clock
        It is equivalent from one of these times to the other, on this clock; None for all times.
    why
        The reason for which it was removed, or runs no more although it is undecided.
    unsettled
        The pairs for which it is undecided; None if there are none.
    decisive
        The fewest instances without which it would not be dominated, or not certain to be a
        member or equivalent.
    certainty
        The certainty with which a race has to prove its claims; None if the posterior decides.

    Examples
    --------
    >>> print(Verdict("CSA", "member", 0.998, margin=0.1))
    CSA is worth running (> 99 %)
    >>> print(Verdict("RS", "dominated", 0.9999, rival="CSA", margin=0.1))
    RS is replaceable by CSA (> 99 %)
    >>> print(Verdict("TPA", "undecided", 0.04, rival="CSA", proof=0.62, margin=0.1))
    TPA is likely replaceable by CSA (96 %), proof 62 %
    """

    algorithm: str
    kind: Kind
    probability: float | None = None
    rival: str | None = None
    proof: float | None = None
    margin: float | None = None
    during: tuple[float, float] | None = None
    clock: str = "time"
    certainty: float | None = None
    why: str = ""
    unsettled: Unsettled | None = None
    decisive: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = [str(self.unsettled)] if self.unsettled and self.kind == "undecided" else []
        if self.why and self.kind in ("undecided", "removed"):
            parts.append(escape_text(self.why))
        return f"{self.claim()}: {'; '.join(parts)}" if parts else self.claim()

    @property
    def is_candidate(self) -> bool:
        """Whether the algorithm is neither dominated nor removed."""
        return self.kind not in ("dominated", "removed")

    @property
    def prob_worth(self) -> float | None:
        """P(it is worth running); of a dominated one at most, as another rival may replace it."""
        if self.kind == "dominated" and self.probability is not None:
            return 1 - self.probability
        return self.probability

    @property
    def names_rival(self) -> bool:
        """Whether an undecided algorithm is called likely replaceable, by its rival."""
        unlikely = self.probability is not None and self.probability < 1 - MIN_LIKELY
        return self.kind == "undecided" and self.margin is not None and unlikely

    @property
    def stance(self) -> str:
        """What is said of the algorithm in a word or two, without probability and rival.

        >>> Verdict("CSA", "undecided", 0.9, margin=0.1).stance, Verdict("CSA", "member").stance
        ('likely worth running', 'a member')
        """
        if self.kind == "undecided" and self.margin is not None and self.probability is not None:
            likely = "likely worth running" if self.probability > MIN_LIKELY else "open"
            return "likely replaceable" if self.names_rival else likely
        words = {"member": "a member", "equivalent": "equivalent to another"}
        if self.margin is not None and (self.kind != "equivalent" or self.during is None):
            words = {"member": "worth running", "dominated": "replaceable", "equivalent": "tied"}
        return words.get(self.kind, self.kind)

    def brief(self) -> str:
        """Return the verdict and its probability in a few words, without the algorithm's name.

        >>> Verdict("CSA", "member", 0.998).brief()
        'member (> 99 %)'
        >>> Verdict("CSA", "undecided", 0.998, margin=0.1).brief()
        'likely worth running (> 99 %)'
        """
        rival, sure = escape_text(self.rival or ""), ""
        if self.probability is not None:
            sure = f" ({format_share(self.probability)})"
        if self.kind == "dominated":
            return f"{'dominated' if self.margin is None else 'replaceable'} by {rival}{sure}"
        if self.kind == "equivalent":
            return f"tied with {rival}{sure and f'{sure[:-1]} that it is worth running)'}"
        if self.kind == "member":
            doubts = self.probability is not None and self.probability < 0.5
            sure = f"{sure[:-1]}, so the posterior doubts it)" if doubts else sure
            words = "member" if self.margin is None else "worth running"
            return f"{words}{sure}"
        if self.kind != "undecided" or self.probability is None:
            return f"{self.kind}{sure}"
        return self._describe_likely(self.probability)

    def _describe_likely(self, probability: float) -> str:
        """Return what the posterior says of an algorithm that is undecided, and what is missing."""
        if self.margin is None:
            return f"undecided ({format_share(probability)} that it is a member)"
        rival = escape_text(self.rival or "")
        if self.names_rival:
            likely = f"likely replaceable by {rival} ({format_share(1 - probability)})"
            return likely if self.proof is None else f"{likely}, proof {100 * self.proof:.0f} %"
        sure = f" ({format_share(probability)})"
        is_likely = probability > MIN_LIKELY
        return f"{'likely' if is_likely else 'open:'} worth running{sure}"

    def claim(self) -> str:
        """Return the name, verdict and probability in words, without rivals and forecast.

        >>> Verdict("CSA", "undecided", 0.6, unsettled=Unsettled({"RS": 10.0})).claim()
        'CSA is undecided (60 % that it is a member)'
        """
        name, brief = escape_text(self.algorithm), self.brief()
        if self.kind == "member" and self.margin is None:
            brief = brief.replace("member", "a member of the Pareto set", 1)
        if self.kind == "equivalent" and self.margin is not None:
            rival = escape_text(self.rival or "")
            when = "at all times"
            if self.during is not None:
                first, last = self.during
                word = "at" if first == last else "from"
                when = f"{word} {format_range(first, last, self.clock)}"
            brief = brief.replace(
                f"tied with {rival}", f"tied with {rival} within {self.margin:g} {when}", 1
            )
        return f"{name} is {brief}"


def describe_shortage(wanted: float, left: int | None) -> str:
    """Return a note if fewer instances are unused than the forecast needs, else ""."""
    if left is None or left >= wanted:
        return ""
    return (
        f"; only {format_count(left, 'unused instance')} left"
        if left
        else "; no unused instance left"
    )


class Claims(NamedTuple):
    """The claims about pairs of algorithms that a posterior makes certain."""

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
            verdict = verdict._replace(kind="equivalent", rival=names[rival], margin=epsilon)
            ties = claims.ties[:, k, rival]
            if ties.any():
                first, last = (float(times[t]) for t in _longest_stretch(ties))
                verdict = verdict._replace(during=(first, last))
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
    differing = [
        f"{escape_text(one.algorithm)} is {one.stance} if they finished by themselves, and "
        f"{other.stance} if they were cut"
        for one, other in zip(finished, cut, strict=True)
        if one.stance != other.stance
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
