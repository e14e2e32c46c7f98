"""Requests that are malformed, forged, too large, too slow, too many, or from a web page."""

import asyncio
import json
import random
import time
from argparse import Namespace

import numpy as np
import pytest

import polarbear as pb
from hubs import Worker, ask, request, setup, solve
from polarbear.cli.hosting import Coordinator
from polarbear.cli.main import main
from polarbear.data.rankings import rank
from polarbear.data.run import Run, run_from_plain, run_to_plain
from polarbear.errors import DataError, SolverError
from polarbear.hub import http_api
from polarbear.hub.board import Board, Member, Policy
from polarbear.hub.http_api import HubApi
from polarbear.hub.hub_backend import WorkerHub, leave_out_newcomers
from polarbear.hub.hub_file import HubFile
from polarbear.hub.protocol import MAX_BODY_BYTES, make_outcome
from polarbear.hub.residuals import measure_residuals
from polarbear.hub.service import HubService
from polarbear.hub.tokens import RateLimit, add_contributor, revoke_contributor
from polarbear.hub.web_worker import HubClient, to_item
from polarbear.racing.jobs import Job, RunId, job
from polarbear.running.solvers.identity import identify
from polarbear.running.workers.outcomes import RunOutcome
from waiting import wait_until


def jobs_of(n=6):
    return [job(0, RunId(name, str(k), 0), 4.0) for k in range(n) for name in ("fast", "slow")]


@pytest.fixture
def hub(tmp_path):
    """A hub file with open jobs, and its server."""
    path = tmp_path / "race.hub"
    backend = WorkerHub(path, 0.0).start_backend(setup())
    backend.submit(jobs_of())
    app = HubApi(HubService(path, Policy(probation=0)), rate=1e9, burst=1e9)
    yield app
    backend.close()


@pytest.fixture
def worker(hub):
    worker = Worker(lambda: hub, add_contributor(hub.service.hub, "ann"))
    worker.join()
    return worker


def count(hub, condition):
    return hub.service.hub.read(f"SELECT count(*) FROM {condition}")[0][0]


def mutate(rng, value, depth=0):
    """Replace a random part of a message by something else."""
    odd = [None, True, -1, 1e308, 10**30, "", "x" * 300, "\ud800", [], {}, [[[]]], "inf", "nan"]
    if depth > 3 or rng.random() < 0.2 or not isinstance(value, dict | list) or not value:
        return rng.choice(odd)
    if isinstance(value, list):
        k = rng.randrange(len(value))
        return [*value[:k], mutate(rng, value[k], depth + 1), *value[k + 1 :]]
    name = rng.choice(list(value))
    rest = {key: part for key, part in value.items() if key != name}
    return rest if rng.random() < 0.2 else rest | {name: mutate(rng, value[name], depth + 1)}


@pytest.mark.parametrize("n", [300, pytest.param(5000, marks=pytest.mark.slow)])
def test_fuzzed_bodies_are_refused_or_harmless(hub, worker, n):
    """No answer is an error of the server, and no job gets a result that no worker could make."""
    rng = random.Random(3)
    worker.lease()
    messages = {
        "join": {"protocol": 1, "algorithms": {"fast": "x"}, "slots": 1, "about": {"a": "b"}},
        "lease": {"worker": worker.id},
        "heartbeat": {"worker": worker.id, "jobs": [{"id": "x", "lease": "y"}]},
        "results": {"worker": worker.id, "results": worker.results()},
        "fail": {"worker": worker.id, "results": [{"id": "x", "lease": "y", "why": "z"}]},
        "status": {},
        "submit": {"algorithm": "fast", "digest": "x"},
    }
    garbage = [b"", b"\xff\xfe", b"[" * 10_000, b"{" * 100, b'{"worker": NaN}', b"1" * 5_000]

    def make_request(k):
        name = rng.choice(list(messages))
        body = rng.choice(garbage) if k % 10 == 0 else mutate(rng, messages[name])
        if not isinstance(body, bytes):
            body = json.dumps(body).encode(errors="surrogatepass")
            if k % 7 == 0:
                at = rng.randrange(len(body) + 1)
                body = body[:at] + bytes([rng.randrange(256)]) + body[at + 1 :]
        return request(hub, name, body, token=worker.token)

    async def send_all():
        statuses = set()
        for first in range(0, n, 50):  # at once, so that commits are grouped
            answers = await asyncio.gather(*map(make_request, range(first, first + 50)))
            statuses |= {status for status, _ in answers}
        return statuses

    assert asyncio.run(send_all()) <= {200, 400, 403, 409, 413}
    hub.service.load()
    for (body,) in hub.service.hub.read("SELECT body FROM reports"):
        plain = json.loads(body)
        make_outcome(Job(**plain["job"]), plain["run"])


def test_tokens_that_are_wrong_expired_revoked_or_stolen(hub, worker):
    file = hub.service.hub
    other = add_contributor(file, "bob")
    expired = add_contributor(file, "eve", days=-1)
    assert other not in str(file.read("SELECT * FROM contributors"))
    secret = other.rpartition("_")[2]
    assert secret not in str(file.read("SELECT * FROM contributors"))
    for token in ("", "pb_x_y", other[:-1] + "!", f"{other[:-2]}00", expired, "pb_' OR 1=1 --_x"):
        assert ask(hub, "status", {}, token=token)[0] == 401
    # A stolen token does not act for the workers of others, and ends when it is revoked.
    assert ask(hub, "lease", {"worker": worker.id}, token=other)[0] == 403
    assert ask(hub, "status", {}, token=other)[0] == 200
    revoke_contributor(file, "bob")
    assert ask(hub, "status", {}, token=other)[0] == 401
    for _ in range(40):  # guesses are slowed down
        status = ask(hub, "status", {}, token="pb_aa_" + 64 * "0")[0]
    assert status == 429
    assert ask(hub, "status", {}, token=worker.token)[0] == 200


def test_roles_quota_and_rate(hub, worker):
    file = hub.service.hub
    for name in ("log", "revoke"):
        assert ask(hub, name, {}, token=worker.token)[0] == 403
    chief = add_contributor(file, "chief", role="administer")
    assert ask(hub, "join", {"protocol": 1, "algorithms": {}}, token=chief)[0] == 403
    entries = ask(hub, "log", {}, token=chief)[1]["log"]
    assert ("ann", "join") in {(entry["actor"], entry["action"]) for entry in entries}
    status, text = ask(hub, "metrics", method="GET", token=chief)
    assert (status, "polarbear_jobs_open 12" in text) == (200, True)
    assert ask(hub, "revoke", {"contributor": "ann"}, token=chief)[0] == 200
    assert ask(hub, "status", {}, token=worker.token)[0] == 401
    small = Worker(lambda: hub, add_contributor(file, "small", quota=1))
    small.join()
    small.lease()
    small.lease()
    assert len(small.jobs) == 1
    strict = HubApi(hub.service, rate=1.0, burst=3)
    statuses = [ask(strict, "status", {}, token=small.token)[0] for _ in range(5)]
    assert statuses == [200, 200, 200, 429, 429]
    with pytest.raises(DataError, match="role='king': expected one of"):
        add_contributor(file, "x", role="king")


def test_algorithms_join_only_if_they_were_allowed_by_digest(hub, worker):
    file = hub.service.hub
    submits = add_contributor(file, "eve", role="submit")
    digests = {name: parts["content"] for name, parts in identify(setup()).solvers.items()}
    file.write([("UPDATE meta SET value = '{}' WHERE key = 'race'", ())])  # none races yet
    assert file.allow_newcomers({"poor": digests["poor"]}) == ["poor"]
    restarts = []
    app = HubApi(hub.service, on_submit=lambda: restarts.append(1))

    def submit(token=submits, **changes):
        body = {"algorithm": "poor", "digest": digests["poor"]} | changes
        return ask(app, "submit", body, token=token)[0]

    names = {*leave_out_newcomers(setup(), file.path).solvers}
    assert names == {"fast", "slow"}
    assert ask(app, "status", {}, token=submits)[1]["newcomers"] == {"poor": digests["poor"]}
    assert submit(token=worker.token) == 403
    assert submit(token=add_contributor(file, "chief", role="administer")) == 403
    assert submit(digest="0") == submit(algorithm="../x") == submit(digest="") == 403
    assert submit(algorithm=5) == 400
    assert not restarts
    assert [submit(), submit()] == [200, 200]
    assert restarts == [1]
    assert {*leave_out_newcomers(setup(), file.path).solvers} == {"fast", "slow", "poor"}
    file.write([("UPDATE newcomers SET digest = 'before the code was changed'", ())])
    assert {*leave_out_newcomers(setup(), file.path).solvers} == {"fast", "slow"}
    assert file.allow_newcomers(digests) == ["fast", "slow"]  # what was submitted stays
    assert ("eve", f"poor {digests['poor']}") in file.read(
        "SELECT actor, detail FROM log WHERE action = 'submit'"
    )


def test_the_coordinator_is_started_again_when_an_algorithm_is_submitted(tmp_path, monkeypatch):
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho started >> {tmp_path}/starts\nexec sleep 60\n")
    program.chmod(0o700)
    monkeypatch.setattr("sys.executable", str(program))
    arguments = Namespace(workers="race.toml", store="race.db", audit=0.1)
    coordinator = Coordinator(arguments, "race.hub")
    first, failures = coordinator._process, []
    with coordinator.watched(lambda: failures.append(1)):
        wait_until(lambda: (tmp_path / "starts").exists())
        coordinator.restart()
        wait_until(lambda: (tmp_path / "starts").read_text().count("started") == 2)
        wait_until(lambda: coordinator._process is not first)
        second = coordinator._process
        assert first.poll() is not None
        assert second.poll() is None  # it outlives the request that asked for it
        assert not coordinator.is_over()
    assert second.poll() is not None
    assert (failures, coordinator.exit_code) == ([], None)


def test_web_pages_methods_paths_and_types_are_refused(hub, worker):
    def status(name="status", **more):
        return ask(hub, name, b"{}", token=worker.token, **more)[0]

    assert status() == 200
    assert status(headers={"origin": "https://evil.example"}) == 403
    assert status(headers={"sec-fetch-site": "cross-site"}) == 403
    assert status(headers={"content-type": "text/plain"}) == 415
    assert status(headers={"content-type": "application/x-www-form-urlencoded"}) == 415
    for method in ("GET", "PUT", "OPTIONS", "DELETE"):
        assert status(method=method) == 405
    for path in ("../log", "status/../log", "%2e%2e/race.db", "STATUS", "status\0", ""):
        assert status(path) == 404
    assert status(headers={"content-length": str(MAX_BODY_BYTES + 1)}) == 413
    assert status(headers={"content-length": "-1"}) == 413
    assert ask(hub, "status", b" " * (MAX_BODY_BYTES + 1), token=worker.token)[0] == 413


def test_a_slow_body_is_refused(hub, worker, monkeypatch):
    monkeypatch.setattr(http_api, "BODY_SECONDS", 0.05)
    sent = []

    async def receive():
        await asyncio.sleep(0.02)
        return {"type": "http.request", "body": b" ", "more_body": True}

    async def send(message):
        sent.append(message)

    headers = [(b"content-type", b"application/json")]
    headers += [(b"authorization", f"Bearer {worker.token}".encode())]
    scope = {"type": "http", "method": "POST", "path": "/api/v1/status", "headers": headers}
    start = time.monotonic()
    asyncio.run(hub(scope, receive, send))
    assert sent[0]["status"] == 408
    assert time.monotonic() < start + 5


def test_forged_and_replayed_results(hub, worker):
    worker.lease()
    item = worker.results()[0]
    answer = worker.call("results", results=[item | {"lease": "0" * 32}])
    assert answer["results"][item["id"]].startswith("refused")
    other = Worker(lambda: hub, add_contributor(hub.service.hub, "bob"))
    other.join()
    answer = other.call("results", results=[item])  # the proof of a lease is for one worker
    assert answer["results"][item["id"]].startswith("refused")
    for expected in ("accepted", "known", "known"):  # a replay changes nothing
        assert worker.call("results", results=[item])["results"][item["id"]] == expected
        assert count(hub, "reports") == count(hub, "jobs WHERE state = 'accepted'") == 1
    late = item | {"value": [0.0, 0.0, 0.0]}
    worker.call("results", results=[late])
    assert count(hub, "reports") == 1


def test_a_result_passes_the_validator_of_all_runs_and_has_their_encoding():
    one = jobs_of()[0]
    run = solve(one)
    outcome = make_outcome(one, to_item(RunOutcome(one, run)))
    assert outcome.run == run_from_plain(run_to_plain(run))
    for wrong, message in (
        ({"value": [1.0]}, "times and"),
        ({"time": [1, 2, -4]}, "not a finite time"),
        ({"until": 99}, "but the job ends at 4"),
        ({"status": "won"}, "is not one of"),
        ({"why": 5}, "must be text"),
        ({"value": ["0x1", 2, 3]}, "values must be"),
    ):
        with pytest.raises(DataError, match=message):
            make_outcome(one, to_item(RunOutcome(one, run)) | wrong)


def test_leases_expire_are_adopted_and_are_sized_to_wall_time():
    board = Board(Policy(probation=0, audit_share=0, target_seconds=10.0), b"secret")
    for k in range(200):
        board.add_task(str(k), Job("hill", str(k), 0, 1.0, 1, 2))
    one = board.join(Member("w1", "ann", frozenset({"hill"})), now=0.0)
    two = board.join(Member("w2", "bob", frozenset({"hill"})), now=0.0)
    first = board.lease(one, now=0.0, quota=99)
    assert len(first) == 1  # before the first run nothing says how long it takes
    board.observe_seconds(one, first[0].job, 1.0)
    board.observe_seconds(two, first[0].job, 1.0)
    assert len(board.lease(one, now=1.0, quota=99)) == 10
    assert len(board.lease(two, now=1.0, quota=3)) == 3
    assert board.expire(now=170.0) == []
    assert board.renew(two, set(two.jobs), now=170.0) == []
    assert board.expire(now=190.0) == ["w1"]
    assert not one.jobs
    assert len(two.jobs) == 3
    # After a restart the server knows of no lease: the worker tells it.
    assert board.renew(one, {"0", "nonsense"}, now=191.0) == ["nonsense"]
    assert list(one.jobs) == ["0"]
    assert board.renew(one, set(), now=300.0) == []  # it lost the job, and says so
    assert not one.jobs
    board.quarantine("w2")
    assert board.lease(two, now=300.0, quota=99) == []


def test_many_workers_send_fewer_requests_each():
    board = Board(Policy(full_load=10), b"secret")
    first = board.join(Member("w0", "ann"), now=0.0)
    assert board.tell_heartbeat(first, 0.0) == 30.0
    for k in range(1, 40):
        board.join(Member(f"w{k}", "ann"), now=1.0)
    assert board.tell_heartbeat(first, 2.0) == 120.0
    assert first.lease_seconds == 720.0
    board.add_task("j", Job("hill", "f", 0, 1.0, 1, 2))
    board.renew(first, {"j"}, now=2.0)
    assert board.expire(now=700.0) == []
    assert board.expire(now=730.0) == ["w0"]
    # An idle worker asks soon after its last job, and less often later.
    assert board.suggest_wait(731.0, worked=731.0) == 0.1
    assert board.suggest_wait(741.0, worked=731.0) == 2.5
    assert board.suggest_wait(1e6, worked=731.0) == 15.0


def test_timed_races_take_calm_machines_and_compare_those_of_one_speed(tmp_path):
    timed = setup().__class__.of(
        {"fast": solve, "slow": solve}, range(3), times=[1], direction="minimize", clock="wall"
    )
    backend = WorkerHub(tmp_path / "race.hub").start_backend(timed)
    names = [(name, str(k)) for k in range(3) for name in ("fast", "slow")]
    backend.submit([job(0, RunId(*key, 0), 1.0) for key in names])
    app = HubApi(HubService(tmp_path / "race.hub"))
    notes, leased, tokens, ids = {}, {}, {}, {}

    def lease(name):
        answer = ask(app, "lease", {"worker": ids[name]}, token=tokens[name])[1]
        return [(one["algorithm"], one["instance"]) for one in answer["jobs"]]

    for name, seconds in {
        "first": [1.0, 1.01, 1.02],
        "noisy": [1.0, 1.5, 1.0],
        "slow": [2.0, 2.0, 2.0],
        "silent": [],
    }.items():
        tokens[name] = add_contributor(app.service.hub, name)
        body = {"protocol": 1, "algorithms": {"fast": "", "slow": ""}, "calibration": seconds}
        joined = ask(app, "join", body, token=tokens[name])[1]
        notes[name], ids[name] = joined["note"], joined["worker"]
        leased[name] = lease(name)
    assert "too noisy" in notes["noisy"]
    assert "no calibration" in notes["silent"]
    assert notes["first"] == notes["slow"] == ""
    # The instance of a run belongs to the group of its machine.
    assert leased == {"first": [("fast", "0")], "noisy": [], "slow": [("fast", "1")], "silent": []}
    assert lease("slow") == [("slow", "1")]
    assert lease("first") == [("slow", "0")]
    app.service.load()  # as after a restart
    assert lease("noisy") == []
    assert app.service.board.members[ids["slow"]].group == 1
    backend.close()


def test_a_slow_and_a_noisy_machine_are_found_by_their_residuals():
    """160 instances, each algorithm's run by another worker: w0 is slow, and w1 adds noise."""
    rng = np.random.default_rng(1)
    names, frame, worker_of = "abcd", [], {}
    for k in range(160):
        for i, name in enumerate(names):
            worker = (k + i * (1 + k % 3)) % 8
            extra = {0: 1.5, 1: rng.choice([-4.0, 4.0])}.get(worker, 0.0)
            value = 0.5 * i + rng.normal() + extra
            frame.append(Run(name, str(k), time=[1.0], value=[value], until=1.0))
            worker_of[name, str(k)] = f"w{worker}"
    runs = pb.Runs.from_records(frame, direction="minimize")
    residuals = measure_residuals(rank(runs), pb.fit(runs, draws=200), worker_of)
    deviating = {one.worker: one for one in residuals if one.is_deviating}
    assert deviating.keys() == {"w0", "w1"}
    assert deviating["w0"].shift < -5
    assert deviating["w1"].noise > 5
    assert measure_residuals(rank(runs), pb.fit(runs, draws=200), {}) == []


def test_clients_send_tokens_over_https_only():
    for url in ("http://races.example.org", "ftp://host", "races"):
        with pytest.raises(SolverError, match="https"):
            HubClient(url, "token")
    assert RateLimit(1.0, 1.0).allows("a", 0.0)


def test_the_command_gives_and_revokes_tokens(tmp_path, capsys):
    path = str(tmp_path / "race.hub")
    assert main(["contributors", path, "--add", "ann", "--quota", "4"]) == 0
    token = capsys.readouterr().out.strip()
    assert token.startswith("pb_")
    assert main(["contributors", path, "--revoke", "ann"]) == 0
    assert main(["contributors", path]) == 0
    assert "ann  contribute  revoked" in capsys.readouterr().out
    assert main(["contributors", path, "--log"]) == 0
    assert "operator  revoke  ann" in capsys.readouterr().out
    assert main(["contributors", path, "--revoke", "bob"]) == 1
    file = HubFile(path)
    assert token.rpartition("_")[2] not in str(file.read("SELECT * FROM log"))
    file.close()
