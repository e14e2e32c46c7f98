"""Decide from a posterior: eliminations, open pairs (paper, algorithm 1) and the next runs."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import numpy as np
from scipy.special import ndtri

from polarbear.data.names import natural
from polarbear.data.rankings import Rankings
from polarbear.posterior import Posterior
from polarbear.racing.allocation import focus
from polarbear.racing.betting import log_e_values, stakes, wins
from polarbear.racing.events import Assessed, Decided, Eliminated, Open
from polarbear.racing.outlook import Leads, outlook
from polarbear.racing.state import Pair, State, pair
from polarbear.relations import Bools, dominates, margin, open_times, resolved
from polarbear.status import AlgorithmStatus, Probabilities, assess


def assess_candidates(
    state: State, posterior: Posterior, rankings: Rankings
) -> tuple[list[AlgorithmStatus], Bools]:
    """Return the status of each rated candidate, and at which times pairs are open (T, n, n)."""
    rules, alpha = state.rules, state.certainty
    probabilities, short = _probabilities(state, posterior, rankings)
    open_at = open_times(
        probabilities.ahead,
        probabilities.alike,
        probabilities.beats,
        alpha,
        rules.resolution,
        short,
    )
    statuses = assess(probabilities, alpha=alpha, epsilon=rules.epsilon, open_at=open_at)
    if rules.closing == "permanent":
        ahead, alike = probabilities.ahead, probabilities.alike
        open_at = ~resolved(ahead, alike, alpha, resolution=rules.resolution)
    return statuses, open_at


def decide(state: State, posterior: Posterior | None, rankings: Rankings | None) -> Decided:
    """Return the decision that follows from a posterior (paper, algorithm 1).

    Without a posterior, or if it is not trusted, the decision changes nothing.
    """
    if posterior is None or rankings is None or not posterior.diagnostics.trusted:
        problems = () if posterior is None else posterior.diagnostics.problems
        batch = state.rules.next_batch(state.batch, 0, 0)
        opened = _opened(state.open, {})
        return Decided(state.current, (), opened, batch, problems=problems)
    rules = state.rules
    statuses, open_at = assess_candidates(state, posterior, rankings)
    names = tuple(one.algorithm for one in statuses)
    eliminated = tuple(
        Eliminated(one.algorithm, one.rival or "", one.prob_dominated or 0.0)
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
        assessed=tuple(map(Assessed.of, statuses)),
    )
    return _ahead(state, posterior, rankings, left, decided)


def _probabilities(
    state: State, posterior: Posterior, rankings: Rankings
) -> tuple[Probabilities, Bools | None]:
    """Return what a posterior says of the candidates, and where e-values fall short (T, n, n)."""
    rules, alpha = state.rules, state.certainty
    kept = [k for k, name in enumerate(posterior.algorithms) if name in state.racing]
    names = tuple(posterior.algorithms[k] for k in kept)
    pairs = np.ix_(kept, kept)
    ahead, alike = (
        matrix[:, pairs[0], pairs[1]]
        for matrix in (posterior.better_matrix(), posterior.equivalent_matrix(rules.epsilon))
    )
    beats, sure, short = _leading(state, posterior, alpha)[pairs], ahead.min(axis=0), None
    if rules.elimination == "joint" and beats.any():
        sure = posterior.better_everywhere_matrix()[pairs]
    if rules.looks == "betting":
        short = _insufficient(state, posterior, rankings)[:, pairs[0], pairs[1]]
        beats = beats & ~short.any(axis=0)
    free = posterior.undominated(names).mean(axis=0)
    times, clock = posterior.times, posterior.clock
    return Probabilities(names, times, clock, ahead, alike, free, beats, sure), short


def may_eliminate(state: State, posterior: Posterior, rankings: Rankings, alpha: float) -> bool:
    """Whether any candidate would be eliminated, if the certainty asked for were alpha."""
    kept = [name in state.racing for name in posterior.algorithms]
    beats = _leading(state, posterior, alpha)[np.ix_(kept, kept)]
    if state.rules.looks == "betting" and beats.any():
        short: Bools = np.any(_insufficient(state, posterior, rankings), axis=0)
        beats = beats & ~short[np.ix_(kept, kept)]
    return bool(beats.any())


def _leading(state: State, posterior: Posterior, alpha: float) -> Bools:
    """Whether row dominates column with a certainty of alpha, by the posterior alone."""
    ahead = posterior.better_matrix()
    leading = dominates(ahead, ahead.min(axis=0), alpha, "pointwise")
    if state.rules.elimination == "joint" and leading.any():  # joint dominance implies pointwise
        leading = posterior.better_everywhere_matrix() >= alpha
    return leading


def _insufficient(state: State, posterior: Posterior, rankings: Rankings) -> Bools:
    """At which times the e-value of row against column is below its threshold: (T, n, n)."""
    won = wins(rankings)
    entered = [state.entered[name] for name in posterior.algorithms]
    enough = stakes(state.certainty, entered, state.initial)[:, None]
    return log_e_values(won, won.swapaxes(1, 2)) < enough


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
    alpha = state.certainty
    if rules.looks == "betting":
        alpha = 1 - float(np.exp(-stakes(alpha, [0], state.initial)[0]))
    z, width = float(ndtri(alpha)), margin(rules.epsilon)
    still, need = outlook(leads, len(names), z, width, rules.resolution)
    opened = _opened(left, dict(zip(known, need.tolist(), strict=True)))
    decided = replace(decided, open=opened, outlook=still)
    if rules.allocation == "paper" or len(known) < len(left):
        return decided
    pool = np.inf if state.endless else len(state.order) + len(state.pool)
    chosen = focus(leads, posterior.times, len(names), rules, z, width, pool)
    if chosen is None:
        return replace(decided, given_up=True)
    horizons = tuple(
        (name, float(until)) for name, until in zip(names, chosen.until, strict=True) if until > 0
    )
    # What is left when instances are used up is close, and seldom as soon settled as it seems.
    used_up = not state.endless and not state.pool
    return replace(decided, batch=decided.batch if used_up else chosen.batch, horizons=horizons)


def _opened(pairs: dict[Pair, int], need: dict[Pair, float]) -> tuple[Open, ...]:
    ordered = sorted(pairs, key=lambda names: [natural(name) for name in names])
    return tuple(Open(*names, pairs[names], need.get(names, np.inf)) for names in ordered)
