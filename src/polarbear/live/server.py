"""``application``: the report of a store for browsers, read-only.

Nothing that is asked for has parameters, nothing is written, and nothing in a store is run. Whoever
asks must name this server by a name it knows: else a page elsewhere could let its own name point
here, and read what is served (DNS rebinding).
"""

from collections.abc import Iterable
from typing import Any

from polarbear.errors import PolarBearError, require
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


def application(snapshots: Snapshots, hosts: Iterable[str]) -> Any:
    """The pages ``/`` and ``/data.json``, as an ASGI application."""
    starlette = require("starlette.applications", extra="serve")
    responses = require("starlette.responses", extra="serve")
    routing = require("starlette.routing", extra="serve")
    threads = require("starlette.concurrency", extra="serve")
    trusted = require("starlette.middleware.trustedhost", extra="serve").TrustedHostMiddleware

    async def page(_: Any) -> Any:
        found = await threads.run_in_threadpool(snapshots.latest)
        return responses.Response(found.page, media_type="text/html", headers=HEADERS)

    async def data(_: Any) -> Any:
        found = await threads.run_in_threadpool(snapshots.latest)
        return responses.Response(found.data, media_type="application/json", headers=HEADERS)

    async def icon(_: Any) -> Any:
        return responses.Response(status_code=204, headers=HEADERS)

    async def sorry(_: Any, error: Exception) -> Any:
        return responses.PlainTextResponse(str(error), status_code=503, headers=HEADERS)

    made = starlette.Starlette(
        routes=[
            routing.Route("/", page),
            routing.Route("/data.json", data),
            routing.Route("/favicon.ico", icon),
        ],
        exception_handlers={PolarBearError: sorry},
    )
    made.add_middleware(trusted, allowed_hosts=[*hosts], www_redirect=False)
    return made
