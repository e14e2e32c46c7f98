"""``describe_worker``: the machine and the software of the process that makes runs."""

import os
import platform
import socket
from datetime import UTC, datetime
from functools import lru_cache

from polarbear.inference.versions import software_versions

Details = tuple[tuple[str, str], ...]


def describe_worker(memory_limit: float | None = None) -> Details:
    """Where and with what this process makes runs, the same at every call.

    >>> [name for name, _ in describe_worker()][:4]
    ['host', 'process', 'since', 'platform']
    """
    return _described(os.getpid(), memory_limit)


@lru_cache(maxsize=4)
def _described(process: int, memory_limit: float | None) -> Details:
    """The parts by name; by the process, for a fork inherits what its parent has cached."""
    parts = {
        "host": socket.gethostname(),
        "process": str(process),
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
        "platform": platform.platform(),
        "cores": str(os.cpu_count() or ""),
        **software_versions(),
    }
    if memory_limit is not None:
        parts["memory limit"] = f"{memory_limit:.0f}"
    return tuple(parts.items())
