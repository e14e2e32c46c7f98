"""What is shown of pairs, against a literal twin: class by class, stretch by stretch, in loops."""

from itertools import product
from math import exp, inf, log, sqrt
from types import SimpleNamespace

import numpy as np
import pytest

from polarbear.inference.e_values import Shares
from polarbear.inference.replacing import LIKELY_Z, PairEvidence
from polarbear.racing.questions.replacements import Shown, drop_replaceable

CERTAINTY, N_STRETCHES, N = 0.95, 2, 3


def random_class(rng):
    """Evidence of which some is enough by its e-value, some by its p-value, and some by neither."""
    on_stretches, pairs = (N_STRETCHES, N, N), (N, N)
    whole = rng.integers(4, 7, pairs)
    return PairEvidence(
        no_worse=rng.choice([-1.0, 2.0, 4.5, 7.0], on_stretches, p=[0.1, 0.1, 0.3, 0.5]),
        better=rng.choice([-1.0, 2.0, 4.5, 7.0], pairs),
        t_no_worse=rng.normal(1, 2, on_stretches),
        t_better=rng.normal(1, 2, pairs),
        p_no_worse=rng.choice([1e-4, 0.01, 0.5], on_stretches),
        p_better=rng.choice([1e-4, 0.01, 0.5], pairs),
        lead=rng.normal(2, 2, on_stretches),
        worse=rng.choice([-1.0, 5.5, 9.0], on_stretches, p=[0.8, 0.1, 0.1]),
        p_worse=rng.choice([1e-4, 0.5], on_stretches, p=[0.1, 0.9]),
        instances=whole + rng.integers(0, 2, on_stretches),
        on_all_times=whole,
    )


class Twin:
    """The definitions of :class:`Shown`, of one pair at a time."""

    def __init__(self, classes, log_k, shares, n_used):
        self.classes, self.log_k, self.shares, self.n_used = classes, log_k, shares, n_used
        self.tie = log(1 / (1 - CERTAINTY))

    def needed(self, a, b):
        return self.log_k[a, b] - log(self.shares.on_the_way)

    def is_tested(self, p, n, a, b):
        level = self.shares.now * exp(-self.log_k[a, b])
        return self.shares.now > 0 and p <= level and n >= self.n_used

    def no_worse(self, c, s, a, b):
        one = self.classes[c]
        return one.no_worse[s, a, b] >= self.needed(a, b) or self.is_tested(
            one.p_no_worse[s, a, b], one.instances[s, a, b], a, b
        )

    def better(self, c, a, b):
        one = self.classes[c]
        return one.better[a, b] >= self.needed(a, b) or self.is_tested(
            one.p_better[a, b], one.on_all_times[a, b], a, b
        )

    def worse(self, c, a, b):
        one = self.classes[c]
        mean = np.mean([exp(one.worse[s, a, b]) for s in range(N_STRETCHES)])
        whole = all(
            other.instances[s, a, b] >= self.n_used for other in [one] for s in range(N_STRETCHES)
        )
        level = self.shares.now * exp(-self.log_k[a, b]) if whole else 0.0
        least = min(one.p_worse[s, a, b] for s in range(N_STRETCHES)) * N_STRETCHES
        return mean >= exp(self.needed(a, b)) or (self.shares.now > 0 and least <= level)

    def stands_in(self, c, a, b):
        return all(self.no_worse(c, s, a, b) for s in range(N_STRETCHES))

    def replaces(self, c, a, b):
        return self.stands_in(c, a, b) and self.better(c, a, b)

    def tied(self, c, a, b):
        both = product(range(N_STRETCHES), [(a, b), (b, a)])
        return a != b and all(self.classes[c].no_worse[s, *way] >= self.tie for s, way in both)

    def is_ahead(self, c, a, b):
        return any(self.classes[c].lead[s, a, b] >= LIKELY_Z for s in range(N_STRETCHES))

    def settled(self, a, b):
        return all(
            self.tied(c, a, b)
            or self.replaces(c, a, b)
            or self.replaces(c, b, a)
            or (self.is_ahead(c, a, b) and self.is_ahead(c, b, a))
            for c in range(len(self.classes))
        )

    def proof(self, a, b):
        e_values = [one.no_worse[s, a, b] for one in self.classes for s in range(N_STRETCHES)]
        share = max(0.0, min(e_values + [c.better[a, b] for c in self.classes]) / self.needed(a, b))
        done = all(self.replaces(c, a, b) for c in range(len(self.classes)))
        return max(share, 1.0) if done else min(share, 0.99)

    def routes(self, a, b, shift):
        """Instances until a replaces b in the last class, and until the pair is settled there."""

        def more(t, n, z):
            return max(0.0, n * (z / (t + shift)) ** 2 - n) if t + shift > 0 else inf

        def more_bets(log_e, t, n, log_k):
            by_mean = more(t, n, sqrt(2 * (log_k + 1)))
            if t <= 0 or t + shift <= 0:
                return by_mean
            growth = (max(log_e, 0.0) + 1) / n * ((t + shift) / t) ** 2
            return max(by_mean, max(log_k - log_e, 0.0) / growth if growth else inf)

        def replace(c, a, b):
            one, k = self.classes[c], self.needed(a, b)
            waits = [
                0.0 if self.no_worse(c, s, a, b)
                else more_bets(
                    one.no_worse[s, a, b], one.t_no_worse[s, a, b], one.instances[s, a, b], k
                )
                for s in range(N_STRETCHES)
            ]  # fmt: skip
            if not self.better(c, a, b):
                waits.append(
                    more_bets(one.better[a, b], one.t_better[a, b], one.on_all_times[a, b], k)
                )
            return inf if a == b else max(waits)

        def tie(c, a, b):
            one, stretches = self.classes[c], range(N_STRETCHES)
            bets = one.no_worse[:, a, b], one.t_no_worse[:, a, b], one.instances[:, a, b]
            return max(more_bets(*(x[s] for x in bets), self.tie) for s in stretches)

        def lead(c, a, b):
            one, stretches = self.classes[c], range(N_STRETCHES)
            sizes = [(one.lead[s, a, b], one.instances[s, a, b]) for s in stretches]
            return min(more(*size, LIKELY_Z) for size in sizes)

        def settle(c):
            both = (c, a, b), (c, b, a)
            waits = [max(map_of(*one) for one in both) for map_of in (tie, lead)]
            return min(*waits, *(replace(*one) for one in both))

        every = range(len(self.classes))
        return max(replace(c, a, b) for c in every), max(settle(c) for c in every)


@pytest.mark.parametrize("now", [0.0, 0.6])
def test_what_is_shown_is_that_of_a_literal_twin(now):
    seen = dict.fromkeys(["replaces", "tied", "settled", "worse"], 0)
    for seed in range(16):
        rng = np.random.default_rng(seed)
        classes = [random_class(rng) for _ in range(1 + seed % 2)]
        log_k = rng.uniform(3.0, 4.4, (N, N))
        shares, n_used = Shares(0.4, now), 5
        shown = Shown.of(classes, log_k, CERTAINTY, shares, n_used)
        twin = Twin(classes, log_k, shares, n_used)
        routes = shown.find_routes(0.3)
        for a, b in np.ndindex(N, N):
            for c in range(len(classes)):
                for s in range(N_STRETCHES):
                    assert shown.no_worse[c, s, a, b] == twin.no_worse(c, s, a, b)
                for name in ("better", "worse", "stands_in", "replaces", "tied"):
                    assert getattr(shown, name)[c, a, b] == getattr(twin, name)(c, a, b), name
                    seen[name] = seen.get(name, 0) + getattr(shown, name)[c, a, b]
            assert shown.settled[a, b] == twin.settled(a, b)
            seen["settled"] += shown.settled[a, b]
            assert shown.proof[a, b] == pytest.approx(twin.proof(a, b))
            found = routes.replaced[a, b], routes.settled[a, b]
            assert found == pytest.approx(twin.routes(a, b, 0.3))
    assert min(seen.values()) > 10  # each happens


def drop_in_loops(replaces, stands_in, proof, racing, replaced_by):
    """The rule of :func:`drop_replaceable`, one algorithm and one class after the other."""
    n_classes, n, _ = replaces.shape
    classes, stays = range(n_classes), {k for k in range(n) if racing[k]}

    def rivals(k, c):
        return {one for one in stays if replaces[c, one, k]}

    while True:
        droppable = {k for k in stays if all(rivals(k, c) for c in classes)}
        if not droppable:
            break
        droppers = set().union(*(rivals(k, c) for k in droppable for c in classes))
        last = droppable - droppers or droppable
        surest = {k: max(proof[one, k] for c in classes for one in rivals(k, c)) for k in last}
        stays.remove(max(surest, key=surest.get))
    gone = {k for k in range(n) if racing[k]} - stays | replaced_by.keys()
    sure = {k: max((proof[one, k] for one in stays), default=0.0) for k in gone}
    heirs = {}
    for k in sorted(gone, key=lambda k: (-sure[k], k)):
        able = {one for one in stays for c in classes if stands_in[c, one, k]}
        if replaced_by.get(k) in stays:
            heirs[k] = replaced_by[k]
        elif all(any(stands_in[c, one, k] for one in stays) for c in classes):
            heirs[k] = max(able, key=lambda one: proof[one, k] + replaces[:, one, k].any())
        else:
            stays.add(k)
    return heirs


def test_who_is_dropped_is_found_by_loops_as_well():
    rng, n_heirs, n_returns = np.random.default_rng(0), 0, 0
    for _ in range(300):
        n_classes, n = rng.integers(1, 3), 5
        stands_in = rng.random((n_classes, n, n)) < rng.choice([0.3, 0.5, 0.8])
        stands_in[:, np.eye(n, dtype=bool)] = False
        replaces = stands_in & (rng.random((n_classes, n, n)) < 0.7)
        proof = rng.permutation(n * n).reshape(n, n) / (n * n)
        racing = rng.random(n) < 0.7
        replaced_by = {k: int(rng.integers(-1, n)) for k in np.flatnonzero(~racing).tolist()}
        shown = SimpleNamespace(replaces=replaces, stands_in=stands_in, proof=proof)
        heirs = drop_replaceable(shown, racing, replaced_by)
        assert heirs == drop_in_loops(replaces, stands_in, proof, racing, replaced_by)
        # Who takes over is not dropped itself.
        assert not heirs.keys() & set(heirs.values())
        n_heirs += len(heirs)
        n_returns += len(replaced_by.keys() - heirs.keys())
    assert min(n_heirs, n_returns) > 50


def test_what_is_exactly_enough_is_enough():
    one = PairEvidence.empty(1, (2, 2))
    one.no_worse[0, 0, 1] = one.better[0, 1] = 4.5
    one.no_worse[0, 1, 0] = -np.log1p(-CERTAINTY)
    log_k = np.full((2, 2), 4.5)
    shown = Shown.of([one], log_k, CERTAINTY, Shares(), None)
    assert shown.replaces[0].tolist() == [[False, True], [False, False]]
    assert shown.tied[0].tolist() == [[False, True], [True, False]]
    assert shown.proof[0, 1] == 1
    # So is a p-value, if the pair ran on all instances that were used.
    one = PairEvidence.empty(1, (2, 2))
    one.p_no_worse[0, 0, 1] = one.p_better[0, 1] = 0.25
    one.instances[:], one.on_all_times[:] = 7, 7
    for n_used, shows in ((7, True), (8, False)):
        shown = Shown.of([one], np.zeros((2, 2)) + 1e-300, CERTAINTY, Shares(0.1, 0.25), n_used)
        assert shown.replaces[0, 0, 1] == shows
