"""How many threads linear algebra takes."""

from contextlib import AbstractContextManager
from functools import cache

import scipy.linalg  # noqa: F401  # brings its own library, which must be there to be found
from threadpoolctl import ThreadpoolController


def one_thread() -> AbstractContextManager[object]:
    """One thread, for matrices so small that more of them would wait more than they compute.

    >>> with one_thread():
    ...     pass
    """
    return _libraries().limit(limits=1, user_api="blas")


@cache
def _libraries() -> ThreadpoolController:
    """What this process has loaded: to look takes longer than some posteriors."""
    return ThreadpoolController()
