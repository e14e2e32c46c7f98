"""From a posterior to who is out, what is settled (paper, algorithm 1), and who runs next."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from polarbear.data.names import natural
from polarbear.data.rankings import Rankings
from polarbear.posterior import Posterior
from polarbear.racing.allocation import focus
from polarbear.racing.betting import log_e_values, stakes, wins
from polarbear.racing.events import Decided, Eliminated, Open
from polarbear.racing.outlook import Leads, outlook
from polarbear.racing.state import Pair, State
from polarbear.relations import Bools, Floats, crosses, dominates, margin, resolved


def decide(state: State, posterior: Posterior | None, rankings: Rankings | None) -> Decided:
    """What a posterior of racing algorithms decides; without one, and if it is no good, nothing."""
    if posterior is None or rankings is None or not posterior.diagnostics.trusted:
        problems = () if posterior is None else posterior.diagnostics.problems
        batch = state.rules.next_batch(state.batch, 0, 0)
        opened = _opened(state.open, {})
        return Decided(state.current, (), opened, batch, problems=problems)
    rules, names = state.rules, posterior.algorithms
    seen = _look(state, posterior, rankings)
    out = _out(seen.beats, seen.sure)
    eliminated = tuple(
        Eliminated(names[k], names[by], float(seen.sure[by, k]))
        for k, by in _by(seen.beats, seen.sure, out)
    )
    left = _left(state, names, seen, out)
    # Pairs of those who have not run yet can neither be resolved nor fail to be.
    asked = sum(a in names and b in names for a, b in state.open)
    batch = rules.next_batch(state.batch, len(state.open) - len(left), asked)
    decided = Decided(state.current, eliminated, _opened(left, {}), batch)
    return _ahead(state, posterior, rankings, left, decided)


class _Look(NamedTuple):
    """What is seen at a look; rows and columns are algorithms."""

    ahead: Floats
    beats: Bools  # whether row eliminates column
    sure: Floats  # how sure one is that row dominates column
    crosses: Bools
    settled: Bools  # (T, n, n)
    short: Bools  # (T, n, n): times that keep row from eliminating column


def _look(state: State, posterior: Posterior, rankings: Rankings) -> _Look:
    rules, alpha = state.rules, state.certainty
    ahead, alike = posterior.better_matrix(), posterior.equivalent_matrix(rules.epsilon)
    out, sure = _leading(state, posterior, alpha), ahead.min(axis=0)
    if rules.elimination == "joint" and out.any():
        sure = posterior.better_everywhere_matrix()
    # If all times were as sure as this, they would be so together.
    short = 1 - ahead > (1 - alpha) / len(ahead)
    if rules.looks == "betting":
        short = _unpaid(state, posterior, rankings)
        out = out & ~short.any(axis=0)
    settled = resolved(ahead, alike, alpha, resolution=rules.resolution)
    return _Look(ahead, out, sure, crosses(ahead, alike, alpha), settled, short)


def beats(state: State, posterior: Posterior, rankings: Rankings, alpha: float) -> Bools:
    """Whether row eliminates column (n, n), if one asks for a certainty of alpha."""
    found = _leading(state, posterior, alpha)
    if state.rules.looks == "betting" and found.any():
        found = found & ~_unpaid(state, posterior, rankings).any(axis=0)
    return found


def _leading(state: State, posterior: Posterior, alpha: float) -> Bools:
    """Whether row dominates column with a certainty of alpha, whatever bets say."""
    ahead = posterior.better_matrix()
    found = dominates(ahead, ahead.min(axis=0), alpha, "pointwise")
    if state.rules.elimination == "joint" and found.any():  # else nobody is so at all times at once
        found = posterior.better_everywhere_matrix() >= alpha
    return found


def _unpaid(state: State, posterior: Posterior, rankings: Rankings) -> Bools:
    """At which times bets on row against column have not won enough yet: (T, n, n)."""
    won = wins(rankings)
    entered = [state.entered[name] for name in posterior.algorithms]
    enough = stakes(state.certainty, entered, state.initial)[:, None]
    return log_e_values(won, won.swapaxes(1, 2)) < enough


def _out(beats: Bools, sure: Floats) -> Bools:
    out: Bools = np.any(beats, axis=0)
    if out.all():
        # With little certainty asked for, each can be dominated by the next. Somebody is best.
        out[np.argmin(np.where(beats, sure, 0.0).max(axis=0))] = False
    return out


def _by(beats: Bools, sure: Floats, out: Bools) -> list[tuple[int, int]]:
    """Who is out, and by whom: the most certain of those who stay, else of all."""
    found = []
    for k in np.flatnonzero(out).tolist():
        rivals = beats[:, k] & ~out if (beats[:, k] & ~out).any() else beats[:, k]
        found.append((k, int(np.argmax(np.where(rivals, sure[:, k], -1.0)))))
    return found


def _left(state: State, names: tuple[str, ...], seen: _Look, out: Bools) -> dict[Pair, int]:
    """The pairs that stay open, at the times at which they do."""
    place = {name: k for k, name in enumerate(names)}
    least = seen.ahead.min(axis=0)
    open_at = np.packbits(~seen.settled, axis=0, bitorder="little")
    left: dict[Pair, int] = {}
    for (a, b), times in state.open.items():
        if any(out[place[name]] for name in (a, b) if name in place):
            continue
        if a not in place or b not in place:
            left[a, b] = times
            continue
        i, j = place[a], place[b]
        times &= int.from_bytes(open_at[:, i, j].tobytes(), "little")
        if not times and not seen.crosses[i, j] and max(least[i, j], least[j, i]) > 0.5:
            # One leads at every time and is not sure enough of all together: not settled yet.
            i, j = (i, j) if least[i, j] > least[j, i] else (j, i)
            times = _bits(seen.short[:, i, j]) or 1 << int(np.argmin(seen.ahead[:, i, j]))
        if times:
            left[a, b] = times
    return left


def _bits(at: Bools) -> int:
    return int.from_bytes(np.packbits(at, bitorder="little").tobytes(), "little")


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
