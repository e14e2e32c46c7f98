"""Stores that were cut off, deleted, reached through links or made by hand."""

import json
import shutil
import sqlite3
from contextlib import suppress

import pytest

from polarbear.cli.main import main
from polarbear.errors import PolarBearError, StoreError
from polarbear.racing.budget import Budget
from polarbear.racing.events import VERSION, Added
from polarbear.racing.jobs import key_of
from polarbear.racing.questions.pareto_set import ParetoSet
from polarbear.racing.race import Race
from polarbear.store import open_store, repair_store, sqlite
from polarbear.store.rows import StoredEvent, event_row
from racers import drive, race_of


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    path = tmp_path_factory.mktemp("sound") / "race.db"
    names = ["early", "late", "good", "bad", "twin"]
    budget = Budget(batch=(2, 4), runs=300, retries=1)
    race = race_of(names, question=ParetoSet(certainty=0.99), budget=budget, seed=1)
    drive(race, fails=0.1)
    with open_store(path) as store:
        for k in range(0, len(race.events), 20):
            store.append(race.events[k : k + 20])
    return path


def test_a_store_without_its_first_event_says_what_is_needed(sound, tmp_path, capsys):
    path, new = shutil.copy(sound, tmp_path / "race.db"), str(tmp_path / "new.db")
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("DELETE FROM events WHERE seq = 1")
    connection.close()
    assert main(["repair", str(path), new]) == 1
    assert "--like STORE" in capsys.readouterr().err
    assert main(["repair", str(path), new, "--like", str(sound)]) == 0
    with open_store(sound, read_only=True) as one, open_store(new, read_only=True) as two:
        assert {key_of(run) for run in two.runs()} >= {key_of(run) for run in one.runs()}
        assert next(one.read()) == next(two.read())


def test_repair_leaves_a_newer_format_alone(sound, tmp_path):
    path = shutil.copy(sound, tmp_path / "race.db")
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"PRAGMA user_version = {sqlite.FORMAT + 1}")
    connection.close()
    with pytest.raises(StoreError, match="upgrade PolarBear to read it"):
        repair_store(path, tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()


@pytest.mark.parametrize("what", ["deleted", "replaced"])
def test_a_store_that_is_gone_is_an_error_at_the_next_append(tmp_path, what):
    path = tmp_path / "race.db"
    with open_store(path) as store:
        store.append(race_of().events)
        path.unlink()
        if what == "replaced":
            path.write_bytes(b"something else")
        with pytest.raises(StoreError, match="was deleted or replaced"):
            store.append([Added("x")])


def test_through_a_link_it_is_the_same_store(tmp_path):
    path, link = tmp_path / "race.db", tmp_path / "folder" / "link.db"
    link.parent.mkdir()
    with open_store(path) as store:
        store.append(race_of().events)
        link.symlink_to(path)
        with pytest.raises(StoreError, match="is being written to by"):
            open_store(link)
        store.append([Added("x")])  # the first one goes on


DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    "line",
    [
        {"event": "decided", "round": 0,
         "decision": {"eliminated": [["x", "y", 1]], "open": [], "batch": 1}},
        {"event": "decided", "round": 9, "decision": {"open": [["a", "b", "1", 1]]}},
        {"event": "removed", "algorithm": ["x"], "why": ""},
        {"event": "asked", "jobs": [[{}, [], "x", 1, 2, 3]], "round": 0},
        {"event": "asked", "jobs": [["good", "f", 0, "x", 2, 3]], "round": 0},
        {"event": "asked", "jobs": [["good", "f", 10**30, 1.0, 2, 3]], "round": "x"},
        {"event": "offered", "instances": [1, {}]},
        {"event": "added", "algorithm": {}},
        {"event": "continued", "key": ["a"], "extends": 0},
        {"event": "extended", "question": {}, "budget": {"batch": [1, 10**40]}},
        {"event": "identified", "instances": 5, "solvers": 3, "limits": []},
        DEEP,
    ],
    ids=str,
)  # fmt: skip
def test_events_made_by_hand_are_refused_in_words(tmp_path, line):
    """Whatever is in a store, reading it gives the race or one kind of error."""
    path = tmp_path / "race.db"
    with open_store(path) as store:
        store.append(race_of(["good", "bad"]).events)
        seq = store.n_events
    if isinstance(line, dict):
        body, kind = json.dumps({"version": VERSION, **line}).encode(), line["event"]
    else:
        body, kind = line.encode(), "added"
    _, *row = event_row(seq, StoredEvent(kind, body))
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("UPDATE events SET kind = ?, body = ?, crc = ? WHERE seq = ?", (*row, seq))
    connection.close()
    for use in (
        lambda store: Race.from_events(store.read()).ask(),
        lambda store: store.status(),
        lambda store: store.runs(),
    ):
        with open_store(path, read_only=True) as store, suppress(PolarBearError):
            use(store)
    with suppress(PolarBearError):
        repair_store(path, tmp_path / "new.db")
