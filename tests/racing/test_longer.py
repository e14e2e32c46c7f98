"""Instances that come to an end: runs that ended too early are made again for longer."""

from collections import defaultdict

import numpy as np
import pytest

import polarbear as pb
from polarbear.data.run import Status
from polarbear.racing.events import Asked
from polarbear.racing.extended_runs import map_extensions
from polarbear.racing.state import key_of
from polarbear.store import open_store
from racers import (
    TIMES,
    ShortFirst,
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
    races = (
        drive(race_of(instances=NAMES, seed=seed, question=ShortFirst(certainty=0.9)))
        for seed in range(20)
    )
    return next(one for one in races if longer(one))


def test_a_run_for_longer_has_the_seed_of_the_one_that_it_is(race):
    jobs = {job.key: job for job in asked(race)}
    for key, first in longer(race).items():
        short = jobs[key._replace(repetition=first)]
        assert jobs[key].seed == short.seed
        assert jobs[key].instance_seed == short.instance_seed
        assert jobs[key].horizon > short.horizon


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
            question=ShortFirst(certainty=0.9),
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
        one = race_of(instances=NAMES, seed=seed, question=ShortFirst(certainty=0.9))
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
    found = pb.replay(runs, ShortFirst(certainty=0.99), times=np.unique(full.time))
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
