"""The race under ``PaperParetoSet()`` against a literal twin of the paper's algorithm 1."""

import hashlib
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polarbear.inference.plackett_luce.likelihood import build_likelihood
from polarbear.inference.posterior import Posterior
from polarbear.racing.budget import Budget
from polarbear.racing.events import Decided
from polarbear.racing.questions.paper_pareto_set import PaperParetoSet
from polarbear.racing.race import Race
from reference import PaperRace

NAMES = list("abcdef")
PRIOR, MAX_ROUNDS = 300, 8
SAMPLES = 163
"""A prime, so that no share of samples equals a threshold up to rounding."""
RACES = min(40, settings.default.max_examples)
if settings.default.max_examples > 100:  # HYPOTHESIS_PROFILE=thorough
    RACES = 2000
STUDIES = Path(__file__).parents[2] / "studies"
SHAPES = ("level", "equal", "near", "rising", "falling", "worse")


def skill(shape, k, n_times):
    """Mean utilities: equal, nearly equal, crossing and dominated ones."""
    slope = np.linspace(-1.5, 1.5, n_times) if n_times > 1 else np.array([1.0])
    curves = {"level": 0.3 * k, "equal": 0.0, "near": 0.02 * k, "worse": -3.0}
    curves |= {"rising": slope, "falling": -slope}
    return np.zeros(n_times) + curves[shape]


def prior_curves(seed, n_times):
    """Curves of all names: (PRIOR, T, n) in single precision, with differences of all sizes."""
    rng = np.random.default_rng(seed)
    scale = rng.choice([0.05, 0.3, 1.5], size=(PRIOR, 1, 1))
    level = rng.normal(size=(PRIOR, 1, len(NAMES)))
    return (scale * (level + 0.5 * rng.normal(size=(PRIOR, n_times, len(NAMES))))).astype("f4")


def observer(seed, skills, step, missing):
    """Values that follow from names alone; rounded, so that there are ties; some runs missing."""

    def observe(algorithm, instance, k):
        digest = hashlib.blake2b(f"{seed} {algorithm} {instance}".encode(), digest_size=8).digest()
        rng = np.random.default_rng(int.from_bytes(digest, "big"))
        if rng.random() < missing:
            return None
        luck = rng.gumbel(size=len(skills[algorithm]))[k]
        # A rising trend makes every time an improvement, and changes no ranking.
        return 1000.0 * k + step * round((skills[algorithm][k] + luck) / step)

    return observe


def resampling_fit(curves):
    """A fit by importance resampling of curves, with the package's likelihood of the rankings."""

    def fit(rankings, *, seed):  # noqa: ARG001
        own = curves[:, :, [NAMES.index(name) for name in rankings.algorithms]]
        averaged = replace(rankings, ties="averaged")
        log = build_likelihood(averaged).value(own.astype(float)).sum(axis=1)
        passed = np.cumsum(np.exp(log - log.max()))
        at = (np.arange(SAMPLES) + 0.5) * passed[-1] / SAMPLES
        chosen = np.minimum(np.searchsorted(passed, at), PRIOR - 1)
        weight = np.full((SAMPLES, 1), 1 / SAMPLES, dtype=np.float32)
        return Posterior(rankings.algorithms, rankings.times, own[chosen], weight)

    return fit


@pytest.mark.slow
@settings(max_examples=RACES)
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(2, 4),
    n_times=st.integers(1, 3),
    shapes=st.lists(st.sampled_from(SHAPES), min_size=6, max_size=6),
    step=st.sampled_from([1e-9, 1.0]),
    missing=st.sampled_from([0.0, 0.2]),
    newcomers=st.lists(st.integers(1, 4), max_size=2),
    certainty=st.sampled_from([0.7, 0.9, 0.95]),
    elimination=st.sampled_from(["joint", "pointwise"]),
    resolution=st.sampled_from(["strict", "crossing"]),
)
def test_the_race_decides_as_the_literal_twin(
    seed, n, n_times, shapes, step, missing, newcomers, certainty, elimination, resolution
):
    compare(
        seed, n, n_times, shapes, step, missing, newcomers,
        certainty=certainty, elimination=elimination, resolution=resolution,
    )  # fmt: skip


def compare(seed, n, n_times, shapes, step, missing, newcomers, **fields):
    curves = prior_curves(seed, n_times)
    skills = {name: skill(shapes[k], k, n_times) for k, name in enumerate(NAMES)}
    observe = observer(seed, skills, step, missing)
    question, budget = PaperParetoSet(epsilon=0.1, **fields), Budget(batch=(2, 8))
    prior = [
        {name: [float(u) for u in curve[:, k]] for k, name in enumerate(NAMES)} for curve in curves
    ]
    asked = asdict(question)
    del asked["fit"], asked["over_time"]
    twin = PaperRace(
        NAMES[:n], n_times, prior, observe, samples=SAMPLES, batch=budget.batch, **asked
    )
    race = Race(
        NAMES[:n],
        range(1, n_times + 1),
        direction="maximize",
        question=replace(question, fit=resampling_fit(curves)),
        budget=budget,
    )
    joins = {at: NAMES[n + k] for k, at in enumerate(dict.fromkeys(newcomers))}
    for round_ in range(MAX_ROUNDS):
        jobs, wanted = race.ask(), twin.plan()
        assert {(job.algorithm, job.instance, job.horizon - 1) for job in jobs} == set(wanted)
        if not wanted:
            break
        for job in jobs:
            values = [observe(job.algorithm, job.instance, k) for k in range(int(job.horizon))]
            found = None not in values
            times = range(1, 1 + len(values))
            told = job.run(times, values) if found else job.run([], [], until=0.0)
            race.tell(told)
        name = joins.get(round_ + 1)
        if name:
            race.add(name)
            twin.join(name)
        eliminated = twin.decide()
        race.ask()
        decided = [one for one in race.events if isinstance(one, Decided)][-1].decision
        assert {one.algorithm for one in decided.eliminated} == set(eliminated)
        assert race.pareto == tuple(twin.candidates)
        assert open_pairs(decided) == unresolved(twin)
        assert decided.batch == twin.b


def open_pairs(decided):
    return {
        (one.first, one.second, t)
        for one in decided.open
        for t in range(one.times.bit_length())
        if one.times >> t & 1
    }


def unresolved(twin):
    return {
        (a, b, t)
        for (a, b, t), resolved in twin.resolved.items()
        if not resolved and a in twin.candidates and b in twin.candidates
    }


def test_equal_algorithms_are_resolved_by_equivalence():
    """With the same curve for both, every draw is a tie, and the first round resolves the pair."""
    compare(0, 2, 2, ["equal"] * 6, 1.0, 0.0, [], certainty=0.95, elimination="joint",
            resolution="strict")  # fmt: skip


@pytest.mark.long
def test_batches_stay_small_on_the_recorded_rankings_of_mabbob():
    """The paper's round 21 is at 168 instances: 21 rounds of 8, in each of which something closes.

    The rankings are those of a race in 30 dimensions that was stopped; it ran all algorithms.
    """
    kept = np.load(STUDIES / "mabbob" / "results" / "d30-T200-paper" / "positions.npz")
    position, names, times = kept["position"], kept["algorithms"].tolist(), kept["times"]
    question, budget = PaperParetoSet("independent"), Budget(batch=(8, 128))
    race = Race(names, times, direction="minimize", question=question, budget=budget)
    batches = []
    for _ in range(21):
        for job in race.ask():
            own = position[:, int(job.instance) - 1, names.index(job.algorithm)]
            known = (own >= 0) & (times <= job.horizon)
            # A falling trend makes every time an improvement, and changes no ranking.
            values = own[known] - 10.0 * np.flatnonzero(known)
            until = times[known][-1] if known.any() else 0.0
            race.tell(job.run(times[known], values, until=until))
        race.ask()
        decided = [one for one in race.events if isinstance(one, Decided)][-1].decision
        batches.append(decided.batch)
    assert batches == [8] * 21
    assert len(race.runs.instances) >= 168
