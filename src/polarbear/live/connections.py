"""``Connections``: how many clients a server holds at once, and for how long.

uvicorn gives a client all the time it wants to send a request or to read an answer, so clients that
do neither would use up all file descriptors of the process. Here a client that stalls is dropped,
and the oldest one that waits makes room where too many are there: a new client is always answered.
"""

import asyncio
import socket
from typing import Any

from polarbear.errors import require

MAX_CONNECTIONS = 64
"""Connections at once. A browser opens up to six."""

MAX_ACCEPTED = 64
"""Connections accepted in one go. asyncio holds up to four times as many before the first of them
can be dropped, and all must fit into the 1,024 file descriptors that processes commonly have."""

MAX_QUEUED = 1024
"""Connections that the system holds until they are accepted; with a full queue clients wait 1 s."""

STALL_SECONDS = 10.0
"""A connection is dropped if it sends no whole request, and reads nothing, for this long."""


class Listening(socket.socket):
    """A socket with a long queue, although asyncio takes one number for queue and ``accept``."""

    def listen(self, _backlog: int = MAX_QUEUED, /) -> None:
        """Listen with the long queue, whatever number is passed."""
        super().listen(MAX_QUEUED)


class Connections:
    """The open connections of a server, the oldest first.

    Addresses of clients are the keys: they are all that an ASGI application knows of a connection.
    """

    def __init__(self, limit: int = MAX_CONNECTIONS, stall: float = STALL_SECONDS) -> None:
        self._limit, self._stall = limit, stall
        self._open: dict[Any, _Connection] = {}

    def add(self, transport: asyncio.Transport) -> None:
        """Watch a new connection; if there are too many, drop the oldest that can be dropped."""
        self._open[transport.get_extra_info("peername")] = _Connection(transport, self._stall)
        if len(self._open) > self._limit:
            next(one for one in self._open.values() if one.is_waiting()).drop()

    def remove(self, transport: asyncio.Transport) -> None:
        """Forget a connection that is closed."""
        if gone := self._open.pop(transport.get_extra_info("peername"), None):
            gone.stop()

    def answering(self, client: Any) -> None:
        """Keep a connection, however long its answer takes: it has sent a whole request."""
        if one := self._open.get(client and tuple(client)):
            one.stop()

    def answered(self, client: Any) -> None:
        """Watch a connection again: it has to read its answer, and to send the next request."""
        if one := self._open.get(client and tuple(client)):
            one.start()


class _Connection:
    """One connection, dropped by a timer unless the timer is stopped or bytes are being read."""

    def __init__(self, transport: asyncio.Transport, stall: float) -> None:
        self._transport, self._stall = transport, stall
        self._timer: asyncio.TimerHandle | None = None
        self.start()

    def is_waiting(self) -> bool:
        """Whether the client has to do something, and not the server."""
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
        # A slow reader is no stalled one, as long as less is left each time.
        if 0 < self._transport.get_write_buffer_size() < self._unread:
            self.start()
        else:
            self.drop()


def limited_protocol(connections: Connections, headers: dict[str, str]) -> Any:
    """The HTTP protocol of uvicorn, which tells ``connections`` of each that comes and goes."""
    base: Any = require("uvicorn.protocols.http.h11_impl", extra="serve").H11Protocol

    class Limited(base):
        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            connections.add(transport)

        def connection_lost(self, exc: Exception | None) -> None:
            connections.remove(self.transport)
            super().connection_lost(exc)

        def send_400_response(self, msg: str) -> None:
            """Answer what is no HTTP request, which no application sees."""
            lines = [f"{name}: {value}" for name, value in headers.items()]
            head = ["HTTP/1.1 400 Bad Request", "Content-Type: text/plain", *lines]
            end = f"Content-Length: {len(msg)}\r\nConnection: close\r\n\r\n{msg}"
            self.transport.write("\r\n".join([*head, end]).encode("ascii"))
            self.transport.close()

    return Limited
