"""Solvers made of classes and functions that were written for another interface."""

from collections.abc import Callable
from numbers import Integral
from typing import Any

from polarbear.errors import SolverError
from polarbear.running.solvers.job import RunningJob


def from_budgeted_class(
    kind: Callable[..., Any], *, budget: int, dim: int | None = None, **options: Any
) -> "BudgetedSolver":
    """Make a solver from a class with ``__init__(budget, dim)`` and ``__call__(func)``.

    Programs that write algorithms (LLaMEA) write them so. What such a class does may depend on its
    budget, as a cooling schedule does. It is therefore a family of algorithms, one for each
    configured budget (section 2 of the paper). Every run of this solver has the same budget; the
    horizon of a run only cuts it. To compare budgets, let several take part.

    Parameters
    ----------
    kind
        The class, or a function that makes what is called with the objective.
    budget
        The number of evaluations that each run is made for. Take the last time of the race, or
        what the algorithm will get where it is used.
    dim
        The number of variables, if the instance does not say it: ioh problems do.
    options
        More arguments for ``__init__``.

    Examples
    --------
    >>> from polarbear.running.solvers.job import watched
    >>> class Search:
    ...     def __init__(self, budget, dim):
    ...         self.budget, self.dim = budget, dim
    ...     def __call__(self, func):
    ...         for k in range(self.budget):
    ...             func([1 - k / self.budget] * self.dim)
    >>> short, long = (from_budgeted_class(Search, budget=b, dim=2) for b in (2, 4))
    >>> short.__name__, long.__name__
    ('Search_2', 'Search_4')
    >>> job = watched(sum, horizon=4)
    >>> short(job)
    >>> job.found
    ([1.0, 2.0], [2.0, 1.0])
    """
    return BudgetedSolver(kind, budget, dim, options)


class BudgetedSolver:
    """A class with a configured budget, as a solver. See :func:`from_budgeted_class`."""

    def __init__(
        self, kind: Callable[..., Any], budget: int, dim: int | None, options: dict[str, Any]
    ) -> None:
        whole = isinstance(budget, Integral) and not isinstance(budget, bool)
        if not whole or budget < 1:
            raise SolverError(f"budget={budget!r}: expected a number of evaluations, at least 1")
        self.kind, self.budget, self.dim, self.options = kind, int(budget), dim, options
        name = getattr(kind, "__name__", "")
        self.__name__ = f"{name}_{self.budget}" if name else ""

    def __call__(self, job: RunningJob) -> None:
        """Run it."""
        dim = _dimension(job.instance) if self.dim is None else self.dim
        algorithm = self.kind(budget=self.budget, dim=dim, **self.options)
        algorithm(job.track(job.instance))


def _dimension(instance: Any) -> int:
    for owner in (instance, getattr(instance, "meta_data", None)):
        for name in ("dim", "dimension", "n_variables"):
            number = getattr(owner, name, None)
            if isinstance(number, int):
                return number
    raise SolverError("the instance does not say its dimension: from_budgeted_class(..., dim=...)")
