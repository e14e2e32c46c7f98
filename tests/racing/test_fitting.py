import numpy as np
import pytest

import polarbear as pb
from polarbear.racing import fitting
from polarbear.racing.events import Decided
from racers import PerLook, fitted


@pytest.fixture(scope="module")
def runs():
    rng = np.random.default_rng(4)
    truth = np.array([1.0, 0.6, 0.0, -1.5]) + np.linspace(-1, 1, 12)[:, None] * [0.5, -0.5, 0, 0]
    return pb.simulation.simulate_runs(truth, 300, persistence=0.3, seed=int(rng.integers(99)))


def eliminated(found):
    decisions = [event for event in found.events if isinstance(event, Decided)]
    return [one for event in decisions for one in event.decision.eliminated]


def test_a_screening_fit_eliminates_nothing_and_a_full_fit_follows(runs, monkeypatch):
    question = PerLook(certainty=0.95)
    budget = pb.Budget(batch=(8, 8))
    thorough = pb.replay(runs, question, budget=budget)
    asked = []

    def fit(rankings, *, seed, draws=None):
        asked.append(draws)
        return pb.fit(rankings, seed=seed, draws=draws)

    monkeypatch.setattr(fitting, "MIN_SCREENING_CELLS", 0)
    monkeypatch.setattr(fitting, "default_fit", fit)
    screened = pb.replay(runs, fitted(question, fit), budget=budget)
    assert [one.algorithm for one in eliminated(screened)] == [
        one.algorithm for one in eliminated(thorough)
    ]
    n_full = asked.count(None)
    assert len(eliminated(thorough)) <= n_full < asked.count(fitting.SCREENING_DRAWS)
    rounds = sum(isinstance(event, Decided) for event in screened.events)
    assert asked.count(fitting.SCREENING_DRAWS) == rounds


def test_the_posterior_of_a_race_has_all_draws(runs):
    found = pb.replay(runs, budget=pb.Budget(runs=96))
    assert len(found.posterior.draws) > fitting.SCREENING_DRAWS
    again = pb.Race.from_events(found.events)
    assert np.array_equal(again.posterior.draws, found.posterior.draws)
