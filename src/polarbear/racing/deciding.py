"""Decide by e-values or a posterior: eliminations, open pairs (paper, algorithm 1), next runs."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
from scipy.special import ndtri

from polarbear.data.names import natural_sort_key
from polarbear.data.rankings import Rankings
from polarbear.inference.algorithm_status import AlgorithmStatus, Claims, derive_statuses
from polarbear.inference.dominance import Bools, Floats, dominates, equivalence_margin, is_resolved
from polarbear.inference.e_values import Evidence, count_outcomes, find_decisive_instances
from polarbear.inference.posterior import Posterior
from polarbear.racing.allocation import focus
from polarbear.racing.choosing import decide_choice
from polarbear.racing.events import Assessed, Decided, Eliminated, Open
from polarbear.racing.forecast import Leads, Required, outlook
from polarbear.racing.gating import decide_gate
from polarbear.racing.state import Pair, State, pair


def assess_candidates(
    state: State, posterior: Posterior | None, rankings: Rankings
) -> tuple[list[AlgorithmStatus], Bools]:
    """Return the status of each rated candidate, and at which times pairs are open (T, n, n)."""
    rules = state.rules
    per_look = rules.error_control == "per_look"
    if per_look:
        if posterior is None:
            raise ValueError("error control per look needs a posterior")
        claims = _claims_of_posterior(state, posterior)
    else:
        claims = _claims_of_e_values(state, posterior, rankings)
    statuses, open_at = derive_statuses(claims, rules.epsilon), claims.open_at
    if rules.closing == "permanent" and per_look and posterior is not None:
        ahead, alike, _ = _candidates(state, posterior)
        open_at = ~is_resolved(ahead, alike, rules.certainty, resolution=rules.resolution)
    return statuses, open_at


def decide(state: State, posterior: Posterior | None, rankings: Rankings | None) -> Decided:
    """Return the decision that follows from rankings and their posterior (paper, algorithm 1).

    With error control per look, a posterior that is missing or not trusted decides nothing. With
    e-values it is needed for the forecast and the plan alone.
    """
    rules = state.rules
    problems = () if posterior is None else posterior.diagnostics.problems
    trusted = posterior if posterior is not None and posterior.diagnostics.trusted else None
    if rankings is None or (trusted is None and rules.error_control == "per_look"):
        batch = rules.next_batch(state.batch, 0, 0)
        opened = _opened(state.open, {})
        return Decided(state.current, (), opened, batch, problems=problems)
    unchanged = Decided(state.current, (), _opened(state.open, {}), state.batch)
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
            one.algorithm, one.rival or "", one.prob_dominated, _decisive(state, one, rankings)
        )
        for one in statuses
        if one.status == "dominated"
    )
    left = _open_pairs(state, names, open_at, {one.algorithm for one in eliminated})
    # Pairs of algorithms that have not run yet can neither be resolved nor fail to be.
    asked = sum(a in names and b in names for a, b in state.open)
    batch = rules.next_batch(state.batch, len(state.open) - len(left), asked)
    decided = Decided(
        state.current,
        eliminated,
        _opened(left, {}),
        batch,
        problems=() if trusted else problems,
        assessed=tuple(map(Assessed.of, statuses)),
    )
    return decided if trusted is None else _ahead(state, trusted, rankings, left, decided)


def _candidates(state: State, posterior: Posterior) -> tuple[Floats, Floats, list[int]]:
    """Return P(ahead) and P(equivalent) of the candidates (T, n, n), and their numbers."""
    kept = [k for k, name in enumerate(posterior.algorithms) if name in state.racing]
    rows, columns = np.ix_(kept, kept)
    ahead = posterior.prob_better_matrix()
    alike = posterior.prob_equivalent_matrix(state.rules.epsilon)
    return ahead[:, rows, columns], alike[:, rows, columns], kept


def _claims_of_posterior(state: State, posterior: Posterior) -> Claims:
    """Return what the posterior of the candidates is certain of at this look."""
    rules = state.rules
    ahead, alike, kept = _candidates(state, posterior)
    names, pairs = tuple(posterior.algorithms[k] for k in kept), np.ix_(kept, kept)
    beats, sure = _leading(state, posterior, rules.certainty)[pairs], ahead.min(axis=0)
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
    """Return what e-values are certain of, with probabilities if there is a posterior."""
    rules = state.rules
    kept = [k for k, name in enumerate(rankings.algorithms) if name in state.racing]
    names, pairs = tuple(rankings.algorithms[k] for k in kept), np.ix_(kept, kept)
    outcomes = count_outcomes(rankings, state.heaviest).among(kept)
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


def _decisive(state: State, status: AlgorithmStatus, rankings: Rankings) -> tuple[str, ...]:
    """Return the fewest instances without which e-values would not eliminate an algorithm."""
    rules, rival = state.rules, status.rival or ""
    if rules.error_control == "per_look" or state.model.weights:
        return ()
    log_k = log_thresholds(state, [rival, status.algorithm])[0, 1]
    return find_decisive_instances(rankings, rival, status.algorithm, log_k, rules.epsilon)


def log_thresholds(state: State, names: Sequence[str]) -> Floats:
    """Return ln K of the e-values with which row eliminates column: (n, n)."""
    return np.log(np.array(state.multiplicities(names))) - np.log1p(-state.rules.certainty)


def may_eliminate(state: State, posterior: Posterior, certainty: float) -> bool:
    """Return whether the posterior would eliminate any candidate at this certainty."""
    kept = [name in state.racing for name in posterior.algorithms]
    return bool(_leading(state, posterior, certainty)[np.ix_(kept, kept)].any())


def _leading(state: State, posterior: Posterior, certainty: float) -> Bools:
    """Return (n, n) whether row dominates column at this certainty, by the posterior alone."""
    ahead = posterior.prob_better_matrix()
    leading = dominates(ahead, ahead.min(axis=0), certainty, "pointwise")
    if state.rules.elimination == "joint" and leading.any():  # joint dominance implies pointwise
        leading = posterior.prob_dominates_matrix() >= certainty
    return leading


def _open_pairs(
    state: State, names: tuple[str, ...], open_at: Bools, out: set[str]
) -> dict[Pair, int]:
    """Return the pairs that stay open, and the times at which they do as bits.

    With permanent closing a pair closes time by time, and only pairs that were open can be so.
    """
    everything = (1 << len(open_at)) - 1
    packed = np.packbits(open_at, axis=0, bitorder="little")
    bits = {
        pair(names[i], names[j]): int.from_bytes(packed[:, i, j].tobytes(), "little")
        for i, j in np.argwhere(np.triu(open_at.any(axis=0), 1)).tolist()
    }
    permanent, rated = state.rules.closing == "permanent", set(names)
    left: dict[Pair, int] = {}
    for a, b in state.open if permanent else _pairs(state.present()):
        if a in out or b in out:
            continue
        if a in rated and b in rated:
            times = bits.get((a, b), 0) & (state.open[a, b] if permanent else everything)
        else:
            times = state.open.get((a, b), everything)
        if times:
            left[a, b] = times
    return left


def _pairs(names: tuple[str, ...]) -> Iterator[Pair]:
    """All pairs of names in canonical order."""
    return combinations(names, 2)


def _ahead(
    state: State,
    posterior: Posterior,
    rankings: Rankings,
    left: dict[Pair, int],
    decided: Decided,
) -> Decided:
    """The same with what lies ahead: how much is left, and who runs next until when."""
    rules, names = state.rules, posterior.algorithms
    place = {name: k for k, name in enumerate(names)}
    known = [pair for pair in left if pair[0] in place and pair[1] in place]
    pairs = np.array([[place[a], place[b]] for a, b in known], dtype=np.intp).reshape(-1, 2)
    leads = Leads.of(posterior, rankings, pairs)
    if leads is None:
        return decided
    if rules.error_control != "per_look":
        leads = leads.by_counts()
    required = _required(state, names, leads)
    still, need = outlook(leads, len(names), required, rules.resolution)
    opened = _opened(left, dict(zip(known, need.tolist(), strict=True)))
    decided = replace(decided, open=opened, outlook=still)
    if rules.allocation == "paper" or len(known) < len(left):
        return decided
    pool = np.inf if state.endless else len(state.order) + len(state.pool)
    chosen = focus(leads, posterior.times, len(names), rules, required, pool)
    if chosen is None:
        return replace(decided, given_up=True)
    horizons = tuple(
        (name, float(until)) for name, until in zip(names, chosen.until, strict=True) if until > 0
    )
    # What is left when instances are used up is close, and seldom as soon settled as it seems.
    used_up = not state.endless and not state.pool
    return replace(decided, batch=decided.batch if used_up else chosen.batch, horizons=horizons)


def _required(state: State, names: Sequence[str], leads: Leads) -> Required:
    """Return how many standard deviations of a lead the decision of each pair takes.

    For an e-value that has to reach K these are sqrt(2 (ln K + 1)), about.
    """
    rules = state.rules
    width = equivalence_margin(rules.epsilon)
    if rules.error_control == "per_look":
        z = float(ndtri(rules.certainty))
        return Required(z, z, z, width, one_sided=False)
    log_k = log_thresholds(state, names)
    # Evidence for some time is a mean over times: one time alone has to carry all of them.
    times = 1 if rules.resolution == "strict" else len(state.times)
    over, under = log_k[leads.first, leads.second], log_k[leads.second, leads.first]
    once = float(np.sqrt(2 * (1 + np.log(times) - np.log1p(-rules.certainty))))
    return Required(np.sqrt(2 * (over + 1)), np.sqrt(2 * (under + 1)), once, width, one_sided=True)


def _opened(pairs: dict[Pair, int], need: dict[Pair, float]) -> tuple[Open, ...]:
    ordered = sorted(pairs, key=lambda names: [natural_sort_key(name) for name in names])
    return tuple(Open(*names, pairs[names], need.get(names, np.inf)) for names in ordered)
