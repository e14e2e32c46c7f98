"""``start_parent_watch``: end this process if its parent ends while modules are imported.

Importing takes seconds on a busy machine, during which connections are not read. The signal of a
parent's death is no help: it is sent at the end of the *thread* that started this process. So a
timer compares the parent's process id. This module imports nothing of the package itself.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

_POLL_SECONDS = 0.2


def start_parent_watch(parent: int) -> None:
    """Start a timer that ends this process once its parent has ended."""
    signal.signal(signal.SIGALRM, lambda *_: None if os.getppid() == parent else os._exit(0))
    signal.setitimer(signal.ITIMER_REAL, _POLL_SECONDS, _POLL_SECONDS)


def stop_parent_watch() -> None:
    """Stop the timer that watches the parent, so that runs can use its signal."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)


@contextmanager
def watch_parent(parent: int) -> Iterator[None]:
    """End this process if its parent ends during the ``with`` statement."""
    start_parent_watch(parent)
    try:
        yield
    finally:
        stop_parent_watch()
