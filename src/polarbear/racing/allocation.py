"""Who runs next, until when, and on how many instances.

The paper lets everybody with an open pair run until the last time at which one is open, and doubles
or halves the batch. The focused rule asks how each pair will most likely be resolved, and at what
cost (instances times the time until which they have to run):

1. *One dominates the other*: both have to run until the last time at which that is not certain.
2. *They change places* (crossing resolution): it is enough that each leads or ties somewhere. Of
   all the times the cheapest will do, and late times are the dear ones.
3. *They are the same*: until the last time at which that is not certain.

A pair is left aside as long as both are expected to be eliminated by others before it would be
resolved: it will be settled for free. (If it waits for one of the two already, as much is spent,
in more rounds.) The batch ends where the first pair is expected to be resolved.

Where instances can come to an end, a way that needs more of them than are left is none: a time can
become certain only by runs that were not known then. When no way is left by what is believed of a
pair, one is that at least a tenth of the draws have.
"""

from typing import NamedTuple

import numpy as np

from polarbear.inference.dominance import Floats
from polarbear.racing.forecast import FEW, Ints, Leads, Needs, Required, outs
from polarbear.racing.rules import Rules


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
    required: Required,
    pool: float = np.inf,
) -> Focus | None:
    """What is expected to resolve open pairs at the least cost; none if nothing is expected to.

    ``pool``: how many instances there are, used or not.
    """
    room = pool - leads.seen
    needs = Needs.of(leads.draws.mean(axis=0), leads, required).within(room)
    need, until = _routes(needs, room, leads.seen, times, rules)
    lost = ~np.isfinite(need)
    if pool < np.inf and lost.any():
        some = leads.of_pairs(lost)
        few = required.of_pairs(lost)
        need[lost], until[lost] = _hoped(some, room[:, lost], times, rules, few)
    # What is certain by this reckoning, is open all the same and cannot be seen again is no way.
    over, under = (
        _possible(*_throughout(each, leads.seen), room) for each in (needs.over, needs.under)
    )
    out = outs(over, under, leads, n)
    for_free = np.minimum(out[leads.first], out[leads.second])
    by_this = (over == out[leads.second]) | (under == out[leads.first])
    kept = np.isfinite(need) & (by_this | (need <= for_free))
    if not kept.any():
        return None
    longest = np.zeros(n)
    np.maximum.at(longest, leads.first[kept], until[kept])
    np.maximum.at(longest, leads.second[kept], until[kept])
    least, most = rules.batch
    if rules.error_control != "per_look":  # a look costs no error, and small batches overshoot less
        most = rules.batch_after(leads.seen.max())
    return Focus(longest, int(np.clip(np.ceil(need[kept].min()), least, most)))


def _routes(
    needs: Needs, room: Floats, seen: Floats, times: Floats, rules: Rules
) -> tuple[Floats, Floats]:
    """Of the cheapest way to resolve each pair: instances (K,), and until which time.

    ``room``: how many more can be had at each time, which the needs are within.
    """
    ways = [_throughout(each, seen) for each in (needs.over, needs.under, needs.strict())]
    ways += [_somewhere(*claims, seen, times) for claims in needs.ways(rules.resolution)]
    need, last = (np.stack(each) for each in zip(*ways, strict=True))
    need = np.stack([_possible(*way, room) for way in zip(need, last, strict=True)])
    best = np.argmin(_cost(need, times[last]), axis=0)[None]
    return np.take_along_axis(need, best, 0)[0], times[np.take_along_axis(last, best, 0)[0]]


def _possible(need: Floats, last: Ints, room: Floats) -> Floats:
    """Certain by reckoning and open all the same: one more is needed, if it can be had."""
    left = np.take_along_axis(room, last[None], 0)[0]
    return np.where((need == 0) & (left < 1), np.inf, need)


def _hoped(
    leads: Leads, room: Floats, times: Floats, rules: Rules, required: Required
) -> tuple[Floats, Floats]:
    """What it takes in the middle one of the draws in which there is a way, if they are enough."""
    step = max(1, len(leads.draws) // FEW)
    ways = [
        _routes(Needs.of(draw, leads, required).within(room), room, leads.seen, times, rules)
        for draw in leads.draws[::step]
    ]
    need, until = (np.stack(each) for each in zip(*ways, strict=True))
    cost = _cost(need, until)
    finite = np.isfinite(cost)
    order = np.argsort(cost, axis=0, kind="stable")
    middle = np.take_along_axis(order, finite.sum(axis=0)[None] // 2, 0)
    need, until = (np.take_along_axis(each, middle, 0)[0] for each in (need, until))
    return np.where(finite.mean(axis=0) >= HOPE, need, np.inf), until


def _throughout(need: Floats, seen: Floats) -> tuple[Floats, Ints]:
    """Until something is certain at all times: instances, and which time is the last in doubt."""
    last = len(need) - 1 - np.argmax(need[::-1] > 0, axis=0)
    most = need.max(axis=0)
    # If there is none, the least certain one: it is as certain as it is large beside what was seen.
    return np.maximum(most, 0.0), np.where(most > 0, last, np.argmax(need / seen, axis=0))


def _somewhere(one: Floats, other: Floats, seen: Floats, times: Floats) -> tuple[Floats, Ints]:
    """Until one thing is certain at some time, and another one at some time."""
    # Running until a time adds to all times before it; what is certain anywhere stays so.
    soonest = [
        np.where(each.min(axis=0) > 0, np.minimum.accumulate(each, axis=0), 0.0)
        for each in (one, other)
    ]
    need = np.maximum(*soonest)
    best = np.argmin(_cost(need, times[:, None]), axis=0)
    found = np.take_along_axis(need, best[None], 0)[0]
    # If both are certain, the less certain one is seen once more, where it is nearest to it.
    short = one / seen, other / seen
    less = np.where(short[0].min(axis=0) > short[1].min(axis=0), *short)
    return found, np.where(found > 0, best, np.argmin(less, axis=0))


def _cost(need: Floats, until: Floats) -> Floats:
    """A pair that is nearly done costs something as well: it has to be looked at once more."""
    return np.where(np.isfinite(need), np.maximum(need, 1.0), np.inf) * np.maximum(until, 1e-300)
