"""``describe_worker``: describe the machine and the software of a process that makes runs."""

import os
import platform
import socket
from datetime import UTC, datetime
from functools import lru_cache

from polarbear.inference.versions import software_versions

WorkerDetails = tuple[tuple[str, str], ...]


def describe_worker(memory_limit: float | None = None) -> WorkerDetails:
    """Return the host, the platform and the software versions of this process, as pairs.

    >>> [name for name, _ in describe_worker()][:4]
    ['host', 'process', 'since', 'platform']
    """
    return _collect_details(os.getpid(), memory_limit)


@lru_cache(maxsize=4)
def _collect_details(process: int, memory_limit: float | None) -> WorkerDetails:
    """Return the details of this process; cached by process id, because a fork copies the cache."""
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
