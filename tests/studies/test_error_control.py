"""The study of error control: its shortcuts are the package's decisions, and the error holds."""

import numpy as np
import pytest
from error_control.cost import CLOSED, LOST, OPEN, WON, end_of, race_exactly
from error_control.decisions import EPSILON, PerLook, PerMember, default_looks
from error_control.errors import count_wins, tied, tied_once

import polarbear as pb
from polarbear.inference.e_values import Evidence, Outcomes, multiplicity
from polarbear.inference.verdicts import Claims, derive_verdicts
from polarbear.simulation import draw_persistent_noise
from racers import drive, race_of

LOOKS = default_looks(256)


def simulate(setting, races, persistence, seed=0):
    n_times, n = setting.truth.shape
    times = np.linspace(0, 1, n_times)
    noise = draw_persistent_noise(times, (races, int(LOOKS[-1]), n), persistence, seed)
    return count_wins(setting.truth, noise, LOOKS)


@pytest.mark.parametrize("setting", [tied(5, 1), tied_once(10)])
def test_a_member_is_lost_no_more_often_than_stated(setting):
    races, certainty = 400, 0.9
    decision = PerMember.at(LOOKS, certainty).decide(simulate(setting, races, 0.0))
    lost = decision.eliminated[:, setting.at_risk].mean(axis=1)
    assert lost.mean() <= 1 - certainty + 2 * lost.std() / np.sqrt(races)
    for row, column in setting.never_leads:
        assert decision.leads[:, row, column].mean() <= 1 - certainty + 2 * 0.3 / np.sqrt(races)


def test_a_posterior_at_each_look_loses_more_than_stated():
    """Otherwise the study could not tell the two apart."""
    decision = PerLook.at(LOOKS, 0.95).decide(simulate(tied(5, 1), 100, 0.0))
    assert decision.eliminated.mean() > 0.25


def test_looking_at_every_instance_keeps_the_error_of_a_tied_pair():
    ended = race_exactly("per_member", 0.95, range(1, 513), [0.5], closing=False)
    assert 0.02 < ended.wrong[-1, 0] / 2 <= 0.05  # of a given one: either of them, by symmetry
    assert ended.share.sum() == pytest.approx(1)
    assert (np.diff(ended.wrong[:, 0]) >= 0).all()


def test_the_ends_of_a_pair_are_its_statuses():
    expected = {
        ("undecided", "undecided"): OPEN,
        ("member", "dominated"): WON,
        ("dominated", "member"): LOST,
        ("equivalent", "equivalent"): CLOSED,
        ("member", "member"): CLOSED,
        ("member", "equivalent"): CLOSED,
        ("equivalent", "member"): CLOSED,
    }
    rng, seen = np.random.default_rng(0), set()
    for _ in range(300):
        n = int(rng.integers(1, 2500))
        won = int(np.clip(n / 2 + rng.normal() * 2 * np.sqrt(n), 0, n))
        wins = np.array([[[0.0, won], [n - won, 0.0]]])
        claims = Claims.from_e_values(
            ("a", "b"),
            np.ones(1),
            "time",
            Evidence.from_outcomes(Outcomes(wins, 0 * wins), EPSILON),
            log_k=np.full((2, 2), np.log(multiplicity(1) / 0.05)),
            certainty=0.95,
            resolution="at_par",
        )
        kinds = tuple(one.kind for one in derive_verdicts(claims, EPSILON))
        end = int(end_of(np.array(float(won)), np.array(float(n - won)), "per_member", 0.95))
        assert end == expected[kinds]
        seen.add(end)
    assert seen == {OPEN, WON, LOST, CLOSED}


def test_newcomers_have_the_thresholds_of_a_race():
    """Those of ``errors.newcomers``, but for two algorithms at the start where it has one."""
    race = drive(race_of(("good", "twin"), budget=pb.Budget(runs=8)))
    newcomers = [f"n{k}" for k in range(1, 5)]
    for name in newcomers:
        race.add(name)
    factors = (
        np.exp(race.state.members.entries.log_thresholds(["good", *newcomers], certainty=0.95))
        * 0.05
    )
    for k in range(1, 5):
        assert factors[k][0] == pytest.approx(multiplicity(1, k))
        assert factors[0][k] == pytest.approx(multiplicity(k + 1))
    assert factors[4][2] == pytest.approx(multiplicity(3, 2))
