"""``from_budgeted_class``: make a solver from a class that was written for another interface."""

from collections.abc import Callable
from numbers import Integral
from typing import Any

from polarbear.errors import SolverError
from polarbear.running.solvers.job import RunningJob


def from_budgeted_class(
    kind: Callable[..., Any], *, budget: int, dim: int | None = None, **options: Any
) -> "BudgetedSolver":
    """Make a solver from a class with ``__init__(budget, dim)`` and ``__call__(func)``.

    Programs that write algorithms, such as LLaMEA, use this interface. The behaviour of such a
    class may depend on its budget, as a cooling schedule does. It is therefore a family of
    algorithms, one for each configured budget (section 2 of the paper). Every run of this solver
    has the same budget; the horizon of a run only cuts it. To compare budgets, make a solver for
    each.

    Parameters
    ----------
    kind
        The class, or a function that returns a callable of the objective.
    budget
        The number of evaluations that each run is configured for. Take the last time of the race,
        or the budget of the later application.
    dim
        The number of variables; needed if the instance has no such attribute (ioh problems do).
    options
        Further arguments for ``__init__``.

    Examples
    --------
    >>> from polarbear.running.solvers.job import make_trial_job
    >>> class Search:
    ...     def __init__(self, budget, dim):
    ...         self.budget, self.dim = budget, dim
    ...     def __call__(self, func):
    ...         for k in range(self.budget):
    ...             func([1 - k / self.budget] * self.dim)
    >>> short, long = (from_budgeted_class(Search, budget=b, dim=2) for b in (2, 4))
    >>> short.__name__, long.__name__
    ('Search_2', 'Search_4')
    >>> job = make_trial_job(sum, horizon=4)
    >>> short(job)
    >>> job.improvements
    ([1.0, 2.0], [2.0, 1.0])
    """
    return BudgetedSolver(kind, budget, dim, options)


class BudgetedSolver:
    """A solver that runs a class with a fixed budget; see :func:`from_budgeted_class`."""

    def __init__(
        self, kind: Callable[..., Any], budget: int, dim: int | None, options: dict[str, Any]
    ) -> None:
        is_whole = isinstance(budget, Integral) and not isinstance(budget, bool)
        if not is_whole or budget < 1:
            raise SolverError(f"budget={budget!r}: expected a number of evaluations, at least 1")
        self.kind, self.budget, self.dim, self.options = kind, int(budget), dim, options
        name = getattr(kind, "__name__", "")
        self.__name__ = f"{name}_{self.budget}" if name else ""

    def __call__(self, job: RunningJob) -> None:
        """Run the wrapped algorithm on the objective of a job."""
        dim = _get_dimension(job.instance) if self.dim is None else self.dim
        algorithm = self.kind(budget=self.budget, dim=dim, **self.options)
        algorithm(job.track(job.instance))


def _get_dimension(instance: Any) -> int:
    """Return the number of variables of an instance, from one of its attributes."""
    for owner in (instance, getattr(instance, "meta_data", None)):
        for name in ("dim", "dimension", "n_variables"):
            number = getattr(owner, name, None)
            if isinstance(number, int):
                return number
    raise SolverError(
        "the instance has no attribute for its dimension: pass from_budgeted_class(..., dim=...)"
    )
