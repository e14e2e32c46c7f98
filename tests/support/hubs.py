"""Races whose runs are made by simulated workers, honest and false, without a network."""

import asyncio
import json
import random
import threading
import time
from contextlib import contextmanager

import polarbear as pb
from polarbear.coordinator.run_race import run_race
from polarbear.hub.board import Policy
from polarbear.hub.http_api import PREFIX, HubApi
from polarbear.hub.hub_backend import WorkerHub
from polarbear.hub.hub_file import HubFile
from polarbear.hub.service import HubService
from polarbear.hub.tokens import add_contributor
from polarbear.hub.web_worker import to_item
from polarbear.racing.jobs import Job
from polarbear.racing.race import Race
from polarbear.running.solvers.identity import identify
from polarbear.running.solvers.setup import Setup
from polarbear.running.workers.outcomes import RunOutcome
from racers import quick_fit

TIMES = (1.0, 2.0, 4.0)
SKILL = {"fast": (3.0, 1.0, 0.0), "slow": (0.0, 1.0, 3.0), "poor": (-1.0, -1.0, -1.0)}
RULES = pb.Rules(certainty=0.9, error_control="per_look", batch=(4, 16), max_runs=240)


def solve(job):
    """The run of a job: it follows from the seed alone."""
    rng = random.Random(job.seed)
    values = [rng.gauss(0, 1) + skill + 30 * k for k, skill in enumerate(SKILL[job.algorithm])]
    n = sum(at <= job.horizon for at in TIMES)
    return job.run(TIMES[:n], values[:n])


def _not_run(_):
    raise AssertionError("simulated workers make the runs")


def setup():
    solvers = dict.fromkeys(SKILL, _not_run)
    return Setup.of(solvers, lambda rng: rng.random(), times=TIMES, direction="maximize")


def race_alone(rules=RULES):
    """The same race with one local worker."""
    race = Race(SKILL, TIMES, direction="maximize", rules=rules, clock="evaluations", fit=quick_fit)
    while jobs := race.ask():
        for job in jobs:
            race.tell(solve(job))
    return race


def race_of_file(race_file):
    """A race by its file, in this process and without a store."""
    given = race_file.setup
    return Race(
        given.solvers,
        given.times,
        direction=given.direction,
        rules=race_file.rules,
        seed=race_file.seed,
        clock=given.clock,
        fit=race_file.fit,
    )


async def request(app, name, body=b"", *, method="POST", token="", headers=(), path=None):
    """Send a request to an ASGI application; return the status and the answer."""
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    given = {"content-type": "application/json", "authorization": f"Bearer {token}"}
    given |= dict(headers)
    scope = {"type": "http", "method": method, "path": path or PREFIX + name, "client": ("x", 1)}
    scope["headers"] = [(k.encode("latin-1"), v.encode("latin-1")) for k, v in given.items()]
    sent = []

    async def receive():
        return {"type": "http.request", "body": body}

    async def send(message):
        sent.append(message)

    await app(scope, receive, send)
    content = sent[1]["body"]
    is_json = dict(sent[0]["headers"])[b"content-type"] == b"application/json"
    return sent[0]["status"], json.loads(content) if is_json else content.decode()


def ask(app, name, body=b"", **more):
    return asyncio.run(request(app, name, body, **more))


class Worker:
    """A simulated worker; ``change`` falsifies its runs from the ``honest_for``-th on."""

    def __init__(self, app, token, *, change=None, honest_for=0):
        self.app, self.token, self.change, self.honest_for = app, token, change, honest_for
        self.made, self.jobs, self.is_refused = 0, [], False
        self.id = ""

    def call(self, name, **body):
        status, answer = ask(self.app(), name, {"worker": self.id, **body}, token=self.token)
        self.is_refused = status == 403
        return answer if status == 200 else {}

    def join(self):
        digests = {name: parts["content"] for name, parts in identify(setup()).solvers.items()}
        answer = self.call("join", protocol=1, algorithms=digests)
        self.id = answer.get("worker", "")

    def lease(self):
        self.jobs += self.call("lease").get("jobs", [])

    def results(self):
        return [self._result(leased) for leased in self.jobs]

    def _result(self, leased):
        job = Job(**{name: leased[name] for name in Job._fields})
        run = solve(job)
        self.made += 1
        if self.change is not None and self.made > self.honest_for:
            run = self.change(run)
        return {"id": leased["id"], "lease": leased["lease"]} | to_item(RunOutcome(job, run))

    def work(self):
        """Lease jobs, make them and report them; return how many were made."""
        if self.is_refused:
            return 0
        if not self.id:
            self.join()
        self.lease()
        items = self.results()
        if items:
            self.call("results", results=items)
        self.jobs = []
        return len(items)


class Hub:
    """A hub with a coordinator in a thread; ``restart`` is what a kill of the server does."""

    def __init__(self, folder, *, rules=RULES, policy=None, audit_share=0.1):
        self.path, self.store = folder / "race.hub", folder / "race.db"
        self._policy = policy or Policy()
        self._options = WorkerHub(self.path, audit_share, pause=0.01)
        self.file = HubFile(self.path)
        self.result = None
        self._rules = rules
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        self.result = run_race(
            setup(), self._rules, store=self.store, executor=self._options, fit=quick_fit
        )

    def start(self):
        self._thread.start()
        while not (self.file.get("race") and self.file.read("SELECT 1 FROM jobs LIMIT 1")):
            time.sleep(0.01)
        self.restart()

    def restart(self):
        self.app = HubApi(HubService(self.path, self._policy), rate=1e9, burst=1e9)

    def workers(self, n, prefix="c", **more):
        tokens = [add_contributor(self.file, f"{prefix}{k}") for k in range(n)]
        return [Worker(lambda: self.app, token, **more) for token in tokens]

    @property
    def is_over(self):
        return not self._thread.is_alive()

    def count(self, condition):
        return self.file.read(f"SELECT count(*) FROM {condition}")[0][0]


@contextmanager
def hub_of(folder, **more):
    hub = Hub(folder, **more)
    hub.start()
    try:
        yield hub
    finally:
        hub._thread.join(10)
        assert hub.is_over
        if hub.result is not None:
            hub.result.close()
            with pb.open_store(hub.store, read_only=True) as store:
                hub.runs, hub.events = store.runs(), list(store.read())
