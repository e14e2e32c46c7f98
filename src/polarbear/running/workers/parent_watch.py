"""To end while loading, if whoever started this process is gone.

To load modules takes seconds on a busy machine, during which nobody looks at connections. A signal
of the parent's death would not do: it is sent when the *thread* ends that started the process. So a
timer looks who the parent is. This module loads nothing itself.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

_OFTEN = 0.2  # seconds


def watch(parent: int) -> None:
    """From now on end if the parent is another one."""
    signal.signal(signal.SIGALRM, lambda *_: None if os.getppid() == parent else os._exit(0))
    signal.setitimer(signal.ITIMER_REAL, _OFTEN, _OFTEN)


def unwatch() -> None:
    """All is loaded; runs may want the signal for themselves."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)


@contextmanager
def watched(parent: int) -> Iterator[None]:
    """Load something."""
    watch(parent)
    try:
        yield
    finally:
        unwatch()
