"""``HubApi``: the worker protocol over HTTP, as an ASGI application.

Every request is a POST with a JSON body and a token in its header. Browsers are refused: a web page
of another site could otherwise use a token or an open port. Results and heartbeats go first: if
many requests are under way, a worker that asks for jobs is told to come back.
"""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from polarbear.errors import PolarBearError
from polarbear.hub.hub_file import HubFile, Statement
from polarbear.hub.protocol import MAX_BODY_BYTES, Refused, parse_body
from polarbear.hub.service import HubService
from polarbear.hub.tokens import Contributor, RateLimit, find_contributor, revoke_contributor

PREFIX = "/api/v1/"

BODY_SECONDS = 10.0
"""The time in which a client must have sent the body of its request."""

MAX_BUSY = 64
"""The number of requests under way beyond which workers get no jobs, and are told to come back."""

BUCKETS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)
"""Upper bounds of the histogram of request times, in seconds."""

OPERATIONS = ("status", "join", "lease", "heartbeat", "results", "fail", "leave", "submit")
_ADMINISTRATION = ("log", "metrics", "revoke")


class Committer:
    """Writes statements to a hub file in a thread; statements that wait are committed together."""

    def __init__(self, hub: HubFile) -> None:
        self._hub = hub
        self._waiting: list[tuple[list[Statement], asyncio.Future[None]]] = []
        self._task: asyncio.Task[None] | None = None

    async def commit(self, statements: list[Statement]) -> None:
        """Return when the statements are durable; raise an error if they are not."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((statements, done))
        if self._task is None:
            self._task = asyncio.create_task(self._write())
        await done

    async def _write(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            try:
                lines = [line for statements, _ in batch for line in statements]
                await asyncio.to_thread(self._hub.write, lines)
            except Exception as error:
                for _, done in batch:
                    if not done.done():
                        done.set_exception(error)
            else:
                for _, done in batch:
                    if not done.done():
                        done.set_result(None)
        self._task = None


class HubApi:
    """An ASGI application with the operations of :class:`HubService` under ``/api/v1/``.

    ``rate`` and ``burst`` limit the requests of each contributor. ``on_submit`` is called when an
    algorithm was submitted.
    """

    def __init__(
        self,
        service: HubService,
        *,
        rate: float = 50.0,
        burst: float = 1000.0,
        clock: Callable[[], float] = time.time,
        complain: Callable[[str], object] = print,
        on_submit: Callable[[], object] = bool,
    ) -> None:
        self.service = service
        self._committer = Committer(HubFile(service.hub.path))
        self._requests = RateLimit(rate, burst)
        self._attempts = RateLimit(1.0, 20.0)  # with a wrong token, of each address
        self._clock = clock
        self._complain = complain
        self._on_submit = on_submit
        self._busy = 0
        self._answers: Counter[tuple[str, int]] = Counter()
        self._buckets: Counter[float] = Counter()
        self._seconds = 0.0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request whose path begins with ``PREFIX``."""
        start = time.perf_counter()
        name = scope["path"].removeprefix(PREFIX)
        self._busy += 1
        headers: dict[str, str] = {}
        try:
            status, content = 200, await self._answer(name, scope, receive)
        except Refused as refused:
            status = refused.status
            content = {"error": refused.code, "message": refused.message}
            if status in (429, 503):
                headers["retry-after"] = "5"
        except PolarBearError as error:
            self._complain(str(error))
            self.service.load()  # the board may be ahead of the file
            status, content = 503, {"error": "storage", "message": "try again later"}
            headers["retry-after"] = "5"
        finally:
            self._busy -= 1
        self._count(name, status, time.perf_counter() - start)
        await _send(send, status, content, headers)

    async def _answer(self, name: str, scope: Any, receive: Any) -> dict[str, Any] | str:
        headers = {
            key.decode("latin-1").lower(): v.decode("latin-1") for key, v in scope["headers"]
        }
        if name not in (*OPERATIONS, *_ADMINISTRATION):
            raise Refused(404, "path", "there is no such operation")
        if scope["method"] != "POST" and (name, scope["method"]) != ("metrics", "GET"):
            raise Refused(405, "method", "use POST")
        if "origin" in headers or headers.get("sec-fetch-site", "none") != "none":
            raise Refused(403, "browser", "requests from web pages are refused")
        contributor = self._authenticate(headers, scope)
        now = self._clock()
        if not self._requests.allows(contributor.name, now):
            raise Refused(429, "rate", "too many requests: come back later")
        if scope["method"] == "GET":
            return self._administer(contributor, name, {})
        if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            raise Refused(415, "type", "the content type must be application/json")
        body = parse_body(await _read_body(headers, receive))
        if name in _ADMINISTRATION:
            return self._administer(contributor, name, body)
        statements = self.service.refresh(now)
        try:
            if name == "lease" and self._busy > MAX_BUSY:
                return {"jobs": [], "wait": self.service.suggest_wait(now), "ended": False}
            if name == "join" and self._busy > MAX_BUSY:
                raise Refused(503, "busy", "the server is busy: come back later")
            answer = getattr(self.service, name)(contributor, body, now)
            statements = [*statements, *answer.statements]
        finally:
            # An answer about a result follows from statements that may not be durable yet.
            if statements or name in ("results", "fail"):
                await self._committer.commit(statements)
        if name == "submit" and answer.statements:
            self._on_submit()
        return answer.content

    def _authenticate(self, headers: dict[str, str], scope: Any) -> Contributor:
        """Return the contributor of a request's token; slow down clients that guess."""
        kind, _, token = headers.get("authorization", "").partition(" ")
        address = (scope.get("client") or ("",))[0]
        try:
            if kind.lower() != "bearer":
                raise Refused(401, "token", "a header 'Authorization: Bearer TOKEN' is needed")
            return find_contributor(self.service.hub, token.strip(), self._clock())
        except Refused:
            if not self._attempts.allows(address, time.monotonic()):
                raise Refused(429, "token", "too many wrong tokens: come back later") from None
            raise

    def _administer(
        self, contributor: Contributor, name: str, body: dict[str, Any]
    ) -> dict[str, Any] | str:
        """Answer a request of an administrator: the log, the metrics, or the end of a token."""
        if contributor.role != "administer":
            raise Refused(403, "role", "this needs a token that administers")
        if name == "metrics":
            return self.render_metrics()
        if name == "log":
            sql = "SELECT number, at, actor, action, detail FROM log ORDER BY number DESC LIMIT 200"
            fields = ("number", "at", "actor", "action", "detail")
            rows = self.service.hub.read(sql)
            return {"log": [dict(zip(fields, row, strict=True)) for row in rows]}
        if not isinstance(target := body.get("contributor"), str):
            raise Refused(400, "malformed", "contributor must be a name")
        try:
            revoke_contributor(self.service.hub, target, actor=contributor.name)
        except PolarBearError as error:
            raise Refused(404, "contributor", str(error)) from None
        return {}

    def _count(self, name: str, status: int, seconds: float) -> None:
        known = name if name in (*OPERATIONS, *_ADMINISTRATION) else "other"
        self._answers[known, status] += 1
        self._seconds += seconds
        self._buckets[next((b for b in BUCKETS if seconds <= b), float("inf"))] += 1

    def render_metrics(self) -> str:
        """Return counts and request times in the text format of Prometheus."""
        board, now = self.service.board, self._clock()
        gauges = {
            "jobs_open": len(board.tasks),
            "jobs_waiting": board.n_waiting,
            "workers_active": board.count_workers(now).n_active,
            "workers_quarantined": sum(m.is_quarantined for m in board.members.values()),
        }
        lines: list[str] = []
        for name, value in gauges.items():
            lines += [f"# TYPE polarbear_{name} gauge", f"polarbear_{name} {value}"]
        lines.append("# TYPE polarbear_reports_total counter")
        for kind, value in self.service.counts.items():
            lines.append(f'polarbear_reports_total{{kind="{kind}"}} {value}')
        lines.append("# TYPE polarbear_requests_total counter")
        for (name, status), value in sorted(self._answers.items()):
            labels = f'operation="{name}",status="{status}"'
            lines.append(f"polarbear_requests_total{{{labels}}} {value}")
        lines.append("# TYPE polarbear_request_seconds histogram")
        total = 0
        for bound in (*BUCKETS, float("inf")):
            total += self._buckets[bound]
            label = "+Inf" if bound == float("inf") else f"{bound:g}"
            lines.append(f'polarbear_request_seconds_bucket{{le="{label}"}} {total}')
        lines.append(f"polarbear_request_seconds_sum {self._seconds:.6f}")
        lines.append(f"polarbear_request_seconds_count {total}")
        return "\n".join(lines) + "\n"


def route(api: HubApi, pages: Any) -> Any:
    """Return an application that sends requests of workers to ``api`` and others to ``pages``."""

    async def application(scope: Any, receive: Any, send: Any) -> None:
        is_api = scope["type"] == "http" and scope["path"].startswith(PREFIX)
        await (api if is_api else pages)(scope, receive, send)

    return application


async def _read_body(headers: dict[str, str], receive: Any) -> bytes:
    """Return the body of a request; refuse one that is too large or comes too slowly."""
    length = headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > MAX_BODY_BYTES:
        raise Refused(413, "too large", f"the body must have at most {MAX_BODY_BYTES} bytes")
    parts: list[bytes] = []
    n_bytes = 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Refused(400, "disconnected", "the client is gone")
                parts.append(message.get("body", b""))
                n_bytes += len(parts[-1])
                if n_bytes > MAX_BODY_BYTES:
                    raise Refused(413, "too large", "the body is too large")
                if not message.get("more_body"):
                    return b"".join(parts)
    except TimeoutError:
        raise Refused(408, "slow", "the body came too slowly") from None


async def _send(send: Any, status: int, content: Any, headers: dict[str, str]) -> None:
    is_text = isinstance(content, str)
    body = content.encode() if is_text else json.dumps(content, allow_nan=False).encode()
    media = "text/plain; version=0.0.4" if is_text else "application/json"
    headers = {"content-type": media, "content-length": str(len(body)), **headers}
    if status in (408, 413):  # the rest of the body was not read
        headers["connection"] = "close"
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})
