"""Runs that are made again for longer, and what may befall them: failures, loads, doubts."""

from dataclasses import replace

import numpy as np
import pytest
from racing.test_longer import NAMES, longer

import polarbear as pb
from polarbear.data.run import Status
from polarbear.inference.diagnostics import Diagnostics
from polarbear.racing.events import Asked, Decided
from polarbear.racing.extended_runs import map_extensions
from polarbear.racing.forecast import Leads
from polarbear.racing.jobs import Job
from polarbear.racing.state import key_of
from polarbear.store import open_store
from racers import TIMES, ShortFirst, check_invariants, drive, quick_fit, race_of, solve

QUESTION = ShortFirst(certainty=0.9)
BUDGET = pb.Budget(batch=(2, 8))


def drive_failing(race, *, until, status, most=None):
    """Run a race whose first longer runs fail: which they are, and what was known before."""
    shorter = {}
    while jobs := race.ask():
        again = map_extensions(jobs)
        for job in jobs:
            place = job.key[:2]
            fails = job.key in again and place not in shorter
            if fails and (most is None or len(shorter) < most):
                (shorter[place],) = (run for run in race.runs if key_of(run)[:2] == place)
                race.tell(job.run([], [], until=until, status=status))
            else:
                race.tell(solve(job))
    check_invariants(race)
    return shorter


@pytest.mark.parametrize(("until", "status"), [(0.0, Status.KILLED), (0.5, Status.CRASHED)])
def test_one_that_is_lost_takes_nothing_away(until, status, tmp_path):
    """A worker that is lost tells of nothing found; what the shorter run had found is known."""
    for seed in range(20):
        race = race_of(instances=NAMES, seed=seed, question=QUESTION, budget=BUDGET)
        shorter = drive_failing(race, until=until, status=status, most=1)
        if shorter:
            break
    ((place, short),) = shorter.items()
    instance = place[1]
    (kept,) = (run for run in race.runs if key_of(run)[:2] == place)
    assert (kept.until, kept.status) == (short.until, status)
    assert np.array_equal(kept.value, short.value)
    assert race.state.pool.observed_until[instance][place[0]] == np.inf
    with open_store(tmp_path / "race.db") as store:
        store.append(race.events)
        (stored,) = (run for run in store.runs() if key_of(run)[:2] == place)
    assert (stored.until, stored.status) == (short.until, status)
    # And the race decides by these runs.
    seen = race._rank_runs(race.state.progress.decision_input)
    made = pb.rank(
        race.runs.filter(algorithms=race.state.progress.decision_input.algorithms), TIMES
    )
    assert all(seen.order(instance, time) == made.order(instance, time) for time in TIMES)


def test_one_that_failed_is_tried_again_as_the_same_run():
    """Another seed would draw anew what was seen already."""
    tried = 0
    for seed in range(8):
        budget = replace(BUDGET, retries=1)
        race = race_of(instances=NAMES, seed=seed, question=QUESTION, budget=budget)
        failed = drive_failing(race, until=0.0, status=Status.KILLED)
        kept = {key_of(run)[:2]: run for run in race.runs}
        assert len(kept) == len(race.runs)
        for place, short in failed.items():
            run = kept[place]
            tried += run.until > short.until
            early = np.asarray(run.time) <= short.until
            assert np.array_equal(np.asarray(run.value)[early], short.value)
    assert tried


@pytest.mark.slow
def test_a_look_that_cannot_be_trusted_gives_nobody_up():
    """Instances may end in the very round whose posterior is no good."""
    cases = 0
    for seed in range(20):
        whole = drive(race_of(instances=NAMES, seed=seed, question=QUESTION, budget=BUDGET))
        if not longer(whole):
            continue
        rounds = next(
            sum(isinstance(one, Decided) for one in whole.events[:k])
            for k, event in enumerate(whole.events)
            if isinstance(event, Asked) and map_extensions(event.jobs)
        )
        race = race_of(
            instances=NAMES, seed=seed, question=QUESTION, budget=BUDGET, fit=Doubted(rounds)
        )
        with pytest.warns(pb.errors.FitWarning, match="decides nothing"):
            drive(race)
        assert nothing_is_left(race)
        cases += bool(longer(race))
        if cases == 3:
            return
    pytest.fail("too few cases")


def nothing_is_left(race):
    """Whether a race that ended without an answer has seen all that it could."""
    state = race.state
    until = {
        name: max(others.values())
        for name, others in state.pairs.rivals(state.members.present()).items()
    }
    return all(
        known[name] >= state.setup.times[times.bit_length() - 1]
        for name, times in until.items()
        for known in state.pool.observed_until.values()
        if name in known
    )


class Doubted:
    """A fit that cannot be trusted at one look."""

    def __init__(self, look):
        self.look, self.looks = look, 0

    def __call__(self, rankings, *, seed):
        self.looks += 1
        found = quick_fit(rankings, seed=seed)
        problems = Diagnostics(problems=("it is said",))
        return replace(found, diagnostics=problems) if self.looks == self.look else found


@pytest.mark.slow
def test_a_newcomer_that_left_again_does_not_end_it():
    cases = 0
    for seed in range(20):
        race = race_of(instances=NAMES, seed=seed, question=QUESTION, budget=BUDGET)
        while (jobs := race.ask()) and not longer(race):
            for job in jobs:
                race.tell(solve(job))
        if not longer(race):
            continue
        budget = replace(BUDGET, runs=race.n_runs)
        race = race_of(instances=NAMES, seed=seed, question=QUESTION, budget=budget)
        drive(race)
        assert race.ended == "budget of runs spent"
        race.add("twin")
        race.remove("twin")
        race.extend(budget=BUDGET)
        assert nothing_is_left(drive(race))
        cases += bool(longer(race))
        if cases == 3:
            return
    pytest.fail("too few cases")


@pytest.mark.parametrize("numbers", [[0], [1], [0, 1, 2]])
def test_loaded_runs_have_numbers_of_their_own(numbers):
    names = ("early", "late", "good", "bad")
    question = replace(QUESTION, epsilon=0.01)
    race = race_of(names, instances=NAMES[:6], question=question, budget=BUDGET)
    loaded = [
        solve(Job(name, instance, k, TIMES[0], 17 * k + len(name), 3))
        for name in names
        for instance in NAMES[:6]
        for k in numbers
    ]
    race.load(pb.Runs.from_records(loaded, direction="maximize"))
    drive(race)
    assert race.spent.runs
    assert all(run.repetition >= 0 for run in race.runs)
    seen = race._rank_runs(race.state.progress.decision_input)
    made = pb.rank(
        race.runs.filter(algorithms=race.state.progress.decision_input.algorithms), TIMES
    )
    for instance in NAMES[:6]:
        for time in TIMES:
            assert sorted(seen.order(instance, time)) == sorted(made.order(instance, time))


def test_a_question_that_asks_for_more_looks_at_every_instance_again():
    """Instances that told nothing of open pairs do when all pairs are open again."""
    race = drive(
        race_of(
            ("early", "late", "good", "twin", "bad"),
            instances=NAMES,
            question=QUESTION,
            budget=BUDGET,
        )
    )
    race.extend(replace(QUESTION, certainty=0.99))
    assert not race.state.pool.next_cached
    assert race.status.forecast is None
    assert all(standing.unsettled.instances is None for standing in race.verdicts())


def test_repetitions_of_an_instance_are_one_instance():
    runs = [
        solve(Job(name, instance, k, TIMES[-1], 17 * k + len(name), 3))
        for name in ("bad", "good")
        for instance in NAMES[:4]
        for k in range(5)
    ]
    rankings = pb.rank(pb.Runs.from_records(runs, direction="maximize"), TIMES)
    found = Leads.of(quick_fit(rankings, seed=0), rankings)
    assert np.allclose(found.instances, 4.0)


def test_a_round_of_one_that_is_removed_decides_nothing_else():
    """With rounds that overlap, those of others are decided when their own runs are in."""
    for most in range(8):
        question = ShortFirst(epsilon=0.01)
        budget = pb.Budget(batch=(2, 2), overlap=1, failures=most, runs=200)
        race = race_of(("good", "twin"), question=question, budget=budget)
        for _ in range(2):
            for job in race.ask():
                race.tell(solve(job))
        race.add("worst")
        while (jobs := race.ask()) and "worst" not in race.status.removed:
            for job in (
                job
                for job in jobs
                if job.key in race.state.progress.pending[race.state.progress.current]
            ):
                fails = job.algorithm == "worst"
                lost = job.run([], [], until=0.0, status=Status.CRASHED)
                race.tell(lost if fails else solve(job))
        assert "worst" in race.status.removed
        check_invariants(race)
