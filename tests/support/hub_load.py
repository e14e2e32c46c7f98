"""Many simulated workers against a real server and store, with kills of both; prints what happened.

    python tests/support/hub_load.py --workers 1000 --minutes 10

A worker is a coroutine that speaks the protocol over sockets of this machine; only the time of a
run is simulated, by waiting. Each second a worker is killed and another one joins; some that were
killed come back and report. The server is killed three times; after the second time all workers
come back at once, without waiting. Requests share connections that are kept, as those of a reverse
proxy. At the end it is checked that every acknowledged result is
in the file, that every run counts once, and that all runs and all decisions made so far are those
of one local worker.
"""

import argparse
import asyncio
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np

import polarbear as pb
from hubs import race_of_file
from polarbear.data.run import normalise_run
from polarbear.hub.hub_file import HubFile
from polarbear.hub.tokens import add_contributor
from polarbear.hub.web_worker import to_item
from polarbear.racing.events import Asked, Decided, Told
from polarbear.racing.jobs import Job, key_of
from polarbear.running.solvers.configuration import load
from polarbear.running.solvers.identity import identify
from polarbear.running.workers.outcomes import RunOutcome
from typed import command

ALGORITHMS = 8
N_CONTRIBUTORS = 20

MODULE = """
import random

def make_values(name, seed):
    rng = random.Random(seed)
    skill = 0.05 * int(name[1:])
    return [(t, rng.gauss(skill, 1.0) - 10 * k) for k, t in enumerate((1, 10, 100))]

def _solver(name):
    def solve(job):
        yield from make_values(name, job.seed)
    return solve

SOLVERS = [_solver(f"s{k}") for k in range(8)]
s0, s1, s2, s3, s4, s5, s6, s7 = SOLVERS

def instance(rng):
    return 0
"""


def write_race(folder, max_runs, batch):
    (folder / "load_module.py").write_text(MODULE)
    lines = ["times = [1, 10, 100]", 'direction = "minimize"', 'clock = "evaluations"']
    lines += ['instances.python = "load_module:instance"']
    lines += [f'solvers.s{k}.python = "load_module:s{k}"' for k in range(ALGORITHMS)]
    lines += [f"rules.max_runs = {max_runs}", f"rules.batch = [{batch}, {batch}]"]
    lines += ["rules.certainty = 0.999999", "rules.overlap = 3"]
    (folder / "race.toml").write_text("\n".join(lines))


def make_run(job):
    from load_module import make_values

    made = [(t, value) for t, value in make_values(job.algorithm, job.seed) if t <= job.horizon]
    best = list(np.minimum.accumulate([value for _, value in made]))
    return job.run([float(t) for t, _ in made], [float(value) for value in best])


def make_item(leased, seconds):
    """The result of a leased job, as an entry of ``results``."""
    job = Job(**{name: leased[name] for name in Job._fields})
    outcome = RunOutcome(job, make_run(job), seconds=seconds)
    return {"id": leased["id"], "lease": leased["lease"]} | to_item(outcome)


def cpu_seconds(pid):
    """The CPU time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Server:
    """The real server, which is started again after each kill."""

    def __init__(self, folder, port, heartbeat, audit):
        self.folder, self.port = folder, port
        words = ["serve", "race.db", "--workers", "race.toml", "--port", port]
        self.words = command(*words, "--heartbeat", heartbeat, "--audit", audit)
        self.disturbed_until = 0.0
        self.process = None
        self.cpu = Counter()  # seconds of the processes that have ended

    def start(self):
        with (self.folder / "server.log").open("a") as log:
            self.process = subprocess.Popen(
                self.words, cwd=self.folder, stdout=log, stderr=log, start_new_session=True
            )

    def is_up(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def measure(self):
        """Add the CPU times of the server and of its child, the coordinator."""
        pid = self.process.pid
        self.cpu["server"] += cpu_seconds(pid)
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        self.cpu["coordinator"] += sum(map(cpu_seconds, children))

    def kill(self):
        self.measure()
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.measure()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(90)


class Connection(asyncio.Protocol):
    """A connection that is used for one request after the other."""

    LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)

    def connection_made(self, transport):
        self.transport, self.is_open = transport, True
        self.answer = None

    def ask(self, request):
        """Send a request; return the future of the status and the body of its answer."""
        self.answer = asyncio.get_running_loop().create_future()
        self.received, self.end = b"", None
        self.transport.write(request)
        return self.answer

    def data_received(self, data):
        self.received += data
        if self.end is None and (at := self.received.find(b"\r\n\r\n")) >= 0:
            self.start = at + 4
            self.end = self.start + int(self.LENGTH.search(self.received, 0, at)[1])
        if self.end is not None and len(self.received) >= self.end and not self.answer.done():
            self.used_at = time.monotonic()
            self.is_open = self.is_open and b"connection: close" not in self.received[: self.start]
            self.answer.set_result((int(self.received[9:12]), self.received[self.start :]))

    def connection_lost(self, _):
        self.is_open = False
        if self.answer is not None and not self.answer.done():
            self.answer.set_exception(ConnectionError("no answer"))


class Load:
    """The workers, and what they have seen."""

    KEPT_SECONDS = 4.0  # the server closes a connection after five

    def __init__(self, arguments, folder, server, tokens, digests):
        self.arguments, self.server, self.tokens = arguments, server, tokens
        self.digests = digests
        self.rng = random.Random(1)
        self.seconds = defaultdict(list)  # of requests by operation, outside of storms
        self.storm_seconds = []
        self.acknowledged = set()
        self.statuses = Counter()
        self.idle = []  # connections
        self.is_over = False
        self.is_storm = False
        self.n_killed = self.n_resurrected = self.n_failed = self.n_connections = 0
        self.folder = folder
        self.unsent = {}  # by number: the worker, and the results that it has not sent

    async def connect(self):
        """Return a connection that is not in use, or a new one."""
        while self.idle:
            connection = self.idle.pop()
            if connection.is_open and time.monotonic() < connection.used_at + self.KEPT_SECONDS:
                return connection
            connection.transport.abort()
        self.n_connections += 1
        loop = asyncio.get_running_loop()
        return (await loop.create_connection(Connection, "127.0.0.1", self.server.port))[1]

    async def post(self, operation, content, token):
        """Send one request; return the status and the answer."""
        body = json.dumps(content)
        head = (
            f"POST /api/v1/{operation} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"Content-Type: application/json\r\nAuthorization: Bearer {token}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        start = time.perf_counter()
        connection = await self.connect()
        try:
            async with asyncio.timeout(60):
                status, answer = await connection.ask((head + body).encode())
        except BaseException:
            connection.transport.abort()
            raise
        self.idle.append(connection)
        took = time.perf_counter() - start
        is_disturbed = time.monotonic() < self.server.disturbed_until
        (self.storm_seconds if is_disturbed else self.seconds[operation]).append(took)
        self.statuses[operation, status] += 1
        return status, json.loads(answer)

    async def call(self, operation, content, token):
        """Repeat a request until it is answered, as the specification says."""
        delay = 1.0
        while not self.is_over:
            try:
                status, answer = await self.post(operation, content, token)
                if status == 200:
                    return answer
                if status not in (408, 429, 500, 502, 503, 504):
                    raise RuntimeError(f"{operation}: {status} {answer}")
            except (OSError, ConnectionError, TimeoutError, ValueError):
                self.n_failed += 1
            if self.is_storm:
                await asyncio.sleep(0.2)
            else:
                await asyncio.sleep(delay * self.rng.uniform(0.5, 1.5))
                delay = min(2 * delay, 15.0)
        raise asyncio.CancelledError

    async def live(self, number, late=()):
        """Be a worker until it is killed; ``late`` are results of one that was thought dead."""
        token = self.tokens[number % len(self.tokens)]
        await asyncio.sleep(self.rng.uniform(0, self.arguments.spread))
        body = {"protocol": 1, "algorithms": self.digests, "slots": 1}
        joined = await self.call("join", body, token)
        worker, held = joined["worker"], []
        beat = asyncio.create_task(self.beat(worker, held, token, joined["heartbeat_seconds"]))
        try:
            for other, jobs in late:
                await self.report(other, [make_item(one, 0.0) for one in jobs], token)
            while not self.is_over:
                answer = await self.call("lease", {"worker": worker}, token)
                held[:] = answer["jobs"]
                self.unsent[number] = (worker, answer["jobs"])
                if held:
                    seconds = self.rng.uniform(0.5, 1.5) * self.arguments.seconds
                    await asyncio.sleep(seconds * len(held))
                    await self.report(worker, [make_item(one, seconds) for one in held], token)
                else:
                    await asyncio.sleep(answer["wait"] * self.rng.uniform(0.5, 1.5))
                self.unsent.pop(number, None)
                held.clear()
        finally:
            beat.cancel()

    async def report(self, worker, items, token):
        answer = await self.call("results", {"worker": worker, "results": items}, token)
        words = answer["results"]
        for item in items:
            if words.get(item["id"]) not in ("accepted", "known", "unwanted"):
                raise RuntimeError(f"an honest result was refused: {words}")
            if words[item["id"]] == "accepted":
                self.acknowledged.add((item["id"], worker))

    async def beat(self, worker, held, token, seconds):
        while not self.is_over:
            await asyncio.sleep(seconds * self.rng.uniform(0.8, 1.0))
            if not held:
                continue
            jobs = [{"id": one["id"], "lease": one["lease"]} for one in held]
            try:
                status, answer = await self.post(
                    "heartbeat", {"worker": worker, "jobs": jobs}, token
                )
                seconds = answer["heartbeat_seconds"] if status == 200 else seconds
            except (OSError, ConnectionError, TimeoutError, ValueError):
                self.n_failed += 1

    async def run(self):
        n = self.arguments.workers
        tasks = {k: asyncio.create_task(self.live(k)) for k in range(n)}
        start = time.monotonic()
        end = start + 60 * self.arguments.minutes
        kills = list(np.linspace(start, end, self.arguments.kills + 2)[1:-1])
        while not self.is_over:
            await asyncio.sleep(min(1.0, end - start))
            now = time.monotonic()
            for task in tasks.values():
                if task.done() and not task.cancelled() and task.exception():
                    raise task.exception()
            if now < end:
                self.disturb(tasks)
            if kills and now > kills[0]:
                kills.pop(0)
                await self.kill_server(is_storm=len(kills) == self.arguments.kills // 2)
            self.is_over = now > end or (not kills and await asyncio.to_thread(self.has_ended))
        seconds = time.monotonic() - start
        for task in tasks.values():
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)
        for connection in self.idle:
            connection.transport.abort()
        await asyncio.sleep(0)
        return seconds

    def disturb(self, tasks):
        """Kill a worker; its place is taken by a new one, which may send what the old one had."""
        number = self.rng.choice(list(tasks))
        tasks[number].cancel()
        self.n_killed += 1
        lost = self.unsent.pop(number, None)
        late = []
        if lost is not None and lost[1] and self.rng.random() < 0.5:
            self.n_resurrected += 1
            late = [lost]
        tasks[number] = asyncio.create_task(self.live(number, late))

    async def kill_server(self, *, is_storm):
        self.server.disturbed_until = float("inf")
        self.is_storm = is_storm
        self.server.kill()
        self.server.start()
        while not self.server.is_up():
            await asyncio.sleep(0.1)
        await asyncio.sleep(self.arguments.settle / 4)
        self.is_storm = False
        self.server.disturbed_until = time.monotonic() + 0.75 * self.arguments.settle

    def has_ended(self):
        with pb.open_store(self.folder / "race.db", read_only=True) as store:
            return store.status().ended is not None


def race_alone(folder, n_rounds):
    """At least the first rounds of the same race in this process, with one worker."""
    race = race_of_file(load(folder / "race.toml"))
    while (jobs := race.ask()) and race.rounds < n_rounds:
        for job in jobs:
            race.tell(make_run(job))
    return race


def run_load(arguments, folder):
    """Run the load test in a folder; return what was measured, as a dictionary."""
    write_race(folder, arguments.max_runs, arguments.batch)
    sys.path.insert(0, str(folder))
    digests = {
        n: p["content"] for n, p in identify(load(folder / "race.toml").setup).solvers.items()
    }
    hub = HubFile(folder / "race.hub")
    tokens = [add_contributor(hub, f"c{k}", quota=10**6) for k in range(N_CONTRIBUTORS)]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = Server(folder, port, arguments.heartbeat, arguments.audit)
    server.start()
    while not hub.get("race") or not server.is_up():
        time.sleep(0.1)
    load_test = Load(arguments, folder, server, tokens, digests)
    try:
        seconds = asyncio.run(load_test.run())
    finally:
        server.stop()
    return check(load_test, folder, hub, seconds)


def check(load_test, folder, hub, seconds):
    reports = set(hub.read("SELECT job, worker FROM reports"))
    lost = load_test.acknowledged - reports
    with pb.open_store(folder / "race.db", read_only=True) as store:
        events = list(store.read())
        status = store.status()
    told = [event.run for event in events if isinstance(event, Told)]
    keys = [key_of(run) for run in told]
    alone = race_alone(folder, status.n_rounds)
    decisions, expected = (
        [event for event in one if isinstance(event, Decided)] for one in (events, alone.events)
    )
    jobs = {job.key: job for event in events if isinstance(event, Asked) for job in event.jobs}
    is_honest = all(run == normalise_run(make_run(jobs[key_of(run)])) for run in told)
    return measure(load_test, seconds) | {
        "killed workers": load_test.n_killed,
        "late results": load_test.n_resurrected,
        "killed servers": load_test.arguments.kills,
        "runs that count": len(keys),
        "results made": len(reports),
        "lost": len(lost),
        "twice": len(keys) - len(set(keys)),
        "quarantined": hub.read("SELECT count(*) FROM workers WHERE state = 'quarantined'")[0][0],
        "runs as one local worker makes them": is_honest,
        "decisions as with one local worker": decisions == expected[: len(decisions)],
        "rounds": len(decisions),
        "ended": status.ended,
    }


def measure(load_test, seconds):
    """Request times, requests a second, and the share of a core that each process used."""

    def quantiles(times):
        return [round(1000 * float(q), 1) for q in np.quantile(times or [0.0], (0.5, 0.99, 1.0))]

    by_operation = load_test.seconds
    calm = [took for times in by_operation.values() for took in times]
    n_requests = sum(load_test.statuses.values())
    cpu = load_test.server.cpu | {"generator": time.process_time()}
    return {
        "seconds": round(seconds, 1),
        "workers": load_test.arguments.workers,
        "requests": n_requests,
        "requests a second": round(n_requests / seconds, 1),
        "connections": load_test.n_connections,
        "unanswered requests": load_test.n_failed,
        "ms (median, 99 %, largest)": quantiles(calm),
        "ms in storms": quantiles(load_test.storm_seconds),
        "ms by operation": {name: quantiles(times) for name, times in by_operation.items()},
        "statuses": {f"{n} {s}": k for (n, s), k in sorted(load_test.statuses.items())},
        "share of a core": {name: round(used / seconds, 3) for name, used in cpu.items()},
        "CPU ms of the server a request": round(1000 * cpu["server"] / max(n_requests, 1), 2),
    }


def make_parser():
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--workers", type=int, default=1000)
    add("--minutes", type=float, default=10.0)
    add("--seconds", type=float, default=60.0, help="mean time of a run")
    add("--max-runs", type=int, default=10**6, help="of the race")
    add("--batch", type=int, help="instances of a round")
    add("--heartbeat", type=float, default=30.0)
    add("--audit", type=float, default=0.1)
    add("--kills", type=int, default=3, help="of the server")
    add("--settle", type=float, default=20.0, help="seconds after a kill that count as a storm")
    add("--spread", type=float, default=20.0, help="seconds over which workers join")
    return parser


def main():
    arguments = make_parser().parse_args()
    arguments.batch = arguments.batch or max(arguments.workers // (2 * ALGORITHMS), 4)
    with tempfile.TemporaryDirectory() as folder:
        for name, value in run_load(arguments, Path(folder)).items():
            print(f"{name}: {value}", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
