"""Duels that contradict the model of rankings are said first; those of its own model are not."""

import numpy as np

import polarbear as pb


def test_who_is_often_first_and_often_last_is_found():
    rng = np.random.default_rng(0)
    costs = rng.normal(size=(5, 300, 4))
    costs[:, :, 0] = np.where(rng.random(300) < 0.58, -9.0, 9.0)  # first or last
    posterior = pb.fit(pb.simulation.rank_costs(costs))
    (caution,) = posterior.diagnostics.contradictions
    assert caution.startswith("The duels contradict the model of rankings: a1 wins ")
    assert str(posterior.verdict()).startswith(caution)
    assert posterior.diagnostics.trusted


def test_rankings_of_the_model_contradict_it_seldom():
    found = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        truth = rng.normal(0, 0.7, (8, 5))
        rankings = pb.simulation.simulate_rankings(truth, 60, seed=seed, persistence=0.5)
        found += bool(pb.fit(rankings).diagnostics.contradictions)
    assert found <= 1
