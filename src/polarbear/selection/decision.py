"""``select``: choose algorithms by their ratings, a preference over time and a risk criterion."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polarbear._text import format_unit
from polarbear.data.names import find_indices
from polarbear.errors import Argument, DataError, warn
from polarbear.selection.portfolios import (
    BestPortfolios,
    PortfolioTask,
    Risk,
    find_best_portfolios,
    is_maximal,
)
from polarbear.selection.preferences import (
    Linear,
    Preference,
    check_increasing,
    evaluate_curves,
    to_preference,
)
from polarbear.selection.ratings import RatingSource, thin_draws
from polarbear.selection.result import Option, Selection

Floats = NDArray[np.float64]

MAX_DRAWS, MAX_CURVE_DRAWS = 4000, 1000
"""Portfolios are evaluated with at most this number of draws of values, or of whole curves."""


def select(
    posterior: RatingSource,
    preference: Preference | Callable[[Floats], ArrayLike] | None = None,
    *,
    risk: Risk = "expected",
    sure: float | None = None,
    size: int = 1,
    among: Iterable[str] | None = None,
    repeats: bool | None = None,
) -> Selection:
    """Choose the algorithm to run, or ``size`` algorithms to run in parallel.

    Parameters
    ----------
    posterior
        A posterior, or the :class:`Ratings` of one.
    preference
        The value of ratings over time: a function of time that returns weights, or one of
        :mod:`polarbear.preferences`. By default every budget between the first and the last time
        of the grid counts the same, on a log scale if figures show these times on one.
    risk
        "expected": the highest expected value. "best": the highest probability that no other is
        better. A number such as 0.05: the highest lower quantile of the value, which prefers
        algorithms whose rating is well known. It guards against uncertain ratings, not against bad
        runs: rankings tell how often an algorithm is behind, never by how much. It does not bound
        the probability of a wrong choice; ``sure`` does.
    sure
        The required probability that no other choice is better, such as 0.95. The choice does not
        depend on it; ``met`` of the result tells whether the probability is reached.
    size
        The number of parallel runs, of which the best result is kept.
    among
        The algorithms to choose from, such as ``posterior.pareto()``; by default all. Ratings
        remain relative to all algorithms.
    repeats
        Whether an algorithm may be run more than once. True is right if its runs are independent,
        as with other seeds; False if another run would find the same.

    Returns
    -------
    Selection
        The chosen algorithms, the probability that they are the best, and the other options.

    Raises
    ------
    DataError
        If the preference lies outside the times, or there are too few algorithms.

    Examples
    --------
    >>> import polarbear as pb
    >>> mu = np.stack([np.linspace(1, -1, 6), np.linspace(-1, 1, 6), np.zeros(6)], axis=1)
    >>> posterior = pb.fit(pb.simulation.simulate_rankings(mu, 200, times=np.arange(1.0, 7.0)))
    >>> pb.select(posterior, lambda t: (t >= 4) & (t <= 6), risk=0.05).algorithms
    ('a2',)
    >>> pb.select(posterior, pb.preferences.at(1)).algorithms
    ('a1',)
    >>> pb.select(posterior, pb.preferences.at(1), sure=0.95).met
    True
    >>> pb.select(posterior, size=2, repeats=False).algorithms
    ('a1', 'a2')
    """
    if not hasattr(posterior, "ratings"):
        how = "fit the data first, select(fit(data), ...)"
        if hasattr(posterior, "posterior"):  # a race, or its result
            how = (
                "pass its posterior, select(result.posterior, ...), to choose among those that "
                "still race, or select(fit(result.runs, times=result.times), ...) to choose among "
                "all"
            )
        elif hasattr(posterior, "on"):  # by classes or features
            how = "say for which instances, select(posterior.on(...), ...)"
            how += " or select(posterior.population(), ...)" * hasattr(posterior, "population")
        raise DataError(
            f"select takes a Posterior or Ratings, not {type(posterior).__name__}: {how}"
        )
    wanted = to_preference(preference, np.asarray(posterior.times, dtype=np.float64))
    codes = _find_candidates(posterior, among)
    _check_arguments(risk, size, len(codes), repeats)
    if sure is not None and not 0 < sure < 1:
        raise DataError("expected a probability between 0 and 1, such as 0.95", sure=sure)
    if size > 1 and repeats is None:
        warn(
            "a portfolio is rated by the sum rule, which holds if the best result of its runs is "
            "kept and all runs are independent, also those of the same algorithm. Say "
            "repeats=True if that is so, repeats=False if an algorithm would find the same again. "
            "Where results are joined (the hypervolume of fronts), the rule rates portfolios too "
            "low: rank each as an algorithm of its own instead"
        )
    task = _make_task(posterior, wanted, codes, risk, size, repeats is not False)
    selection = _make_selection(posterior, wanted, codes, task, find_best_portfolios(task), sure)
    failing = [one for one in getattr(posterior, "ends", ()) if one.fails_often]
    cautions = [f"{x.describe_failures()}." for x in failing if x.algorithm in selection.algorithms]
    if (other := getattr(posterior, "if_cut", None)) is not None:
        known = None if size == 1 else repeats is not False
        again = select(other, wanted, risk=risk, size=size, among=among, repeats=known)
        if again.algorithms != selection.algorithms:
            cautions.insert(
                0,
                f"it is {again.choice} if the runs whose ends nothing states were cut; say "
                "ended='finished' or ended='cut' when you read them.",
            )
    return replace(selection, cautions=tuple(cautions))


def _make_task(
    posterior: RatingSource,
    preference: Preference,
    codes: NDArray[np.intp],
    risk: Risk,
    size: int,
    repeats: bool,
) -> PortfolioTask:
    ratings, times = posterior.ratings, np.asarray(posterior.times, dtype=np.float64)
    if ratings.ndim != 3 or ratings.shape[1:] != (len(times), len(posterior.algorithms)):
        raise DataError(
            f"ratings of shape {ratings.shape} are not draws of {len(posterior.algorithms)} "
            f"algorithms at {len(times)} times"
        )
    if isinstance(preference, Linear):
        values = np.zeros((len(codes), len(ratings)))
        weights = preference.weights(times, posterior.clock)
        for k in np.flatnonzero(weights):
            values += weights[k] * ratings[:, k, codes].T
        if size > 1 and not isinstance(risk, str):
            values = thin_draws(values.T, MAX_DRAWS).T
        return PortfolioTask(
            items=values, value=lambda sums: sums, risk=risk, size=size, repeats=repeats
        )

    function = preference.function
    check_increasing(
        function, thin_draws(ratings, 100)[..., codes].mean(axis=0).T.astype(np.float64)
    )
    if size == 1:
        curves = (ratings[..., k].astype(np.float64) for k in codes)
        values = np.stack([evaluate_curves(function, curve) for curve in curves])
        return PortfolioTask(
            items=values, value=lambda sums: sums, risk=risk, size=size, repeats=repeats
        )
    # In memory times come first: functions of curves reduce over times, which is fastest so.
    items = (
        thin_draws(ratings, MAX_CURVE_DRAWS)[..., codes].transpose(1, 2, 0).astype(np.float64, "C")
    )
    items = np.moveaxis(items, 0, -1)
    return PortfolioTask(
        items=items,
        value=lambda sums: evaluate_curves(function, sums),
        risk=risk,
        size=size,
        repeats=repeats,
    )


def _make_selection(
    posterior: RatingSource,
    preference: Preference,
    codes: NDArray[np.intp],
    task: PortfolioTask,
    portfolios: BestPortfolios,
    sure: float | None,
) -> Selection:
    """Return the selection: the best portfolios with their figures, sorted by score."""
    values = task.values(portfolios.members)
    expected, regret = values.mean(axis=1), (portfolios.top - values).mean(axis=1)
    best = is_maximal(values, portfolios.top).mean(axis=1)
    score = best if task.risk == "best" else task.score(values)
    names = [posterior.algorithms[k] for k in codes]
    order = np.lexsort((-expected, -score))
    choices = tuple(
        Option(
            algorithms=tuple(names[member] for member in portfolios.members[k]),
            score=float(score[k]),
            expected=float(expected[k]),
            best=float(best[k]),
            regret=float(max(regret[k], 0.0)),
        )
        for k in order
    )
    top_score = choices[0].score
    limit = top_score if np.isnan(portfolios.limit) else max(portfolios.limit, top_score)
    unit = format_unit(posterior.clock) if isinstance(preference, Linear) else ""
    says = f"{preference.says}, in {unit}" if unit else preference.says
    grid = float(posterior.times[0]), float(posterior.times[-1])
    asked = preference.asked if isinstance(preference, Linear) else (None, None)
    used = preference.used(posterior.times) if isinstance(preference, Linear) else grid
    return Selection(
        choices=choices,
        preference=says,
        risk=task.risk,
        draws=values.shape[1],
        limit=limit,
        asked=asked,
        used=used,
        sure=sure,
    )


def _find_candidates(posterior: RatingSource, among: Iterable[str] | None) -> NDArray[np.intp]:
    if among is None:
        return np.arange(len(posterior.algorithms))
    codes = np.unique(find_indices(among, posterior.algorithms, "algorithm"))
    if not len(codes):
        raise DataError("among is empty: name at least one algorithm to choose from")
    return codes


def _check_arguments(risk: Risk, size: int, n: int, repeats: bool | None) -> None:
    if isinstance(risk, str):
        if risk not in ("expected", "best"):
            raise DataError(
                "expected 'expected', 'best', or the level of a quantile (0.05)", risk=risk
            )
    elif not 0 < risk < 1:
        raise DataError("expected the level of a quantile between 0 and 1, such as 0.05", risk=risk)
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
        raise DataError("expected the number of parallel runs, at least 1", size=size)
    if repeats is False and size > n:
        raise DataError(
            Argument("size", size),
            f" without repeats needs {size} algorithms, got {n}: pass ",
            Argument("repeats", True),
            ", or a smaller size",
        )
