"""Coordinators that die, meet, or run out of disk, and servers that restart."""

import contextlib
import itertools
import os
import signal
import sqlite3
import subprocess
import threading
import time

import pytest
from judge.in_process import InProcess

import course
import killing
from polarbear.data.run import Run
from polarbear.errors import DataWarning, StoreError
from polarbear.racing.budget import Budget
from polarbear.racing.events import Added, Started, Told
from polarbear.racing.model import Model
from polarbear.racing.questions.pareto_set import ParetoSet
from polarbear.store.opening import open_store
from polarbear.store.postgres import PostgreSQL
from waiting import PATIENCE, wait_until

BEGIN = Started(7, (1.0, 2.0, 4.0), "minimize", "evaluations", True, ParetoSet(), Budget(), Model())


def told(k, size=50):
    return Told(Run("a", str(k), tuple(map(float, range(size))), (1.0,) * size, 1e6))


def admin(where):
    import psycopg

    return psycopg.connect(where.partition("#")[0], autocommit=True)


# Coordinators


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_by_kills(where, monkeypatch):
    monkeypatch.setattr("polarbear.store.postgres.LOCK_SECONDS", PATIENCE)
    numbers = itertools.count()
    longest = 0.12 if where.endswith(".db") else 0.3
    toll = killing.killed(lambda: f"{where}-{next(numbers)}", 8, longest)
    assert toll.kills == 8
    assert (toll.lost, toll.twice, toll.different) == (0, 0, 0)


@pytest.mark.slow
def test_a_dead_coordinator_is_replaced_at_once_and_a_living_one_is_not(where):
    ready, go = os.pipe()
    child = killing.fork()
    if child == 0:
        store = open_store(where)
        store.append([BEGIN])
        os.write(go, b"x")
        time.sleep(600)
        os._exit(0)
    try:
        os.read(ready, 1)
        with pytest.raises(StoreError, match=rf"written to by process {child} on \S+, since 20"):
            open_store(where)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    with open_store(where) as store:
        assert list(store.read()) == [BEGIN]
        assert store.status().store.epoch == 2


def test_whoever_gets_around_the_lock_fences_the_other(tmp_path):
    where = tmp_path / "race.db"
    old = open_store(where)
    old.append([BEGIN])
    where.with_name("race.db-lock").unlink()
    with open_store(where) as new:
        with pytest.raises(StoreError, match="another coordinator has taken over"):
            old.append([Added("a")])
        new.append([Added("b")])
        with pytest.raises(StoreError, match=r"were not stored; stop this one"):
            old.append([Added("a")])
        assert list(new.read()) == [BEGIN, Added("b")]
    old.close()


def test_a_file_with_two_names_has_no_writer_under_the_second(tmp_path):
    where, link = tmp_path / "race.db", tmp_path / "link.db"
    with open_store(where) as store:
        store.append([BEGIN])
        link.hardlink_to(where)
        with pytest.raises(StoreError, match=r"link.db is one of 2 names .*find FOLDER -samefile"):
            open_store(link)
        store.append([Added("a")])
    with pytest.raises(StoreError, match="hard links"):  # nobody knows which name has the log
        open_store(where)
    with open_store(link, read_only=True) as reader:
        assert list(reader.read()) == [BEGIN, Added("a")]
    link.unlink()
    with open_store(where) as store:
        assert list(store.read()) == [BEGIN, Added("a")]


@pytest.mark.slow
def test_a_session_that_lost_its_lock_is_fenced(server):
    where = f"{server.url}#fenced"
    old = open_store(where)
    old.append([BEGIN])
    with admin(where) as connection:
        connection.execute("SELECT pg_terminate_backend(%s)", [old._database._backend])
    with open_store(where) as new:
        with pytest.raises(StoreError, match="is being written to by"):
            old.append([Added("a")])
        new.append([Added("b")])
    with pytest.raises(StoreError, match="another coordinator has taken over"):
        old.append([Added("a")])
    with open_store(where) as new:
        assert list(new.read()) == [BEGIN, Added("b")]
    old.close()


def test_readers_and_the_writer_do_not_wait_for_each_other(where):
    store = open_store(where)
    store.append([BEGIN])
    children = []
    for _ in range(2):
        child = killing.fork()
        if child == 0:
            code, seen = 1, {0}
            try:
                while len(seen) < 20:
                    with open_store(where, read_only=True) as reader:
                        assert sum(1 for _ in reader.read()) >= max(seen)
                        seen.add(reader.status().store.n_events)
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    numbers = itertools.count()
    while children:
        start = time.monotonic()
        store.append([told(next(numbers))])
        assert time.monotonic() - start < PATIENCE
        for child in list(children):
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                assert status == 0
                children.remove(child)
    assert store.n_events == next(numbers) + 1
    store.close()


# Disks


def full_disk(tmp_path):
    """A file system of 1 MB; none if that is not permitted here."""
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "polarbear-test", str(tmp_path)]
    try:
        done = subprocess.run(command, capture_output=True, check=False)
    except OSError:
        return False
    return done.returncode == 0


def test_a_full_disk_is_said_and_the_same_call_later_goes_on(tmp_path):
    if not full_disk(tmp_path):
        pytest.skip("no file system can be mounted here")
    try:
        (tmp_path / "ballast").write_bytes(bytes(300_000))
        with open_store(tmp_path / "race.db") as store:
            store.append([BEGIN])
            for k in itertools.count():
                batch = [told(100 * k + j) for j in range(20)]
                try:
                    store.append(batch)
                except StoreError as error:
                    said = str(error)
                    break
            assert "the disk is full, and the last events were not stored; free some space" in said
            assert store.n_events == 1 + 20 * k
            assert sum(1 for _ in store.read()) == 1 + 20 * k
            (tmp_path / "ballast").unlink()
            store.append(batch)
            assert sum(1 for _ in store.read()) == 1 + 20 * (k + 1)
        with open_store(tmp_path / "race.db") as store:
            assert sum(1 for _ in store.read()) == 1 + 20 * (k + 1)
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_a_disk_that_becomes_read_only_is_said_and_the_same_call_later_goes_on(tmp_path):
    if not full_disk(tmp_path):
        pytest.skip("no file system can be mounted here")
    remount = ["mount", "-o", "remount,{}", str(tmp_path)]
    try:
        with open_store(tmp_path / "race.db") as store:
            store.append([BEGIN])
        subprocess.run([w.format("ro") for w in remount], check=True)
        with pytest.raises(
            StoreError, match=r"the lock file beside it cannot be created|may not be written"
        ):
            open_store(tmp_path / "race.db")
        with open_store(tmp_path / "race.db", read_only=True) as store:
            assert list(store.read()) == [BEGIN]
        subprocess.run([w.format("rw") for w in remount], check=True)
        with open_store(tmp_path / "race.db") as store:
            store.append([Added("a")])
            assert list(store.read()) == [BEGIN, Added("a")]
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_a_file_that_may_not_grow_is_said_and_the_same_call_later_goes_on(tmp_path):
    with open_store(tmp_path / "race.db") as store:
        store.append([BEGIN])
        limit = store._database._connection.execute
        pages = limit("PRAGMA page_count").fetchone()[0]
        limit(f"PRAGMA max_page_count = {pages + 2}")
        batch = [told(k) for k in range(100)]
        with pytest.raises(
            StoreError, match="the disk is full, and the last events were not stored"
        ):
            store.append(batch)
        assert list(store.read()) == [BEGIN]
        limit("PRAGMA max_page_count = 1000000")
        store.append(batch)
        store.append(batch)
        assert list(store.read()) == [BEGIN, *batch]


# Commits of which nobody knows


def test_a_commit_whose_answer_is_lost_is_not_made_twice_in_sqlite(tmp_path, monkeypatch):
    with open_store(tmp_path / "race.db") as store:
        store.append([BEGIN])
        database = store._database
        whole = database._transaction

        @contextlib.contextmanager
        def broken():
            with whole() as connection:
                yield connection
            raise sqlite3.OperationalError("disk I/O error")

        for events in ([Added("a"), told(1)], [Added("a"), told(1)], [Added("b"), told(2)]):
            monkeypatch.setattr(database, "_transaction", broken)
            with pytest.raises(StoreError, match="disk I/O error"):
                store.append(events)
            monkeypatch.setattr(database, "_transaction", whole)
            store.append([*events, Added("z")])  # with more than before
        kept = [event for event in store.read() if event != Added("z")]
        assert kept == [BEGIN, Added("a"), told(1), Added("a"), Added("b"), told(2)]


def test_a_commit_whose_answer_is_lost_is_not_made_twice_in_postgresql(server):
    import psycopg

    with open_store(f"{server.url}#lost answers") as store:
        store.append([BEGIN])
        for event in (Added("a"), told(1), Added("b")):
            connection = store._database._connection
            whole = connection.transaction

            @contextlib.contextmanager
            def broken(whole=whole, connection=connection):
                with whole():
                    yield
                connection.close()
                raise psycopg.OperationalError("server closed the connection unexpectedly")

            connection.transaction = broken
            store.append([event])
        assert list(store.read()) == [BEGIN, Added("a"), told(1), Added("b")]
        assert store.status().store.epoch == 1


# Servers


@pytest.mark.filterwarnings("ignore:.* the database server has not answered since")
def test_a_server_that_restarts_is_waited_for(server):
    where = f"{server.url}#restarts"
    stop = threading.Event()
    done = []

    with open_store(where) as store, open_store(where, read_only=True) as reader:
        store.append([BEGIN])

        def write():
            for k in itertools.count():
                if stop.is_set():
                    return
                store.append([Added(str(k)), told(k)])
                done.append(k)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for enough, how in ((2, signal.SIGINT), (4, signal.SIGQUIT)):
                wait_until(lambda enough=enough: len(done) >= enough)
                server.stop(how)
                server.start()
        finally:
            stop.set()
            writer.join()
        expected = [event for k in done for event in (Added(str(k)), told(k))]
        assert len(done) > 3
        assert list(store.read()) == [BEGIN, *expected]
        assert list(reader.read()) == [BEGIN, *expected]


def test_a_server_that_stays_away_is_said_and_later_it_goes_on(server, monkeypatch):
    monkeypatch.setattr("polarbear.store.postgres.RECONNECT_SECONDS", 0.2)
    with open_store(f"{server.url}#away") as store:
        store.append([BEGIN])
        server.stop()
        try:
            with pytest.raises(StoreError, match=r"127.0.0.1/postgres#away: .*refused"):
                store.append([Added("a")])
        finally:
            server.start()
        store.append([Added("a")])
        assert list(store.read()) == [BEGIN, Added("a")]


def test_a_race_says_that_its_server_is_frozen_and_goes_on_as_if_it_had_not_been(
    server, monkeypatch
):
    changed = {"ANSWER": 1.0, "NOTICE": 0.2, "RECONNECT": PATIENCE, "LOCK": PATIENCE}
    for name, seconds in changed.items():
        monkeypatch.setattr(f"polarbear.store.postgres.{name}_SECONDS", seconds)
    attempts, thawing = [], []
    connect = PostgreSQL._connect

    def counted(database):
        attempts.append(database)
        connect(database)

    monkeypatch.setattr(PostgreSQL, "_connect", counted)

    def freeze(status):
        if not thawing and status.spent.runs >= 20:
            stack = contextlib.ExitStack()
            stack.enter_context(server.frozen())
            thawing.append(threading.Thread(target=thaw, args=[stack]))
            thawing[0].start()

    def thaw(stack):
        with stack:  # the first connection is given up, and somebody was told
            wait_until(lambda: len(attempts) > 1 and caught)

    budget = course.short(60)
    with course.run(executor=InProcess(), budget=budget) as expected:
        with pytest.warns(DataWarning, match="database server has not answered since") as caught:
            disturbed = course.run(f"{server.url}#frozen", budget=budget, progress=freeze)
        thawing[0].join()
        monkeypatch.undo()
        with disturbed:
            assert course.decisions(disturbed._store.read()) == course.decisions(expected.events)
            assert course.told(disturbed._store.read()) == course.told(expected.events)
            assert disturbed._store.status().store.epoch == 1


def test_a_server_that_stays_frozen_is_said_and_later_it_goes_on(server, monkeypatch):
    with open_store(f"{server.url}#ice") as store:
        store.append([BEGIN])
        monkeypatch.setattr("polarbear.store.postgres.ANSWER_SECONDS", 0.2)
        monkeypatch.setattr("polarbear.store.postgres.RECONNECT_SECONDS", 0.5)
        with server.frozen(), pytest.raises(StoreError, match=r"has been away for 0.5 s \("):
            store.append([Added("a")])
        monkeypatch.undo()
        monkeypatch.setattr("polarbear.store.postgres.LOCK_SECONDS", PATIENCE)
        store.append([Added("a")])
        assert list(store.read()) == [BEGIN, Added("a")]


def test_connections_are_kept_alive_unless_the_url_says_otherwise(server):
    with open_store(f"{server.url}?keepalives_idle=99&connect_timeout=7#alive") as store:
        used = store._database._connection.info.get_parameters()
    expected = {"keepalives_idle": "99", "connect_timeout": "7", "tcp_user_timeout": "20000"}
    assert expected.items() <= used.items()


def test_a_server_that_does_not_write_through_is_warned_of(server):
    def set_fsync(to):
        with admin(server.url) as connection:
            connection.execute(f"ALTER SYSTEM SET fsync = {to}")
            connection.execute("SELECT pg_reload_conf()")
        wait_until(lambda: fsync() == to)

    def fsync():
        with admin(server.url) as connection:
            return connection.execute("SHOW fsync").fetchone()[0]

    set_fsync("off")
    try:
        with pytest.warns(DataWarning, match="fsync = off"):
            open_store(f"{server.url}#careless").close()
    finally:
        set_fsync("on")


def test_a_server_that_is_not_there_is_said_without_the_password():
    pytest.importorskip("psycopg")
    with pytest.raises(StoreError, match="127.0.0.1/x#polarbear: ") as error:
        open_store("postgresql://ann:secret@127.0.0.1:9/x")
    assert "secret" not in str(error.value)
    with pytest.raises(StoreError, match="63 bytes"):
        open_store("postgresql://127.0.0.1:9/x#" + "x" * 64)
