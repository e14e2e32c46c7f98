"""One truth about membership: a race and its posterior say the same of every algorithm."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import polarbear as pb
from polarbear.racing.decisions import Pair
from racers import SKILL, PerLook, race_of, solve


def check_agreement(race):
    """The statuses of a race are those of the posterior of its last decision."""
    posterior, question = race.posterior, race.question
    if posterior is None or not posterior.diagnostics.trusted:
        return 0
    assert isinstance(question, pb.PaperParetoSet)
    of_posterior = posterior.paper_verdict(
        question.certainty,
        question.epsilon,
        elimination=question.elimination,
        resolution=question.resolution,
    ).verdicts
    compared = 0
    for theirs in of_posterior:
        ours = race.verdict(theirs.algorithm)
        if ours.kind == "removed":
            continue
        compared += 1
        assert ours.kind == theirs.kind
        if ours.kind == "dominated":
            assert ours.probability == pytest.approx(theirs.probability)
        else:
            assert ours.probability == pytest.approx(theirs.probability, abs=1e-6)
        assert ours.rival == theirs.rival
        assert ours.during == theirs.during
    return compared


@pytest.mark.slow
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.integers(0, 10_000),
    kind=st.sampled_from([PerLook, pb.PaperParetoSet]),
    focuses=st.booleans(),
    resolution=st.sampled_from(["at_par", "crossing", "strict"]),
    elimination=st.sampled_from(["joint", "pointwise"]),
)
def test_a_race_and_its_posterior_agree_after_every_round(seed, kind, focuses, **fields):
    class OfCandidates(kind):
        """Rates the candidates alone, as the statuses of a posterior do."""

    OfCandidates.rates_eliminated, OfCandidates.focuses = False, focuses
    question = OfCandidates(certainty=0.9, **fields)
    race = race_of(tuple(SKILL), seed=seed, question=question, budget=pb.Budget(runs=300))
    rounds = 0
    while jobs := race.ask():
        if race.rounds > rounds:
            rounds = race.rounds
            assert check_agreement(race)
        for job in jobs:
            race.tell(solve(job))
    assert check_agreement(race)
    if kind is PerLook and race.status.resolved:
        assert not any(one.kind == "undecided" for one in race.verdicts())


def test_a_pair_that_later_evidence_contradicts_is_open_again():
    def fit(rankings, *, seed):
        mean = next(means)
        noise = np.random.default_rng(seed).normal(size=(400, 3, len(rankings.algorithms)))
        draws = (np.asarray(mean) + 0.01 * noise).astype(np.float32)
        weight = np.full((400, 1), 1 / 400, dtype=np.float32)
        return pb.Posterior(rankings.algorithms, rankings.times, draws, weight)

    # Columns: bad, early, late. At first early and late cross; then they are level at all times.
    first, second = [[0, 5, 0], [0, 0, 0], [0, 0, 5]], [[0, 1, 1], [0, 1, 1], [0, 1, 1]]
    for kind, expected in ((PerLook, True), (pb.PaperParetoSet, False)):
        means = iter([first, second])
        question = kind(epsilon=0.0, resolution="at_par")
        budget = pb.Budget(batch=(2, 2))
        race = race_of(("bad", "early", "late"), question=question, budget=budget, fit=fit)
        for _ in range(2):
            for job in race.ask():
                race.tell(solve(job))
        race.ask()
        pair: Pair = ("early", "late")
        assert (pair in race.state.pairs.open) == expected


@pytest.mark.slow
def test_equal_algorithms_end_tied():
    outcomes: Counter[str] = Counter()
    for seed in range(4):
        runs = pb.simulation.simulate_runs(np.zeros((20, 2)), 1000, seed=seed, persistence=0.5)
        outcomes.update(one.kind for one in pb.replay(runs, seed=seed).verdicts())
    assert outcomes["equivalent"] >= 6
    assert not outcomes["undecided"]
