"""A backup is the same race, at every time, in either database."""

import sqlite3

import pytest

from polarbear import open_store
from polarbear.errors import StoreError
from polarbear.racing.events import Told
from polarbear.store import backup_store
from racers import race_of, solve


def events(where):
    with open_store(where, read_only=True) as store:
        return list(store.read()), store.conflicts()


def go_on(race, store):
    jobs = race.ask()
    for job in jobs:
        race.tell(solve(job))
    store.append(race.events, status=race.status)
    race.forget()
    return jobs


def test_a_backup_during_a_race_is_the_same_race_and_later_gets_what_is_new(where, tmp_path):
    copy, back = tmp_path / "copy.db", tmp_path / "back.db"
    race = race_of(("early", "late", "good"), instances=["f1", "f2", "f3"], seed=2)
    with open_store(where) as store:
        job, *_ = go_on(race, store)
        run = solve(job)
        store.append([Told(run._replace(value=[value + 1 for value in run.value]))])  # a conflict
        first = backup_store(where, copy)
        assert (first.copied, first.known) == (store.n_events, 0)
        assert events(copy) == events(where)
        go_on(race, store)
        later = backup_store(where, copy)
        assert (later.copied, later.known) == (store.n_events - first.copied, first.copied)
    assert events(copy) == events(where)
    assert len(events(copy)[1]) == 1
    backup_store(copy, back)  # the way back
    assert events(back) == events(where)
    with open_store(where, read_only=True) as one, open_store(back, read_only=True) as other:
        assert one.status().to_dict()["runs"] == other.status().to_dict()["runs"]
        assert one.hash_events(one.n_events) == other.hash_events(other.n_events)


def test_a_backup_is_not_written_over_another_race_nor_from_a_damaged_store(tmp_path):
    places = [tmp_path / f"{seed}.db" for seed in (2, 3)]
    for seed, place in enumerate(places, 2):
        with open_store(place) as store:
            go_on(race_of(("early", "good"), seed=seed), store)
    with pytest.raises(StoreError, match="not an earlier backup"):
        backup_store(*places)
    connection = sqlite3.connect(places[0], isolation_level=None)
    connection.execute("UPDATE trajectories SET crc = 1")
    connection.close()
    with pytest.raises(StoreError, match="damaged"):
        backup_store(places[0], tmp_path / "new.db")
