"""Choose which algorithms run next, until which horizon, and on how many instances.

The paper lets every algorithm with an open pair run until the last time at which one is open, and
doubles or halves the batch. The focused rule forecasts the cheapest route to settle each pair. The
cost of a route is its number of instances times its horizon. There are three kinds of routes:

1. *One algorithm dominates the other*. Both run until the last time at which that is not certain.
2. *The curves cross* (crossing resolution). Each has to be ahead or at par at some time, so the
   cheapest such times are enough; late times cost more.
3. *The relation is known at all times*: one is ahead, or both are equivalent. Both run until the
   last time at which that is not certain.

A pair is postponed while both algorithms are expected to be eliminated by others before it would be
settled: it then costs nothing. (If one of the two is eliminated by the pair itself, postponing
spends as much, in more rounds.) The batch ends where the first pair is expected to be settled.

With a finite set of instances, a route is infeasible if it needs more instances than are unused. If
the posterior mean of a pair has no feasible route, the route is the median over the posterior draws
that have one. At least a tenth of the draws must have one.
"""

from typing import NamedTuple

import numpy as np

from polarbear.inference.dominance import Floats, Resolution
from polarbear.racing.budget import Budget
from polarbear.racing.forecast import (
    MIN_FORECAST_DRAWS,
    InstancesNeeded,
    Ints,
    LeadDraws,
    RequiredZ,
    TimeRanges,
    instances_until_eliminated,
)


class Horizons(NamedTuple):
    """How long each algorithm is run (0: not at all), and on how many instances."""

    until: Floats
    batch: int


MIN_SETTLE_PROBABILITY = 0.1
"""A pair is given up if the unused instances settle it in a smaller share of posterior draws."""


def choose_horizons(
    leads: LeadDraws,
    times: TimeRanges,
    n: int,
    budget: Budget,
    required: RequiredZ,
    resolution: Resolution,
    total: float = np.inf,
) -> Horizons | None:
    """Return how long to run each algorithm to decide pairs cheaply; None if no pair is decidable.

    ``leads``: of the ranges ``times``. ``n``: the number of algorithms. ``total``: the number of
    instances, used or not.
    """
    available = total - leads.n_instances
    mean_lead = leads.draws.mean(axis=0)
    needed = InstancesNeeded.from_leads(mean_lead, leads, required).limit_to(available)
    instances, until = find_cheapest_routes(needed, available, leads.n_instances, times, resolution)
    infeasible = ~np.isfinite(instances)
    if total < np.inf and infeasible.any():
        instances[infeasible], until[infeasible] = _find_median_routes(
            leads.select_pairs(infeasible),
            available[:, infeasible],
            times,
            resolution,
            required.select_pairs(infeasible),
        )
    first_dominates, second_dominates = (
        _exclude_infeasible(*_at_all_times(each, leads.n_instances, times)[:2], available)
        for each in (needed.first_dominates, needed.second_dominates)
    )
    eliminated = instances_until_eliminated(first_dominates, second_dominates, leads, n)
    either_eliminated = np.minimum(eliminated[leads.first], eliminated[leads.second])
    is_soonest = (first_dominates == eliminated[leads.second]) | (
        second_dominates == eliminated[leads.first]
    )
    selected = np.isfinite(instances) & (is_soonest | (instances <= either_eliminated))
    if not selected.any():
        return None
    longest = np.zeros(n)
    np.maximum.at(longest, leads.first[selected], until[selected])
    np.maximum.at(longest, leads.second[selected], until[selected])
    # A look costs no error, and small batches overshoot less.
    least, most = budget.batch[0], budget.batch_after(leads.n_instances.max())
    return Horizons(longest, int(np.clip(np.ceil(instances[selected].min()), least, most)))


def find_cheapest_routes(
    needed: InstancesNeeded,
    available: Floats,
    n_instances: Floats,
    times: TimeRanges,
    resolution: Resolution,
) -> tuple[Floats, Floats]:
    """Return for each pair the instances and run length that decide the pair at least cost.

    ``available``: the number of further instances at each time (T, K), which ``needed`` respects.
    """
    everywhere = (
        needed.first_dominates,
        needed.second_dominates,
        needed.until_relation_known(),
    )
    routes = [_at_all_times(each, n_instances, times) for each in everywhere]
    routes += [
        _at_some_times(*claims, n_instances, times) for claims in needed.settling_claims(resolution)
    ]
    instances = np.stack([_exclude_infeasible(*route[:2], available) for route in routes])
    until = np.stack([route.until for route in routes])
    best = np.argmin(_cost(instances, until), axis=0)[None]
    return np.take_along_axis(instances, best, 0)[0], np.take_along_axis(until, best, 0)[0]


def _exclude_infeasible(instances: Floats, last: Ints, available: Floats) -> Floats:
    """Change 0 needed instances to infinity where no instance is left for another test.

    The normal approximation calls such a pair settled and the draws disagree. It takes one more
    instance, which there is not.
    """
    unused = np.take_along_axis(available, last[None], 0)[0]
    return np.where((instances == 0) & (unused < 1), np.inf, instances)


def _find_median_routes(
    leads: LeadDraws,
    available: Floats,
    times: TimeRanges,
    resolution: Resolution,
    required: RequiredZ,
) -> tuple[Floats, Floats]:
    """Return for each pair the instances and run length of median cost over posterior draws.

    Its instances (K,) are infinite if too few draws can settle the pair.
    """
    draws = leads.draws[:: max(1, len(leads.draws) // MIN_FORECAST_DRAWS)]
    size, n_times, n_pairs = draws.shape
    # The pairs of all draws are treated as further pairs.
    pairs = np.tile(np.arange(n_pairs), size)
    repeated = leads._replace(draws=leads.draws[:0]).select_pairs(pairs)
    lead, available = draws.swapaxes(0, 1).reshape(n_times, -1), available[:, pairs]
    needed = InstancesNeeded.from_leads(lead, repeated, required.select_pairs(pairs))
    routes = find_cheapest_routes(
        needed.limit_to(available), available, repeated.n_instances, times, resolution
    )
    instances, until = (each.reshape(size, n_pairs) for each in routes)
    cost = _cost(instances, until)
    feasible = np.isfinite(cost)
    order = np.argsort(cost, axis=0, kind="stable")
    middle = np.take_along_axis(order, feasible.sum(axis=0)[None] // 2, 0)
    instances, until = (np.take_along_axis(each, middle, 0)[0] for each in (instances, until))
    is_probable = feasible.mean(axis=0) >= MIN_SETTLE_PROBABILITY
    return np.where(is_probable, instances, np.inf), until


class _Route(NamedTuple):
    """The instances and the run length that settle each pair (K,)."""

    instances: Floats
    at: Ints  # index of the range of times that needs them
    until: Floats  # the run length


def _at_all_times(needed: Floats, n_instances: Floats, times: TimeRanges) -> _Route:
    """Return the number of instances and the run length that settle each pair at all times.

    ``needed``: for each time (T, K).
    """
    last = len(needed) - 1 - np.argmax(needed[::-1] > 0, axis=0)
    most = needed.max(axis=0)
    # If all times are certain, take the least certain one: needed / n_instances is largest there.
    least_certain = np.argmax(needed / n_instances, axis=0)
    is_open = most > 0
    until = np.where(is_open, times.last[last], times.first[least_certain])
    return _Route(np.maximum(most, 0.0), np.where(is_open, last, least_certain), until)


def _at_some_times(one: Floats, other: Floats, n_instances: Floats, times: TimeRanges) -> _Route:
    """Return per pair the instances and run length until both claims are certain at some time."""
    # A run until a time adds to all times before it. A claim that is certain at any time stays so.
    fewest = [
        np.where(each.min(axis=0) > 0, np.minimum.accumulate(each, axis=0), 0.0)
        for each in (one, other)
    ]
    needed = np.maximum(*fewest)
    best = np.argmin(_cost(needed, times.first[:, None]), axis=0)
    instances = np.take_along_axis(needed, best[None], 0)[0]
    # If both claims are certain, test the less certain one once more, at its most certain time.
    relative = one / n_instances, other / n_instances
    less_certain = np.where(relative[0].min(axis=0) > relative[1].min(axis=0), *relative)
    at = np.where(instances > 0, best, np.argmin(less_certain, axis=0))
    return _Route(instances, at, times.first[at])


def _cost(instances: Floats, until: Floats) -> Floats:
    """Return the cost of runs: the number of instances, at least one, times the run length."""
    at_least_one = np.where(np.isfinite(instances), np.maximum(instances, 1.0), np.inf)
    return at_least_one * np.maximum(until, 1e-300)
