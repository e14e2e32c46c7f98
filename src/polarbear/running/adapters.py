"""Solvers made of what others call an algorithm."""

from collections.abc import Callable
from typing import Any

from polarbear.errors import SolverError
from polarbear.running.job import RunningJob


def budgeted(kind: Callable[..., Any], dim: int | None = None, **options: Any) -> "Budgeted":
    """A solver of a class with ``__init__(budget, dim)`` and ``__call__(func)``.

    Generated algorithms (LLaMEA) look like this. The budget is the horizon in evaluations.

    Parameters
    ----------
    dim
        The number of variables, if the instance does not say it: ioh problems do.
    options
        More arguments for ``__init__``.

    Examples
    --------
    >>> from polarbear.running.job import watched
    >>> class Search:
    ...     def __init__(self, budget, dim):
    ...         self.budget, self.dim = budget, dim
    ...     def __call__(self, func):
    ...         for k in range(self.budget):
    ...             func([1 / (k + 1)] * self.dim)
    >>> job = watched(sum, horizon=3)
    >>> budgeted(Search, dim=2)(job)
    >>> job.found
    ([1.0, 2.0, 3.0], [2.0, 1.0, 0.6666666666666666])
    """
    return Budgeted(kind, dim, options)


class Budgeted:
    """See :func:`budgeted`."""

    def __init__(self, kind: Callable[..., Any], dim: int | None, options: dict[str, Any]) -> None:
        self.kind, self.dim, self.options = kind, dim, options
        self.__name__ = getattr(kind, "__name__", "")

    def __call__(self, job: RunningJob) -> None:
        """Run it."""
        dim = _dimension(job.instance) if self.dim is None else self.dim
        algorithm = self.kind(budget=int(job.horizon), dim=dim, **self.options)
        algorithm(job.track(job.instance))


def _dimension(instance: Any) -> int:
    for owner in (instance, getattr(instance, "meta_data", None)):
        for name in ("dim", "dimension", "n_variables"):
            found = getattr(owner, name, None)
            if isinstance(found, int):
                return found
    raise SolverError("the instance does not say its dimension: budgeted(kind, dim=...)")
