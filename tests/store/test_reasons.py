"""Why runs failed and why a race ended are events: known after a restart, wherever one looks."""

import json

import polarbear as pb
from polarbear.cli.main import main
from polarbear.data.run import Status
from polarbear.racing.budget import Budget
from polarbear.racing.events import MAX_REASON, Ended, Failed, from_json, to_json
from polarbear.racing.questions.pareto_set import ParetoSet
from polarbear.reporting.content import make_document
from racers import drive, fitted, race_of


def good(job):
    for step in (1, 10, 100):
        yield step, job.instance + 1 / step


def crashes(job):
    yield 1, job.instance
    raise ValueError("out of paper")


def hangs(job):
    yield 1, job.instance
    while True:
        pass


def raced(store, **more):
    budget = Budget(batch=(1, 1), runs=3, **more)
    return pb.race(
        [good, crashes, hangs], range(3), [10, 100], direction="minimize", budget=budget,
        store=store, executor=1, limits=pb.Limits(cpu_seconds=0.3), question=fitted(),
    )  # fmt: skip


def test_reasons_outlive_the_coordinator(tmp_path, capsys):
    path = str(tmp_path / "race.db")
    with raced(path) as found:
        said, ended = found.failures, found.ended
    assert set(said) == {"crashes", "hangs"}
    assert "out of paper" in said["crashes"]
    assert "0.3" in said["hangs"]
    assert ended == "budget of runs spent"
    with pb.open_store(path, read_only=True) as store:
        again = pb.Race.from_events(store.read())
        status = store.status()
    assert (again.failures, again.ended) == (said, ended)
    assert (status.runs.why, status.ended) == (said, ended)
    with raced(path) as resumed:  # the same call again: nothing to do
        assert (resumed.failures, resumed.ended) == (said, ended)
    capsys.readouterr()
    assert main(["status", path]) == 0
    text = capsys.readouterr().out
    assert "ended       budget of runs spent" in text
    assert "out of paper" in text
    content = make_document(again)
    assert content["ended"] == "budget of runs spent"
    facts = json.dumps(content["race"]["facts"])
    assert "out of paper" in facts
    assert "under way" not in facts


def test_a_race_that_goes_on_has_not_ended():
    race = race_of(question=ParetoSet(certainty=0.9), budget=Budget(batch=(2, 2), runs=8))
    drive(race)
    assert race.ended == "budget of runs spent"
    events = [from_json(to_json(event)) for event in race.events]
    assert events[-1] == Ended("budget of runs spent")
    assert pb.Race.from_events(events).ended == "budget of runs spent"
    assert race.ask() == ()
    assert len(race.events) == len(events)  # to ask twice is to ask once
    race.extend(ParetoSet(certainty=0.9), budget=Budget(batch=(2, 2), runs=400))
    assert race.ended is None
    drive(race)
    assert race.ended == race.events[-1].why


def test_reasons_are_bounded_and_end_as_they_ended():
    race = race_of(["good", "bad"])
    job, *_ = race.ask()
    long = "x" * 10 * MAX_REASON + "\nKeyError: 'the end'"
    race.tell(job.run([], [], until=0.0, status=Status.CRASHED), why=long, output=long)
    failed = race.events[-1]
    assert isinstance(failed, Failed)
    assert failed.why.endswith("KeyError: 'the end'")
    assert len(to_json(failed)) < 3 * MAX_REASON
    assert from_json(to_json(failed)) == failed


def test_the_status_of_a_store_has_the_reasons_since_the_last_decision(tmp_path):
    race = race_of(["good", "bad"], budget=Budget(batch=(6, 6)))
    jobs = [job for job in race.ask() if job.algorithm == "bad"]
    with pb.open_store(tmp_path / "race.db") as store:
        for k, job in enumerate(jobs[:5]):
            why = "boom" if k < 4 else "out of licences"
            race.tell(job.run([], [], until=0.0, status=Status.CRASHED), why=why)
            store.append(race.events[store.n_events :], status=None if k else race.status)
        found = store.status().runs
    assert found.why == race.status.runs.why
    assert "boom (4 runs" in found.why["bad"]
    assert "out of licences" in found.why["bad"]
