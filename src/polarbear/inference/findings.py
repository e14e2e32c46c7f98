"""``Findings``: what a posterior says of all algorithms, as text and as a table of a notebook."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from polarbear._text import (
    escape_text,
    format_list,
    format_range,
    format_share,
    format_time,
    name_point,
    render_card,
)
from polarbear.inference.ribbon import Ribbon
from polarbear.inference.ribbon_pictures import render_ribbon_svg
from polarbear.inference.verdicts import MIN_LIKELY, Kind, Verdict

Floats = NDArray[np.float64]


MIN_BEST_MARGIN = 0.1
"""An algorithm is called most likely the best if its P(best) exceeds all others by this."""


VERDICT_WORDS: Mapping[str, str] = {
    "member": "worth running",
    "equivalent": "tied",
    "dominated": "drop",
    "replaceable": "drop",
    "chosen": "run it",
}
"""What pages and screens say in place of a kind of verdict; other kinds are words already."""


def word_of(one: Verdict) -> str:
    """Return what tables say of an algorithm in place of its verdict.

    >>> word_of(Verdict("DE", "undecided", 0.1, rival="CMA", margin=0.1))
    'likely drop'
    """
    return VERDICT_WORDS.get(one.kind) or ("likely drop" if one.names_rival else one.stance)


@dataclass(frozen=True, repr=False, eq=False)
class Findings:
    """What a posterior says of all algorithms; ``str()`` is the text, a notebook shows a table."""

    algorithms: tuple[str, ...]
    times: Floats
    clock: str
    replaces: Floats  # (n, n): P(row replaces column), or is ahead of it at all times
    is_replaced: NDArray[np.bool_]  # (n, n): that is certain
    worth: Floats  # (n,): P(no other one replaces it), or is ahead of it at all times
    best: Floats  # (T, n): P(has the highest rating)
    verdicts: tuple[Verdict, ...]
    mistaken: float  # P(at least one algorithm is wrongly eliminated)
    certainty: float
    cautions: tuple[str, ...] = ()  # what a reader must know before the rest
    notes: tuple[str, ...] = ()  # what a reader should know of the data

    def __str__(self) -> str:
        sentences = [one.text for one in describe_algorithms(self)]
        return "\n".join([*self.cautions, *sentences, summarise(self)])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        ribbon = Ribbon.of(self.algorithms, self.times, self.clock, self.best)
        code = {name: k for k, name in enumerate(self.algorithms)}
        words = {one.algorithm: word_of(one) for one in self.verdicts}
        rows = [
            [
                one.algorithm,
                words[one.algorithm],
                ribbon.describe_when(code[one.algorithm]) or "never",
                one.text,
            ]
            for one in describe_algorithms(self)
        ]
        head = ["algorithm", "verdict", "most likely the best", "why"]
        card = render_card("\n".join(self.cautions), head, rows, summarise(self))
        return f"<div>{render_ribbon_svg(ribbon)}{card}</div>"


class Sentence(NamedTuple):
    """A sentence about one algorithm, with the kind of verdict."""

    algorithm: str
    kind: Kind
    text: str


def summarise(found: Findings) -> str:
    """Return the summary of a verdict: times without a clear best, and the Pareto set's size."""
    return "\n".join([*describe_close_times(found), describe_pareto_set(found), *found.notes])


def describe_pareto_set(found: Findings) -> str:
    """Return how many algorithms are not dominated, and P(any elimination is wrong), in words."""
    n = len(found.algorithms)
    n_dominated = sum(one.kind == "dominated" for one in found.verdicts)
    wrong = f" Probability that any exclusion is wrong: {format_share(found.mistaken)}."
    return count_members(n - n_dominated, n, found.clock) + (wrong if n_dominated else "")


def count_members(members: int, n: int, clock: str = "time") -> str:
    """Return a sentence with the number of algorithms in the anytime Pareto set.

    >>> count_members(2, 2)
    'Both algorithms stay in the anytime Pareto set.'
    >>> count_members(1, 3)
    '1 of 3 algorithms stays in the anytime Pareto set.'
    """
    all_of_them = {1: "The only algorithm", 2: "Both algorithms"}.get(n, f"All {n} algorithms")
    subject = all_of_them if members == n else f"{members} of {n} algorithms"
    kind = "any-target" if name_point(clock) == "target" else "anytime"
    return f"{subject} {'stays' if members == 1 else 'stay'} in the {kind} Pareto set."


def describe_close_times(found: Findings) -> list[str]:
    """Return a line with the times at which no algorithm is clearly best, and the contenders."""
    first = found.best.max(axis=1, keepdims=True)
    near = found.best >= first - MIN_BEST_MARGIN
    open_ = near.sum(axis=1) > 1
    parts: list[str] = []
    for start, stop in _true_ranges(open_):
        contenders = np.flatnonzero(near[start:stop].any(axis=0))
        names = format_list([found.algorithms[k] for k in contenders], 4)
        parts.append(f"{_format_times(found, start, stop - 1)} ({names})")
    return [f"Too close to call who is the best {format_list(parts, 4)}."] if parts else []


def describe_algorithms(found: Findings) -> list[Sentence]:
    """Return one sentence for each algorithm, with the dominated algorithms last."""
    ordered = sorted(found.verdicts, key=lambda one: one.kind == "dominated")
    code = {name: k for k, name in enumerate(found.algorithms)}
    return [
        Sentence(one.algorithm, one.kind, f"{_describe(found, one, code[one.algorithm])}.")
        for one in ordered
    ]


def _describe(found: Findings, verdict: Verdict, code: int) -> str:
    """Return the sentence about one algorithm, without its full stop."""
    chance, name = found.replaces[:, code], escape_text(verdict.algorithm)
    at_single_times = verdict.margin is None
    # Of rivals that are equally certain to three digits, the one most often best comes first.
    rivals = np.lexsort((-found.best.mean(axis=0), -chance.round(3)))
    word, doing = ("dominated", "dominating") if at_single_times else ("replaceable", "replacing")
    if verdict.kind == "dominated":
        dominators = [k for k in rivals.tolist() if found.is_replaced[k, code]]
        dominators.sort(key=lambda k: found.algorithms[k] != verdict.rival)
        names = [found.algorithms[k] for k in dominators]
        when = f" {_format_times(found, 0, len(found.times) - 1)}" if at_single_times else ""
        also = f", and by {format_list(names[1:])}" if names[1:] else ""
        sure = format_share(float(chance[dominators[0]]))
        return f"{name} is {word} by {escape_text(names[0])}{when} ({sure}){also}"
    prob_replaced = 1 - (verdict.probability or 0.0)
    is_unclear_by_whom = verdict.names_rival and chance[rivals[0]] < MIN_LIKELY
    if verdict.kind == "undecided" and (prob_replaced >= found.certainty or is_unclear_by_whom):
        likely = [k for k in rivals[:3].tolist() if k == rivals[0] or chance[k] >= MIN_BEST_MARGIN]
        names = [f"{found.algorithms[k]} ({format_share(float(chance[k]))})" for k in likely]
        return (
            f"{name} is undecided: it is {word} ({format_share(prob_replaced)}), but by "
            f"which algorithm is not certain: {format_list(names)}"
        )
    best_times = _describe_best_times(found, code)
    if best_times:
        return f"{verdict.claim()}: most likely the best {format_list(best_times)}"
    rival = int(rivals[0])
    if verdict.kind == "equivalent" or verdict.names_rival:
        return verdict.claim()
    if chance[rival] < 0.01:
        never = "ahead of it at all times" if at_single_times else "able to replace it"
        return f"{verdict.claim()}: no single one is likely to be {never}"
    closest = f"closest to {doing} it is {escape_text(found.algorithms[rival])}"
    # Two estimates from draws differ in the third digit; their sum must not exceed 1.
    closest_prob = min(float(chance[rival]), prob_replaced)
    return f"{verdict.claim()}: {closest} ({format_share(closest_prob)})"


def _describe_best_times(found: Findings, code: int) -> list[str]:
    """Return the ranges of times at which an algorithm is most likely the best, in words."""
    return [
        _format_times(found, start, stop - 1) for start, stop in find_best_times(found.best, code)
    ]


def find_best_times(best: Floats, code: int) -> list[tuple[int, int]]:
    """Return the ranges of times (start, stop) at which an algorithm is most likely the best.

    ``best`` (T, n) is P(has the highest rating), ``code`` the column of the algorithm.
    """
    others = np.delete(best, code, axis=1).max(axis=1, initial=0.0)
    return _true_ranges(best[:, code] > others + MIN_BEST_MARGIN)


def _true_ranges(mask: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return each range (start, stop) of indices in which a mask is true, stop excluded."""
    edges = np.flatnonzero(np.diff(mask.astype(int), prepend=0, append=0)).tolist()
    return list(zip(edges[::2], edges[1::2], strict=True))


def _format_times(found: Findings, first: int, last: int) -> str:
    """Return a range of times in words, given the indices of its first and last time."""
    times = found.times
    if first == last:
        return f"at {format_range(times[first], times[first], found.clock)}"
    when = f"from {format_range(times[first], times[last], found.clock)}"
    if last - first < len(times) - 1:
        return when
    if len(times) == 2:
        second = format_range(times[1], times[1], found.clock)
        return (
            f"at both {name_point(found.clock)}s, {format_time(times[0], found.clock)} and {second}"
        )
    return f"at all {len(times):,} {name_point(found.clock)}s {when}"
