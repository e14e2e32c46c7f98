"""What questions about the Pareto set share: undecided pairs, and the forecast of the race."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from polarbear.racing.allocation import choose_horizons
from polarbear.racing.decisions import Decision, Open, Pair, pair
from polarbear.racing.forecast import LeadDraws, TimeRanges, forecast_race

if TYPE_CHECKING:
    from polarbear.data.rankings import Rankings
    from polarbear.inference.dominance import Bools, Resolution
    from polarbear.inference.posterior import Posterior
    from polarbear.racing.forecast import RequiredZ
    from polarbear.racing.questions.question import View


def find_open_pairs(
    view: View,
    names: tuple[str, ...],
    open_at: Bools,
    eliminated: Collection[str],
    before: Mapping[Pair, int],
) -> dict[Pair, int]:
    """Return the undecided pairs, each with a bit set for every time at which it is undecided.

    Pairs of algorithms without rating stay as they are. Of others, the times in ``before`` may be
    undecided: all, or those at which the pair has never been settled.
    """
    packed = np.packbits(open_at, axis=0, bitorder="little")
    bits = {
        pair(names[i], names[j]): int.from_bytes(packed[:, i, j].tobytes(), "little")
        for i, j in np.argwhere(np.triu(open_at.any(axis=0), 1)).tolist()
    }
    rated = set(names)
    open_pairs: dict[Pair, int] = {}
    for (a, b), possible in before.items():
        if a in eliminated or b in eliminated:
            continue
        if a in rated and b in rated:
            times = bits.get((a, b), 0) & possible
        else:
            times = view.open.get((a, b), possible)
        if times:
            open_pairs[a, b] = times
    return open_pairs


def add_outlook(
    decision: Decision,
    view: View,
    posterior: Posterior,
    rankings: Rankings,
    *,
    required: Callable[[LeadDraws], RequiredZ],
    resolution: Resolution,
    focuses: bool = True,
    by_e_values: bool = True,
) -> Decision:
    """Add to a decision a forecast and, if it focuses, until when each algorithm runs next.

    ``required``: the z-scores that claims about pairs need, given the leads of these pairs.
    ``by_e_values``: whether e-values decide, or the posterior.
    """
    names = posterior.algorithms
    column = {name: k for k, name in enumerate(names)}
    open_pairs = {(one.first, one.second): one.times for one in decision.open}
    rated = [pair for pair in open_pairs if pair[0] in column and pair[1] in column]
    n_unrated = len(open_pairs) - len(rated)
    # Two algorithms that have reached their own limits stay undecided: a forecast would be wrong,
    # and in a design loop most open pairs are such.
    rated = [pair for pair in rated if not view.exhausted.issuperset(pair)]
    pairs = np.array([[column[a], column[b]] for a, b in rated], dtype=np.intp).reshape(-1, 2)
    ranges = TimeRanges.of(posterior, rankings)
    leads = LeadDraws.from_posterior(posterior, rankings, pairs, ranges.start)
    if leads is None:
        return decision
    if by_e_values:  # which do not use smoothness over time
        leads = leads.with_binomial_spread()
    z = required(leads)
    forecast, needed = forecast_race(leads, len(names), z, resolution)
    records = Open.list_all(open_pairs, dict(zip(rated, needed.tolist(), strict=True)))
    decision = replace(decision, open=records, forecast=forecast)
    if not focuses or n_unrated:
        return decision
    total = view.n_used + view.n_unused
    chosen = choose_horizons(leads, ranges, len(names), view.budget, z, resolution, total)
    if chosen is None:
        return replace(decision, given_up=True)
    horizons = tuple(
        (name, float(until)) for name, until in zip(names, chosen.until, strict=True) if until > 0
    )
    # Pairs that are open when all instances are used are close, and take longer than forecast.
    batch = chosen.batch if view.n_unused else decision.batch
    return replace(decision, batch=batch, horizons=horizons)
