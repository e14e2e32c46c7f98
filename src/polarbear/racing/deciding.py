"""From a posterior to who is out and which pairs are settled (paper, algorithm 1)."""

import numpy as np

from polarbear.data.names import natural
from polarbear.posterior import Posterior
from polarbear.racing.events import Decided, Eliminated, Open
from polarbear.racing.state import State
from polarbear.relations import Bools, Floats, dominates, resolved


def decide(state: State, posterior: Posterior | None) -> Decided:
    """What a posterior of racing algorithms decides; without one, and if it is no good, nothing."""
    if posterior is None or not posterior.diagnostics.trusted:
        problems = () if posterior is None else posterior.diagnostics.problems
        batch = state.rules.next_batch(state.batch, 0, 0)
        return Decided((), _opened(state.open), batch, problems)
    rules, alpha, names = state.rules, state.certainty, posterior.algorithms
    ahead, everywhere = posterior.better_matrix(), posterior.better_everywhere_matrix()
    alike = posterior.equivalent_matrix(rules.epsilon)
    beats = dominates(ahead, everywhere, alpha, rules.elimination)
    sure = everywhere if rules.elimination == "joint" else ahead.min(axis=0)
    out = _out(beats, sure)
    eliminated = tuple(
        Eliminated(names[k], names[by], float(sure[by, k])) for k, by in _by(beats, sure, out)
    )
    settled = resolved(ahead, alike, alpha, resolution=rules.resolution, eliminated=out)
    left = _left(state, names, settled, {found.algorithm for found in eliminated})
    # Pairs of those who have not run yet can neither be resolved nor fail to be.
    asked = sum(a in names and b in names for a, b in state.open)
    closed = len(state.open) - len(left)
    return Decided(eliminated, _opened(left), rules.next_batch(state.batch, closed, asked))


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


def _left(
    state: State, names: tuple[str, ...], settled: Bools, eliminated: set[str]
) -> dict[tuple[str, str], int]:
    """The pairs that stay open, at the times at which they do."""
    place = {name: k for k, name in enumerate(names)}
    open_at = np.packbits(~settled, axis=0, bitorder="little")
    left = {}
    for (a, b), times in state.open.items():
        if a in place and b in place:
            times &= int.from_bytes(open_at[:, place[a], place[b]].tobytes(), "little")
        if times and not {a, b} & eliminated:
            left[a, b] = times
    return left


def _opened(pairs: dict[tuple[str, str], int]) -> tuple[Open, ...]:
    ordered = sorted(pairs, key=lambda names: [natural(name) for name in names])
    return tuple(Open(*names, pairs[names]) for names in ordered)
