"""``run_web_jobs``: make the runs of a hub, as ``polarbear worker URL`` does.

The worker runs only the solvers that its owner passes, and only if they are those of the race: the
server names them by digest, and sends names, seeds and numbers. Nothing that it sends is executed.
"""

import json
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from polarbear._text import escape_text, format_list
from polarbear.data.run import run_to_plain
from polarbear.errors import SolverError
from polarbear.hub.protocol import MAX_BODY_BYTES, VERSION
from polarbear.racing.jobs import Job
from polarbear.running.backends.folder_worker import build_setup
from polarbear.running.backends.shared_folder import check_job
from polarbear.running.solvers.fingerprints import is_changed
from polarbear.running.solvers.identity import identify
from polarbear.running.solvers.processes import start_when_possible
from polarbear.running.solvers.setup import Setup
from polarbear.running.workers.outcomes import RunOutcome
from polarbear.running.workers.provenance import describe_worker
from polarbear.running.workers.worker_process import WorkerLost, WorkerProcess

FLUSH_SECONDS = 5.0
"""Results of short runs are sent together, at the latest after this time."""

MAX_DELAY_SECONDS = 900.0
"""The longest time between two attempts to reach the server."""

LOOPBACK = ("127.0.0.1", "localhost", "::1")


class HubClient:
    """A connection to a hub: ``call`` sends a request, and repeats it until it is answered."""

    def __init__(self, url: str, token: str, *, patience: float = 3600.0) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SolverError(f"{url!r} is not the address of a server, such as https://host")
        if parts.scheme == "http" and parts.hostname not in LOOPBACK:
            raise SolverError(f"{url}: a token is sent only over https")
        self._url = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}/api/v{VERSION}/"
        self._token = token
        self._patience = patience
        self._opener = build_opener(_NoRedirects)

    def call(self, operation: str, content: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request; while the server is unreachable or busy, wait longer and longer."""
        end = time.monotonic() + self._patience
        delay = 1.0
        while True:
            try:
                return self.try_call(operation, content)
            except (URLError, TimeoutError, ConnectionError, ValueError) as error:
                if isinstance(error, HTTPError) and error.code not in (
                    408,
                    429,
                    500,
                    502,
                    503,
                    504,
                ):
                    raise SolverError(_explain(error)) from None
                if time.monotonic() > end:
                    raise SolverError(f"the server does not answer: {error}") from None
            time.sleep(delay * random.uniform(0.5, 1.5))  # noqa: S311
            delay = min(2 * delay, MAX_DELAY_SECONDS)

    def try_call(self, operation: str, content: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request once."""
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        body = json.dumps(content, allow_nan=False).encode()
        request = Request(self._url + operation, body, headers)  # noqa: S310 (http or https)
        with self._opener.open(request, timeout=60.0) as answer:
            plain = json.loads(answer.read(MAX_BODY_BYTES))
        if not isinstance(plain, dict):
            raise ValueError("the answer is not a JSON object")
        return plain


class _NoRedirects(HTTPRedirectHandler):
    """Refuses redirects, which could take the token to another server."""

    def redirect_request(self, req: Any, *_: Any, **__: Any) -> None:  # noqa: ARG002
        return None


def run_web_jobs(
    url: str,
    solvers: str,
    token: str,
    *,
    idle_seconds: float = 600.0,
    max_runs: int | None = None,
    report: Callable[[str], None] = lambda _: None,
) -> int:
    """Make runs of the race at ``url`` until it has none for long; return their number.

    Parameters
    ----------
    url
        The address of the server.
    solvers
        A Python file or module that defines ``solvers`` and ``instances``, or a race file: what the
        owner of this machine allows to run.
    token
        The token of the contributor.
    idle_seconds
        Seconds without a job after which the worker leaves.
    max_runs
        The number of runs after which the worker leaves.
    report
        Is called with a line of text about each run.
    """
    client = HubClient(url, token)
    race = _wait_for_race(client, idle_seconds)
    setup = build_setup(race, solvers, url)
    digests = _compare_digests(setup, race, solvers)
    joined = client.call(
        "join",
        {
            "protocol": VERSION,
            "algorithms": digests,
            "slots": 1,
            "calibration": [measure_speed() for _ in range(5)],
            # Neither the name of the machine nor the number of the process leaves it.
            "about": {k: str(v) for k, v in describe_worker() if k not in ("host", "process")},
        },
    )
    if joined["refused"] or joined["note"]:
        report(escape_text(f"{joined['note']} not run here: {format_list(joined['refused'])}"))
    session = _Session(client, joined, setup, digests, report)
    try:
        return session.run(idle_seconds, max_runs)
    finally:
        session.close()


class _Session:
    """A worker that has joined: its jobs, and the results that are not sent yet."""

    def __init__(
        self,
        client: HubClient,
        joined: Mapping[str, Any],
        setup: Setup,
        digests: Mapping[str, str],
        report: Callable[[str], None],
    ) -> None:
        self._client, self._setup, self._digests = client, setup, digests
        self._worker_id = str(joined["worker"])
        self._heartbeat = float(joined["heartbeat_seconds"])
        self._report = report
        self._jobs: dict[str, dict[str, Any]] = {}  # leased, by id
        self._unsent: list[dict[str, Any]] = []
        self._sent_at = time.monotonic()
        self._process: WorkerProcess | None = None

    def run(self, idle_seconds: float, max_runs: int | None) -> int:
        n_runs, last_run_at = 0, time.monotonic()
        with self._beat():
            while max_runs is None or n_runs < max_runs:
                answer = self._client.call("lease", {"worker": self._worker_id})
                self._jobs = {one["id"]: one for one in answer["jobs"]}
                for name in list(self._jobs):
                    if max_runs is not None and n_runs >= max_runs:
                        break
                    if name in self._jobs:  # a heartbeat may have dropped it
                        self._make_run(self._jobs[name])
                        n_runs += 1
                        last_run_at = time.monotonic()
                self._send()
                if not answer["jobs"]:
                    if answer["ended"] or time.monotonic() > last_run_at + idle_seconds:
                        break
                    wait = min(float(answer["wait"]), idle_seconds + 1.0)
                    time.sleep(wait * random.uniform(0.5, 1.5))  # noqa: S311
        return n_runs

    def close(self) -> None:
        """Give back the jobs that were not made, and end the process that makes runs."""
        if self._process is not None:
            self._process.close()
        with suppress(Exception):
            self._client.try_call("leave", {"worker": self._worker_id})

    def _make_run(self, leased: dict[str, Any]) -> None:
        """Make one run, if its solver is the one that the server names."""
        job = check_job({name: value for name, value in leased.items() if name in Job._fields})
        item = {"id": leased["id"], "lease": leased["lease"]}
        try:
            own = self._digests.get(job.algorithm)
            if own is None or is_changed(own, str(leased["digest"])):
                raise WorkerLost(f"{job.algorithm} is not the solver of this machine")
            if self._process is None or self._process.is_gone:
                self._process = WorkerProcess(self._setup)
            outcome = self._process.make_run(job)
        except WorkerLost as error:
            self._jobs.pop(leased["id"], None)
            item["why"] = str(error)
            self._client.call("fail", {"worker": self._worker_id, "results": [item]})
            self._report(escape_text(f"{job.algorithm} on {job.instance}: lost, {error}"))
            return
        self._unsent.append(item | to_item(outcome))
        line = f"{job.algorithm} on {job.instance}: {outcome.run.status} {outcome.why}".rstrip()
        self._report(escape_text(line))
        if time.monotonic() > self._sent_at + FLUSH_SECONDS:
            self._send()

    def _send(self) -> None:
        """Send all results that wait."""
        if self._unsent:
            content = {"worker": self._worker_id, "results": self._unsent}
            answers = self._client.call("results", content)["results"]
            for item in self._unsent:
                self._jobs.pop(item["id"], None)
                if str(answers.get(item["id"], "")).startswith("refused"):
                    self._report(escape_text(str(answers[item["id"]])))
        self._unsent = []
        self._sent_at = time.monotonic()

    @contextmanager
    def _beat(self) -> Iterator[None]:
        """Send heartbeats in a thread, so that the jobs are not given to other workers."""
        is_over = threading.Event()

        def beat() -> None:
            while not is_over.wait(self._heartbeat * random.uniform(0.8, 1.0)):  # noqa: S311
                held = [{"id": j["id"], "lease": j["lease"]} for j in list(self._jobs.values())]
                with suppress(URLError, OSError, ValueError, KeyError):
                    content = {"worker": self._worker_id, "jobs": held}
                    waiting = {item["id"] for item in list(self._unsent)}
                    answer = self._client.try_call("heartbeat", content)
                    self._heartbeat = float(answer["heartbeat_seconds"])
                    for name in answer["drop"]:
                        if name not in waiting:
                            self._jobs.pop(name, None)

        thread = threading.Thread(target=beat, daemon=True)
        start_when_possible(thread.start)
        try:
            yield
        finally:
            is_over.set()
            thread.join(timeout=1.0)


def to_item(outcome: RunOutcome) -> dict[str, Any]:
    """Return an outcome as an entry of ``results``, without the job, which the server knows.

    >>> job = Job("hill", "f1", 0, 10.0, 1, 2)
    >>> sorted(to_item(RunOutcome(job, job.run([1.0], [2.0]))))
    ['output', 'seconds', 'status', 'time', 'until', 'value', 'why']
    """
    plain = run_to_plain(outcome.run)
    run = {name: plain[name] for name in ("time", "value", "until", "status")}
    rest = {"why": outcome.why, "output": outcome.output, "seconds": outcome.seconds}
    return run | rest


def measure_speed() -> float:
    """Return the CPU seconds of a fixed computation, by which timed races compare machines."""
    start = time.process_time()
    total = 0
    for k in range(200_000):
        total = (total * 31 + k) % 1_000_003
    return time.process_time() - start


def _wait_for_race(client: HubClient, idle_seconds: float) -> dict[str, Any]:
    """Return the description of the race; wait until the coordinator has written it."""
    end = time.monotonic() + idle_seconds
    while not (race := client.call("status", {}).get("race")):
        if time.monotonic() > end:
            raise SolverError(f"the server had no race within {idle_seconds:g} seconds")
        time.sleep(2.0)
    return race


def _compare_digests(setup: Setup, race: Mapping[str, Any], solvers: str) -> dict[str, str]:
    """Return the digests of the solvers of this machine; raise an error if instances differ."""
    identity = identify(setup)
    recorded = race.get("instances", {})
    changed = [
        name for name, own in identity.instances.items() if is_changed(recorded.get(name, ""), own)
    ]
    if changed:
        raise SolverError(f"{solvers} has other instances than the race: {format_list(changed)}")
    return {name: parts["content"] for name, parts in identity.solvers.items()}


def _explain(error: HTTPError) -> str:
    """Return what the server said, as a sentence without control characters."""
    try:
        plain = json.loads(error.read(10_000))
        return f"the server refuses: {escape_text(str(plain['message']))}"
    except (ValueError, KeyError, TypeError, OSError):
        return f"the server answers with status {error.code}"
