"""Where an instance lies: basis functions phi(x) of its class or of its features.

Utilities on an instance x are linear in [1, phi(x)]. The prior variance of the deviation from the
overall utilities is tau^2 k(x, x). Of it phi explains tau^2 |phi(x)|^2, and the rest is the
residual. Only numpy is needed, so that a deployed selector can use it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from polarbear._text import format_list
from polarbear.data.frozen import FrozenRecord
from polarbear.data.names import to_name
from polarbear.errors import DataError, warn

Floats = NDArray[np.float64]

MAX_INDUCING, MAX_FUNCTIONS = 300, 60
"""The most inducing instances of the Gaussian process, and the most basis functions kept."""

N_KNOTS = 65
"""The most quantiles of a feature between which its normal scores are interpolated."""

MIN_SD = 0.3
"""Features whose normal scores have a smaller standard deviation are not scaled up to 1."""

UNKNOWN_CLASS = "unknown"
"""The class of instances whose class is missing."""

LINEAR_SHARE = 0.5
"""The weight of the linear kernel relative to the squared exponential one."""


class Located(NamedTuple):
    """The basis functions at some instances, and the variance that they do not explain."""

    phi: Floats  # (X, d)
    residual: Floats  # (X,): k(x, x) - |phi(x)|^2


class Basis(Protocol):
    """Basis functions of instances, given a table of their attributes."""

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes that it needs."""
        ...

    @property
    def accepted_names(self) -> tuple[str, ...]:
        """The attributes that may be given: those it needs, and those that never varied."""
        ...

    def locate(self, columns: Mapping[str, Any], *, of_data: Collection[str] = ()) -> Located:
        """Return the basis functions at the instances whose attributes are given.

        ``of_data`` names the attributes whose values are those of instances in the data. Nothing
        is warned of if these are missing or new.
        """
        ...


@dataclass(frozen=True, eq=False)
class ClassBasis(FrozenRecord):
    """One basis function for each class: 1 on its instances, else 0. A new class has none.

    >>> basis = ClassBasis(("family",), ("easy", "hard"))
    >>> basis.locate({"family": ["hard", "easy"]}).phi.tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """

    names: tuple[str, ...]
    classes: tuple[str, ...]

    @property
    def accepted_names(self) -> tuple[str, ...]:
        """The attribute that is the class."""
        return self.names

    def locate(self, columns: Mapping[str, Any], *, of_data: Collection[str] = ()) -> Located:
        """Return the indicators of the classes of instances; warn of classes not in the data."""
        if not self.names:  # the scores of another method alone tell instances apart
            n = len(next(iter(columns.values()), [0]))
            return Located(np.zeros((n, 0)), np.zeros(n))
        if self.names[0] not in columns:
            raise DataError(
                f"no class is given: expected {self.names[0]}, one of {format_list(self.classes)}"
            )
        column = [to_name(value) or UNKNOWN_CLASS for value in columns[self.names[0]]]
        new = [name for name in dict.fromkeys(column) if name not in self.classes]
        if new and self.names[0] not in of_data:
            warn(
                f"no instance of class {format_list([repr(name) for name in new], 4)} in the data, "
                "so its ratings are those of a new class; there are "
                f"{format_list(self.classes, 6)}"
            )
        phi = (np.array(column)[:, None] == np.array(self.classes)).astype(np.float64)
        return Located(phi, 1.0 - phi.sum(axis=1))


@dataclass(frozen=True, eq=False)
class FeatureBasis(FrozenRecord):
    """The leading eigenfunctions of a Gaussian process over features, by inducing instances.

    Each feature is replaced by its normal score among the instances it was built from, which is
    robust to its scale and to outliers. Where it is missing its score is 0, and the indicator of
    being missing is a feature of its own. The kernel of two instances with d scores each is
    k = (exp(-|x - y|^2 / (2 d length^2)) + x'y / (2 d)) / 1.5. With k(I, I) = V E V' of the
    inducing instances I, phi(x) = E^-1/2 V' k(I, x) (Williams and Seeger 2001).

    Attributes
    ----------
    names
        The features.
    knots, scores
        Shape (features, knots): quantiles of each feature, and the normal scores there.
    indicators
        Features whose being missing is a further feature; ``indicator_moments`` scale them.
    indicator_of
        Shape (features,): the feature whose indicator says that this one is missing, because both
        were missing on the same instances; -1 if none does.
    inducing
        Shape (inducing, scores): scores of the inducing instances.
    projection
        Shape (inducing, d): V E^-1/2.
    length
        The length scale.
    constants
        Features that had one value on all instances, and this value; nan if it is not known. They
        may be given, but say nothing.
    """

    names: tuple[str, ...]
    knots: Floats
    scores: Floats
    indicators: NDArray[np.int64]
    indicator_moments: Floats
    indicator_of: NDArray[np.int64]
    inducing: Floats
    projection: Floats
    length: float
    constants: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def accepted_names(self) -> tuple[str, ...]:
        """The features, and those that never varied."""
        return (*self.names, *self.constants)

    @classmethod
    def build(
        cls, values: Floats, names: Sequence[str], length: float, seed: int = 0
    ) -> "FeatureBasis":
        """Build the basis from the features (instances, features) of data, nan where missing."""
        values = np.where(np.isfinite(values), values, np.nan)
        varies = [len(np.unique(column[~np.isnan(column)])) > 1 for column in values.T]
        if not any(varies):
            raise DataError("no feature has two different values, so features say nothing")
        constants = {
            name: float(np.nan if np.isnan(column).all() else np.nanmax(column))
            for name, column, v in zip(names, values.T, varies, strict=True)
            if not v
        }
        values, names = values[:, varies], [n for n, v in zip(names, varies, strict=True) if v]
        tables = [_normal_scores(column) for column in values.T]
        knots, scores = (np.stack(part) for part in zip(*tables, strict=True))
        absent = np.isnan(values)
        share = absent.mean(axis=0)
        often = np.flatnonzero((share > 0.01) & (share < 0.99))
        _, first, pattern = np.unique(
            absent[:, often], axis=1, return_index=True, return_inverse=True
        )
        chosen = often[np.sort(first)] if len(often) else often
        indicator_of = np.full(len(share), -1)
        indicator_of[often] = often[first[pattern.ravel()]] if len(often) else often
        sd = np.maximum(np.sqrt(share * (1 - share))[chosen], MIN_SD)
        moments = np.stack([share[chosen], sd])
        empty = np.zeros((0, 0))
        basis = cls(
            names=tuple(names),
            knots=knots,
            scores=scores,
            indicators=chosen,
            indicator_moments=moments,
            indicator_of=indicator_of,
            inducing=empty,
            projection=empty,
            length=length,
        )
        points = basis._standardise(values)
        rows = np.random.default_rng(seed).permutation(len(points))[:MAX_INDUCING]
        inducing = np.unique(points[rows], axis=0)
        eigenvalue, direction = np.linalg.eigh(_kernel(inducing, inducing, length))
        kept = np.flatnonzero(eigenvalue > 1e-6 * eigenvalue[-1])[::-1][:MAX_FUNCTIONS]
        projection = direction[:, kept] / np.sqrt(eigenvalue[kept])
        return replace(basis, inducing=inducing, projection=projection, constants=constants)

    def locate(self, columns: Mapping[str, Any], *, of_data: Collection[str] = ()) -> Located:
        """Return the basis functions at instances.

        Warn of features outside of the range seen, and of missing ones that were not in the data.
        """
        lacking = [name for name in self.names if name not in columns]
        if len(lacking) == len(self.names):
            raise DataError(f"no feature is given: expected {format_list(self.names)}")
        n = len(next(iter(columns.values())))
        missing = np.full(n, np.nan)
        values = np.stack(
            [to_numbers(columns.get(name, missing), name) for name in self.names], axis=1
        )
        self._warn_if_outside(values, columns)
        absent = ~np.isfinite(values)
        is_seen = (self.indicator_of >= 0) & absent[:, self.indicator_of]
        is_new = (absent & ~is_seen).any(axis=0)  # the data never lacked these
        warn_of_missing([self.names[k] for k in np.flatnonzero(is_new)], of_data)
        return self.locate_values(values)

    def locate_values(self, values: Floats) -> Located:
        """Return the basis functions at features (instances, features) without any warning."""
        points = self._standardise(np.where(np.isfinite(values), values, np.nan))
        phi = _kernel(points, self.inducing, self.length) @ self.projection
        own = (1 + LINEAR_SHARE * np.mean(points**2, axis=1)) / (1 + LINEAR_SHARE)
        return Located(phi, np.maximum(own - np.sum(phi**2, axis=1), 0.0))

    def _standardise(self, values: Floats) -> Floats:
        columns = zip(values.T, self.knots, self.scores, strict=True)
        points = np.stack([np.interp(v, knots, scores) for v, knots, scores in columns], axis=1)
        absent = np.isnan(values)
        share, sd = self.indicator_moments
        flags = (absent[:, self.indicators] - share) / sd
        return np.concatenate([np.where(absent, 0.0, points), flags], axis=1)

    def _warn_if_outside(self, values: Floats, columns: Mapping[str, Any]) -> None:
        low, high = self.knots[:, 0], self.knots[:, -1]
        with np.errstate(invalid="ignore"):
            outside = ((values < low) | (values > high)).any(axis=0)
        texts = [
            f"{self.names[k]} ({low[k]:.4g} to {high[k]:.4g})" for k in np.flatnonzero(outside)
        ]
        for name, value in self.constants.items():
            given = to_numbers(columns.get(name, [value]), name)
            if np.any(~np.isnan(given) & (given != value)):
                texts.append(f"{name} (always {value:.4g})")
        if not texts:
            return
        warn(
            f"features outside of the range seen, so the answer rests on other instances: "
            f"{format_list(texts, 4)}"
        )


def to_numbers(values: Any, name: str) -> Floats:
    """Return the values of a feature as numbers, nan where missing; DataError if one is no number.

    >>> to_numbers([1, None], "size")
    array([ 1., nan])
    """
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        for value in values:
            try:
                np.float64(value)
            except (TypeError, ValueError):
                raise DataError(
                    f"{name}={value!r}: expected a number, as it was in the data; leave out a "
                    "feature that is not known"
                ) from None
        raise DataError(f"{name}: expected a number for each instance") from None


def warn_of_missing(names: Sequence[str], of_data: Collection[str] = ()) -> None:
    """Warn that the median stands in for missing features, except for those of the data."""
    lacking = [name for name in names if name not in of_data]
    if lacking:
        warn(
            "features not given that were known of the instances in the data, so the answer is "
            f"that for their median: {format_list(lacking, 4)}"
        )


def _normal_scores(column: Floats) -> tuple[Floats, Floats]:
    """Return quantiles of a feature and their standardised normal scores (knots,) each."""
    column = np.sort(column[~np.isnan(column)])
    level = (np.arange(len(column)) + 0.5) / len(column)
    values, first, count = np.unique(column, return_index=True, return_counts=True)
    middle = level[first] + (count - 1) / (2 * len(column))
    if len(values) > N_KNOTS:
        row = np.unique(
            np.searchsorted(middle, np.linspace(0, 1, N_KNOTS)).clip(0, len(middle) - 1)
        )
        row[0] = 0
        values, middle = values[row], middle[row]
    scores = np.array([NormalDist().inv_cdf(p) for p in middle])
    own = np.interp(column, values, scores)
    scores = (scores - own.mean()) / max(own.std(), MIN_SD)
    padding = (0, N_KNOTS - len(values))
    return np.pad(values, padding, mode="edge"), np.pad(scores, padding, mode="edge")


def _kernel(x: Floats, y: Floats, length: float) -> Floats:
    """Return the kernel between points (X, d) and (Y, d)."""
    d, product = x.shape[1], x @ y.T
    squared = np.sum(x**2, axis=1)[:, None] + np.sum(y**2, axis=1) - 2 * product
    smooth = np.exp(-np.maximum(squared, 0.0) / (2 * d * length**2))
    return (smooth + LINEAR_SHARE * product / d) / (1 + LINEAR_SHARE)


def draw_utilities(
    coefficients: NDArray[np.float32],
    tau: NDArray[np.float32],
    phi: Floats,
    residual: float,
    rng: np.random.Generator,
) -> NDArray[np.float32]:
    """Return draws (D, T, n) of the utilities on one instance.

    ``coefficients`` are (D, T, n, 1 + d), ``tau`` (D, T), ``phi`` (d,). What phi does not explain
    is a deviation of the instance that is the same at all times.
    """
    drawn = coefficients @ np.append(1.0, phi).astype(np.float32)
    if residual > 0:
        own = rng.standard_normal((len(drawn), 1, drawn.shape[2]), dtype=np.float32)
        own -= own.mean(axis=2, keepdims=True)
        drawn += np.float32(np.sqrt(residual)) * tau[:, :, None] * own
    return drawn
