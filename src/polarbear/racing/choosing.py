"""Decide a race with a preference: which algorithm, or which portfolio, has the highest value.

The weights of a preference over times turn an instance into one score. E-values of its mean show
that the chosen algorithm is ahead of another one, or not behind it by more than epsilon. Only pairs
of a chosen algorithm and another one are compared. No algorithm is eliminated: one that cannot
change the choice does not run.
"""

from dataclasses import replace
from math import log2
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from polarbear.data.rankings import Rankings
from polarbear.inference.algorithm_status import AlgorithmStatus
from polarbear.inference.dominance import Bools, Floats, equivalence_margin
from polarbear.inference.e_values import preference_evidence
from polarbear.inference.posterior import Posterior
from polarbear.racing.events import Assessed, Decided, Forecast, Open
from polarbear.racing.forecast import LeadDraws, count_instances_needed, forecast_quantiles
from polarbear.racing.state import Pair, State, pair
from polarbear.selection.preferences import Weights


class Choice(NamedTuple):
    """The chosen algorithms, and the regret of this choice in each posterior draw."""

    chosen: Bools  # (n,)
    regret: Floats  # (D,)


def choose(ratings: NDArray[np.floating], weights: Floats, size: int) -> Choice:
    """Return the algorithms with the highest expected value, from posterior draws of ratings.

    The value of a portfolio is the sum of its members' values (the rule of :func:`select`), so the
    best portfolio of distinct algorithms has the best members.

    >>> choice = choose(np.array([[[0.5, 0.3, 0.2]], [[0.2, 0.7, 0.1]]]), np.ones(1), 1)
    >>> choice.chosen.tolist(), choice.regret.round(2).tolist()
    ([False, True, False], [0.2, 0.0])
    """
    values = np.einsum("dtn,t->dn", ratings, weights)
    order = np.argsort(-values.mean(axis=0), kind="stable")
    chosen = np.zeros(values.shape[1], dtype=bool)
    chosen[order[:size]] = True
    best = np.sort(values, axis=1)[:, -size:].sum(axis=1)
    return Choice(chosen, best - values[:, chosen].sum(axis=1))


def error_of_look(error: float, n_instances: int) -> float:
    """Return the part of an error probability that one look may use, by its number of instances.

    Each time the number of instances doubles, the parts are 1/2, 1/6, 1/12, ... of the error. They
    add up to the whole error, so that looking often hardly adds to it.

    >>> [round(error_of_look(0.06, n), 4) for n in (2, 4, 8, 1024)]
    [0.03, 0.01, 0.005, 0.0005]
    """
    doublings = max(1.0, log2(n_instances))
    return error / (doublings * (doublings + 1))


def decide_choice(
    state: State, posterior: Posterior, rankings: Rankings, log_k: Floats, unchanged: Decided
) -> Decided:
    """Return the decision of a race with a preference: the choice, and the undecided pairs.

    ``log_k``: thresholds of e-values between the algorithms of the posterior (n, n).
    ``unchanged``: the decision that changes nothing.
    """
    rules, names = state.rules, posterior.algorithms
    preference = rules.preference
    if not isinstance(preference, Weights):
        raise ValueError(
            "the preference is not resolved: call Rules.resolve_preference(times, clock) first"
        )
    weights = np.array(preference.values)
    choice = choose(posterior.ratings, weights, min(rules.portfolio, len(names)))
    evidence = preference_evidence(rankings, weights, rules.epsilon, state.heaviest)
    settled = (evidence.lead[0] >= log_k) | (evidence.par[0] >= log_k)
    open_ = choice.chosen[:, None] & ~choice.chosen & ~settled
    if rules.regret is not None:
        error = error_of_look(1 - rules.certainty, len(rankings.instances))
        if np.mean(choice.regret > rules.regret) <= error:
            open_[:] = False
    bits = state.asked_times
    pairs: dict[Pair, int] = {
        pair(names[i], names[j]): bits for i, j in np.argwhere(open_).tolist()
    }
    # Algorithms that have not run yet are compared with the chosen ones.
    for name in state.present():
        if name not in names:
            pairs |= {pair(name, names[k]): bits for k in np.flatnonzero(choice.chosen).tolist()}
    statuses = [
        AlgorithmStatus(
            name,
            "undecided"
            if open_[k].any() or open_[:, k].any()
            else ("chosen" if choice.chosen[k] else "not chosen"),
        )
        for k, name in enumerate(names)
    ]
    forecast, median_needed = _forecast_choice(state, posterior, rankings, open_, log_k, weights)
    return replace(
        unchanged,
        open=tuple(
            Open(first, second, times, median_needed.get((first, second), np.inf))
            for (first, second), times in sorted(pairs.items())
        ),
        batch=rules.batch_after(len(rankings.instances)),
        outlook=forecast,
        assessed=tuple(map(Assessed.of, statuses)),
        chosen=tuple(name for k, name in enumerate(names) if choice.chosen[k]),
    )


def _forecast_choice(
    state: State,
    posterior: Posterior,
    rankings: Rankings,
    open_: Bools,
    log_k: Floats,
    weights: Floats,
) -> tuple[Forecast | None, dict[Pair, float]]:
    """Return the forecast of the race, and the median instances that each undecided pair needs."""
    pairs_at = np.argwhere(open_)
    leads = LeadDraws.from_posterior(posterior, rankings, pairs_at)
    if leads is None:
        return None, {}
    lead = np.einsum("dtk,t->dk", leads.draws, weights)
    n_instances = leads.n_instances[weights > 0].min(axis=0)
    z = np.sqrt(2 * (log_k[pairs_at[:, 0], pairs_at[:, 1]] + 1))
    distance = lead + equivalence_margin(state.rules.epsilon)
    more = np.maximum(count_instances_needed(n_instances, lead.std(axis=0), z, distance), 0.0)
    names = posterior.algorithms
    median = {
        pair(names[i], names[j]): float(needed)
        for (i, j), needed in zip(pairs_at.tolist(), np.median(more, axis=0), strict=True)
    }
    runs = more.sum(axis=1) + more.max(axis=1) * state.rules.portfolio
    return Forecast(forecast_quantiles(more.max(axis=1)), forecast_quantiles(runs)), median
