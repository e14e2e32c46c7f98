"""Decide a round: eliminations, open pairs, forecast and the horizons of the next round."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
from scipy.special import ndtri

from polarbear.data.names import natural_sort_key
from polarbear.data.rankings import Rankings
from polarbear.inference.algorithm_status import (
    AlgorithmStatus,
    Claims,
    derive_statuses,
    pick_dominator,
)
from polarbear.inference.decisive import find_decisive_instances
from polarbear.inference.dominance import (
    Bools,
    Floats,
    dominates,
    eliminate,
    equivalence_margin,
    is_resolved,
)
from polarbear.inference.e_values import (
    Evidence,
    count_by_class,
    count_outcomes,
    multiplicity,
)
from polarbear.inference.posterior import Posterior
from polarbear.racing.allocation import choose_horizons
from polarbear.racing.choosing import decide_choice
from polarbear.racing.events import Assessed, Decided, Eliminated, Open
from polarbear.racing.forecast import LeadDraws, RequiredZ, TimeRanges, forecast_race
from polarbear.racing.gating import decide_gate
from polarbear.racing.state import Pair, State, pair


def assess_candidates(
    state: State, posterior: Posterior | None, rankings: Rankings
) -> tuple[list[AlgorithmStatus], Bools]:
    """Return the status of each candidate, and a mask of times at which pairs are undecided."""
    rules = state.rules
    per_look = rules.error_control == "per_look"
    if per_look:
        if posterior is None:
            raise ValueError(
                "error_control='per_look' needs a posterior, but fewer than 2 algorithms have "
                "rankings: add runs, or use error_control='per_member'"
            )
        claims = _claims_of_posterior(state, posterior)
    else:
        claims = _claims_of_e_values(state, posterior, rankings)
    statuses, open_at = derive_statuses(claims, rules.epsilon), claims.open_at
    if rules.closing == "permanent" and per_look and posterior is not None:
        ahead, alike, _ = _candidate_probabilities(state, posterior)
        open_at = ~is_resolved(ahead, alike, rules.certainty, resolution=rules.resolution)
    return statuses, open_at


def with_statuses(state: State, posterior: Posterior | None, rankings: Rankings | None) -> State:
    """Return the state with each candidate's status; unchanged without a trusted posterior."""
    if rankings is None or posterior is None or not posterior.diagnostics.trusted:
        return state
    statuses, _ = assess_candidates(state, posterior, rankings)
    return replace(state, assessed={each.algorithm: Assessed.of(each) for each in statuses})


def decide(state: State, posterior: Posterior | None, rankings: Rankings | None) -> Decided:
    """Return the decision of a round that follows from its rankings and their posterior.

    With error control per look, a posterior that is missing or not trusted decides nothing. With
    e-values it is needed for the forecast and the plan alone.
    """
    rules = state.rules
    problems = () if posterior is None else posterior.diagnostics.problems
    trusted = posterior if posterior is not None and posterior.diagnostics.trusted else None
    if rankings is None or (trusted is None and rules.error_control == "per_look"):
        batch = rules.next_batch(state.batch, 0, 0)
        open_ = _open_records(state.open, {})
        return Decided(state.current, (), open_, batch, problems=problems)
    unchanged = Decided(state.current, (), _open_records(state.open, {}), state.batch)
    if rules.baseline is not None:
        return decide_gate(state, rankings, unchanged)
    if rules.preference is not None:
        if trusted is None:
            return replace(unchanged, problems=problems)
        log_k = log_thresholds(state, trusted.algorithms)
        return decide_choice(state, trusted, rankings, log_k, unchanged)
    statuses, open_at = assess_candidates(state, trusted, rankings)
    names = tuple(one.algorithm for one in statuses)
    eliminated = tuple(
        Eliminated(
            one.algorithm,
            one.rival or "",
            one.prob_dominated,
            _decisive_instances(state, one, rankings),
        )
        for one in statuses
        if one.status == "dominated"
    )
    open_pairs = _open_pairs(state, names, open_at, {one.algorithm for one in eliminated})
    # A pair of which one algorithm has not run yet could not be resolved in this round.
    n_rated = sum(a in names and b in names for a, b in state.open)
    batch = rules.next_batch(state.batch, len(state.open) - len(open_pairs), n_rated)
    decided = Decided(
        state.current,
        eliminated,
        _open_records(open_pairs, {}),
        batch,
        problems=() if trusted else problems,
        assessed=tuple(map(Assessed.of, statuses)),
    )
    return (
        decided
        if trusted is None or rules.classes  # a forecast would be that of all classes together
        else _forecast_and_plan(state, trusted, rankings, open_pairs, decided)
    )


def _candidate_probabilities(
    state: State, posterior: Posterior
) -> tuple[Floats, Floats, list[int]]:
    """Return P(ahead) and P(equivalent) of pairs of candidates, and the candidates' columns."""
    candidates = [k for k, name in enumerate(posterior.algorithms) if name in state.racing]
    rows, columns = np.ix_(candidates, candidates)
    ahead = posterior.prob_better_matrix()
    alike = posterior.prob_equivalent_matrix(state.rules.epsilon)
    return ahead[:, rows, columns], alike[:, rows, columns], candidates


def _claims_of_posterior(state: State, posterior: Posterior) -> Claims:
    """Return the claims that this round's posterior makes certain, uncorrected for past rounds."""
    rules = state.rules
    ahead, alike, columns = _candidate_probabilities(state, posterior)
    names, pairs = tuple(posterior.algorithms[k] for k in columns), np.ix_(columns, columns)
    beats, sure = _find_dominance(state, posterior, rules.certainty)[pairs], ahead.min(axis=0)
    if rules.elimination == "joint" and beats.any():
        sure = posterior.prob_dominates_matrix()[pairs]
    return Claims.from_probabilities(
        names,
        posterior.times,
        posterior.clock,
        ahead=ahead,
        alike=alike,
        prob_in_pareto=posterior.undominated(names).mean(axis=0),
        beats=beats,
        sure=sure,
        certainty=rules.certainty,
        resolution=rules.resolution,
    )


def _claims_of_e_values(state: State, posterior: Posterior | None, rankings: Rankings) -> Claims:
    """Return the claims that e-values support, with probabilities if there is a posterior."""
    rules = state.rules
    columns = [k for k, name in enumerate(rankings.algorithms) if name in state.racing]
    names, pairs = tuple(rankings.algorithms[k] for k in columns), np.ix_(columns, columns)
    if rules.classes:
        return _claims_by_class(state, rankings, columns)
    outcomes = count_outcomes(rankings, state.heaviest).among(columns)
    claims = Claims.from_e_values(
        names,
        rankings.times,
        rankings.clock,
        Evidence.from_outcomes(outcomes, rules.epsilon),
        log_k=log_thresholds(state, names),
        certainty=rules.certainty,
        resolution=rules.resolution,
    )
    if posterior is None:
        return claims
    return claims._replace(
        prob_in_pareto=posterior.undominated(names).mean(axis=0),
        prob_dominates=posterior.prob_dominates_matrix()[pairs] if claims.beats.any() else None,
    )


def _claims_by_class(state: State, rankings: Rankings, columns: list[int]) -> Claims:
    """Return the claims that e-values support in classes of instances.

    An algorithm is eliminated if a rival, perhaps another one in each class, dominates it in every
    class. A member of the Pareto set of some class is eliminated only if a rival reaches the
    threshold in that class. So thresholds need no correction for the number of classes. A pair is
    settled as over times, with a time of a class in the place of a time.
    """
    rules, names = state.rules, tuple(rankings.algorithms[k] for k in columns)
    log_k, n, n_times = log_thresholds(state, names), len(names), len(rankings.times)
    evidence = [
        Evidence.from_outcomes(outcomes.among(columns), rules.epsilon)
        for outcomes in count_by_class(rankings, dict(rules.classes or ()), state.heaviest).values()
    ]
    claims = Claims.from_e_values(
        names,
        np.tile(rankings.times, len(evidence)),
        rankings.clock,
        Evidence(*map(np.concatenate, zip(*evidence, strict=True))),
        log_k=log_k,
        certainty=rules.certainty,
        resolution=rules.resolution,
    )
    in_class = [(one.dominates(log_k), one.lead.min(axis=0) - log_k) for one in evidence]
    out_in_class = [eliminate(beats, strength) for beats, strength in in_class]
    beats, strength = np.zeros((n, n), dtype=bool), np.full((n, n), -np.inf)
    for k in np.flatnonzero(np.all(out_in_class, axis=0)).tolist():
        for (own, sure), out in zip(in_class, out_in_class, strict=True):
            by = pick_dominator(own, sure, out, k)
            beats[by, k], strength[by, k] = True, max(strength[by, k], sure[by, k])
    shape = (len(evidence), n_times, n, n)
    return claims._replace(
        times=rankings.times,
        beats=beats,
        strength=strength,
        ties=claims.ties.reshape(shape).all(axis=0),
        open_at=claims.open_at.reshape(shape).any(axis=0),
    )


def _decisive_instances(
    state: State, status: AlgorithmStatus, rankings: Rankings
) -> tuple[str, ...]:
    """Return the fewest instances without which e-values would not eliminate an algorithm.

    There are none with error control per look, or if instances have weights or classes.
    """
    rules, rival = state.rules, status.rival or ""
    if rules.error_control == "per_look" or state.model.weights or rules.classes:
        return ()
    log_k = log_thresholds(state, [rival, status.algorithm])[0, 1]
    return find_decisive_instances(rankings, rival, status.algorithm, "leads", log_k, rules.epsilon)


def log_thresholds(state: State, names: Sequence[str]) -> Floats:
    """Return log e-values at which row eliminates column, for all pairs of algorithms.

    K = m / (1 - certainty), where m is the multiplicity of the test (weighted Bonferroni).
    """
    return np.log(np.array(find_multiplicities(state, names))) - np.log1p(-state.rules.certainty)


def find_multiplicities(state: State, names: Sequence[str]) -> list[list[float]]:
    """Return for all pairs the factor on the e-value that row needs to eliminate column.

    An elimination needs an e-value of at least factor / (1 - certainty). Over all rivals that
    an algorithm ever meets, the reciprocals of the factors sum to at most 1. With error
    control of the whole race they also do so over all algorithms.
    """
    initial, whole = state.initial, state.rules.error_control == "whole_race"

    def factor(rival: str, algorithm: str) -> float:
        first = state.entries[algorithm][0]
        met = state.met_at_entry[algorithm] if first else initial - {algorithm}
        # Each later entry has a number of its own, so no two rivals have the same one.
        later = 0
        if rival not in met and rival != algorithm:
            # A rival that has left before meets the algorithm only if it returns.
            numbers = [number for number in state.entries[rival] if number > first]
            later = min(numbers, default=state.latest_entry + 1) - first
        among = multiplicity(len(initial), first) if whole else 1.0
        return multiplicity(len(met), later) * among

    return [[factor(rival, algorithm) for algorithm in names] for rival in names]


def may_eliminate(state: State, posterior: Posterior, certainty: float) -> bool:
    """Return whether the posterior would eliminate any candidate at this certainty."""
    racing = [name in state.racing for name in posterior.algorithms]
    return bool(_find_dominance(state, posterior, certainty)[np.ix_(racing, racing)].any())


def _find_dominance(state: State, posterior: Posterior, certainty: float) -> Bools:
    """Return a matrix: true where row dominates column, by the posterior alone."""
    ahead = posterior.prob_better_matrix()
    is_dominant = dominates(ahead, ahead.min(axis=0), certainty, "pointwise")
    # Joint dominance implies pointwise dominance, which is cheaper to compute.
    if state.rules.elimination == "joint" and is_dominant.any():
        is_dominant = posterior.prob_dominates_matrix() >= certainty
    return is_dominant


def _open_pairs(
    state: State, names: tuple[str, ...], open_at: Bools, eliminated: set[str]
) -> dict[Pair, int]:
    """Return the undecided pairs, each with a bit set for every time at which it is undecided.

    With permanent closing a pair closes at one time after another, and never opens again. Pairs of
    algorithms without rating stay as they are.
    """
    all_times = (1 << len(open_at)) - 1
    packed = np.packbits(open_at, axis=0, bitorder="little")
    bits = {
        pair(names[i], names[j]): int.from_bytes(packed[:, i, j].tobytes(), "little")
        for i, j in np.argwhere(np.triu(open_at.any(axis=0), 1)).tolist()
    }
    permanent, rated = state.rules.closing == "permanent", set(names)
    open_pairs: dict[Pair, int] = {}
    for a, b in state.open if permanent else combinations(state.present(), 2):
        if a in eliminated or b in eliminated:
            continue
        if a in rated and b in rated:
            times = bits.get((a, b), 0) & (state.open[a, b] if permanent else all_times)
        else:
            times = state.open.get((a, b), all_times)
        if times:
            open_pairs[a, b] = times
    return open_pairs


def _forecast_and_plan(
    state: State,
    posterior: Posterior,
    rankings: Rankings,
    open_pairs: dict[Pair, int],
    decided: Decided,
) -> Decided:
    """Add to a decision a forecast, and until when each algorithm runs in the next round."""
    rules, names = state.rules, posterior.algorithms
    column = {name: k for k, name in enumerate(names)}
    rated = [pair for pair in open_pairs if pair[0] in column and pair[1] in column]
    n_unrated = len(open_pairs) - len(rated)
    # Two algorithms that have reached their own limits stay undecided: a forecast would be wrong,
    # and in a design loop most open pairs are such.
    exhausted = {name for name in names if state.has_reached_limit(name)}
    rated = [pair for pair in rated if not exhausted.issuperset(pair)]
    pairs = np.array([[column[a], column[b]] for a, b in rated], dtype=np.intp).reshape(-1, 2)
    ranges = TimeRanges.of(posterior, rankings)
    leads = LeadDraws.from_posterior(posterior, rankings, pairs, ranges.start)
    if leads is None:
        return decided
    if rules.error_control != "per_look":
        leads = leads.with_binomial_spread()
    required = _required_z(state, names, leads)
    forecast, needed = forecast_race(leads, len(names), required, rules.resolution)
    records = _open_records(open_pairs, dict(zip(rated, needed.tolist(), strict=True)))
    decided = replace(decided, open=records, outlook=forecast)
    if rules.allocation == "paper" or n_unrated:
        return decided
    total = np.inf if state.endless else len(state.order) + len(state.pool)
    chosen = choose_horizons(leads, ranges, len(names), rules, required, total)
    if chosen is None:
        return replace(decided, given_up=True)
    horizons = tuple(
        (name, float(until)) for name, until in zip(names, chosen.until, strict=True) if until > 0
    )
    # Pairs that are open when all instances are used are close, and take longer than forecast.
    used_up = not state.endless and not state.pool
    return replace(decided, batch=decided.batch if used_up else chosen.batch, horizons=horizons)


def _required_z(state: State, names: Sequence[str], leads: LeadDraws) -> RequiredZ:
    """Return the z-score of the lead that each claim about a pair requires.

    For an e-value that has to reach K these are about sqrt(2 (ln K + 1)).
    """
    rules = state.rules
    margin = equivalence_margin(rules.epsilon)
    if rules.error_control == "per_look":
        z = float(ndtri(rules.certainty))
        return RequiredZ(z, z, z, margin, one_sided=False)
    log_k = log_thresholds(state, names)
    # The e-value for "at some time" is a mean over times: one time has to reach K times T alone.
    times = 1 if rules.resolution == "strict" else len(state.times)
    first, second = log_k[leads.first, leads.second], log_k[leads.second, leads.first]
    return RequiredZ(
        np.sqrt(2 * (first + 1)),
        np.sqrt(2 * (second + 1)),
        float(np.sqrt(2 * (1 + np.log(times) - np.log1p(-rules.certainty)))),
        margin,
        one_sided=True,
    )


def _open_records(pairs: dict[Pair, int], needed: dict[Pair, float]) -> tuple[Open, ...]:
    """Return a record of each undecided pair, with the number of instances it needs."""
    ordered = sorted(pairs, key=lambda names: [natural_sort_key(name) for name in names])
    return tuple(Open(*names, pairs[names], needed.get(names, np.inf)) for names in ordered)
