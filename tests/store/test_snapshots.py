"""Snapshots: a race resumed from one is the race that its events make, whatever happened to it."""

import gc
import sqlite3
import tempfile
from inspect import getfile
from itertools import pairwise
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from polarbear import open_store
from polarbear.data.run import Status
from polarbear.errors import StoreError
from polarbear.inference.verdicts import Verdict
from polarbear.racing.budget import Budget
from polarbear.racing.events import UNREADABLE, Started
from polarbear.racing.questions.pareto_set import ParetoSet
from polarbear.racing.questions.question import Question
from polarbear.racing.race import Race
from polarbear.racing.state import State
from polarbear.store import race_snapshot, restoring
from polarbear.store.restoring import restore_race
from polarbear.store.rows import blob_row
from racers import asked_by, race_of, restore, solve

NAMES = ("early", "late", "good")


@pytest.fixture(autouse=True)
def often(monkeypatch):
    """A snapshot after every decision."""
    monkeypatch.setattr(race_snapshot, "MIN_EVENTS", 1)
    monkeypatch.setattr(restoring, "UNREADABLE", ())  # one that cannot be read is an error here
    monkeypatch.setattr(race_snapshot, "GROWTH", 0.0)


def save(race, store, *, snapshot=True):
    store.append(race.events)
    race.forget()
    if snapshot:
        store.keep_snapshot(race.snapshot)


def steps(race, store, rounds, *, lost=0, snapshot=True):
    for _ in range(rounds):
        for k, job in enumerate(race.ask()):
            gone = lost and k % 6 == lost
            run = job.run([], [], until=0.0, status=Status.KILLED) if gone else solve(job)
            race.tell(run)
        race.ask()
        save(race, store, snapshot=snapshot)


def same(path, *, uses=True):
    """The race restored in both ways; they are alike, and go on alike."""
    with open_store(path, read_only=True) as store:
        assert (store.verify()[1] is not None) == uses
        kept, replayed = restore_race(store, question=asked_by(store)), restore(store.read())
        replayed.forget()
        assert kept.state == replayed.state
        for part in ("members", "pairs", "pool", "ledger", "progress"):
            both = vars(getattr(kept.state, part)), vars(getattr(replayed.state, part))
            for one, other in zip(both[0].values(), both[1].values(), strict=True):
                assert type(one) is type(other)
                assert not isinstance(one, dict) or list(one) == list(other)  # in the same order
        for _ in range(2):
            jobs = kept.ask()
            assert jobs == replayed.ask()
            for job in jobs:
                kept.tell(solve(job))
                replayed.tell(solve(job))
        assert kept.events == replayed.events
        assert kept.status == replayed.status
    return kept


def begin(path, rounds=3, *, seed=2, overlap=0, snapshot=True, instances=6):
    question = ParetoSet(certainty=0.99)
    budget = Budget(batch=(1, 2), retries=1, runs=120, overlap=overlap)
    names = [f"f{k}" for k in range(instances)]
    race = race_of(NAMES, instances=names, question=question, budget=budget, seed=seed)
    with open_store(path) as store:
        steps(race, store, rounds, snapshot=snapshot)
    return race


CHANGES = st.sampled_from(["steps", "steps", "lost", "add", "remove", "withdraw", "extend", "back"])


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    overlap=st.integers(0, 1),
    changes=st.lists(st.tuples(CHANGES, st.booleans()), min_size=1, max_size=6),
)
def test_a_race_resumed_from_a_snapshot_is_the_race_of_its_events(overlap, changes):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "race.db"
        race = begin(path, overlap=overlap)
        for what, snapshot in changes:
            with open_store(path) as store:
                race = restore_race(store, question=asked_by(store))
                if what == "add" and "twin" not in race.pareto:
                    race.add("twin")
                elif what == "remove" and len(race.pareto) > 2:
                    race.remove(race.pareto[0])
                elif what == "back" and race.eliminated:
                    race.add(next(iter(race.eliminated)))
                elif what == "withdraw":
                    race.withdraw("good", race.state.pool.order[0])
                elif what == "extend":
                    race.extend(
                        ParetoSet(certainty=0.999),
                        budget=Budget(batch=(1, 2), runs=150, overlap=overlap),
                    )
                steps(race, store, 1, lost=3 * (what == "lost"), snapshot=snapshot)
            same(path)


def test_a_snapshot_is_resumed_from_in_every_database(where):
    begin(where, rounds=4)
    race = same(where)
    assert race.posterior.algorithms  # the store is closed by now; it is opened again
    with open_store(where) as store:
        assert store._hash.last == 0
        assert restore_race(store, question=asked_by(store)).n_runs
        assert store._hash.last == store.n_events  # the snapshot has them all


def change(path, sql, *values):
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(sql, values)
    connection.close()


def flip(path):
    spoilt = "CAST(substr(body, 1, 900) || x'07' || substr(body, 902) AS BLOB)"
    change(path, f"UPDATE snapshot SET body = {spoilt} WHERE part = 1")


def truncate(path):
    change(path, "UPDATE snapshot SET body = substr(body, 1, length(body) - 9) WHERE part = 1")


def lose(path):
    change(path, "DELETE FROM snapshot WHERE part = 1")


def take_that_of(path, *, seed=2, rounds=3):
    other = path.with_name("other.db")
    begin(other, seed=seed, rounds=rounds)
    change(path, "DELETE FROM snapshot")
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("ATTACH ? AS other", (str(other),))
    connection.execute("INSERT INTO snapshot SELECT * FROM other.snapshot")
    connection.close()


def take_foreign(path):
    take_that_of(path, seed=3)


def take_newer(path):
    take_that_of(path, rounds=5)


def rename(path):
    """Another name in the table, with its checksum: the events are other events."""
    with open_store(path, read_only=True) as store:
        place = store._query("SELECT id FROM names WHERE name = ?", b"good")[0][0]
    _, data, crc = blob_row(place, b"goof")
    change(path, "UPDATE names SET name = ?, crc = ? WHERE id = ?", data, crc, place)


@pytest.mark.parametrize("spoil", [flip, truncate, lose, take_foreign, take_newer])
def test_a_snapshot_in_doubt_is_not_used_and_is_replaced(tmp_path, monkeypatch, spoil):
    monkeypatch.setattr(race_snapshot, "PART_BYTES", 2048)
    path = tmp_path / "race.db"
    begin(path)
    same(path)
    spoil(path)
    same(path, uses=False)
    with open_store(path) as store:
        race = restore_race(store, question=asked_by(store))
        steps(race, store, 1)
    same(path)


def test_a_snapshot_of_other_events_other_code_or_another_model_is_not_used(tmp_path, monkeypatch):
    path = tmp_path / "race.db"
    begin(path)
    monkeypatch.setattr(restoring, "UNREADABLE", UNREADABLE)
    with open_store(path, read_only=True) as store:
        tolerant = restore_race(store, question=asked_by(store, {"abs_tol": 0.5}))
        assert tolerant._ranked_runs._ranked is None  # those of the snapshot have no tolerance
        assert tolerant.state == Race.from_events(store.read()).state
    monkeypatch.setattr(race_snapshot, "fingerprint_code", lambda: "another version")
    same(path, uses=False)
    monkeypatch.undo()
    rename(path)
    with open_store(path, read_only=True) as store:
        assert store.verify()[1] is None


def find_types(kind):
    """All classes of the package that a type is made of."""
    if not str(getattr(kind, "__module__", "")).startswith("polarbear"):
        return {one for part in get_args(kind) for one in find_types(part)}
    own = kind is Question or hasattr(kind, "to_plain")  # it is stored in its own way
    hints = () if own else get_type_hints(kind).values()
    return {kind}.union(*map(find_types, hints))


def test_a_snapshot_depends_on_the_code_of_all_that_it_has():
    types = find_types(State)
    assert {Verdict, Question, Started, State} <= types
    assert {Path(getfile(one)) for one in types} <= {*race_snapshot.list_code()}
    assert Path(getfile(ParetoSet)) in race_snapshot.list_code()


@pytest.mark.parametrize("snapshot", [True, False])
@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE runs SET until = until + 1",
        "UPDATE trajectories SET data = zeroblob(length(data))",
        "UPDATE events SET kind = 'ended'",
        "DELETE FROM trajectories",
    ],
)
def test_damaged_events_are_noticed_although_there_is_a_snapshot(tmp_path, damage, snapshot):
    path = tmp_path / "race.db"
    begin(path, rounds=1, snapshot=snapshot)
    table = damage.split()[damage.startswith("DELETE") + 1]
    change(path, f"{damage} WHERE seq = (SELECT max(seq) FROM {table})")
    with (
        open_store(path, read_only=True) as store,
        pytest.raises(StoreError, match="1 damaged row"),
    ):
        restore_race(store)


def test_a_snapshot_is_written_when_events_have_grown_by_a_share(tmp_path, monkeypatch):
    monkeypatch.setattr(race_snapshot, "MIN_EVENTS", 10)
    monkeypatch.setattr(race_snapshot, "GROWTH", 0.5)
    path, written = tmp_path / "race.db", []
    race = begin(path, rounds=0)
    with open_store(path) as store:
        while jobs := race.ask():
            for job in jobs:
                race.tell(solve(job))
            race.ask()
            save(race, store)
            written += [row[0] for row in store._query("SELECT max(seq) FROM snapshot")]
    sizes = sorted({last for last in written if last})
    assert len(sizes) >= 2
    assert sizes[0] >= 10
    assert all(later >= 1.5 * earlier for earlier, later in pairwise(sizes))
    same(path)


def test_a_store_without_a_snapshot_gets_one(tmp_path):
    """As stores have none that were written before there were snapshots."""
    path = tmp_path / "race.db"
    begin(path, snapshot=False)
    same(path, uses=False)
    with open_store(path) as store:
        steps(restore_race(store, question=asked_by(store)), store, 1)
    same(path)


def test_a_snapshot_of_a_race_with_unused_instances_is_used(tmp_path):
    path = tmp_path / "race.db"
    begin(path, instances=40)
    assert same(path).state.pool.unused


def test_a_run_of_an_undecided_round_is_known_to_have_a_value(tmp_path):
    """A newcomer on trial whose first run had a value goes on with a whole batch."""
    path = tmp_path / "race.db"
    with open_store(path) as store:
        race = race_of(("early", "good"), budget=Budget(batch=(8, 8), failures=2))
        steps(race, store, 1)
        race.add("late", trial=True)
        for job in race.ask():
            race.tell(solve(job))
        save(race, store, snapshot=False)
        resumed = restore_race(store)
    assert gc.isenabled()  # which it is not while a race is restored
    assert resumed.state.progress.pending == race.state.progress.pending
    assert sum(job.algorithm == "late" for job in resumed.ask()) == 7
