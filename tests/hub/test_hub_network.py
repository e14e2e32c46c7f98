"""A real server on this machine: a worker that is cut off, slow clients, and many connections."""

import json
import socket
import threading
import time
from contextlib import contextmanager, suppress
from http.client import HTTPConnection

import pytest

from hubs import Worker, setup
from polarbear.hub.board import Policy
from polarbear.hub.http_api import HubApi
from polarbear.hub.hub_backend import WorkerHub
from polarbear.hub.service import HubService
from polarbear.hub.tokens import add_contributor
from polarbear.hub.web_worker import HubClient
from polarbear.live.connections import Connections, make_limited_protocol
from polarbear.racing.jobs import RunId, job
from waiting import wait_until

uvicorn = pytest.importorskip("uvicorn")


@contextmanager
def served(app, stall=30.0):
    """The port of a server of this application, which runs in a thread."""
    protocol = make_limited_protocol(Connections(stall=stall), {})
    config = uvicorn.Config(app, http=protocol, port=0, lifespan="off", log_level="error")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    wait_until(lambda: server.started)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(10)


class Proxy:
    """Forwards connections to a port, unless it is cut."""

    def __init__(self, port):
        self.target, self.is_cut = port, False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self.is_cut:
                client.close()
                continue
            server = socket.create_connection(("127.0.0.1", self.target))
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=self._copy, args=(one, other), daemon=True).start()

    def _copy(self, one, other):
        with suppress(OSError):
            while data := one.recv(65536):
                other.sendall(data)
        for end in (other, one):  # also after an error, so that no side waits for ever
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        one.close()

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


class NetworkWorker(Worker):
    """A simulated worker whose requests go over a port of this machine."""

    def __init__(self, port, token):
        super().__init__(None, token)
        self.client = HubClient(f"http://127.0.0.1:{port}", token)

    def call(self, name, **body):
        return self.client.try_call(name, {"worker": self.id, **body})


@pytest.fixture
def hub(tmp_path):
    backend = WorkerHub(tmp_path / "race.hub", 0.0).start_backend(setup())
    backend.submit([job(0, RunId("fast", "0", 0), 4.0)])
    policy = Policy(heartbeat_seconds=0.05, lease_seconds=0.3, probation=0)
    app = HubApi(HubService(tmp_path / "race.hub", policy))
    app.backend = backend
    yield app
    backend.close()


def test_a_worker_that_is_cut_off_and_comes_back(hub):
    """Its job goes to another worker; its late result is taken, and the run counts once."""
    tokens = [add_contributor(hub.service.hub, name) for name in ("ann", "bob")]
    with served(hub) as port:
        proxy = Proxy(port)
        cut, other = NetworkWorker(proxy.port, tokens[0]), NetworkWorker(port, tokens[1])
        cut.join()
        other.join()
        cut.lease()
        assert len(cut.jobs) == 1
        items = cut.results()
        proxy.is_cut = True
        with pytest.raises(OSError, match="."):
            cut.call("results", results=items)
        wait_until(lambda: other.lease() or other.jobs)  # after the lease of the first
        assert other.jobs[0]["id"] == items[0]["id"]
        assert [*other.call("results", results=other.results())["results"].values()] == ["accepted"]
        proxy.is_cut = False
        held = [{"id": items[0]["id"], "lease": items[0]["lease"]}]
        assert cut.call("heartbeat", jobs=held)["drop"] == [items[0]["id"]]
        for word in ("accepted", "known"):
            assert [*cut.call("results", results=items)["results"].values()] == [word]
        proxy.close()
    outcomes = hub.backend.outcomes(1)
    assert len(outcomes) == 1
    assert hub.backend.outcomes(0.1) == []
    assert hub.service.hub.read("SELECT state, count(*) FROM jobs GROUP BY state") == [("done", 1)]
    assert len(hub.service.hub.read("SELECT * FROM reports")) == 2  # the second is a confirmation


@pytest.mark.slow
def test_slow_and_half_open_clients_do_not_stop_others(hub):
    token = add_contributor(hub.service.hub, "ann")
    with served(hub, stall=0.5) as port:
        half = [socket.create_connection(("127.0.0.1", port)) for _ in range(100)]
        for k, one in enumerate(half):
            one.sendall(b"POST /api/v1/status HTTP/1.1\r\nHost: x\r\n" if k % 2 else b"")
        start = time.monotonic()
        connection = HTTPConnection("127.0.0.1", port, timeout=30)
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        connection.request("POST", "/api/v1/status", b"{}", headers)
        answer = connection.getresponse()
        assert answer.status == 200
        assert json.loads(answer.read())["open"] == 1
        assert time.monotonic() < start + 10
        half[0].settimeout(30)
        assert half[0].recv(1) == b""  # it was dropped
        for one in (connection, *half):
            one.close()
