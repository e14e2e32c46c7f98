"""``application``: the report of a store for browsers, read-only.

Nothing that is asked for has parameters, nothing is written, and nothing in a store is run. Whoever
asks must name this server by a name it knows: else a page elsewhere could let its own name point
here, and read what is served (DNS rebinding).
"""

from collections.abc import Callable, Iterable
from traceback import format_exception
from typing import Any

from polarbear.errors import PolarBearError, require
from polarbear.live.connections import Connections
from polarbear.live.snapshots import Snapshots

HEADERS = {
    # Of the page itself, its own policy says more: no script but its own, and nobody else is asked.
    "Content-Security-Policy": "frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def application(
    snapshots: Snapshots,
    hosts: Iterable[str],
    *,
    connections: Connections | None = None,
    complain: Callable[[str], object] = print,
) -> Any:
    """The pages ``/`` and ``/data.json``, as an ASGI application.

    A store that cannot be read is said to ``complain``, once, and to browsers without the place of
    the store. ``connections`` are told which of them are waiting for an answer.
    """
    starlette = require("starlette.applications", extra="serve")
    responses = require("starlette.responses", extra="serve")
    routing = require("starlette.routing", extra="serve")
    threads = require("starlette.concurrency", extra="serve")
    trusted = require("starlette.middleware.trustedhost", extra="serve").TrustedHostMiddleware
    last_problem = ""

    async def answer(field: str, media_type: str) -> Any:
        nonlocal last_problem
        try:
            snapshot = await threads.run_in_threadpool(snapshots.latest)
        except Exception as error:  # a browser asks again and again: say it once
            expected = isinstance(error, PolarBearError)
            problem = str(error) if expected else "".join(format_exception(error))
            if problem != last_problem:
                complain(problem)
            last_problem = problem
            says = f"{snapshots.name} cannot be read; the terminal of `polarbear serve` says why"
            return responses.PlainTextResponse(says, status_code=503)
        last_problem = ""
        return responses.Response(getattr(snapshot, field), media_type=media_type)

    async def page(_: Any) -> Any:
        return await answer("page", "text/html")

    async def data(_: Any) -> Any:
        return await answer("data", "application/json")

    async def icon(_: Any) -> Any:
        return responses.Response(status_code=204)

    made = starlette.Starlette(
        routes=[
            routing.Route("/", page),
            routing.Route("/data.json", data),
            routing.Route("/favicon.ico", icon),
        ],
    )
    made.add_middleware(trusted, allowed_hosts=[*hosts], www_redirect=False)
    return _with_headers(made, connections or Connections())


def _with_headers(application: Any, connections: Connections) -> Any:
    """The same application, with our headers on all of its answers, errors included."""
    headers = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]

    async def wrapped(scope: Any, receive: Any, send: Any) -> None:
        client = scope.get("client")

        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                connections.answered(client)
                message["headers"] = [*message.get("headers", []), *headers]
            await send(message)

        connections.answering(client)
        await application(scope, receive, send_with_headers)

    return wrapped
