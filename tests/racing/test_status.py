"""One status: what races, stores and commands say about where a race stands."""

import ast
import json
from dataclasses import replace
from pathlib import Path
from typing import get_type_hints

import pytest

import polarbear as pb
from polarbear.data.run import Status
from polarbear.racing.events import Report
from polarbear.racing.race import Race
from polarbear.racing.status import RaceStatus
from polarbear.store.log import Store
from polarbear.store.race_status import StoreStatus
from racers import drive, race_of, solve

SOURCE = Path(pb.__file__).parent


def test_there_is_one_status_of_a_race():
    """A run has a status (how it ended), an algorithm has one, and a race has one."""
    words = ("Status", "Standing", "Progress", "Overview", "Summary", "State")
    known = {
        ("data/run.py", "Status"),
        ("racing/status.py", "RaceStatus"),
        ("store/race_status.py", "StoreStatus"),  # the same, with facts about the store
        ("store/backup.py", "BackupSummary"),
        ("store/repair.py", "RepairSummary"),  # what became of a damaged store
        ("racing/state.py", "State"),  # what the next step of a race depends on
        ("racing/progress.py", "Progress"),  # a part of it
    }
    classes = {
        (path.relative_to(SOURCE).as_posix(), node.name)
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and node.name.endswith(words)
    }
    assert classes == known
    assert get_type_hints(Race.status.fget)["return"] is RaceStatus
    assert get_type_hints(Store.status)["return"] is StoreStatus
    assert issubclass(StoreStatus, RaceStatus)


def test_a_status_is_the_same_from_json():
    race = race_of(("good", "twin", "bad"), seed=2)
    for _ in range(3):
        for job in race.ask():
            race.tell(solve(job))
        status = race.status
        again = json.loads(json.dumps(status.to_dict(), allow_nan=False))
        assert RaceStatus.from_dict(again) == status
    assert status.forecast is not None


def test_spent_is_what_was_made_and_requested_what_was_asked_for():
    race = race_of(("good", "bad"), seed=2, clock="seconds")
    jobs = race.ask()
    assert race.status.spent == race.spent == (0, 0.0)
    assert race.status.requested == (len(jobs), sum(job.horizon for job in jobs))
    assert race.status.describe_spent() == f"0 runs of {len(jobs)} requested, 0 seconds"
    race.tell(solve(jobs[0]))
    crashed = jobs[1].run([], [], until=1.5, status=Status.CRASHED)
    race.tell(crashed)
    assert race.status.spent == (2, jobs[0].horizon + 1.5)
    assert race.status.describe_spent() == f"2 runs of {len(jobs)} requested, 5.5 seconds"


def test_failed_runs_are_counted_by_algorithm_with_and_without_a_reason(tmp_path):
    race = race_of(("good", "bad"), seed=2, question=pb.ParetoSet(), budget=pb.Budget(batch=(4, 4)))
    jobs = [job for job in race.ask() if job.algorithm == "bad"]
    race.tell(jobs[0].run([], [], until=0.0, status=Status.CRASHED))
    race.tell(jobs[1].run([], [], until=0.0, status=Status.CRASHED), why="no licence")
    race.tell(jobs[2].run([1], [1], until=9.0, status=Status.OUT_OF_TIME), why="over the limit")
    race.tell(solve(jobs[3]))
    assert race.status.runs.failed == {"bad": 3}
    assert "failed      3 runs of bad: no licence (1 run, on" in str(race)
    with pb.open_store(tmp_path / "race.db") as store:
        store.append(race.events)
        assert store.status().runs.failed == {"bad": 3}
    race.withdraw(algorithm="bad", instance=jobs[1].instance)
    assert race.status.runs.failed == {"bad": 2}


@pytest.mark.parametrize("overlap", [0, 1])
def test_a_store_keeps_the_status_with_the_decision(tmp_path, overlap):
    """At any moment the row and what came in since say what a replay of all events says."""
    question = pb.ParetoSet(certainty=0.95)
    budget = pb.Budget(runs=300, overlap=overlap, retries=1)
    race, kept, moments = race_of(seed=3, question=question, budget=budget), [], 0

    def keep(store):
        changed = any(not isinstance(event, Report) for event in race.events)
        store.append(race.events, status=race.status if changed else None)
        kept.extend(race.events)
        race.forget()
        status = store.status()
        assert status == StoreStatus(**vars(race.status), store=status.store)
        (row,) = store._database.query("SELECT seq FROM status")
        return len(kept) - row[0]

    with pb.open_store(tmp_path / "race.db") as store:
        while jobs := race.ask():
            keep(store)
            for number, job in enumerate(jobs[:9]):
                broken = number == 3 and job.repetition == 0
                run = job.run([], [], until=0.0, status=Status.CRASHED) if broken else solve(job)
                race.tell(run)
                moments += keep(store) > 0
        keep(store)
        race.withdraw("good", why="to see")
        keep(store)
        assert store.status().counts.withdrawn
    assert moments > 20


def test_a_row_that_cannot_be_used_is_replaced_by_the_events(tmp_path):
    race = drive(race_of(seed=3))
    with pb.open_store(tmp_path / "race.db") as store:
        store.append(race.events, status=race.status)
        database = store._database
        whole = store.status()
        assert whole == StoreStatus(**vars(race.status), store=whole.store)
        for change in ("body = x'7b7d'", "crc = crc + 1", "seq = seq - 1", "body = x''"):
            database._connection.execute(f"UPDATE status SET {change}")
            assert replace(store.status(), store=whole.store) == whole
        race.add("newcomer")
        store.append(race.events[store.n_events :])  # without its status
        assert store.status().pareto == race.pareto
