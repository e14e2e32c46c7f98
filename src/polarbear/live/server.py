"""``make_application``: serve the report of a store to browsers, read-only.

Requests have no parameters, nothing is written, and nothing from a store is executed. A request
must name the server by one of the given hosts. Otherwise a foreign web page could map its own name
to this address and read the report (DNS rebinding).
"""

from collections.abc import Callable, Iterable
from traceback import format_exception
from typing import Any

from polarbear.errors import PolarBearError, require
from polarbear.live.connections import Connections
from polarbear.live.snapshots import Snapshots

HEADERS = {
    # The page has a stricter policy of its own: only its own script, and no other server.
    "Content-Security-Policy": "frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def make_application(
    snapshots: Snapshots,
    hosts: Iterable[str],
    *,
    connections: Connections | None = None,
    complain: Callable[[str], object] = print,
) -> Any:
    """Return an ASGI application with the pages ``/``, ``/data.json`` and ``/status.json``.

    If the store cannot be read, ``complain`` is called once for each reason. Browsers get a message
    without the path of the store. ``connections`` are those of the server.
    """
    starlette = require("starlette.applications", extra="serve")
    responses = require("starlette.responses", extra="serve")
    routing = require("starlette.routing", extra="serve")
    threads = require("starlette.concurrency", extra="serve")
    trusted = require("starlette.middleware.trustedhost", extra="serve").TrustedHostMiddleware
    last_problem = ""

    async def answer(make: Callable[[], bytes], media_type: str) -> Any:
        nonlocal last_problem
        try:
            content = await threads.run_in_threadpool(make)
        except Exception as error:  # browsers repeat their request: report the same problem once
            expected = isinstance(error, PolarBearError)
            problem = str(error) if expected else "".join(format_exception(error))
            if problem != last_problem:
                complain(problem)
            last_problem = problem
            message = f"{snapshots.name} cannot be read; the terminal of `polarbear serve` says why"
            return responses.PlainTextResponse(message, status_code=503)
        last_problem = ""
        return responses.Response(content, media_type=media_type)

    async def page(_: Any) -> Any:
        return await answer(lambda: snapshots.latest().page, "text/html")

    async def data(_: Any) -> Any:
        return await answer(lambda: snapshots.latest().data, "application/json")

    async def status(_: Any) -> Any:
        return await answer(snapshots.status, "application/json")

    async def icon(_: Any) -> Any:
        return responses.Response(status_code=204)

    application = starlette.Starlette(
        routes=[
            routing.Route("/", page),
            routing.Route("/data.json", data),
            routing.Route("/status.json", status),
            routing.Route("/favicon.ico", icon),
        ],
    )
    application.add_middleware(trusted, allowed_hosts=[*hosts], www_redirect=False)
    return _with_headers(application, connections or Connections())


def _with_headers(application: Any, connections: Connections) -> Any:
    """Return the web application with ``HEADERS`` added to all answers, including errors."""
    headers = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]

    async def application_with_headers(scope: Any, receive: Any, send: Any) -> None:
        client = scope.get("client")

        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                connections.end_answer(client)
                message["headers"] = [*message.get("headers", []), *headers]
            await send(message)

        connections.begin_answer(client)
        await application(scope, receive, send_with_headers)

    return application_with_headers
