"""Instances that come to an end: runs that ended too early are made again for longer."""

from collections import defaultdict

import numpy as np
import pytest
from racing.test_outlook import LOOK, leads
from racing.test_outlook import RANGES as LATE

import polarbear as pb
from polarbear.data.run import Status
from polarbear.racing.allocation import choose_horizons
from polarbear.racing.events import Asked
from polarbear.racing.extended_runs import map_extensions
from polarbear.racing.forecast import InstancesNeeded
from polarbear.racing.planning import EXTENSION_FACTOR
from polarbear.racing.state import key_of
from polarbear.store import open_store
from racers import (
    TIMES,
    PerLook,
    check_invariants,
    drive,
    history,
    quick_fit,
    race_of,
    restore,
    solve,
)

NAMES = [f"f{k}" for k in range(12)]


def asked(race):
    return [job for event in race.events if isinstance(event, Asked) for job in event.jobs]


def longer(race):
    """Races with jobs that are earlier ones for longer."""
    return map_extensions(asked(race))


@pytest.fixture(scope="module")
def race():
    """The first race of some in which runs are made again."""
    races = (drive(race_of(instances=NAMES, seed=seed)) for seed in range(20))
    return next(one for one in races if longer(one))


def test_a_run_for_longer_has_the_seed_of_the_one_that_it_is(race):
    jobs = {job.key: job for job in asked(race)}
    for key, first in longer(race).items():
        short = jobs[key._replace(repetition=first)]
        assert jobs[key].seed == short.seed
        assert jobs[key].instance_seed == short.instance_seed
        assert jobs[key].horizon >= min(EXTENSION_FACTOR * short.horizon, TIMES[-1])


def test_runs_for_longer_cost_little_beside_the_longest(race):
    horizons = defaultdict(list)
    for job in asked(race):
        horizons[job.algorithm, job.instance].append(job.horizon)
    # Unless the last time in doubt comes before: then it is as long as it will ever be.
    assert all(sum(found) <= 2 * max(found) for found in horizons.values())
    assert race.spent.time == sum(map(sum, horizons.values()))


def test_of_a_run_that_was_made_again_only_the_last_counts(race):
    keys = [key_of(run)[:2] for run in race.runs]
    assert len(set(keys)) == len(keys)
    until = {key_of(run): run.until for run in race.runs}
    for job in asked(race):
        (last,) = (t for key, t in until.items() if key[:2] == job.key[:2])
        assert last >= job.horizon
    # What the race decides by is what these runs show.
    rankings = pb.rank(race.runs.filter(algorithms=race.pareto), TIMES)
    assert race.posterior.draws.shape == quick_fit(rankings, seed=0).draws.shape
    seen = race._rank_runs(race.state.progress.decision_input)
    for name in NAMES:
        for time in TIMES:
            assert seen.order(name, time) == rankings.order(name, time)
    check_invariants(race)


def test_nobody_asks_for_longer_runs_while_there_are_instances(race):
    used = set()
    for event in race.events:
        if isinstance(event, Asked):
            again = map_extensions(event.jobs)
            assert not again or used == set(NAMES)
            used |= {job.instance for job in event.jobs}


def test_without_end_of_instances_no_run_is_made_again():
    assert not any(longer(drive(race_of(seed=seed))) for seed in range(10))


def test_a_store_knows_them_as_well(race, tmp_path):
    with open_store(tmp_path / "race.db") as store:
        store.append(race.events)
        runs = store.runs()
        again = restore(store.read())
    assert [key_of(run) for run in runs] == [key_of(run) for run in race.runs]
    assert history(again) == history(race)
    assert again.state.ledger.extends == race.state.ledger.extends == longer(race)


def test_a_longer_run_that_crashes_counts_with_what_it_found():
    for seed in range(20):
        one = race_of(
            instances=NAMES,
            seed=seed,
            question=PerLook(certainty=0.9),
            budget=pb.Budget(batch=(2, 8), retries=1),
        )
        while jobs := one.ask():
            again = map_extensions(jobs)
            for job in jobs:
                run = solve(job)
                if job.key in again:
                    early = np.asarray(run.time) <= 1.0
                    time, value = np.asarray(run.time)[early], np.asarray(run.value)[early]
                    run = job.run(time, value, until=1.0, status=Status.CRASHED)
                one.tell(run)
            check_invariants(one)
        if not longer(one):
            continue
        tried = longer(one)  # once more, as the same run
        for key in tried:
            beside = {key._replace(repetition=key.repetition + k) for k in (-1, 1)}
            assert not beside.isdisjoint(tried)
        return
    raise AssertionError("no run was made again")


def test_a_longer_run_that_is_not_wanted_any_more_leaves_what_was_known():
    for seed in range(40):
        one = race_of(instances=NAMES, seed=seed)
        while jobs := one.ask():
            wanted = map_extensions(jobs)
            if wanted:
                key = next(iter(wanted))
                short = next(run.until for run in one.runs if key_of(run)[:2] == key[:2])
                one.remove(key.algorithm)
                assert one.state.pool.observed_until[key.instance][key.algorithm] == short
                one.add(key.algorithm)
                drive(one)
                check_invariants(one)
                return
            for job in jobs:
                one.tell(solve(job))
    raise AssertionError("no run was made again")


def test_it_settles_what_short_runs_on_few_instances_cannot():
    """They are close until late, where they change places: short runs use up all instances."""
    truth = np.array([[0.15, -0.15]] * 3 + [[-1.0, 1.0]])
    # Seed 0 is left out: all 60 instances leave its early lead at P = .938, which is no certainty.
    for seed in range(1, 6):
        runs = pb.simulation.simulate_runs(truth, 60, persistence=0.5, seed=seed)
        found = pb.replay(runs, PerLook(certainty=0.95), seed=seed)
        assert found.resolved
        assert len(found.pareto) == 2
        assert found.saved > 0.4


def test_a_way_that_needs_more_instances_than_there_are_is_none():
    # They change places: cheap at the first time with many instances, or dear at the last with few.
    pair = leads([0.3, -3.0, 3.0 - 2.0])
    cheap, few = (
        choose_horizons(pair, LATE, 2, pb.Budget(), LOOK, "at_par", total) for total in (np.inf, 40)
    )
    assert cheap.until.tolist() == [1.0, 1.0]
    assert few.until.tolist() == [100.0, 100.0]


def test_a_pair_that_hardly_any_draw_can_settle_is_given_up():
    close = leads([0.3, 0.3, 0.3], spread=0.05, seen=1000.0)
    wide = leads([0.3, 0.3, 0.3], spread=0.5, seen=10.0)
    same = close._replace(spread=wide.spread)
    assert choose_horizons(same, LATE, 2, pb.Budget(), LOOK, "at_par", 1001) is None
    # The lead may be larger.
    assert choose_horizons(wide, LATE, 2, pb.Budget(), LOOK, "at_par", 60) is not None


def test_what_was_recorded_no_longer_is_asked_for_once():
    """Recorded runs that were watched for different times: nobody can know how they go on."""
    truth = np.array([[0.15, -0.15]] * 3 + [[-1.0, 1.0]])
    full = pb.simulation.simulate_runs(truth, 30, persistence=0.5, seed=1)
    last = full.until.max()
    short = [
        run._replace(
            time=np.asarray(run.time)[np.asarray(run.time) < last],
            value=np.asarray(run.value)[np.asarray(run.time) < last],
            until=0.9 * last,
        )
        if k % 3 == 0
        else run
        for k, run in enumerate(full)
    ]
    runs = pb.Runs.from_records(short, direction=full.direction)
    found = pb.replay(runs, PerLook(certainty=0.99), times=np.unique(full.time))
    assert found.ended in ("resolved", "no instances left")
    horizons = defaultdict(list)
    for job in asked(found):
        horizons[job.algorithm, job.instance].append(job.horizon)
    assert all(one == sorted(set(one)) for one in horizons.values())


@pytest.mark.slow
def test_who_has_no_rival_left_runs_no_longer():
    for seed in range(40):
        one = race_of(("early", "late", "good"), instances=NAMES, seed=seed)
        while jobs := one.ask():
            if map_extensions(jobs):
                for job in jobs:
                    one.tell(solve(job))
                gone, *rest = {job.algorithm for job in jobs}
                one.remove(gone)
                for name in rest:
                    if len(one.pareto) > 1:
                        one.remove(name)
                drive(one)
                check_invariants(one)
                break
            for job in jobs:
                one.tell(solve(job))


def test_nobody_waits_for_an_elimination_that_cannot_come():
    pair = leads([3.0, 3.0, 0.45])
    needs = InstancesNeeded.from_leads(pair.draws.mean(axis=0), pair, LOOK)
    assert 50 < needs.first_dominates.max() < 60
    assert (
        needs.limit_to(np.full((3, 1), 60.0)).first_dominates.max() == needs.first_dominates.max()
    )
    assert np.isinf(needs.limit_to(np.array([[0.0], [0.0], [50.0]])).first_dominates.max())


def test_nobody_waits_for_an_elimination_that_cannot_be_seen_again():
    """0 and 1 are behind 2 and 3 for sure by reckoning, open by draws, and seen on everything."""
    behind, crossing = [-1.3] * 3, [1.3, 0.5, -0.9]
    all_three = leads(behind, crossing, behind, seen=40.0)._replace(
        first=np.array([0, 0, 1]), second=np.array([2, 1, 3])
    )
    all_three.n_instances[2, 1] = 10.0  # of 0 and 1 the last time can still be seen
    alone = all_three.select_pairs(np.array([False, True, False]))
    until = [
        choose_horizons(some, LATE, 4, pb.Budget(), LOOK, "at_par", 40.0).until
        for some in (all_three, alone)
    ]
    assert np.array_equal(*until)
    assert until[0].tolist() == [100.0, 100.0, 0.0, 0.0]
