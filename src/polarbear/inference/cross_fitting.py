"""``cross_fit``: scores of algorithms on instances by a random forest, for ``fit(scores=)``."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarbear._text import format_list
from polarbear.data.instance_basis import to_numbers, warn_of_missing
from polarbear.data.instance_data import find_attribute
from polarbear.data.rankings import UNKNOWN, Rankings
from polarbear.errors import DataError, require
from polarbear.inference.laplace.by_instance import read_attributes
from polarbear.inference.scores import Scores

Floats = NDArray[np.float64]

FOLDS, TREES = 10, 100
"""The number of folds, and of trees of the default forest."""

FILL = -1e12
"""A number below all values of a feature."""


def cross_fit(
    rankings: Rankings,
    features: object = "all",
    *,
    groups: str | None = None,
    regressor: Any = None,
    seed: int = 0,
) -> Scores:
    """Predict the places of algorithms on each instance from instances of other folds.

    Parameters
    ----------
    rankings
        The data.
    features
        As in :func:`fit`.
    groups
        An attribute, such as a family, whose instances stay in one fold. Use it where new instances
        will be of new families.
    regressor
        A regressor of scikit-learn for several outputs; by default a random forest (the extra
        ``[forest]``).
    seed
        The seed of the folds and of the forest.

    Returns
    -------
    Scores
        The predicted places, for ``scores=`` of :func:`fit`.

    Raises
    ------
    DataError
        If instances have no rows in the table.
    MissingDependency
        If scikit-learn is not installed.

    Examples
    --------
    >>> import polarbear as pb
    >>> rankings = pb.simulation.simulate_rankings(np.array([[1.0, 0.0]]), 40)
    >>> size = {"instance": rankings.instances, "size": range(40)}
    >>> scores = pb.cross_fit(rankings, size)                        # doctest: +SKIP
    >>> posterior = pb.fit(rankings, features=size, scores=scores)   # doctest: +SKIP
    """
    ensemble = require("sklearn.ensemble", extra="forest")
    model_selection = require("sklearn.model_selection", extra="forest")
    base = require("sklearn.base", extra="forest")
    if regressor is None:
        regressor = ensemble.RandomForestRegressor(
            TREES, min_samples_leaf=2, max_features=0.5, random_state=seed
        )
    if rankings.ties == "partial":
        raise DataError("cross_fit needs orders, not partial orders: rank by one indicator instead")
    columns = read_attributes(rankings, None, features)
    names, known = list(columns), np.stack(list(columns.values()), axis=1)
    fill = _choose_fill(known)
    needed = [name for k, name in enumerate(names) if fill[k] != FILL and np.ptp(known[:, k]) > 0]
    x = np.where(np.isfinite(known), known, fill)
    y, shape = _mean_places(rankings), (len(rankings.times), len(rankings.algorithms))
    if groups is None:
        n_folds = min(FOLDS, len(x))
        folds = model_selection.KFold(n_folds, shuffle=True, random_state=seed).split(x)
    else:
        family = find_attribute(rankings.instance_data, groups)
        n_folds = min(FOLDS, len(np.unique(family)))
        if n_folds < 2:
            raise DataError("expected at least two groups, got one", groups=groups)
        folds = model_selection.GroupKFold(n_folds).split(x, groups=family)
    predicted = np.empty(y.shape)
    for train, test in folds:
        predicted[test] = _predict(base.clone(regressor).fit(x[train], y[train]), x[test])
    final = base.clone(regressor).fit(x, y)

    def predict(new: Mapping[str, Any]) -> Floats:
        lacking = [name for name in names if name not in new]
        if len(lacking) == len(names):
            raise DataError(
                f"the scores need {format_list(names)}: give these features, or scores= of the "
                "algorithms"
            )
        warn_of_missing([name for name in lacking if name in needed])
        missing = np.full(len(next(iter(new.values()))), np.nan)
        table = [to_numbers(new.get(name, missing), name) for name in names]
        values = np.stack(table, axis=1)
        values = np.where(np.isfinite(values), values, fill)
        return -_predict(final, values).reshape(-1, *shape)

    values = -predicted.reshape(-1, *shape)
    return Scores.build(rankings.algorithms, rankings.instances, values, predict, names)


def _predict(model: Any, x: Floats) -> Floats:
    return np.asarray(model.predict(x), dtype=np.float64).reshape(len(x), -1)


def _choose_fill(x: Floats) -> Floats:
    """Return what stands in for each feature (features,) where it is missing.

    If it is missing on some instances of the data, it is a number far below all others, which trees
    can split off. Else trees have not learnt what it means, and it is the median, as in
    :class:`FeatureBasis`.
    """
    return np.array([np.median(c) if np.isfinite(c).all() else FILL for c in x.T])


def _mean_places(rankings: Rankings) -> Floats:
    """Return the mean place (instances, times * algorithms) of each algorithm, ties in the middle.

    Unknown places count as the middle of all.
    """
    n, n_times, n_instances = (
        len(rankings.algorithms),
        *map(len, (rankings.times, rankings.instances)),
    )
    comparison = np.repeat(np.arange(len(rankings.instance)), np.diff(rankings.offset))
    cell = rankings.instance[comparison].astype(np.int64) * n + rankings.algorithm
    places = np.empty((n_instances, n_times, n))
    for t, row in enumerate(rankings.position):
        known = row != UNKNOWN
        key = comparison[known].astype(np.int64) * (n + 1) + row[known]
        tied = np.bincount(key)[key]
        place = row[known] + (tied - 1) / 2
        total = np.bincount(cell[known], place, n_instances * n)
        number = np.bincount(cell[known], minlength=n_instances * n)
        mean = np.where(number > 0, total / np.maximum(number, 1), (n - 1) / 2)
        places[:, t] = mean.reshape(n_instances, n)
    return places.reshape(n_instances, -1)
