"""From probabilities to words: one sentence for each algorithm, one row for each pair."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polarbear.data.names import listing, shown, span

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
    free: Floats  # (n,): P(in the Pareto set)
    mistaken: float  # P(some algorithm is left out that should not be)
    alpha: float


class Sentence(NamedTuple):
    """What is said of an algorithm."""

    algorithm: str
    standing: Literal["in the set", "undecided", "dominated"]
    text: str


def verdict(facts: Facts) -> str:
    """All sentences, and how sure they are taken together."""
    return "\n".join([*(said.text for said in sentences(facts)), summary(facts)])


def summary(facts: Facts) -> str:
    """When it is too close to call, how many stay, and how sure one is of whom is left out."""
    return "\n".join([*close(facts), kept(facts)])


def kept(facts: Facts) -> str:
    """How many stay, and how sure one is of whom is left out."""
    n, left_out = len(facts.algorithms), int(facts.dominates.any(axis=0).sum())
    wrong = f" At least one is left out wrongly with {_p(facts.mistaken)}." if left_out else ""
    return how_many_stay(n - left_out, n) + wrong


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
        names = listing([facts.algorithms[k] for k in who], 4)
        said.append(f"{_when(facts, start, stop - 1)} ({names})")
    return [f"Too close to call who is the best {listing(said, 4)}."] if said else []


def sentences(facts: Facts) -> list[Sentence]:
    """One for each algorithm; those that are dominated come last."""
    beaten = np.any(facts.dominates, axis=0).tolist()
    safe = facts._replace(algorithms=tuple(map(shown, facts.algorithms)))
    found: list[Sentence] = []
    for code in sorted(range(len(beaten)), key=beaten.__getitem__):
        belongs = "in the set" if facts.free[code] >= facts.alpha else "undecided"
        standing = "dominated" if beaten[code] else belongs
        found.append(Sentence(facts.algorithms[code], standing, _sentence(safe, code)))
    return found


def _sentence(facts: Facts, code: int) -> str:
    name = facts.algorithms[code]
    chance = facts.everywhere[:, code]
    # Of those who are as certain, to the digits that are said, who is the best most of the time.
    rivals = np.lexsort((-facts.best.mean(axis=0), -chance.round(3)))
    dominators = [k for k in rivals.tolist() if facts.dominates[k, code]]
    if dominators:
        names = [facts.algorithms[k] for k in dominators]
        when = _when(facts, 0, len(facts.times) - 1)
        also = f", and by {listing(names[1:])}" if names[1:] else ""
        sure = _p(float(chance[dominators[0]]))
        return f"{name} is dominated by {names[0]} {when} ({sure}){also}."
    free, leads = float(facts.free[code]), _leads(facts, code)
    if free >= facts.alpha:
        begin = f"{name} belongs to the Pareto set ({_p(free)})"
    else:
        begin = f"{name} is undecided ({_p(free)} that it belongs)"
    if leads:
        return f"{begin}: most likely the best {listing(leads)}."
    rival = int(rivals[0])
    if chance[rival] < 0.01:
        return f"{begin}: no single one is likely to be ahead of it at all times."
    closest = f"closest to dominating it is {facts.algorithms[rival]}"
    return f"{begin}: {closest} ({_p(float(chance[rival]))})."


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
        return f"at {span(times[first], times[first], facts.clock)}"
    every = "at every time " if last - first == len(times) - 1 else ""
    return f"{every}from {span(times[first], times[last], facts.clock)}"


def _p(probability: float) -> str:
    """A probability with as many digits as say something, and never a flat 0 or 1.

    >>> _p(0.98765), _p(0.99999), _p(0.0)
    ('P = 0.988', 'P > 0.999', 'P < 0.001')
    """
    if probability > 0.9995:
        return "P > 0.999"
    return "P < 0.001" if probability < 0.0005 else f"P = {probability:.3f}"


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
