"""Runs that were withdrawn: on record, not counted, and what rested on them is open again."""

import random

import pytest

import polarbear as pb
from polarbear.errors import DataError
from polarbear.racing.events import Asked, Withdrawn, from_json, to_json
from polarbear.racing.jobs import RunId
from polarbear.racing.jobs import job as make_job
from polarbear.racing.race import Race
from racers import PerLook, restore

TIMES = (1.0, 2.0)
SKILL = {"good": 2.0, "fair": 1.7, "poor": 0.0}


def quick(rankings, *, seed):
    return pb.fit(rankings, seed=seed, draws=200)


def run_all(race, skill=SKILL):
    while jobs := race.ask():
        for job in jobs:
            luck = random.Random(job.seed).random()
            seen = [time for time in TIMES if time <= job.horizon]
            race.tell(job.run(seen, [luck + skill[job.algorithm]] * len(seen)))


@pytest.fixture
def race():
    """A race whose poor algorithm is eliminated."""
    names = [f"f{k}" for k in range(60)]
    question = PerLook(fit=quick)
    budget = pb.Budget(batch=(8, 8), runs=100)
    race = Race(
        SKILL,
        TIMES,
        direction="maximize",
        instances=names,
        question=question,
        budget=budget,
    )
    run_all(race)
    assert "poor" in race.eliminated
    return race


def same_race(race):
    """The race that its events are."""
    return restore(race.events, fit=quick)


def test_a_withdrawn_algorithm_starts_again(race):
    runs, events = race.n_runs, len(race.events)
    own = len(race.runs.filter(algorithms=["good"]))
    assert race.withdraw("good", why="another licence", at="2026-01-01") == own
    assert race.n_runs == runs - own == len(race.runs)
    assert "good" not in race.runs.algorithms
    assert set(race.pareto) == set(SKILL)  # what good eliminated is back
    assert race.state.pairs.open.keys() == {("fair", "good"), ("fair", "poor"), ("good", "poor")}
    assert len(race.events) == events + 1
    assert from_json(to_json(race.events[-1])) == race.events[-1]
    again = same_race(race)
    assert (again.pareto, again.n_runs, again.ask()) == (race.pareto, race.n_runs, race.ask())
    race.extend(PerLook(), budget=pb.Budget(batch=(8, 8), runs=200))
    run_all(race)
    assert "poor" in race.eliminated
    assert {job.repetition for job in race.runs.filter(algorithms=["good"])} >= {1}


def test_what_the_other_runs_show_is_decided_without_new_runs(race):
    before = dict(race.eliminated)
    first = race.runs.instances[0]
    assert race.withdraw("good", first) == 1
    runs = race.n_runs
    assert "poor" not in race.eliminated
    race.ask()
    assert "poor" in before
    assert "poor" in race.eliminated
    assert race.n_runs == runs


def test_rankings_are_those_of_the_runs_that_are_left(race):
    """Whether the race has ranked them already, or has only its events."""
    race.withdraw("fair", "f3")
    race.withdraw(instance=race.runs.instances[-1])
    basis = race.state.progress.decision_input._replace(
        algorithms=tuple(sorted(SKILL)), round=race.state.progress.n_asked
    )
    live, replayed = race._rank_runs(basis), same_race(race)._rank_runs(basis)
    assert live == replayed
    ranked = pb.rank(race.runs, TIMES)
    assert {*live.instances} == {*ranked.instances}


def test_an_instance_by_itself_is_left_out_until_it_is_offered_again(race):
    (first, *_), names = race.runs.instances, race.state.pool.names
    race.withdraw(instance=first)
    assert race.state.pool.names == names - {first}
    race.extend(PerLook(epsilon=0.0, certainty=0.9999), budget=pb.Budget(batch=(8, 8), runs=10_000))
    run_all(race)
    assert first not in race.runs.instances
    race.offer([first])
    assert race.state.pool.names == names
    assert same_race(race).state.pool.names == names


def test_runs_under_way_are_not_waited_for():
    race = Race(
        ["a", "b"],
        TIMES,
        direction="maximize",
        instances=list("wxyz"),
        question=pb.ParetoSet(fit=quick),
    )
    jobs = race.ask()
    for job in jobs[::2]:
        race.tell(job.run(TIMES, [1.0, 1.0]))
    race.withdraw("a")
    for job in jobs:  # they come in all the same
        race.tell(job.run(TIMES, [2.0, 2.0]))
    wanted = race.ask()
    assert {job.algorithm for job in wanted} == {"a"}
    assert not {job.key for job in wanted} & {job.key for job in jobs}
    assert same_race(race).ask() == wanted


def test_an_extended_run_is_withdrawn_as_a_whole():
    race = Race(
        ["a", "b"],
        TIMES,
        direction="maximize",
        instances=["x", "y"],
        question=pb.ParetoSet(fit=quick),
    )
    for job in race.ask():
        race.tell(job.run([1.0], [1.0], until=1.0))
    longer = make_job(0, RunId("a", "x", 1), 2.0, 0)
    race._record(Asked((longer,), race.state.progress.n_asked))
    race.tell(longer.run(TIMES, [1.0, 2.0]))
    assert [run.until for run in race.runs if run[:2] == ("a", "x")] == [2.0]
    assert race.withdraw("a", "x") == 2
    assert not [run for run in race.runs if run[:2] == ("a", "x")]
    assert "a" not in race.state.pool.observed_until["x"]
    assert race.runs == same_race(race).runs
    again = {job.key for job in race.ask()}
    assert again == {RunId("a", "x", 2)}


def test_an_algorithm_that_failed_out_comes_back_with_its_failures_withdrawn():
    budget = pb.Budget(batch=(4, 4), failures=2, runs=40)
    names = [f"f{k}" for k in range(30)]
    race = Race(
        ["a", "b"],
        TIMES,
        direction="maximize",
        instances=names,
        budget=budget,
        question=pb.ParetoSet(fit=quick),
    )
    for job in race.ask():
        failed = {"until": 0.0, "status": pb.Status.CRASHED}
        if job.algorithm == "a":
            race.tell(job.run([], [], **failed))
        else:
            race.tell(job.run(TIMES, [1.0, 1.0]))
    race.ask()
    assert race.status.removed == ("a",)
    race.withdraw("a")
    assert race.status.removed == ()
    assert {job.algorithm for job in race.ask()} == {"a"}


def test_what_is_not_there_cannot_be_withdrawn(race):
    with pytest.raises(DataError, match="did you mean 'poor'"):
        race.withdraw("poo")
    with pytest.raises(DataError, match="no instance named 'g'"):
        race.withdraw(instance="g")
    with pytest.raises(DataError, match="runs to withdraw are not given"):
        race.withdraw()
    assert race.withdraw("good") > 0
    assert race.withdraw("good") == 0  # twice is once
    assert sum(isinstance(event, Withdrawn) for event in race.events) == 1


@pytest.fixture
def kept(race, tmp_path):
    path = tmp_path / "race.db"
    with pb.open_store(path) as store:
        store.append(race.events)
    return path


def test_no_reader_of_a_store_counts_them(race, kept, tmp_path, capsys):
    from polarbear.cli.main import main

    before = race.n_runs
    own = len(race.runs.filter(algorithms=["good"]))
    assert main(["forget", str(kept), "--algorithm", "good", "--why", "licence"]) == 0
    assert "back in the race  fair, poor" in capsys.readouterr().out
    with pb.open_store(kept, read_only=True) as store:
        status, runs = store.status(), store.runs()
        (event,) = store.of_kind(Withdrawn)
        assert sum(type(e).__name__ == "Told" for e in store.read()) == before  # on record
    assert (event.why, bool(event.at)) == ("licence", True)
    assert (status.n_runs, status.counts.withdrawn, len(runs)) == (before - own, own, before - own)
    assert "poor" in status.pareto
    assert len(status.store.run_statuses) == 2
    assert f"withdrawn   {own} runs" in str(status)
    pb.store.merge([kept], tmp_path / "all.db")
    with pb.open_store(tmp_path / "all.db", read_only=True) as store:
        assert "good" not in store.runs().algorithms
    pb.store.repair_store(kept, tmp_path / "copy.db")
    with pb.open_store(tmp_path / "copy.db", read_only=True) as store:
        assert store.runs() == runs


def test_runs_since_an_event_or_with_a_status(race, kept, capsys):
    from polarbear.cli.main import main

    told = [k for k, e in enumerate(race.events, 1) if type(e).__name__ == "Told"]
    assert main(["forget", str(kept), "--since", str(told[-3])]) == 0
    assert capsys.readouterr().out.startswith("3 runs withdrawn")
    assert main(["forget", str(kept), "--status", "crashed"]) == 1
    assert "has no such runs" in capsys.readouterr().err
    assert main(["forget", str(kept)]) == 1
    assert "no runs were chosen" in capsys.readouterr().err
