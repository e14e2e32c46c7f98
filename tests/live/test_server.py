"""A race in a browser: what is served, to whom, and how often it is made."""

import asyncio
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

import polarbear as pb
from polarbear.cli.main import main
from polarbear.live.connections import Connections
from polarbear.live.snapshots import MIN_INTERVAL_SECONDS, Snapshots
from racers import drive, race_of, solve
from typed import begun, command, prepared
from waiting import PATIENCE, wait_until

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

PROTECTING = {
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
"""Some of the headers that every answer has."""


@pytest.fixture
def store(tmp_path):
    """The store of a race that was run."""
    path = tmp_path / "race.db"
    race = drive(
        race_of(fit=pb.fit, question=pb.ParetoSet(certainty=0.9), budget=pb.Budget(runs=60))
    )
    with pb.open_store(path) as store:
        store.append(race.events)
    return path


@contextmanager
def served(path, *options, stderr_lines=None, through=()):
    """The address of a server of this store; ``stderr_lines`` gets its lines on standard error."""
    words = [*through, *command("serve", path, "--port", 0, *options)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(words, **pipes) as running:
        line = running.stdout.readline()
        assert "http://" in line, running.stderr.read()
        try:
            yield line.split(" at ")[1].split()[0]
        finally:
            running.send_signal(signal.SIGINT)
        assert running.wait(PATIENCE) == 0
        lines = running.stderr.read().splitlines()
        assert not any("Traceback" in line for line in lines)
        if stderr_lines is not None:
            stderr_lines.extend(lines)


def asked(address, path="/", method="GET", **headers):
    connection = HTTPConnection(urlsplit(address).netloc, timeout=PATIENCE)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    parts = answer.status, answer.headers, answer.read()
    connection.close()
    return parts


def has_headers(headers):
    return all(headers[name] == value for name, value in PROTECTING.items())


@pytest.mark.slow
def test_pages_and_allowed_hosts(store):
    with served(store) as address:
        assert address.startswith("http://127.0.0.1:")
        status, headers, body = asked(address)
        assert status == 200
        assert b"connect-src 'self'" in body
        assert has_headers(headers)
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert headers["Server"] is None
        status, headers, body = asked(address, "/data.json")
        assert status == 200
        assert headers["Content-Type"] == "application/json"
        assert "early" in json.loads(body)["algorithms"]
        stage = json.loads(body)["stage"]
        status, headers, body = asked(address, "/status.json")
        assert (status, headers["Content-Type"]) == (200, "application/json")
        assert json.loads(body)["stage"] == stage
        assert len(body) < 2000
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


@pytest.mark.slow
def test_errors_have_the_headers_of_pages(store):
    with served(store) as address:
        missing = asked(address, "/none")
        refused = asked(address, "/", "POST")
        misnamed = asked(address, "/", Host="evil.example")
        for expected, (status, headers, _) in zip(
            (404, 405, 400), (missing, refused, misnamed), strict=True
        ):
            assert status == expected
            assert has_headers(headers)
        with half_request(address, b"no request at all\r\n\r\n") as garbage:
            reply = garbage.recv(4096)
            assert reply.startswith(b"HTTP/1.1 400 ")
            for name, value in PROTECTING.items():
                assert f"{name}: {value}\r\n".encode() in reply


def half_request(address, sent=b"GET / HTTP/1.1\r\nHost: local"):
    """A connection that has sent this."""
    connection = socket.create_connection((urlsplit(address).hostname, urlsplit(address).port))
    connection.settimeout(PATIENCE)
    connection.sendall(sent)
    return connection


def is_closed(connection):
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


UNHURRIED = """
import sys
from polarbear.cli.main import main
from polarbear.live.connections import MAX_CONNECTIONS, Connections
Connections.__init__.__defaults__ = (MAX_CONNECTIONS, 1e6)
sys.exit(main(sys.argv[4:]))  # after: python -m polarbear
"""
"""The command, without a limit of time for connections that stall."""


@pytest.mark.slow
def test_a_client_is_answered_beside_1050_half_requests(store):
    resource = pytest.importorskip("resource")
    most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most[1] < 1200:
        pytest.skip("this process may not open as many files as the attack needs")
    usual = ("sh", "-c", 'ulimit -S -n 1024; exec "$@"', "sh", sys.executable, "-c", UNHURRIED)
    stderr_lines = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(most[0], 1200), most[1]))
    try:
        with (
            served(store, stderr_lines=stderr_lines, through=usual) as address,
            ExitStack() as attack,
        ):
            for k in range(1050):
                attack.enter_context(half_request(address))
                if k % 150 == 0 or k == 1049:
                    assert asked(address)[0] == 200
        assert not stderr_lines
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, most)


@pytest.mark.long
def test_stalled_connections_end(store):
    with served(store) as address:
        stalled = [
            half_request(address, b""),
            half_request(address),
            half_request(
                address, b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n"
            ),
        ]
        start = time.monotonic()
        trickle = half_request(address)
        while not select.select([trickle], [], [], 0.5)[0]:  # a byte now and then is no request
            trickle.send(b"x")
        assert is_closed(trickle)
        assert time.monotonic() - start < PATIENCE
        for connection in stalled:
            while connection.recv(4096):  # an answer to the one that was whole, and then the end
                pass
            connection.close()
        trickle.close()


def test_connections_are_dropped_oldest_first():
    async def play():
        loop, now = asyncio.get_running_loop(), [0.0]
        loop.time = lambda: now[0]

        async def wait(seconds):
            now[0] += seconds
            for _ in range(2):  # one to find the timers that are over, one to call them
                await asyncio.sleep(0)

        connections = Connections(limit=3, stall=0.2)
        first, second, third, fourth = transports = [Transport(k) for k in range(4)]
        for one in transports[:3]:
            connections.add(one)
        connections.begin_answer(first.client)
        connections.add(fourth)
        assert [one.is_dropped for one in transports] == [False, True, False, False]
        connections.remove(second)
        third.unread = 100
        connections.end_answer(third.client)
        await wait(0.1)
        third.unread = 50  # it reads, slowly
        await wait(0.2)
        assert [one.is_dropped for one in transports] == [False, True, False, True]
        await wait(0.25)
        assert third.is_dropped  # it has stopped reading
        assert not first.is_dropped
        connections.end_answer(first.client)
        await wait(0.3)
        assert first.is_dropped

    asyncio.run(play())


class Transport:
    """What connections need of a transport."""

    def __init__(self, port):
        self.client, self.unread, self.is_dropped = ("127.0.0.1", port), 0, False

    def get_extra_info(self, _):
        return self.client

    def get_write_buffer_size(self):
        return self.unread

    def abort(self):
        self.is_dropped = True


@pytest.mark.slow
def test_an_unreadable_store_is_reported_once(store):
    stderr_lines = []
    with served(store, stderr_lines=stderr_lines) as address:
        store.unlink()
        wait_until(lambda: asked(address, "/data.json")[0] == 503)
        for _ in range(3):
            time.sleep(MIN_INTERVAL_SECONDS + 0.1)
            asked(address, "/data.json")
            for _ in range(20):
                half_request(address, b"nonsense\r\n\r\n").close()
    assert len(stderr_lines) == 1
    assert str(store) in stderr_lines[0]


@pytest.mark.slow
def test_further_hosts_can_be_allowed(store):
    with served(store, "--allow", "bear.example", "--title", "Nightly") as address:
        status, _, body = asked(address, Host="bear.example")
        assert status == 200
        assert b"<title>Nightly" in body


def test_a_report_is_made_again_only_after_new_events(tmp_path, monkeypatch):
    fits = []

    def counted(rankings, *, seed):
        fits.append(seed)
        return pb.fit(rankings, seed=seed)

    monkeypatch.setattr("polarbear.live.snapshots.MIN_INTERVAL_SECONDS", 0.0)
    monkeypatch.setattr("polarbear.live.snapshots.MAX_CPU_SHARE", 1.0)
    path = str(tmp_path / "race.db")
    race = race_of(question=pb.ParetoSet(certainty=0.9), budget=pb.Budget(batch=(8, 8)), fit=pb.fit)
    monkeypatch.setattr("polarbear.racing.model.Model.make_fit", lambda _: counted)
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
        race.withdraw(instance=jobs[0].instance, why="wrong data")
        race.withdraw(instance=race.runs.instances[0], why="wrong data")
        keep()
        snapshots.latest()
        assert len(fits) == 2  # the same round, on fewer instances
    posterior = json.loads(later.data)["identity"], json.loads(decided.data)["identity"]
    assert all(posterior)


def test_reports_keep_to_their_share_of_time(store, monkeypatch):
    now = [0.0]

    def clock():
        now[0] += 1.0  # whatever is done takes a second
        return now[0]

    monkeypatch.setattr("polarbear.live.snapshots.time.monotonic", clock)
    snapshots = Snapshots(str(store))
    made = []
    monkeypatch.setattr(snapshots, "_make", lambda real=snapshots._make: made.append(1) or real())
    for _ in range(60):
        snapshots.latest()
    assert 5 <= len(made) <= 16


def test_a_race_in_a_database_is_served_without_its_password(server):
    race = drive(
        race_of(fit=pb.fit, question=pb.ParetoSet(certainty=0.9), budget=pb.Budget(runs=30))
    )
    where = f"{server.url}#served"
    with pb.open_store(where) as store:
        store.append(race.events)
    document = json.loads(Snapshots(where).latest().data)
    assert document["title"] == "Race served"
    assert server.url not in json.dumps(document)


@pytest.mark.slow
def test_a_store_that_vanishes_and_comes_back(store):
    with served(store) as address:
        contents = {path: path.read_bytes() for path in store.parent.glob("race.db*")}
        for path in contents:
            path.unlink()
        # It looks again when it can afford to: the sooner, the faster the last report was made.
        _, headers, body = wait_until(
            lambda: (answer := asked(address, "/data.json"))[0] == 503 and answer
        )
        assert b"race.db" in body
        assert str(store.parent).encode() not in body
        assert has_headers(headers)
        for path, content in contents.items():
            path.write_bytes(content)
        wait_until(lambda: is_answered(address))


def is_answered(address):
    """Whether there is an answer, and again when what was made before is too old to be one."""
    first, _, _ = asked(address, "/data.json")
    time.sleep(MIN_INTERVAL_SECONDS + 0.2)
    return (first, asked(address, "/data.json")[0]) == (200, 200)


@pytest.mark.slow
def test_errors_of_the_serve_command(tmp_path, store, capsys):
    assert main(["serve", str(tmp_path / "none.db")]) == 1
    assert "none.db" in capsys.readouterr().err
    with served(store) as address:
        port = str(urlsplit(address).port)
        assert main(["serve", str(store), "--port", port]) == 1
        assert f"--port {port}: Address already in use" in capsys.readouterr().err


@pytest.mark.slow
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


def test_the_status_says_when_the_race_last_wrote(tmp_path):
    path = tmp_path / "race.db"
    with pb.open_store(path) as store:
        store.append(pb.Race(["a", "b"], [1, 2], direction="minimize").events)
    day = 24 * 60 * 60
    os.utime(path, (time.time() - 2.5 * day,) * 2)
    assert json.loads(Snapshots(str(path)).status())["quiet"] == "2 d 12 h"
    with pb.open_store(path, read_only=True):  # which may leave an empty log beside the file
        assert json.loads(Snapshots(str(path)).status())["quiet"] == "2 d 12 h"


def test_the_status_follows_runs_and_rounds(tmp_path, monkeypatch):
    monkeypatch.setattr("polarbear.live.snapshots.MIN_INTERVAL_SECONDS", 0.0)
    monkeypatch.setattr("polarbear.live.snapshots.MAX_CPU_SHARE", 1.0)
    path = str(tmp_path / "race.db")
    race = race_of(question=pb.ParetoSet(certainty=0.9), budget=pb.Budget(batch=(8, 8)), fit=pb.fit)
    snapshots = Snapshots(path)
    stored = 0
    with pb.open_store(path) as store:

        def read():
            nonlocal stored
            store.append(race.events[stored:])
            stored = len(race.events)
            return json.loads(snapshots.status())

        jobs = race.ask()
        empty = read()
        assert empty["settled"] == 0
        assert set("".join(empty["cells"])) == {"o"}
        assert len(empty["cells"]) == len(empty["algorithms"])
        race.tell(solve(jobs[0]))
        assert "".join(read()["cells"]).count("#") == 1
        settled = []
        for _ in range(3):
            for job in jobs:
                race.tell(solve(job))
            jobs = race.ask()
            now = read()
            settled.append(now["settled"])
            snapshots.latest()
        assert now["cells"] is None
        assert now["runs"] == len(race.runs)
        assert settled == sorted(settled)
    rounds = json.loads(snapshots.latest().data)["rounds"]
    assert [one["round"] for one in rounds] == [1, 2, 3]
    posterior = race.posterior
    leaders = posterior.prob_best().argmax(axis=1)
    names = json.loads(snapshots.latest().data)["algorithms"]
    assert [names[code] for code in rounds[-1]["leader"]] == [
        posterior.algorithms[code] for code in leaders
    ]
