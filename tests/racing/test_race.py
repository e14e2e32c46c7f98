"""The race: what it asks and decides, whatever the order, the interruptions and the accidents."""

import gc
import tracemalloc

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

import polarbear as pb
from polarbear.data.run import Status
from polarbear.errors import DataError, FitWarning
from polarbear.inference.diagnostics import Diagnostics
from polarbear.inference.posterior import Posterior
from polarbear.racing.decisions import Decision
from polarbear.racing.events import Asked, Decided, from_json, to_json
from polarbear.racing.ledger import Spent
from polarbear.racing.race import Race
from polarbear.reporting.verifying import verify_decisions
from racers import (
    SKILL,
    PerLook,
    check_invariants,
    drive,
    history,
    quick_fit,
    race_of,
    restore,
    solve,
)

SEEDS = st.integers(0, 10_000)
POOLS = st.sampled_from([None, [f"f{k}" for k in range(12)]])
"""Instances without end, or so few that runs are made again for longer."""
FEW = settings(
    max_examples=settings.default.max_examples // 5, suppress_health_check=[HealthCheck.too_slow]
)


# Nothing depends on order, interruptions or how often one asks


@pytest.mark.slow
@FEW
@given(seed=SEEDS, fails=st.sampled_from([0.0, 0.2]), overlap=st.integers(0, 2), pool=POOLS)
def test_the_order_of_tell_does_not_matter(seed, fails, overlap, pool):
    limits = {"runs": 200, "time": 700.0, "retries": 1, "failures": 20}
    question = PerLook(certainty=0.9)
    budget = pb.Budget(batch=(2, 8), overlap=overlap, **limits)
    first = drive(race_of(question=question, budget=budget, seed=seed, instances=pool), fails)
    order = np.random.default_rng(seed)
    second = drive(
        race_of(question=question, budget=budget, seed=seed, instances=pool), fails, order
    )
    assert history(first) == history(second)
    assert first.spent.runs == second.spent.runs
    assert first.posterior == second.posterior


@pytest.mark.slow
@FEW
@given(
    seed=SEEDS,
    data=st.data(),
    overlap=st.integers(0, 2),
    fails=st.sampled_from([0.0, 0.2]),
    pool=POOLS,
)
def test_asking_and_telling_bit_by_bit_changes_nothing(seed, data, overlap, fails, pool):
    limits = {"runs": 400, "time": 900.0, "retries": 1, "failures": 20}
    question = PerLook(certainty=0.9)
    budget = pb.Budget(batch=(2, 8), overlap=overlap, **limits)
    whole = drive(race_of(seed=seed, question=question, budget=budget, instances=pool), fails)
    race = race_of(seed=seed, question=question, budget=budget, instances=pool)
    while jobs := race.ask():
        assert race.ask() == jobs
        some = data.draw(st.sets(st.integers(0, len(jobs) - 1), min_size=1))
        for k in some:
            race.tell(solve(jobs[k], fails))
            race.tell(solve(jobs[k], fails))  # twice is once
    assert history(race) == history(whole)
    assert race.pareto == whole.pareto
    assert race.state.ledger.requested == whole.state.ledger.requested


def test_nobody_waits_for_the_slowest_run():
    question = PerLook(certainty=0.9)
    budget = pb.Budget(batch=(2, 8), overlap=1)
    race = race_of(seed=2, question=question, budget=budget)
    first = race.ask()
    instances = {job.instance for job in first}
    assert len(instances) == 4  # two rounds of two
    slow = first[0]
    for job in first[1:]:
        race.tell(solve(job))
    assert race.ask() == (slow,)  # what comes next depends on it
    assert race.rounds == 0
    race.tell(solve(slow))
    assert race.ask()
    assert race.rounds == 2


def test_runs_of_later_rounds_do_not_count_if_their_algorithm_is_out():
    # Columns: bad, good. Decided by the first round, whatever was told of the second.
    clear, unclear = [[0, 5]] * 3, [[0, 0]] * 3
    for told in (0, 3):
        fit = decisions(clear, unclear)
        race = race_of(
            ("bad", "good"), question=PerLook(), budget=pb.Budget(batch=(2, 2), overlap=1), fit=fit
        )
        jobs = race.ask()
        for job in [*jobs[4 : 4 + told], *jobs[:4]]:
            race.tell(solve(job))
        assert race.ask() == ()
        assert race.pareto == ("good",)
        assert race.state.ledger.requested.runs == 8
        assert race.spent.runs == 4 + told
        check_invariants(race)
        race.add("bad")
        again = race.ask()
        assert {job.instance for job in again} <= {job.instance for job in jobs}
        assert not {job.key for job in again} & {job.key for job in jobs}


@pytest.mark.slow
@pytest.mark.parametrize("overlap", [pytest.param(0, marks=pytest.mark.long), 1])
@pytest.mark.parametrize("pool", [None, [f"f{k}" for k in range(10)]])
def test_every_prefix_of_the_log_is_a_race_that_goes_on_alike(overlap, pool):
    question = PerLook(certainty=0.9)
    budget = pb.Budget(batch=(2, 4), runs=80, retries=1, overlap=overlap)
    race = race_of(question=question, budget=budget, seed=5, instances=pool)
    drive_some(race, 30)
    race.remove("bad", "to see")
    race.add("worst")
    drive_some(race, 20)
    race.add("bad")
    drive(race, fails=0.1)
    lines = [to_json(event) for event in race.events]
    done = next(k for k in reversed(range(len(lines))) if '"added"' in lines[k][:20])
    for k in [*range(done + 1, len(lines)), len(lines)]:
        again = restore(map(from_json, lines[:k]))
        drive(again, fails=0.1)
        assert history(again) == history(race), k
        assert again.pareto == race.pareto
        if not overlap:  # else runs that the end cancels may or may not have been made
            assert again.spent == race.spent


def drive_some(race, runs):
    """Tell about so many runs."""
    told = 0
    while told < runs and (jobs := race.ask()):
        for job in jobs[: runs - told]:
            race.tell(solve(job, 0.1))
            told += 1


def test_a_restored_race_has_the_posterior_of_its_last_decision():
    race = drive(race_of(seed=3))
    assert restore(race.events).posterior == race.posterior
    assert race_of().posterior is None


def test_seeds_follow_from_names():
    one, other = race_of(("good", "bad"), seed=1).ask(), race_of(("good", "worst"), seed=1).ask()
    mine = {job.instance: job for job in one if job.algorithm == "good"}
    theirs = {job.instance: job for job in other if job.algorithm == "good"}
    assert mine == theirs
    assert len({job.seed for job in one}) == len(one)
    assert len({job.instance_seed for job in one}) == len(mine)
    assert {job.seed for job in one}.isdisjoint(job.seed for job in race_of(seed=2).ask())


def test_the_draw_of_instances_does_not_depend_on_their_order():
    names = [f"f{k}" for k in range(20)]
    one = race_of(instances=names).ask()
    assert one == race_of(instances=reversed(names)).ask()
    later = race_of(instances=names[:10])
    later.offer(names[5:])
    assert later.ask() == one
    assert drive(race_of(("good", "twin"), instances=names)).ended == "no instances left"


def test_a_race_says_who_of_all_still_races_and_whether_instances_are_enough():
    race = drive(race_of(("good", "twin", "bad"), instances=[f"f{k}" for k in range(10)]))
    assert "race of 3 algorithms" in str(race)
    assert "2 of 3 remain, 1 pair open\n" in str(race)
    assert "bad is dominated by " in str(race)
    assert str(race).count("no unused instance left") == 1
    race.offer(["f10"])
    assert race.ask()
    assert "2 of 3 still race, 1 pair open\n" in str(race)
    assert str(race_of(("good", "twin"))).startswith("race of 2 algorithms after 0 rounds, 1 pair")


# What the paper says


def test_it_finds_the_pareto_set_and_says_who_dominates():
    question = PerLook(certainty=0.9, elimination="pointwise")
    budget = pb.Budget(batch=(2, 8))
    race = drive(
        race_of(("early", "late", "good", "bad", "worst"), seed=1, question=question, budget=budget)
    )
    assert race.ended == "resolved"
    assert race.status.resolved
    assert race.pareto == ("early", "good", "late")
    assert set(race.eliminated) == {"bad", "worst"}
    assert race.verdict("worst").kind == "dominated"
    assert "is dominated by" in str(race.verdict("worst"))
    assert race.verdict("good").kind == "member"
    assert "race of 5 algorithms" in str(race)


def decisions(*centres):
    """A fit that says, round by round, what the utilities (T, n) are, beyond doubt."""
    left = iter(centres)

    def fit(rankings, *, seed):
        noise = np.random.default_rng(seed).standard_normal((50, *np.shape(centres[0]))) / 100
        draws = (np.asarray(next(left)) + noise).astype(np.float32)
        weight = np.full((50, 1), 1 / 50, dtype=np.float32)
        return Posterior(rankings.algorithms, rankings.times, draws, weight)

    return fit


def test_an_algorithm_stops_at_its_last_open_time_and_settled_ones_do_not_run():
    # Columns: bad, early, late. Who is level is told apart by nobody, for epsilon is 0.
    first = [[0, 0, 5], [0, 0, 5], [5, 0, -5]]
    second = [[0, 0, 5], [5, 0, 5], [5, 0, -5]]
    third = [[5, 0, 9], [5, 0, 9], [5, 0, -5]]
    question = pb.PaperParetoSet(certainty=0.9, epsilon=0.0, resolution="strict")
    budget = pb.Budget(batch=(2, 8))
    race = race_of(
        ("bad", "early", "late"),
        question=question,
        budget=budget,
        fit=decisions(first, second, third),
    )
    assert {job.horizon for job in race.ask()} == {4.0}
    tell_all(race)
    assert {(job.algorithm, job.horizon) for job in race.ask()} == {("bad", 2.0), ("early", 2.0)}
    assert race.verdict("bad").unsettled.rivals == {"early": 2.0}
    assert race.verdict("late").kind == "member"
    tell_all(race)
    assert {(job.algorithm, job.horizon) for job in race.ask()} == {("bad", 1.0), ("early", 1.0)}
    tell_all(race)
    assert race.ask() == ()
    assert race.pareto == ("bad", "late")


def tell_all(race):
    for job in race.ask():
        race.tell(solve(job))


def test_the_batch_doubles_when_nothing_resolves_and_halves_when_much_does():
    budget = pb.Budget(batch=(2, 16))
    assert [budget.next_batch(b, 0, 10) for b in (2, 8, 16)] == [4, 16, 16]
    assert [budget.next_batch(b, 3, 10) for b in (2, 8, 16)] == [2, 4, 8]
    assert budget.next_batch(8, 2, 10) == 8
    question = pb.PaperParetoSet(epsilon=0.0, resolution="at_par")
    budget = pb.Budget(batch=(2, 8), runs=80)
    race = drive(race_of(("good", "twin"), question=question, budget=budget))
    sizes = [len(event.jobs) // 2 for event in race.events if isinstance(event, Asked)]
    assert sizes[:4] == [2, 4, 8, 8]


def test_a_newcomer_runs_on_cached_instances_first():
    race = drive(race_of(("early", "late", "good"), seed=2))
    used = list(race.runs.instances)
    before = race.spent.runs
    race.add("worst")
    assert not race.status.resolved
    assert race.verdict("worst").kind == "undecided"
    jobs = race.ask()
    assert {job.algorithm for job in jobs} == {"worst"}
    assert {job.instance for job in jobs} <= set(used)
    assert len(jobs) == race.budget.batch[0]
    drive(race)
    assert race.pareto == ("early", "good", "late")
    assert race.spent.runs - before < len(used) * 3
    assert set(race.runs.instances) == set(used)


def drive_newcomer(works, failures):
    """Return the number of runs that a newcomer on trial makes in each round."""
    budget = pb.Budget(batch=(8, 8), failures=failures, runs=200)
    race = drive(race_of(("early", "late"), question=PerLook(certainty=0.9), budget=budget))
    race.add("bad", max_runs=20, trial=True)
    n_runs = []
    while jobs := race.ask():
        n_runs.append(sum(job.algorithm == "bad" for job in jobs))
        for job in jobs:
            broken = job.run([], [], until=0.0, status=Status.CRASHED)
            race.tell(solve(job) if job.algorithm != "bad" or works else broken)
    assert restore(race.events).state == race.state
    return n_runs, race


@pytest.mark.parametrize(
    ("works", "max_failures", "first_rounds"),
    [(True, 3, [1, 7]), (False, 3, [1, 3]), (False, 9, [1, 7]), (False, None, [1, 7])],
)
def test_a_newcomer_on_trial_runs_once_before_its_first_batch(works, max_failures, first_rounds):
    n_runs, race = drive_newcomer(works, max_failures)
    assert n_runs[: len(first_rounds)] == first_rounds
    if max_failures == 3 and not works:
        assert "bad" in race.status.removed
        assert sum(n_runs) == 4


def test_a_newcomer_that_catches_up_goes_on_with_the_others():
    race = drive(
        race_of(
            ("good", "bad"),
            question=PerLook(certainty=0.9),
            budget=pb.Budget(batch=(2, 4), runs=60),
        )
    )
    used = set(race.runs.instances)
    race.add("twin")
    seen = []
    while jobs := race.ask():
        seen.append({job.instance for job in jobs})
        tell_all(race)
    fresh = [bool(instances - used) for instances in seen]
    assert fresh == sorted(fresh)  # cached ones first
    assert any(fresh)
    assert {run.instance for run in race.runs if run.algorithm == "twin"} >= used


def test_removed_algorithms_do_not_count_and_come_back_with_their_runs():
    race = race_of(seed=4)
    jobs = race.ask()
    for job in jobs[:-1]:
        race.tell(solve(job))
    race.remove(jobs[-1].algorithm, "broken")
    gone = jobs[-1].algorithm
    assert all(job.algorithm != gone for job in race.ask())
    assert gone not in race.posterior.algorithms
    assert race.verdict(gone).kind == "removed"
    race.tell(solve(jobs[-1]))  # late, and kept
    race.add(gone)
    drive(race)
    plain = drive(race_of(seed=4))
    assert race.pareto == plain.pareto
    check_invariants(race)
    with pytest.raises(DataError, match="racing already"):
        race.add(race.pareto[0])
    with pytest.raises(DataError, match="no algorithm named 'goood' in this race; did you mean"):
        race.remove("goood")


def test_what_a_removed_algorithm_eliminated_returns():
    race = drive(race_of(("good", "bad", "worst"), seed=4))
    assert race.pareto == ("good",)
    race.remove("good")
    drive(race)
    assert race.pareto == ("bad",)
    assert race.verdict("worst").rival == "bad"
    race.add("early")
    race.add("good")
    drive(race)
    assert race.pareto == ("early", "good")
    check_invariants(race)


def test_who_joins_after_an_elimination_meets_a_posterior_of_all():
    class RatesAll(pb.ParetoSet):
        rates_eliminated = True

    budget = pb.Budget(runs=120)
    race = race_of(("early", "late", "worst"), question=RatesAll(), budget=budget)
    drive(race)
    assert "worst" in race.eliminated
    race.add("good")
    race.extend(budget=pb.Budget(runs=300))
    drive(race)  # its forecast needs thresholds of all, also of pairs that never meet
    check_invariants(race)


def test_classes_bring_back_what_was_eliminated_without():
    budget = pb.Budget(runs=200)
    race = drive(race_of(("good", "worst"), seed=4, question=pb.ParetoSet(), budget=budget))
    assert race.pareto == ("good",)
    classes = {run.instance: f"c{k % 2}" for k, run in enumerate(race.runs)}
    race.extend(pb.ParetoSet(classes=classes))
    assert race.pareto == ("good", "worst")


def test_a_crossing_pair_is_settled_without_a_tolerance():
    question = pb.StrictParetoSet()
    budget = pb.Budget(batch=(8, 8), runs=400)
    race = drive(race_of(("early", "late"), seed=4, question=question, budget=budget))
    assert race.ended == "resolved"
    assert [one.kind for one in race.verdicts()] == ["member", "member"]


def test_earlier_runs_are_looked_at_before_any_is_asked_for():
    earlier = drive(race_of(seed=6)).runs
    race = race_of(seed=7)
    race.load(earlier)
    race.load(earlier)
    assert race.spent == Spent(0, 0.0)
    assert race.runs == earlier
    jobs = race.ask()
    assert race.rounds == 1
    assert len(race._state.pairs.open) < 6  # it has learnt from them
    assert race.spent.runs == 0
    assert race.state.ledger.requested.runs == len(jobs)
    with pytest.raises(DataError, match="no algorithm named"):
        race_of(("good", "bad")).load(earlier)
    with pytest.raises(DataError, match="did not ask for"):
        race_of().tell(earlier[0])


def test_earlier_runs_of_one_algorithm_serve_as_cached_instances():
    earlier = drive(race_of(seed=6)).runs.filter(algorithms=["good"])
    race = race_of(("good", "bad"), seed=7)
    race.load(earlier)
    jobs = race.ask()
    assert {job.algorithm for job in jobs} == {"bad"}
    assert {job.instance for job in jobs} <= set(earlier.instances)


def test_an_algorithm_that_met_no_other_keeps_nothing_from_being_decided(recwarn):
    """The prior alone would compare it: it waits, and the others are decided by the data."""
    earlier = drive(race_of(("good", "worst"), seed=6)).runs
    alone = [
        run._replace(algorithm="late", instance=f"9{run.instance}")
        for run in earlier
        if run.algorithm == "good"
    ]
    race = race_of(("good", "worst", "late"), seed=7)
    race.load(earlier)
    race.load(pb.Runs.from_records(alone, direction=earlier.direction, clock=earlier.clock))
    race.ask()
    assert set(race.eliminated) == {"worst"}
    assert race.verdict("late").kind == "undecided"
    assert race.posterior.algorithms == ("good", "worst")
    assert race.posterior.diagnostics.trusted
    assert not [one for one in recwarn if issubclass(one.category, FitWarning)]
    drive(race)
    assert race.status.resolved


def test_a_newcomer_without_any_value_yet_waits_and_the_others_go_on():
    race = race_of(("good", "worst", "late"), seed=2)
    for job in race.ask():
        # Cut before the first time of the race: nothing is known of it at any time.
        silent = job.run([], [], until=0.0)
        race.tell(silent if job.algorithm == "late" else solve(job))
    race.ask()
    assert race.rounds == 1
    assert race.posterior.algorithms == ("good", "worst")
    assert race.verdict("late").kind == "undecided"


def test_a_higher_certainty_brings_back_whom_they_doubt():
    race = drive(
        race_of(seed=1, question=PerLook(certainty=0.8), budget=pb.Budget(batch=(2, 8), runs=400))
    )
    doubtful = {name for name, found in race.eliminated.items() if found.probability < 0.97}
    spent = race.spent.runs
    race.extend(PerLook(certainty=0.97), budget=pb.Budget(batch=(2, 8), runs=800))
    assert doubtful <= set(race.pareto)
    drive(race)
    assert race.spent.runs >= spent
    assert all(found.probability >= 0.97 for found in race.eliminated.values())
    race.extend(PerLook(certainty=0.97), budget=pb.Budget(batch=(2, 8), runs=900))
    assert race.ask() == ()  # more runs would be allowed, but none is needed
    check_invariants(race)


# Limits and failures


@pytest.mark.parametrize("limit", [0, 3, 4, 17, 50])
def test_no_more_runs_than_allowed_and_whole_instances(limit):
    question = PerLook()
    budget = pb.Budget(batch=(2, 8), runs=limit)
    race = drive(race_of(("good", "twin", "early", "late"), question=question, budget=budget))
    assert race.ended == "budget of runs spent"
    assert race.spent.runs == race.n_runs <= limit
    assert race.spent.runs > limit - 4
    check_invariants(race)


def test_no_more_time_than_allowed():
    race = drive(
        race_of(("good", "twin"), question=PerLook(), budget=pb.Budget(batch=(2, 8), time=33))
    )
    assert race.ended == "budget of time spent"
    assert 25 < race.spent.time <= 33


def test_no_jobs_after_the_deadline():
    race = race_of(question=PerLook(), budget=pb.Budget(deadline=100.0))
    with pytest.raises(DataError, match="pass the present time"):
        race.ask()
    jobs = race.ask(99.0)
    assert jobs
    assert race.ask(100.0) == ()
    assert race.ended == "deadline"
    assert race.ask(99.5) == jobs
    race.extend(PerLook(), budget=pb.Budget(deadline=200.0))
    assert race.ask(150.0) == jobs


def test_failed_runs_are_tried_again_and_count_if_they_fail_for_good():
    race = race_of(("good", "bad"), question=PerLook(), budget=pb.Budget(batch=(2, 2), retries=1))
    first, *others = race.ask()
    race.tell(first.run([], [], until=0.5, status=Status.CRASHED))
    for job in others:
        race.tell(solve(job))
    (again,) = race.ask()
    assert again.key == first.key._replace(repetition=1)
    assert again.seed != first.seed
    assert again.instance_seed == first.instance_seed
    assert again.horizon == first.horizon
    race.tell(again.run([], [], until=0.25, status=Status.CRASHED))
    race.ask()
    assert race.rounds == 1
    assert race.spent.runs >= 5
    failed = [run for run in race.runs if run.status == Status.CRASHED]
    assert [run.repetition for run in failed] == [1]  # the one that counts


def test_who_fails_too_often_is_removed():
    race = race_of(
        ("good", "bad", "early"), question=PerLook(), budget=pb.Budget(batch=(4, 4), failures=2)
    )
    for job in race.ask():
        fails = job.algorithm == "good"
        race.tell(job.run([], [], status=Status.KILLED) if fails else solve(job))
    race.ask()
    assert race.verdict("good").kind == "removed"
    assert any(getattr(event, "why", "") == "4 runs failed" for event in race.events)
    race.add("good")
    assert race.verdict("good").kind == "undecided"


def test_a_posterior_that_cannot_be_trusted_decides_nothing():
    def doubtful(rankings, *, seed):
        found = quick_fit(rankings, seed=seed)
        problems = Diagnostics(problems=("it was made up",))
        return Posterior(
            found.algorithms, found.times, found.draws, found.weight, None, {}, problems
        )

    race = race_of(
        ("good", "worst"), fit=doubtful, question=PerLook(), budget=pb.Budget(batch=(2, 2))
    )
    tell_all(race)
    with pytest.warns(FitWarning, match="round 1 decides nothing, for it was made up"):
        race.ask()
    assert race.pareto == ("good", "worst")
    decided = race.events[-2]
    assert decided.decision.open
    expected = Decision(decided.decision.open, 2, problems=("it was made up",))
    assert decided == Decided(0, expected)


def test_a_race_of_one_or_none_is_over():
    assert race_of(("good",)).ask() == ()
    assert race_of(()).status.resolved


@pytest.mark.parametrize(
    ("names", "more", "message"),
    [
        ("good", {}, "expected a list of names"),
        (["good", ""], {}, "the name at position 1 is empty"),
        (["good", "good"], {}, "racing already"),
        (["good"], {"seed": 0.5}, "whole number"),
        (["good"], {"question": 0.9}, "expected a question"),
        (["good"], {"question": pb.ParetoSet}, r"is a class: write ParetoSet"),
        (["good"], {"budget": 100}, "expected Budget"),
        (["good"], {"instances": "f1"}, "expected a list of names"),
    ],
)
def test_what_makes_no_race_is_refused(names, more, message):
    with pytest.raises(DataError, match=message):
        race_of(names, **more)
    with pytest.raises(DataError, match="takes no list of instances"):
        race_of().offer(["f1"])
    with pytest.raises(DataError, match="of type Started"):
        Race.from_events([])


def test_everybody_dominated_in_a_circle_leaves_one():
    circle = np.zeros((3, 1, 3))
    circle[0, 0], circle[1, 0], circle[2, 0] = (3, 2, 1), (1, 3, 2), (2, 1, 3)

    def fit(rankings, *, seed):  # noqa: ARG001
        draws, weight = circle.astype(np.float32), np.full((3, 1), 1 / 3, dtype=np.float32)
        return Posterior(rankings.algorithms, rankings.times, draws, weight)

    names = ("bad", "early", "good")
    race = Race(names, [1], direction="maximize", question=PerLook(certainty=0.6, fit=fit))
    for job in race.ask():
        race.tell(job.run([1], [0.0]))
    race.ask()
    assert len(race.pareto) == 1


# With the real fit


def test_the_real_fit_decides_alike_in_any_order():
    question = PerLook(certainty=0.95)
    budget = pb.Budget(batch=(4, 16), runs=150)
    first = drive(race_of(("early", "late", "worst"), question=question, budget=budget, fit=pb.fit))
    shuffled = race_of(("early", "late", "worst"), question=question, budget=budget, fit=pb.fit)
    drive(shuffled, order=np.random.default_rng(0))
    assert history(first) == history(shuffled)
    assert first.pareto == ("early", "late")
    last = max(k for k, event in enumerate(first.events) if isinstance(event, Decided))
    again = Race.from_events(first.events[:last])
    assert history(drive(again)) == history(first)
    assert again.posterior == first.posterior


# Anything may happen


class Accidents(RuleBasedStateMachine):
    """Algorithms come and go, runs fail, come late or twice; the race keeps its promises."""

    def __init__(self):
        super().__init__()
        self.jobs = {}

    @initialize(overlap=st.integers(0, 2), kind=st.sampled_from([PerLook, pb.ParetoSet]))
    def begin(self, overlap, kind):
        limits = {"runs": 60, "time": 200.0, "retries": 1}
        question = kind(certainty=0.8)
        budget = pb.Budget(batch=(1, 4), overlap=overlap, **limits)
        self.race = race_of(("early", "late", "bad"), question=question, budget=budget)

    @rule()
    def ask(self):
        for job in self.race.ask():
            self.jobs[job.key] = job

    @precondition(lambda self: self.jobs)
    @rule(data=st.data(), fails=st.sampled_from([0.0, 0.0, 1.0]))
    def tell(self, data, fails):
        # Jobs of any round, told or not: some are duplicates, some come too late.
        for key in data.draw(st.lists(st.sampled_from(sorted(self.jobs)), max_size=6)):
            self.race.tell(solve(self.jobs[key], fails))

    @rule()
    def finish_round(self):
        for job in self.race.ask():
            self.jobs[job.key] = job
            self.race.tell(solve(job))

    @rule(name=st.sampled_from(sorted(SKILL)))
    def add(self, name):
        if name not in self.race.pareto:
            self.race.add(name)

    @rule(name=st.sampled_from(sorted(SKILL)))
    def remove(self, name):
        if name in self.race.pareto or name in self.race.eliminated:
            self.race.remove(name)

    @rule(certainty=st.sampled_from([0.8, 0.9]), more=st.integers(0, 30))
    def extend(self, certainty, more):
        runs, time = self.race.state.ledger.requested
        limits = {"runs": runs + more, "time": time + 4 * more}
        overlap = self.race.budget.overlap
        self.race.extend(
            PerLook(certainty=certainty),
            budget=pb.Budget(batch=(1, 4), retries=1, overlap=overlap, **limits),
        )

    @rule(name=st.sampled_from(sorted(SKILL)), instance=st.integers(1, 12))
    def load(self, name, instance):
        everybody = {*self.race.pareto, *self.race.eliminated}
        if name in everybody:
            record = pb.Run(name, f"{instance}", [1.0], [0.5], 4.0, repetition=7)
            self.race.load(pb.Runs.from_records([record], direction="maximize"))

    @rule()
    def restart(self):
        lines = [to_json(event) for event in self.race.events]
        again = restore(map(from_json, lines))
        assert again.events == self.race.events
        assert again._state == self.race._state
        self.race = again

    @invariant()
    def promises(self):
        check_invariants(self.race)

    def teardown(self):
        drive(self.race)
        check_invariants(self.race)
        assert not self.race._state.progress.wanted
        assert not self.race._state.progress.has_news


TestAccidents = pytest.mark.slow(Accidents.TestCase)
TestAccidents.settings = settings(stateful_step_count=30)


@pytest.mark.slow
def test_finished_runs_take_little_memory_however_long_they_were():
    """What a race still needs of a run is how it stood at the times of the race."""

    def grown(improvements, runs=(40, 80)):
        question = PerLook(certainty=0.999)
        budget = pb.Budget(batch=(8, 8), runs=runs[-1])
        race = race_of(["good", "twin", "early", "late"], question=question, budget=budget)
        at = [0]
        tracemalloc.start()
        while jobs := race.ask():
            for job in jobs:
                time = np.linspace(0.01, job.horizon, improvements)
                value = np.sort(np.random.default_rng(job.seed).random(improvements))
                race.tell(job.run(time, value))
                race.forget()  # as the coordinator does, who has stored them
                if race.n_runs in runs:
                    gc.collect()
                    at.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
        return (at[-1] - at[-2]) / (runs[-1] - runs[0])

    short, long = grown(10), grown(1_000)  # a long run takes 16,000 bytes where it was made
    assert long < 1.2 * short
    assert long < 2_000


def test_instances_that_only_others_ran_on_are_new_to_those_who_come_later():
    rng = np.random.default_rng(0)
    names = [str(k) for k in range(16)]
    race = pb.Race(["a", "b"], [1, 2], direction="minimize", instances=names)

    def run():
        while jobs := race.ask():
            for job in jobs:
                race.tell(job.run([1, 2], sorted(rng.normal(size=2))[::-1]))

    run()
    assert race.ended == "no instances left"
    for name in "ab":
        race.remove(name)
    for name in "cd":
        race.add(name)
    run()
    assert race.n_runs == 4 * len(names)


def test_runs_that_were_asked_for_and_not_made_are_told_apart():
    race = race_of(question=PerLook(), budget=pb.Budget(batch=(4, 4)))
    jobs = race.ask()
    for job in jobs[:-2]:
        race.tell(solve(job))
    assert f"spent       {len(jobs) - 2} runs of {len(jobs)} requested" in str(race)
    for job in jobs[-2:]:
        race.tell(solve(job))
    assert f"spent       {len(jobs)} runs," in str(race)


# A baseline that is removed


@pytest.mark.parametrize("names", ["ab", "abc"])
@pytest.mark.parametrize("by", ["failures", "hand"])
def test_without_its_baseline_a_race_compares_nothing(names, by):
    question = pb.NoWorse("a")
    budget = pb.Budget(failures=3)
    race = Race([*names], [1, 2], direction="minimize", question=question, budget=budget)
    for job in race.ask():
        crashed = job.algorithm == "a" and by == "failures"
        end = {"status": Status.CRASHED, "until": 1.0} if crashed else {}
        race.tell(job.run([], [], **end) if crashed else job.run([1], [1.0]))
    if by == "hand":
        race.remove("a", "no licence")
    for _ in range(2):
        assert race.ask() == ()
        assert race.ended == "baseline removed, so nothing is compared"
        assert not race.status.resolved
        assert race.events.count(race.events[-1]) == 1
    assert str(race.verdict("b")) == "b is undecided: baseline removed, so nothing is compared"
    assert "ended       baseline removed, so nothing is compared" in str(race)
    assert "settled (baseline removed, so nothing is compared)" in pb.papers.describe_methods(race)
    assert Race.from_events(race.events).ended == race.ended
    assert all(one.is_identical for one in verify_decisions(race.events))
    race.add("a")
    race.ask()
    assert race.ended in (None, "resolved")


def test_a_baseline_that_never_took_part_is_an_error():
    race = Race(["old", "new"], [1], direction="minimize", question=pb.NoWorse("odl"))
    with pytest.raises(DataError, match=r"baseline='odl' is not in the race; .*'old'"):
        race.ask()


def test_attempts_that_were_made_again_are_no_runs(tmp_path):
    """Else a retry counts as half a run, beside the failure that it replaces."""
    names = [f"f{k}" for k in range(8)]
    race = race_of(("good", "bad"), instances=names, budget=pb.Budget(retries=1))
    while jobs := race.ask():
        for job in jobs:
            failed = job.algorithm == "bad" and not job.repetition
            broken = job.run([], [], until=0.0, status=Status.CRASHED)
            race.tell(broken if failed else solve(job))
    with pb.open_store(tmp_path / "race.db") as store:
        store.append(race.events)
        for runs in (race.runs, store.runs()):
            assert len(runs) == 2 * len(runs.instances) < race.n_runs
            assert np.all(np.diff(runs.offset) > 0)  # each has a value
