"""A race in a browser: what is served, to whom, and how often it is made."""

import json
import signal
import subprocess
import time
from contextlib import contextmanager
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

import polarbear as pb
from polarbear.cli.main import main
from polarbear.live.snapshots import LEAST, Snapshots
from racers import drive, race_of, solve
from typed import begun, command, prepared
from waiting import PATIENCE, wait_until

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")


@pytest.fixture
def store(tmp_path):
    """The store of a race that was run."""
    path = tmp_path / "race.db"
    race = drive(race_of(fit=pb.fit, rules=pb.Rules(alpha=0.9, max_runs=60)))
    with pb.open_store(path) as store:
        store.append(race.events)
    return path


@contextmanager
def served(path, *options):
    """The address of a server of this store."""
    words = command("serve", path, "--port", 0, *options)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(words, **pipes) as running:
        line = running.stdout.readline()
        assert "http://" in line, running.stderr.read()
        try:
            yield line.split(" at ")[1].split()[0]
        finally:
            running.send_signal(signal.SIGINT)
        assert running.wait(PATIENCE) == 0
        assert "Traceback" not in running.stderr.read()


def asked(address, path="/", method="GET", **headers):
    connection = HTTPConnection(urlsplit(address).netloc, timeout=PATIENCE)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    found = answer.status, answer.headers, answer.read()
    connection.close()
    return found


def test_what_is_served_and_to_whom(store):
    with served(store) as address:
        assert address.startswith("http://127.0.0.1:")
        status, headers, body = asked(address)
        assert status == 200
        assert b'data-mode="live"' in body
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "no-store"
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert headers["Server"] is None
        status, headers, body = asked(address, "/data.json")
        assert status == 200
        assert headers["Content-Type"] == "application/json"
        assert "early" in json.loads(body)["algorithms"]
        assert asked(address, "/favicon.ico")[0] == 204
        # Another name that points here is not ours.
        for name in ("evil.example", "evil.example:80", "", "127.0.0.1.evil.example"):
            status, _, body = asked(address, "/data.json", Host=name)
            assert status == 400, name
            assert b"early" not in body
        port = urlsplit(address).port
        assert asked(address, "/data.json", Host=f"localhost:{port}")[0] == 200
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
            assert asked(address, method=method)[0] == 405
        for path in ("/race.db", "/../race.db", "/%2e%2e/race.db", "/etc/passwd", "//etc/passwd"):
            assert asked(address, path)[0] == 404


def test_other_names_are_ours_if_we_say_so(store):
    with served(store, "--allow", "bear.example", "--title", "Nightly") as address:
        status, _, body = asked(address, Host="bear.example")
        assert status == 200
        assert b"<title>Nightly" in body


def test_it_is_made_again_only_if_there_is_something_new(tmp_path, monkeypatch):
    fits = []

    def counted(rankings, *, seed):
        fits.append(seed)
        return pb.fit(rankings, seed=seed)

    monkeypatch.setattr("polarbear.live.snapshots.fit", counted)
    monkeypatch.setattr("polarbear.live.snapshots.LEAST", 0.0)
    monkeypatch.setattr("polarbear.live.snapshots.SHARE", 1.0)
    path = str(tmp_path / "race.db")
    race = race_of(rules=pb.Rules(alpha=0.9, batch=(8, 8)), fit=pb.fit)
    with pb.open_store(path) as store:
        stored = 0

        def keep():
            nonlocal stored
            store.append(race.events[stored:])
            stored = len(race.events)

        jobs = race.ask()
        keep()
        snapshots = Snapshots(path)
        first = snapshots.latest()
        assert not fits  # nothing is decided
        assert snapshots.latest() is first  # nothing has happened
        for job in jobs[:-1]:
            race.tell(solve(job))
        keep()
        assert snapshots.latest().events > first.events
        assert not fits
        race.tell(solve(jobs[-1]))
        jobs = race.ask()
        keep()
        decided = snapshots.latest()
        assert len(fits) == 1
        for job in jobs[:3]:
            race.tell(solve(job))
        keep()
        later = snapshots.latest()
        assert later.events > decided.events
        assert len(fits) == 1  # the same decision, the same posterior
    posterior = json.loads(later.data)["identity"], json.loads(decided.data)["identity"]
    assert all(posterior)


def test_no_more_goes_into_it_than_it_can_afford(store, monkeypatch):
    now = [0.0]

    def clock():
        now[0] += 1.0  # whatever is done takes a second
        return now[0]

    monkeypatch.setattr("polarbear.live.snapshots.time.monotonic", clock)
    snapshots = Snapshots(str(store))
    made = []
    monkeypatch.setattr(snapshots, "_made", lambda real=snapshots._made: made.append(1) or real())
    for _ in range(60):
        snapshots.latest()
    assert 5 <= len(made) <= 16


def test_a_race_in_a_database_is_served_without_its_password(server):
    race = drive(race_of(fit=pb.fit, rules=pb.Rules(alpha=0.9, max_runs=30)))
    where = f"{server.url}#served"
    with pb.open_store(where) as store:
        store.append(race.events)
    found = json.loads(Snapshots(where).latest().data)
    assert found["title"] == "Race served"
    assert server.url not in json.dumps(found)


def test_a_store_that_goes_away_is_said_and_comes_back(store):
    with served(store) as address:
        kept = {path: path.read_bytes() for path in store.parent.glob("race.db*")}
        for path in kept:
            path.unlink()
        # It looks again when it can afford to: the sooner, the faster the last report was made.
        _, _, body = wait_until(lambda: (found := asked(address, "/data.json"))[0] == 503 and found)
        assert b"race.db" in body
        for path, content in kept.items():
            path.write_bytes(content)
        wait_until(lambda: is_answered(address))


def is_answered(address):
    """Whether there is an answer, and again when what was made before is too old to be one."""
    first, _, _ = asked(address, "/data.json")
    time.sleep(LEAST + 0.2)
    return (first, asked(address, "/data.json")[0]) == (200, 200)


def test_what_cannot_be_served_is_said(tmp_path, store, capsys):
    assert main(["serve", str(tmp_path / "none.db")]) == 1
    assert "none.db" in capsys.readouterr().err
    with served(store) as address:
        port = str(urlsplit(address).port)
        assert main(["serve", str(store), "--port", port]) == 1
        assert f"--port {port}: Address already in use" in capsys.readouterr().err


def test_the_page_follows_a_race(tmp_path):
    browsers = pytest.importorskip("browsers")
    if why := browsers.why_not():
        pytest.skip(why)
    path = prepared(tmp_path, 0, go=False)
    words = command("race", path, "--workers", 2, "--quiet")
    with subprocess.Popen(words, stdout=subprocess.DEVNULL) as race:
        wait_until(lambda: begun(tmp_path / "race.db"))
        with (
            served(tmp_path / "race.db") as address,
            browsers.opened() as browser,
            browsers.Visit(browser, address) as visit,
        ):
            assert "worst is dominated" not in visit.page.inner_text("main")
            (tmp_path / "go").touch()  # and the race gets on, elsewhere
            visit.page.get_by_text("worst is dominated").first.wait_for(timeout=1000 * PATIENCE)
            assert not visit.errors
            assert {urlsplit(url).netloc for url in visit.requests} == {urlsplit(address).netloc}
        assert race.wait(PATIENCE) == 0
