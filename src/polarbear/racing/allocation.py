"""Who runs next, until when, and on how many instances.

The paper lets everybody with an open pair run until the last time at which one is open, and doubles
or halves the batch. The focused rule asks how each pair will most likely be resolved, and at what
cost (instances times the time until which they have to run):

1. *One dominates the other*: both have to run until the last time at which that is not certain.
2. *They change places* (crossing resolution): it is enough that each leads or ties somewhere. Of
   all the times the cheapest will do, and late times are the dear ones.
3. *They are the same*: until the last time at which that is not certain.

A pair is left aside as long as one of the two is expected to be eliminated by somebody else before
the pair would be resolved: it will be settled for free. The batch ends where the first pair
is expected to be resolved.

Where instances can come to an end, a way that needs more of them than are left is none: a time can
become certain only by runs that were not known then. When no way is left by what is believed of a
pair, one is that at least a tenth of the draws have.
"""

from typing import NamedTuple

import numpy as np

from polarbear.racing.outlook import FEW, Leads, Needs, outs
from polarbear.racing.rules import Rules
from polarbear.relations import Floats


class Focus(NamedTuple):
    """Until when each of n algorithms runs (0: it does not), and the number of instances."""

    until: Floats
    batch: int


HOPE = 0.1
"""A pair is given up if it can be resolved with what is left in a smaller part of the draws."""


def focus(
    leads: Leads,
    times: Floats,
    n: int,
    rules: Rules,
    z: float,
    margin: float,
    pool: float = np.inf,
) -> Focus | None:
    """What is expected to resolve open pairs at the least cost; none if nothing is expected to.

    ``pool``: how many instances there are, used or not.
    """
    needs = Needs.of(leads.draws.mean(axis=0), leads, z, margin)
    need, until = _routes(needs.within(pool - leads.seen), times, rules)
    lost = ~np.isfinite(need)
    if pool < np.inf and lost.any():
        need[lost], until[lost] = _hoped(leads.of_pairs(lost), times, rules, z, margin, pool)
    out = outs(needs, leads, n)
    for_free = np.minimum(out[leads.first], out[leads.second])
    by_this = (needs.over() == out[leads.second]) | (needs.under() == out[leads.first])
    kept = np.isfinite(need) & (by_this | (need <= for_free))
    if not kept.any():
        return None
    longest = np.zeros(n)
    np.maximum.at(longest, leads.first[kept], until[kept])
    np.maximum.at(longest, leads.second[kept], until[kept])
    least, most = rules.batch
    return Focus(longest, int(np.clip(np.ceil(need[kept].min()), least, most)))


def _routes(needs: Needs, times: Floats, rules: Rules) -> tuple[Floats, Floats]:
    """Of the cheapest way to resolve each pair: instances (K,), and until which time."""
    at_par = np.minimum(needs.behind, needs.alike), np.minimum(needs.ahead, needs.alike)
    ways = [_throughout(each, times) for each in (needs.ahead, needs.behind, needs.alike)]
    if rules.resolution == "strict":
        ways.append(_throughout(np.minimum(*at_par), times))
    else:
        leading = needs.ahead, needs.behind
        ways += [_somewhere(*pair, times) for pair in zip(leading, at_par, strict=True)]
    need, until = (np.stack(each) for each in zip(*ways, strict=True))
    best = np.argmin(_cost(need, until), axis=0)[None]
    return np.take_along_axis(need, best, 0)[0], np.take_along_axis(until, best, 0)[0]


def _hoped(
    leads: Leads, times: Floats, rules: Rules, z: float, margin: float, pool: float
) -> tuple[Floats, Floats]:
    """What it takes in the middle one of the draws in which there is a way, if they are enough."""
    step = max(1, len(leads.draws) // FEW)
    ways = [
        _routes(Needs.of(draw, leads, z, margin).within(pool - leads.seen), times, rules)
        for draw in leads.draws[::step]
    ]
    need, until = (np.stack(each) for each in zip(*ways, strict=True))
    cost = _cost(need, until)
    finite = np.isfinite(cost)
    middle = np.argsort(cost, axis=0, kind="stable")[finite.sum(axis=0) // 2, range(len(cost.T))]
    need, until = need[middle, range(len(cost.T))], until[middle, range(len(cost.T))]
    return np.where(finite.mean(axis=0) >= HOPE, need, np.inf), until


def _throughout(need: Floats, times: Floats) -> tuple[Floats, Floats]:
    """Until something is certain at all times."""
    last = len(times) - 1 - np.argmax(need[::-1] > 0, axis=0)
    return need.max(axis=0), times[last]


def _somewhere(one: Floats, other: Floats, times: Floats) -> tuple[Floats, Floats]:
    """Until one thing is certain at some time, and another one at some time."""
    # Running until a time adds to all times before it; what is certain anywhere stays so.
    soonest = [
        np.where((each == 0).any(axis=0), 0.0, np.minimum.accumulate(each, axis=0))
        for each in (one, other)
    ]
    need = np.maximum(*soonest)
    best = np.argmin(_cost(need, times[:, None]), axis=0)[None]
    return np.take_along_axis(need, best, 0)[0], times[best[0]]


def _cost(need: Floats, until: Floats) -> Floats:
    """A pair that is nearly done costs something as well: it has to be looked at once more."""
    return np.where(np.isfinite(need), np.maximum(need, 1.0), np.inf) * np.maximum(until, 1e-300)
