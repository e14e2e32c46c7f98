"""Many simulated workers against a real server and store, with kills of both; prints what happened.

    python tests/support/hub_load.py --workers 1000 --minutes 10

A worker is a coroutine that speaks the protocol over sockets of this machine; only the time of a
run is simulated, by waiting. Each second a worker is killed and another one joins; some that were
killed come back and report. The server is killed three times; after the second time all workers
come back at once, without waiting. At the end it is checked that every acknowledged result is
in the file, that every run counts once, and that all runs and all decisions made so far are those
of one local worker.
"""

import argparse
import asyncio
import json
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import polarbear as pb
from polarbear.data.run import normalise_run
from polarbear.hub.hub_file import HubFile
from polarbear.hub.tokens import add_contributor
from polarbear.hub.web_worker import to_item
from polarbear.racing.events import Asked, Decided, Told
from polarbear.racing.jobs import Job, key_of
from polarbear.racing.race import Race
from polarbear.running.solvers.configuration import load
from polarbear.running.solvers.identity import identify
from polarbear.running.workers.outcomes import RunOutcome
from typed import command

ALGORITHMS = 8
N_CONTRIBUTORS = 20
N_SERVER_KILLS = 3

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
    lines += ["rules.certainty = 0.999999", "rules.overlap = 1"]
    (folder / "race.toml").write_text("\n".join(lines))


def make_run(job):
    from load_module import make_values

    made = [(t, value) for t, value in make_values(job.algorithm, job.seed) if t <= job.horizon]
    best = list(np.minimum.accumulate([value for _, value in made]))
    return job.run([float(t) for t, _ in made], [float(value) for value in best])


class Server:
    """The real server, which is started again after each kill."""

    def __init__(self, folder, port, heartbeat, audit):
        self.folder, self.port = folder, port
        words = ["serve", "race.db", "--workers", "race.toml", "--port", port]
        self.words = command(*words, "--heartbeat", heartbeat, "--audit", audit)
        self.disturbed_until = 0.0
        self.process = None

    def start(self):
        log = (self.folder / "server.log").open("a")
        self.process = subprocess.Popen(
            self.words, cwd=self.folder, stdout=log, stderr=log, start_new_session=True
        )

    def is_up(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def kill(self):
        self.process.kill()
        self.process.wait()


class Load:
    """The workers, and what they have seen."""

    def __init__(self, arguments, folder, server, tokens, digests):
        self.arguments, self.server, self.tokens = arguments, server, tokens
        self.digests = digests
        self.rng = random.Random(1)
        self.seconds = []  # of requests, outside of storms
        self.storm_seconds = []
        self.by_operation = {}
        self.acknowledged = set()
        self.statuses = {}
        self.is_over = False
        self.is_storm = False
        self.n_killed = self.n_resurrected = self.n_failed = 0
        self.folder = folder
        self.unsent = {}  # by number: the worker, and the results that it has not sent

    async def post(self, operation, content, token):
        """Send one request on a connection of its own; return the status and the answer."""
        body = json.dumps(content).encode()
        start = time.perf_counter()
        reader, writer = await asyncio.open_connection("127.0.0.1", self.server.port)
        try:
            head = (
                f"POST /api/v1/{operation} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
                f"Content-Type: application/json\r\nAuthorization: Bearer {token}\r\n"
                f"Content-Length: {len(body)}\r\n\r\n"
            )
            writer.write(head.encode() + body)
            answer = await asyncio.wait_for(reader.read(-1), 60)
        finally:
            writer.close()
        head, _, rest = answer.partition(b"\r\n\r\n")
        if not rest:
            raise ConnectionError("no answer")
        took = time.perf_counter() - start
        is_disturbed = time.monotonic() < self.server.disturbed_until
        (self.storm_seconds if is_disturbed else self.seconds).append(took)
        self.by_operation.setdefault(operation, []).append(took)
        status = int(head.split()[1])
        self.statuses[operation, status] = self.statuses.get((operation, status), 0) + 1
        return status, json.loads(rest)

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
            for other, items in late:
                await self.report(other, items, token)
            while not self.is_over:
                answer = await self.call("lease", {"worker": worker}, token)
                held[:] = answer["jobs"]
                items = []
                self.unsent[number] = (worker, items)
                for leased in answer["jobs"]:
                    job = Job(**{name: leased[name] for name in Job._fields})
                    seconds = self.rng.uniform(0.5, 1.5) * self.arguments.seconds
                    await asyncio.sleep(seconds)
                    outcome = RunOutcome(job, make_run(job), seconds=seconds)
                    items.append({"id": leased["id"], "lease": leased["lease"]} | to_item(outcome))
                if items:
                    await self.report(worker, items, token)
                self.unsent.pop(number, None)
                held.clear()
                if not items:
                    await asyncio.sleep(answer["wait"] * self.rng.uniform(0.5, 1.5))
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
            jobs = [{"id": one["id"], "lease": one["lease"]} for one in held]
            try:
                await self.post("heartbeat", {"worker": worker, "jobs": jobs}, token)
            except (OSError, ConnectionError, TimeoutError, ValueError):
                self.n_failed += 1

    async def run(self):
        n = self.arguments.workers
        tasks = {k: asyncio.create_task(self.live(k)) for k in range(n)}
        start = time.monotonic()
        end = start + 60 * self.arguments.minutes
        kills = [start + (k + 1) * (end - start) / (N_SERVER_KILLS + 1) for k in range(3)]
        n_kills = 0
        while not self.is_over:
            await asyncio.sleep(1.0)
            now = time.monotonic()
            for task in tasks.values():
                if task.done() and not task.cancelled() and task.exception():
                    raise task.exception()
            if now < end:
                self.disturb(tasks)
            if n_kills < N_SERVER_KILLS and now > kills[n_kills]:
                n_kills += 1
                await self.kill_server(is_storm=n_kills == 2)
            self.is_over = now > end or (
                n_kills == N_SERVER_KILLS and await asyncio.to_thread(self.has_ended)
            )
        for task in tasks.values():
            task.cancel()
        return time.monotonic() - start, n_kills

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
        await asyncio.sleep(5)
        self.is_storm = False
        self.server.disturbed_until = time.monotonic() + 15

    def has_ended(self):
        with pb.open_store(self.folder / "race.db", read_only=True) as store:
            return store.status().ended is not None


def race_alone(folder, n_rounds):
    """The first rounds of the same race in this process, with one worker."""
    race_file = load(folder / "race.toml")
    given = race_file.setup
    race = Race(
        given.solvers,
        given.times,
        direction=given.direction,
        rules=race_file.rules,
        seed=race_file.seed,
        clock=given.clock,
        fit=race_file.fit,
    )
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
        seconds, n_kills = asyncio.run(load_test.run())
    finally:
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(90)
    return check(load_test, folder, hub, seconds, n_kills)


def check(load_test, folder, hub, seconds, n_kills):
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
    times = 1000 * np.array(load_test.seconds or [0.0])
    storm = 1000 * np.array(load_test.storm_seconds or [0.0])
    quantiles = lambda ms: [round(float(q), 1) for q in np.quantile(ms, (0.5, 0.99, 1.0))]  # noqa: E731
    return {
        "seconds": round(seconds),
        "workers": load_test.arguments.workers,
        "killed workers": load_test.n_killed,
        "late results": load_test.n_resurrected,
        "killed servers": n_kills,
        "requests": len(times) + len(storm),
        "requests a second": round((len(times) + len(storm)) / seconds, 1),
        "unanswered requests": load_test.n_failed,
        "ms (median, 99 %, largest)": quantiles(times),
        "ms in storms": quantiles(storm),
        "ms by operation": {
            name: quantiles(1000 * np.array(ts)) for name, ts in load_test.by_operation.items()
        },
        "statuses": {f"{n} {s}": k for (n, s), k in sorted(load_test.statuses.items())},
        "runs that count": len(keys),
        "results made": len(reports),
        "lost": len(lost),
        "twice": len(keys) - len(set(keys)),
        "quarantined": hub.read("SELECT count(*) FROM workers WHERE state = 'quarantined'")[0][0],
        "runs as one local worker makes them": is_honest,
        "decisions as with one local worker": f"{decisions == expected}, {len(decisions)} rounds",
        "ended": status.ended,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--workers", type=int, default=1000)
    add("--minutes", type=float, default=10.0)
    add("--seconds", type=float, default=20.0, help="mean time of a run")
    add("--max-runs", type=int, help="of the race; by default what the workers make in this time")
    add("--batch", type=int, help="instances of a round")
    add("--heartbeat", type=float, default=30.0)
    add("--audit", type=float, default=0.1)
    add("--spread", type=float, default=20.0, help="seconds over which workers join")
    arguments = parser.parse_args()
    speed = arguments.workers / arguments.seconds
    arguments.max_runs = arguments.max_runs or int(0.5 * speed * 60 * arguments.minutes)
    arguments.batch = arguments.batch or max(arguments.workers // ALGORITHMS, 4)
    with tempfile.TemporaryDirectory() as folder:
        for name, value in run_load(arguments, Path(folder)).items():
            print(f"{name}: {value}", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
