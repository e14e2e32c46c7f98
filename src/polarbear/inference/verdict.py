"""From probabilities to words: one sentence for each algorithm, one row for each pair."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polarbear._text import escape_text, format_list, format_range, format_time
from polarbear.inference.algorithm_status import AlgorithmStatus, Kind, chance

Floats = NDArray[np.float64]


CLEARLY = 0.1
"""By so much P(best) must exceed that of all others to be called the most likely."""


class Crossing(NamedTuple):
    """Two algorithms change places: ``first`` leads up to ``until``, ``then`` from ``since`` on."""

    first: str
    then: str
    until: float
    since: float
    probability: float  # that both is true


class Facts(NamedTuple):
    """What a verdict is made from."""

    algorithms: tuple[str, ...]
    times: Floats
    clock: str
    everywhere: Floats  # (n, n): P(row ahead of column at all times)
    dominates: NDArray[np.bool_]  # (n, n)
    best: Floats  # (T, n): P(has the highest rating)
    statuses: tuple[AlgorithmStatus, ...]
    mistaken: float  # P(some algorithm is left out that should not be)


class Sentence(NamedTuple):
    """What is said of an algorithm."""

    algorithm: str
    status: Kind
    text: str


def verdict(facts: Facts) -> str:
    """All sentences, and how sure they are taken together."""
    return "\n".join([*(said.text for said in sentences(facts)), summary(facts)])


def summary(facts: Facts) -> str:
    """When it is too close to call, how many stay, and how sure one is of whom is left out."""
    return "\n".join([*close(facts), kept(facts)])


def kept(facts: Facts) -> str:
    """How many algorithms stay, and how sure the eliminations are."""
    n = len(facts.algorithms)
    left_out = sum(one.status == "dominated" for one in facts.statuses)
    wrong = f" Probability that any exclusion is wrong: {_below(facts.mistaken)}."
    return how_many_stay(n - left_out, n) + (wrong if left_out else "")


def _below(probability: float) -> str:
    """Format a probability that stands behind a colon.

    >>> _below(0.0), _below(0.0123)
    ('< 0.001', '0.012')
    """
    return chance(probability).removeprefix("P = ").removeprefix("P ")


def how_many_stay(stay: int, n: int) -> str:
    """How many of all are in the set.

    >>> how_many_stay(2, 2)
    'Both algorithms stay in the anytime Pareto set.'
    >>> how_many_stay(1, 3)
    '1 of 3 algorithms stays in the anytime Pareto set.'
    """
    everybody = {1: "The only algorithm", 2: "Both algorithms"}.get(n, f"All {n} algorithms")
    who = everybody if stay == n else f"{stay} of {n} algorithms"
    return f"{who} {'stays' if stay == 1 else 'stay'} in the anytime Pareto set."


def close(facts: Facts) -> list[str]:
    """When nobody is clearly the most likely to be the best, and between whom it is, in a line."""
    first = facts.best.max(axis=1, keepdims=True)
    near = facts.best >= first - CLEARLY
    open_ = near.sum(axis=1) > 1
    said: list[str] = []
    for start, stop in _stretches(open_):
        who = np.flatnonzero(near[start:stop].any(axis=0))
        names = format_list([facts.algorithms[k] for k in who], 4)
        said.append(f"{_when(facts, start, stop - 1)} ({names})")
    return [f"Too close to call who is the best {format_list(said, 4)}."] if said else []


def sentences(facts: Facts) -> list[Sentence]:
    """One for each algorithm; those that are dominated come last."""
    last = sorted(facts.statuses, key=lambda one: one.status == "dominated")
    place = {name: k for k, name in enumerate(facts.algorithms)}
    return [
        Sentence(one.algorithm, one.status, f"{_sentence(facts, one, place[one.algorithm])}.")
        for one in last
    ]


def _sentence(facts: Facts, status: AlgorithmStatus, code: int) -> str:
    chances = facts.everywhere[:, code]
    # Of rivals that are equally certain, to the digits that are said, the one most often best.
    rivals = np.lexsort((-facts.best.mean(axis=0), -chances.round(3)))
    if status.status == "dominated":
        dominators = [k for k in rivals.tolist() if facts.dominates[k, code]]
        names = [facts.algorithms[k] for k in dominators]
        when = _when(facts, 0, len(facts.times) - 1)
        also = f", and by {format_list(names[1:])}" if names[1:] else ""
        sure = chance(float(chances[dominators[0]]))
        by = f"dominated by {escape_text(names[0])} {when} ({sure})"
        return f"{escape_text(status.algorithm)} is {by}{also}"
    leads = _leads(facts, code)
    if leads:
        return f"{status.claim()}: most likely the best {format_list(leads)}"
    rival = int(rivals[0])
    if status.status == "equivalent":
        return status.claim()
    if chances[rival] < 0.01:
        return f"{status.claim()}: no single one is likely to be ahead of it at all times"
    closest = f"closest to dominating it is {escape_text(facts.algorithms[rival])}"
    # Two ways to count draws differ in the third digit; together they are at most 1.
    dominated = min(float(chances[rival]), 1 - (status.prob_in_pareto or 0.0))
    return f"{status.claim()}: {closest} ({chance(dominated)})"


def _leads(facts: Facts, code: int) -> list[str]:
    """When an algorithm is the most likely to be the best, in words."""
    # A lead that is no more than noise is none.
    others = np.delete(facts.best, code, axis=1).max(axis=1, initial=0.0)
    leader = facts.best[:, code] > others + CLEARLY
    return [_when(facts, start, stop - 1) for start, stop in _stretches(leader)]


def _stretches(mask: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Where a mask over times is true: from, and until before."""
    edges = np.flatnonzero(np.diff(mask.astype(int), prepend=0, append=0)).tolist()
    return list(zip(edges[::2], edges[1::2], strict=True))


def _when(facts: Facts, first: int, last: int) -> str:
    times = facts.times
    if first == last:
        return f"at {format_range(times[first], times[first], facts.clock)}"
    when = f"from {format_range(times[first], times[last], facts.clock)}"
    if last - first < len(times) - 1:
        return when
    if len(times) == 2:
        second = format_range(times[1], times[1], facts.clock)
        return f"at both times, {format_time(times[0], facts.clock)} and {second}"
    return f"at all {len(times):,} times {when}"


def pair_table(
    algorithms: Sequence[str],
    ahead: Floats,
    alike: Floats,
    everywhere: Floats,
    alpha: float,
    draws: int,
) -> dict[str, list[Any]]:
    """All pairs in long form, with the relation that is certain, if any."""
    row, column = np.triu_indices(len(algorithms), 1)
    dominates, leads = everywhere >= alpha, np.any(ahead >= alpha, axis=0)
    crossing = leads & leads.T
    equal = np.all(alike >= alpha, axis=0)
    relation = np.full(len(row), "undecided", dtype=object)
    relation[crossing[row, column]] = "crosses"
    relation[equal[row, column]] = "equals"
    relation[dominates[row, column]] = "dominates"
    relation[dominates[column, row]] = "is dominated by"
    forth, back = everywhere[row, column], everywhere[column, row]
    return {
        "first": [algorithms[k] for k in row.tolist()],
        "second": [algorithms[k] for k in column.tolist()],
        "relation": relation.tolist(),
        "everywhere": forth.tolist(),
        "everywhere_reversed": back.tolist(),
        "least": ahead[:, row, column].min(axis=0).tolist(),
        "most": ahead[:, row, column].max(axis=0).tolist(),
        "equal": alike[:, row, column].min(axis=0).tolist(),
        "error": np.sqrt(forth * (1 - forth) / draws).tolist(),
    }
