"""``Connections``: limit the number and the idle time of the connections of a server.

uvicorn sets no time limit for sending a request or reading an answer, so idle clients could use up
all file descriptors of the process. Here a connection that stalls is dropped. If there are too
many, the oldest one that is not being answered is dropped, so a new client is always answered.
"""

import asyncio
import socket
from typing import Any

from polarbear.errors import require

MAX_CONNECTIONS = 64
"""Connections at once. A browser opens up to six."""

MAX_ACCEPTED = 64
"""Connections accepted in one call. asyncio holds up to four times as many before the first can be
dropped, and all must fit into the usual limit of 1,024 file descriptors."""

MAX_QUEUED = 1024
"""Connections in the queue of the system; if it is full, a client tries again after 1 s."""

STALL_SECONDS = 10.0
"""A connection is dropped if it sends no whole request, and reads nothing, for this long."""


class ListeningSocket(socket.socket):
    """A listening socket with a longer queue of connections than asyncio would set."""

    def listen(self, _backlog: int = MAX_QUEUED, /) -> None:
        """Listen with a queue of ``MAX_QUEUED`` connections; the argument is ignored."""
        super().listen(MAX_QUEUED)


class Connections:
    """The open connections of a server, the oldest first, at most a fixed number.

    They are identified by the address of the client, which an ASGI application knows.
    """

    def __init__(self, limit: int = MAX_CONNECTIONS, stall: float = STALL_SECONDS) -> None:
        self._limit, self._stall = limit, stall
        self._open: dict[Any, _Connection] = {}

    def add(self, transport: asyncio.Transport) -> None:
        """Add a connection; if there are too many, drop the oldest one that is idle."""
        self._open[transport.get_extra_info("peername")] = _Connection(transport, self._stall)
        if len(self._open) > self._limit:
            next(one for one in self._open.values() if one.is_waiting()).drop()

    def remove(self, transport: asyncio.Transport) -> None:
        """Remove a connection that was closed."""
        if closed := self._open.pop(transport.get_extra_info("peername"), None):
            closed.stop()

    def begin_answer(self, client: Any) -> None:
        """Stop the idle timer of a connection while its request is answered."""
        if one := self._open.get(client and tuple(client)):
            one.stop()

    def end_answer(self, client: Any) -> None:
        """Restart the idle timer of a connection, because the server waits for its client again."""
        if one := self._open.get(client and tuple(client)):
            one.start()


class _Connection:
    """A connection with a timer that drops it when the client is idle for too long."""

    def __init__(self, transport: asyncio.Transport, stall: float) -> None:
        self._transport, self._stall = transport, stall
        self._timer: asyncio.TimerHandle | None = None
        self.start()

    def is_waiting(self) -> bool:
        """Return whether the server is waiting for the client."""
        return self._timer is not None

    def start(self) -> None:
        self.stop()
        self._unread = self._transport.get_write_buffer_size()
        self._timer = asyncio.get_running_loop().call_later(self._stall, self._expire)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None

    def drop(self) -> None:
        self.stop()
        self._transport.abort()

    def _expire(self) -> None:
        # A client that reads slowly is not stalled: the number of unread bytes decreases.
        if 0 < self._transport.get_write_buffer_size() < self._unread:
            self.start()
        else:
            self.drop()


def make_limited_protocol(connections: Connections, headers: dict[str, str]) -> Any:
    """Return uvicorn's HTTP protocol class, extended to limit its connections."""
    base: Any = require("uvicorn.protocols.http.h11_impl", extra="serve").H11Protocol

    class Limited(base):
        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            connections.add(transport)

        def connection_lost(self, exc: Exception | None) -> None:
            connections.remove(self.transport)
            super().connection_lost(exc)

        def send_400_response(self, msg: str) -> None:
            """Answer an invalid HTTP request, before it reaches the application."""
            lines = [f"{name}: {value}" for name, value in headers.items()]
            head = ["HTTP/1.1 400 Bad Request", "Content-Type: text/plain", *lines]
            end = f"Content-Length: {len(msg)}\r\nConnection: close\r\n\r\n{msg}"
            self.transport.write("\r\n".join([*head, end]).encode("ascii"))
            self.transport.close()

    return Limited
