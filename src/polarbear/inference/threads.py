"""The number of threads of linear algebra libraries."""

from contextlib import AbstractContextManager
from functools import cache

import scipy.linalg  # noqa: F401  # loads its own BLAS, which the controller must find
from threadpoolctl import ThreadpoolController


def one_thread() -> AbstractContextManager[object]:
    """Limit linear algebra to one thread within a ``with`` block, for small matrices.

    >>> with one_thread():
    ...     pass
    """
    return _find_libraries().limit(limits=1, user_api="blas")


@cache
def _find_libraries() -> ThreadpoolController:
    """Return the loaded linear algebra libraries; cached, because the search is slow."""
    return ThreadpoolController()
