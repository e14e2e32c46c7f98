"""Damaged, foreign and hostile files: refused in words, never a silent difference."""

import os
import pickle
import random
import shutil
import signal
import sqlite3
import struct

import numpy as np
import pytest

from polarbear.data.run import Run, Status
from polarbear.errors import StoreError
from polarbear.racing.budget import Budget
from polarbear.racing.events import Added, Asked, Decided, Imported, Removed, Told
from polarbear.racing.questions.pareto_set import ParetoSet
from polarbear.racing.state import key_of
from polarbear.running.solvers.processes import fork
from polarbear.store import sqlite, writer_lock
from polarbear.store.opening import open_store
from polarbear.store.repair import repair_store
from polarbear.store.rows import (
    are_intact,
    blob_row,
    decode_name,
    decode_run_facts,
    describe_holder,
)
from racers import drive, race_of, restore, solve


@pytest.fixture(scope="module")
def race():
    names = ["early", "late", "good", "bad", "worst"]
    budget = Budget(batch=(2, 4), runs=132, retries=1)
    race = race_of(names, question=ParetoSet(certainty=0.9), budget=budget, seed=1)
    return drive(race, fails=0.1)


@pytest.fixture(scope="module")
def sound(race, tmp_path_factory):
    """A finished store: one file, and nothing beside it."""
    path = tmp_path_factory.mktemp("sound") / "race.db"
    with open_store(path) as store:
        for k in range(0, len(race.events), 40):
            store.append(race.events[k : k + 40])
        store.append([Told(race.runs[0]._replace(value=race.runs[0].value + 1))])
    return path


@pytest.fixture
def path(sound, tmp_path):
    return shutil.copy(sound, tmp_path / "race.db")


def read(path):
    with open_store(path, read_only=True) as store:
        return list(store.read())


def change(path, sql, *values):
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(sql, values)
    connection.close()


# Bit rot


@pytest.mark.slow
def test_of_400_flipped_bits_none_goes_unnoticed(sound, race, tmp_path):
    whole = sound.read_bytes()
    rng = random.Random(400)
    counts = {"harmless": 0, "named": 0, "refused": 0}
    path = tmp_path / "race.db"
    for _ in range(400):
        place, bit = rng.randrange(len(whole)), rng.randrange(8)
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :])
        try:
            found = read(path)
        except StoreError as error:
            counts["named" if "event " in str(error) else "refused"] += 1
        else:
            assert found == race.events
            counts["harmless"] += 1
    assert counts["named"] > 50
    assert counts["harmless"] + counts["named"] + counts["refused"] == 400


@pytest.mark.slow
def test_a_writer_of_a_file_with_flipped_bits_adds_to_what_was_there_or_refuses(
    sound, race, tmp_path
):
    whole = sound.read_bytes()
    rng = random.Random(60)
    path = tmp_path / "race.db"
    for _ in range(60):
        place, bit = rng.randrange(len(whole)), rng.randrange(8)
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :])
        try:
            with open_store(path) as store:
                store.append([Added("new"), Told(race.runs[0])])
                assert list(store.read()) == [*race.events, Added("new")]
        except StoreError:
            pass


@pytest.mark.slow
def test_a_truncated_file_is_refused_at_every_length(sound, tmp_path):
    whole = sound.read_bytes()
    path = tmp_path / "race.db"
    for length in range(0, len(whole), 512):
        path.write_bytes(whole[:length])
        with pytest.raises(StoreError):
            read(path)


def left_behind(path, events):
    """The store of a writer that was killed: most of it is in the write-ahead log."""
    child = fork()
    if child == 0:
        try:
            store = open_store(path)
            for k in range(0, len(events), 40):
                store.append(events[k : k + 40])
            os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(1)
    os.waitpid(child, 0)
    assert path.with_name(path.name + "-wal").stat().st_size > 0
    return path


@pytest.mark.parametrize("what", ["deleted", "truncated", "of another store", "garbage"])
def test_with_a_wrong_log_a_store_is_refused_or_as_it_was_at_some_time(race, tmp_path, what):
    """Whoever takes a file without its log takes an earlier state, and never a mixture."""
    path = left_behind(tmp_path / "race.db", race.events)
    log = path.with_name("race.db-wal")
    other = race_of(["early", "late"], seed=5)
    match what:
        case "deleted":
            log.unlink()
        case "truncated":
            log.write_bytes(log.read_bytes()[: log.stat().st_size // 2 + 100])
        case "of another store":
            drive(other)
            shutil.copy(left_behind(tmp_path / "b.db", other.events).with_name("b.db-wal"), log)
        case "garbage":
            log.write_bytes(random.Random(3).randbytes(log.stat().st_size))
    path.with_name("race.db-shm").unlink()
    try:
        found = read(path)
    except StoreError:
        return
    assert found in (race.events[: len(found)], other.events[: len(found)])


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("UPDATE runs SET until = until + 1 WHERE seq = 30", "event 30 is damaged"),
        ("UPDATE runs SET seq = 100000 WHERE seq = 30", "event 30 is missing"),
        ("UPDATE trajectories SET data = zeroblob(48) WHERE seq = 30", "event 30 has lost its"),
        ("DELETE FROM trajectories WHERE seq = 30", "event 30 has lost its trajectory"),
        ("DELETE FROM names WHERE id = 1", "has lost a name"),
        ("UPDATE names SET name = x'ff' WHERE id = 1", "has lost a name"),
        ("UPDATE runs SET status = 99 WHERE seq = 30", "event 30 is damaged"),
        ("UPDATE trajectories SET data = x'00' WHERE seq = 30", "event 30 has lost its"),
        ("UPDATE events SET body = x'7b' WHERE seq = 2", "event 2 is damaged"),
        ("DELETE FROM events WHERE seq = 2", "event 2 is missing"),
        ("UPDATE events SET kind = 'told' WHERE seq = 2", "event 2 is damaged"),
        ("UPDATE head SET last = last - 1", "the number of the last event is damaged"),
        ("DELETE FROM head", "the number of the last event is damaged"),
    ],
)
def test_what_is_damaged_is_named(path, sql, said):
    change(path, sql)
    with pytest.raises(StoreError, match=said):
        read(path)


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE counts SET number = number + 1 WHERE status = 0",
        "DELETE FROM counts WHERE status = 4",
        "UPDATE counts SET status = 9 WHERE status = 4",
    ],
)
def test_numbers_of_runs_that_do_not_add_up_are_noticed(path, race, sql):
    change(path, sql)
    assert read(path) == race.events
    with (
        open_store(path, read_only=True) as store,
        pytest.raises(StoreError, match="do not match the stored runs; `polarbear repair"),
    ):
        store.status()
    with pytest.raises(StoreError, match="do not match the stored runs"):
        open_store(path)
    assert not repair_store(path, path.with_name("new.db")).lost


def test_rows_that_change_places_are_noticed(path):
    change(path, "UPDATE trajectories SET seq = -seq WHERE seq IN (30, 31)")
    change(path, "UPDATE trajectories SET seq = 61 + seq WHERE seq < 0")
    with pytest.raises(StoreError, match="2 damaged rows: event 30 has lost its trajectory"):
        read(path)


def test_a_writer_does_not_guess_names(path):
    change(path, "UPDATE names SET name = CAST('x' AS BLOB) WHERE id = 1")
    with pytest.raises(StoreError, match="the stored names are damaged; `polarbear repair"):
        open_store(path)
    change(path, "UPDATE names SET crc = 0 WHERE id = 1")
    with pytest.raises(StoreError, match="the stored names are damaged"):
        open_store(path)  # and the lock was released


@pytest.mark.parametrize(
    ("sql", "read_part", "said"),
    [
        (
            "UPDATE runs SET until = until + 1",
            lambda store, race: list(store.runs_on(race.runs.instances, last=10**6)),
            r"1 damaged row: event \d+ is damaged",
        ),
        (
            "UPDATE events SET crc = crc + 1 WHERE kind = 'asked'",
            lambda store, _: store.of_kind(Asked),
            "damaged",
        ),
        ("UPDATE remarks SET crc = crc + 1", lambda store, _: store.conflicts(), "is damaged"),
        (
            "UPDATE remarks SET body = x'7b7d'",
            lambda store, _: store.conflicts(),
            "is damaged",
        ),
    ],
)
def test_damage_is_named_by_what_reads_a_part(path, race, sql, read_part, said):
    change(path, sql)
    with open_store(path, read_only=True) as store, pytest.raises(StoreError, match=said):
        read_part(store, race)


@pytest.mark.parametrize("crc", [0, None, "x", 2**80])
def test_rows_of_other_types_are_no_names_and_no_runs(crc):
    assert decode_name(1, b"a", crc) is None
    assert decode_name("x", b"a", crc) is None
    assert decode_run_facts((1, 0, 1, 1, 0, 0, 4.0, 2, crc), {1: "a"}) == "is damaged"
    assert decode_run_facts((1, 0, None, 1, 0, 0, "x", 2, crc), {1: "a"}) == "is damaged"
    assert not are_intact([(1, None, b"", crc)], [], [])
    assert describe_holder(b"[") == describe_holder(b"{}") == "an unknown process"


def test_bytes_that_are_no_text_are_no_name():
    number, data, crc = blob_row(1, b"\xff")
    assert decode_name(number, data, crc) is None


# Files that are no stores


def test_files_that_are_no_stores_are_refused_in_words(tmp_path):
    path = tmp_path / "race.db"
    cases = {
        b"": "is empty, so it is not a store",
        b"SQLite format 3\0": "is not a store of a race, or its beginning is damaged",
        b"algorithm,instance\n" * 100: "is not a store of a race, or its beginning is damaged",
        pickle.dumps(print) * 100: "is not a store of a race, or its beginning is damaged",
    }
    for content, said in cases.items():
        path.write_bytes(content)
        for read_only in (True, False):
            with pytest.raises(StoreError, match=said):
                open_store(path, read_only=read_only)
        assert path.read_bytes() == content
    path.unlink()
    change(path, "CREATE TABLE runs (seq INTEGER)")
    with pytest.raises(StoreError, match="an SQLite file of another program"):
        open_store(path)
    with pytest.raises(StoreError, match="is a folder"):
        open_store(tmp_path, read_only=True)
    with pytest.raises(StoreError, match="no folder"):
        open_store(tmp_path / "nowhere" / "race.db")


def test_a_newer_format_is_left_alone(path):
    change(path, f"PRAGMA user_version = {sqlite.FORMAT + 1}")
    for read_only in (True, False):
        with pytest.raises(StoreError, match="upgrade PolarBear to read it"):
            open_store(path, read_only=read_only)


@pytest.mark.parametrize(
    "planted",
    [
        "CREATE TRIGGER helper AFTER INSERT ON runs BEGIN DELETE FROM runs; END",
        "CREATE VIEW helper AS SELECT * FROM runs",
        "CREATE TABLE helper (a)",
        "CREATE INDEX helper ON runs (status)",
        "ALTER TABLE runs ADD COLUMN helper",
    ],
)
def test_whatever_a_stranger_planted_is_refused(path, planted):
    try:
        change(path, planted)
    except sqlite3.OperationalError:
        change(path, planted + " ANY")  # a column of a strict table has a type
    for read_only in (True, False):
        with pytest.raises(StoreError, match="that no store has"):
            open_store(path, read_only=read_only)
    if "VIEW" in planted or "TRIGGER" in planted:
        with pytest.raises(StoreError, match="is not a store: it holds triggers or views"):
            repair_store(path, path.with_name("new.db"))


def test_a_pickle_in_a_blob_is_data(path, tmp_path):
    class Bomb:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "exploded"),)

    payload = pickle.dumps(Bomb())
    _, _, crc = blob_row(30, payload)
    change(path, "UPDATE trajectories SET data = ?, crc = ? WHERE seq = 30", payload, crc)
    with pytest.raises(StoreError, match="event 30 is not a run"):
        read(path)
    assert not (tmp_path / "exploded").exists()


def test_numbers_of_a_stranger_are_looked_at_as_if_typed(path):
    """A checksum is easily made; what no run can have is refused all the same."""
    with open_store(path, read_only=True) as store:
        seq, told = next(
            (k, e) for k, e in enumerate(store.read(), 1) if isinstance(e, Told) and e.run.time
        )
    size = len(told.run.time)
    data = struct.pack(f"<{2 * size}d", *[-1.0] * size, *[np.nan] * size)
    _, _, crc = blob_row(seq, data)
    change(path, "UPDATE trajectories SET data = ?, crc = ? WHERE seq = ?", data, crc, seq)
    said = f"event {seq} is not a run: .* is not a finite time"
    with pytest.raises(StoreError, match=said):
        read(path)
    with (
        open_store(path, read_only=True) as store,
        pytest.raises(StoreError, match=said),
    ):
        list(store.read(arrays=True))


def test_network_file_systems_are_refused(tmp_path, monkeypatch):
    table = tmp_path / "mountinfo"
    table.write_text(
        f"22 1 254:1 / / rw - ext4 /dev/vda rw\n"
        f"36 22 0:44 / {tmp_path}/home\\040dir rw,relatime - nfs4 server:/home rw\n"
    )
    monkeypatch.setattr(writer_lock, "MOUNTS", table)
    home = tmp_path / "home dir"
    home.mkdir()
    with pytest.raises(StoreError, match=r"network file system \(nfs4\).*postgresql://"):
        open_store(home / "race.db")
    open_store(tmp_path / "race.db").close()
    shutil.copy(tmp_path / "race.db", home / "race.db")
    open_store(home / "race.db", read_only=True).close()  # a copy may be read
    assert sorted(p.name for p in home.iterdir()) == ["race.db"]
    (home / "race.db-wal").touch()
    with pytest.raises(StoreError, match="network file system"):
        open_store(home / "race.db", read_only=True)


# Repair


def test_repair_of_a_sound_store_is_a_copy(path, race, tmp_path):
    found = repair_store(path, tmp_path / "new.db")
    assert str(found) == f"{len(race.events)} events copied, nothing is lost"
    assert read(tmp_path / "new.db") == race.events
    with pytest.raises(StoreError, match="exists already"):
        repair_store(path, tmp_path / "new.db")


def test_repair_keeps_the_events_before_the_damage_and_the_runs_after_it(path, race, tmp_path):
    seq = next(k for k, e in enumerate(race.events, 1) if isinstance(e, Told) and k > 60)
    change(path, "UPDATE runs SET until = 1e9 WHERE seq = ?", seq)
    new = tmp_path / "new.db"
    found = repair_store(path, new)
    assert found.copied == seq - 1
    assert list(found.lost) == [seq]
    assert f"event {seq} is damaged" in str(found)
    events = read(new)
    assert events[: seq - 1] == race.events[: seq - 1]
    assert not any(isinstance(event, Asked | Decided) for event in events[seq:])
    again = restore(events)
    kept = {key_of(run) for run in again.runs}
    lost = key_of(race.events[seq - 1].run)
    assert kept == {key_of(run) for run in race.runs} - {lost}
    drive(again)  # and the race goes on
    assert again.ended


def test_repair_of_every_truncated_file_is_a_race_or_an_error(sound, race, tmp_path):
    whole = sound.read_bytes()
    runs = {key_of(run): run for run in race.runs}
    saved = 0
    for length in range(512, len(whole), 4096):
        path, new = tmp_path / f"{length}.db", tmp_path / f"{length}-new.db"
        path.write_bytes(whole[:length])
        try:
            repair_store(path, new)
        except StoreError:
            assert not new.exists()
            continue
        again = restore(read(new))
        for run in again.runs:
            assert np.array_equal(run.value, runs[key_of(run)].value)
        saved = max(saved, again.n_runs)
    assert saved > 0


@pytest.mark.slow
def test_repair_of_flipped_bits_gives_nothing_that_was_not_there(sound, race, tmp_path):
    whole = sound.read_bytes()
    rng = random.Random(5)
    runs = {key_of(run): run for run in race.runs}
    for k in range(25):
        place, bit = rng.randrange(len(whole)), rng.randrange(8)
        path, new = tmp_path / "race.db", tmp_path / f"{k}.db"
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :])
        try:
            found = repair_store(path, new)
        except StoreError:
            continue
        again = restore(read(new))
        for run in again.runs:
            assert np.array_equal(run.value, runs[key_of(run)].value)
        assert again.n_runs >= len(runs) - len(found.lost)


def test_repair_leaves_out_who_had_left_though_a_run_came_later(tmp_path):
    race = race_of(["good", "bad"], instances=["f0", "f1"], budget=Budget(batch=(1, 2)))
    jobs = race.ask()
    race.remove("bad")
    for job in jobs:
        race.tell(solve(job))
    with open_store(tmp_path / "race.db") as store:
        store.append(race.events)
    asked = next(k for k, event in enumerate(race.events, 1) if isinstance(event, Asked))
    change(tmp_path / "race.db", "DELETE FROM events WHERE seq = ?", asked)
    repair_store(tmp_path / "race.db", tmp_path / "new.db")
    with open_store(tmp_path / "new.db", read_only=True) as store:
        repaired = restore(store.read())
    assert repaired.pareto == ("good",)
    assert {key_of(run) for run in repaired.runs} == {job.key for job in jobs}


def test_repair_adds_those_whose_coming_is_lost(tmp_path):
    run = Run("a", "i", (1.0,), (1.0,), 4.0, 0, Status.CUT)
    race = race_of(["early", "late"])
    with open_store(tmp_path / "race.db") as store:
        store.append([*race.events[:1], Added("a"), Added("b"), Imported(run), Removed("a", "")])
        store.append([Added("a"), Added("c"), Added("c")])
    change(tmp_path / "race.db", "DELETE FROM events WHERE seq = 2")
    repair_store(tmp_path / "race.db", tmp_path / "new.db")
    names = [Added("b"), Added("a"), Imported(run), Removed("a", ""), Added("a"), Added("c")]
    assert read(tmp_path / "new.db")[1:] == names
