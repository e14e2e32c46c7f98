"""Replay: a race over recorded runs looks up what it would have seen."""

import html
from pathlib import Path

import numpy as np
import pytest

import polarbear as pb
from polarbear.cli.main import main
from polarbear.errors import DataError
from polarbear.plots.run_allocation import allocation_data
from polarbear.racing.events import Told
from polarbear.reporting.content import make_document
from racers import PerLook, ShortFirst, drive, fitted, quick_fit, race_of

MABBOB = Path(__file__).parents[1] / "examples" / "mabbob_d5.csv"
TRUTH = np.array([[2.0, 0.0, -2.0], [1.0, 2.0, -2.0]])


@pytest.fixture(scope="module")
def mabbob():
    return pb.read(MABBOB, direction="minimize", clock="evaluations")


@pytest.mark.long
def test_a_recorded_benchmark_with_the_real_fit(mabbob):
    model = {"prior": pb.priors.Dirichlet(1 + 1e-9)}  # counts are less certain
    found = pb.replay(mabbob, PerLook(certainty=0.95, fit=model))
    verdicts = pb.fit(mabbob).paper_verdict(0.95).verdicts
    dominated = {one.algorithm for one in verdicts if one.kind == "dominated"}
    assert set(found.eliminated) == dominated == {"RS"}
    assert found.ended == "no instances left"
    assert not found.status.resolved
    assert found.full == (420, 4_200_000)
    assert len(found.runs) == found.spent.runs == found.n_runs < 420
    assert not found.state.ledger.extends
    assert found.spent.time == pytest.approx(found.runs.until.sum())
    assert 0.1 < found.saved < 0.9
    assert found.rounds > 2
    assert "of 420 recorded runs" in str(found)
    assert set(found.posterior.algorithms) == set(found.pareto)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_replay(mabbob):
    def once(seed):
        found = pb.replay(mabbob, fitted(PerLook(certainty=0.9)), seed=seed)
        return found.events

    assert once(1) == once(1)
    assert once(1) != once(2)


def test_what_is_seen_is_what_was_recorded(mabbob):
    found = pb.replay(mabbob, fitted(PerLook(certainty=0.8)), times=[200, 1000, 5000])
    recorded = {(run.algorithm, run.instance): run for run in mabbob}
    for run in found.runs:
        whole = recorded[run.algorithm, run.instance]
        seen = whole.time <= run.until
        assert run.until <= 5000
        assert np.array_equal(run.time, whole.time[seen])
        assert np.array_equal(run.value, whole.value[seen])


def test_failed_short_missing_and_repeated_runs():
    runs = pb.simulation.simulate_runs(TRUTH, 40, 3, crashed=0.1, cut=0.1)
    more = [run._replace(repetition=1) for run in runs if run.instance in ("i1", "i2")]
    every = [run for run in runs if (run.algorithm, run.instance) != ("a2", "i3")]
    runs = pb.Runs.from_records([*every, *more], direction="minimize")
    found = pb.replay(
        runs, fitted(PerLook(certainty=0.99)), budget=pb.Budget(retries=1, batch=(4, 8))
    )
    assert found.full.runs == 119
    assert found.spent.time <= found.full.time
    assert "a3" in found.eliminated


def test_limits_hold(mabbob):
    found = pb.replay(mabbob, fitted(PerLook()), budget=pb.Budget(time=500_000))
    assert found.ended == "budget of time spent"
    assert found.spent.time <= 500_000
    assert found.saved > 0.88


def test_what_is_no_runs_is_refused():
    with pytest.raises(DataError, match="read it first"):
        pb.replay("results/")


@pytest.mark.slow
def test_the_command_says_what_was_saved(capsys):
    options = ["--direction", "minimize", "--clock", "evaluations", "--times", "4"]
    assert main(["replay", str(MABBOB), *options, "--certainty", "0.95", "--batch", "8", "16"]) == 0
    said = capsys.readouterr().out
    assert "RS is replaceable by" in said
    assert "4,200,000 evaluations" in said
    assert main(["replay", str(MABBOB), *options, "--certainty", "2"]) == 1
    assert "--certainty 2" in capsys.readouterr().err


def test_a_notebook_shows_how_everybody_stands():
    runs = pb.simulation.simulate_runs(np.array([[2.0, 0.0, -2.0]] * 3), 60, persistence=np.inf)
    found = pb.replay(runs)
    shown = found._repr_html_()
    assert "saved" in shown
    assert all(html.escape(str(one)) in shown for one in found.verdicts())
    assert "<svg" in found._repr_html_()


def test_a_run_that_crashed_at_once_was_used():
    runs = pb.simulation.simulate_runs(np.array([[2.0, 0.0, 0.0]] * 5), 30, crashed=0.2, seed=3)
    found = pb.replay(runs, seed=1)
    assert found.used == found.spent.runs == found.full.runs


def test_a_replay_with_missing_runs_uses_no_more_than_were_recorded():
    """What is not recorded is asked for, and is no recorded run that was used."""
    full = pb.simulation.simulate_runs(np.array([[0.1, 0.0]] * 3), 40)
    records = [run for k, run in enumerate(full) if k % 3]
    runs = pb.Runs.from_records(records, direction=full.direction)
    found = pb.replay(runs, pb.StrictParetoSet(certainty=0.999))
    assert found.spent.runs > found.used  # with those that are not there
    assert found.used <= found.full.runs == len(records)
    assert f"used        {found.used} of {len(records)} recorded runs" in str(found)


@pytest.fixture(scope="module")
def extended():
    """A replay with runs that were extended."""
    return pb.replay(pb.example("cma-variants"), ShortFirst(fit=quick_fit))


def test_an_extended_run_costs_its_final_length(extended):
    """A replay reads a recorded run on; its cost is that of the picture of the allocation."""
    race = extended
    assert race.state.ledger.extends
    assert race.spent.time == pytest.approx(race.runs.until.sum())
    assert allocation_data(race).time.sum() == pytest.approx(race.spent.time)
    table = make_document(race)["race"]["allocation"]
    assert sum(one["time"] for one in table) == pytest.approx(race.spent.time)
    assert race.saved == pytest.approx(1 - race.spent.time / race.full.time)
    assert 0 <= race.saved < 1
    assert pb.Race.from_events(race.events).spent == race.spent


def test_a_limit_of_time_counts_what_extensions_add(extended):
    question = ShortFirst(fit=quick_fit)
    runs = pb.example("cma-variants")
    limited = pb.replay(runs, question, budget=pb.Budget(time=extended.spent.time))
    assert limited.spent == extended.spent
    less = pb.replay(runs, question, budget=pb.Budget(time=0.9 * extended.spent.time))
    assert less.ended == "budget of time spent"
    assert less.spent.time <= 0.9 * extended.spent.time


def test_a_race_pays_for_runs_that_it_repeats_for_longer():
    """Solvers cannot be continued, so a race that makes its runs repeats one from its start."""
    names = [f"f{k}" for k in range(12)]
    race = next(
        one
        for seed in range(20)
        if (
            one := drive(race_of(instances=names, seed=seed, question=ShortFirst(certainty=0.9)))
        ).state.ledger.extends
    )
    told = sum(event.run.until for event in race.events if isinstance(event, Told))
    assert race.spent.time == pytest.approx(told)
    assert race.spent.time > race.runs.until.sum()
    assert allocation_data(race).time.sum() == pytest.approx(told)
