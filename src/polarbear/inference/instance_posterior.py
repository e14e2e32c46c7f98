"""``InstancePosterior``: ratings that depend on the class or the features of an instance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarbear._text import format_count, format_list, format_range
from polarbear.data.columns import to_columns
from polarbear.data.frozen import FrozenRecord
from polarbear.data.instance_basis import Basis, ClassBasis, Located, draw_utilities
from polarbear.data.names import find_indices, to_name
from polarbear.errors import DataError, warn
from polarbear.inference.diagnostics import Diagnostics
from polarbear.inference.posterior import Evidence, Posterior
from polarbear.inference.scores import Scores

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

PREDICTION_DRAWS = 500
"""The number of draws from which probabilities of many instances are computed."""


@dataclass(frozen=True, eq=False, repr=False)
class InstancePosterior(FrozenRecord):
    """Ratings that depend on the instance; made by :func:`fit` with ``classes=`` or ``features=``.

    :meth:`on` returns the posterior on one class, or on instances with given features. It is a
    :class:`Posterior` like any other: it has a verdict, can be drawn, and :func:`select` takes it.

    Attributes
    ----------
    algorithms, times, clock, evidence
        As in :class:`Posterior`.
    instances
        The names of the instances in the data.
    basis
        Where an instance lies, given its class or its features.
    coefficients
        Shape (D, T, n, 1 + d): draws of the coefficients of the basis functions.
    tau
        Shape (D, T): draws of the standard deviation of utilities between instances.
    slope
        Shape (D, T): draws of the slope of scores; 0 without scores.
    phi, residual
        Shapes (P, d) and (P,): where the instances in the data lie.
    information
        The mean information of an instance about one utility.
    scores
        The scores by another method, if any.

    Examples
    --------
    >>> import dataclasses
    >>> import polarbear as pb
    >>> truth = {"easy": [2.0, 0.0], "hard": [0.0, 2.0]}
    >>> parts = [pb.simulation.simulate_rankings(np.array([mu]), 60, seed=len(name) + k)
    ...          for k, (name, mu) in enumerate(truth.items())]
    >>> rankings = parts[0].join(parts[1])
    >>> names = [f"i{k}" for k in range(120)]
    >>> rankings = dataclasses.replace(rankings, instances=tuple(names))
    >>> families = {"instance": names, "family": ["easy"] * 60 + ["hard"] * 60}
    >>> rankings = rankings.with_instance_data(families)
    >>> posterior = pb.fit(rankings, classes="family")
    >>> posterior.on("hard").prob_better("a2", "a1").round(2)
    array([1.])
    >>> posterior.population({"easy": 0.9, "hard": 0.1}).prob_better("a2", "a1").round(2)
    array([0.])
    """

    algorithms: tuple[str, ...]
    times: Floats
    instances: tuple[str, ...]
    basis: Basis
    coefficients: Singles
    tau: Singles
    slope: Singles
    phi: Floats
    residual: Floats
    information: float
    scores: Scores | None = None
    clock: str = "time"
    evidence: Evidence = "instances"

    def on(
        self,
        where: str | Mapping[str, Any] | None = None,
        /,
        *,
        scores: Mapping[str, float] | None = None,
        **attributes: Any,
    ) -> Posterior:
        """Return the posterior on instances of a class, or with given features.

        Parameters
        ----------
        where
            The name of a class, or a mapping from attributes to values, which may also be given as
            keywords: ``on("hard")``, ``on(family="hard")`` or ``on({"variables": 200})``. Features
            that are not given count as missing. A new class has the overall ratings, with the
            uncertainty of a new class.
        scores
            The score of each algorithm there, if the fit had scores from a table.
        """
        columns = self._to_columns(where, attributes)
        located = self.basis.locate(columns)
        known = None if self.scores is None else self.scores.at(columns, scores)
        utilities = self._draw(located, 0, known, np.random.default_rng(0))
        return self._to_posterior(utilities, round(self._informed_by(located.phi[0])))

    def population(self, weights: Mapping[str, float] | None = None) -> Posterior:
        """Return the posterior of a mix of classes, by default of the instances in the data.

        The rating is the probability to come first on an instance drawn from the mix. ``weights``
        are the shares of classes, by name.
        """
        if weights is None:
            chosen, share = range(len(self.phi)), np.ones(len(self.phi))
            located = Located(self.phi, self.residual)
        else:
            if not isinstance(self.basis, ClassBasis):
                raise DataError("weights are those of classes, but this posterior has features")
            located = self.basis.locate({self.basis.names[0]: list(weights)})
            chosen, share = range(len(weights)), np.array(list(weights.values()), dtype=float)
        if not (np.all(share >= 0) and share.sum() > 0):
            raise DataError(f"weights={weights!r}: expected numbers that are not negative")
        rng, total = np.random.default_rng(0), np.zeros((), dtype=np.float32)
        for k, weight in zip(chosen, share / share.sum(), strict=True):
            known = None if self.scores is None or weights else self.scores.values[k]
            total = total + np.float32(weight) * _softmax(self._draw(located, k, known, rng))
        utilities = np.log(np.maximum(total, 1e-30))
        utilities -= utilities.mean(axis=2, keepdims=True)
        return self._to_posterior(utilities, len(self.instances))

    def predict(self, table: object) -> Predictions:
        """Return the probabilities of all algorithms on each instance of a table of attributes.

        ``table`` is a data frame, or a mapping of column names to values.

        >>> import polarbear as pb
        >>> rankings = pb.simulation.simulate_rankings(np.array([[1.0, 0.0]]), 30)
        >>> size = {"instance": rankings.instances, "size": range(30)}
        >>> posterior = pb.fit(rankings, features=size)
        >>> posterior.predict({"size": [3, 20]}).prob_first.shape     # instances, times, algorithms
        (2, 1, 2)
        """
        source = to_columns(table)
        columns: dict[str, Any] = {
            name: source.read_labels(name).to_list()
            if isinstance(self.basis, ClassBasis)
            else source.read_numbers(name)
            for name in self.basis.names
            if name in source.names
        }
        if not columns:
            raise DataError(f"the table has no column of {format_list(self.basis.names)}")
        ratings = np.stack([one.mean(axis=0) for one in self.iterate_ratings(columns)])
        return Predictions(self.algorithms, self.times, ratings.astype(np.float64))

    def iterate_ratings(
        self, columns: Mapping[str, Any] | None = None, draws: int = PREDICTION_DRAWS
    ) -> Iterator[Singles]:
        """Yield draws of ratings (draws, T, n) on instances, by default on those of the data.

        >>> import polarbear as pb
        >>> rankings = pb.simulation.simulate_rankings(np.array([[1.0, 0.0]]), 30)
        >>> posterior = pb.fit(rankings, features={"instance": rankings.instances, "f": range(30)})
        >>> next(posterior.iterate_ratings()).shape
        (500, 1, 2)
        """
        located = Located(self.phi, self.residual)
        known = None if self.scores is None else self.scores.values
        if columns is not None:
            located = self.basis.locate(columns)
            known = None if self.scores is None else self.scores.predict(columns)
        rng = np.random.default_rng(0)
        step = max(1, len(self.coefficients) // draws)
        for k in range(len(located.phi)):
            own = None if known is None else known[k]
            yield _softmax(self._draw(located, k, own, rng, slice(None, None, step)))

    def _informed_by(self, phi: Floats) -> float:
        """Return the number of instances that inform the ratings at basis functions phi (d,).

        It is Kish's effective number (sum h^2)^2 / sum h^4 of the influences h of the instances,
        with h = [1, phi] (F'F + diag(0, 1 / (tau^2 information)))^-1 F', F the rows [1, phi_p].
        """
        tau = float(np.sqrt(np.mean(self.tau.astype(np.float64) ** 2)))
        functions = np.concatenate([np.ones((len(self.phi), 1)), self.phi], axis=1)
        gram = functions.T @ functions
        penalty = 1 / max(tau**2 * self.information, 1e-9)
        gram[np.arange(1, len(gram)), np.arange(1, len(gram))] += penalty
        influence = functions @ np.linalg.solve(gram, np.append(1.0, phi))
        return float(np.sum(influence**2) ** 2 / np.sum(influence**4))

    def _to_columns(
        self, where: str | Mapping[str, Any] | None, attributes: Mapping[str, Any]
    ) -> dict[str, list[Any]]:
        """Return the attributes of one instance as columns of one row."""
        if where is not None and not isinstance(where, Mapping):
            if not isinstance(self.basis, ClassBasis):
                names = self.basis.names
                raise DataError(f"on({where!r}): expected features, as in on({{{names[0]!r}: 1}})")
            where = {self.basis.names[0]: where}
        given = {**(where or {}), **attributes}
        find_indices(list(given), self.basis.accepted_names, "class or feature")
        if isinstance(self.basis, ClassBasis):
            if self.basis.names and not given:
                raise DataError(f"on() needs a class: {format_list(self.basis.classes)}")
            name = to_name(next(iter(given.values()), None))
            if name and name not in self.basis.classes:
                warn(
                    f"no instance of class {name!r} in the data, so its ratings are those of a new "
                    f"class; there are {format_list(self.basis.classes, 6)}"
                )
        return {name: [value] for name, value in given.items()}

    def _draw(
        self,
        located: Located,
        k: int,
        scores: Floats | None,
        rng: np.random.Generator,
        rows: slice = slice(None),
    ) -> Singles:
        """Draw the utilities (D, T, n) on instance ``k`` of those located."""
        utilities = draw_utilities(
            self.coefficients[rows], self.tau[rows], located.phi[k], float(located.residual[k]), rng
        )
        if scores is not None:
            utilities += self.slope[rows][:, :, None] * scores.astype(np.float32)
        return utilities

    def _to_posterior(self, utilities: Singles, instances: int) -> Posterior:
        return Posterior(
            self.algorithms,
            self.times,
            utilities,
            np.ones((len(utilities), 1), dtype=np.float32),
            hyper={"tau": self.tau.mean(axis=1, dtype=np.float64)},
            diagnostics=Diagnostics(notes=("Laplace approximation, not corrected by weights",)),
            prior=f"Dirichlet() by {format_list(self.basis.names, 3)}",
            method="laplace",
            clock=self.clock,
            evidence=self.evidence,
            instances=instances,
        )

    def __str__(self) -> str:
        kind = "classes" if isinstance(self.basis, ClassBasis) else "features"
        names = self.basis.classes if isinstance(self.basis, ClassBasis) else self.basis.names
        tau = self.tau.mean(axis=0, dtype=np.float64)
        same = float(np.mean(self.tau == 0))
        return (
            f"posterior of {len(self.algorithms)} algorithms by {kind} of instances, "
            f"{format_range(self.times[0], self.times[-1], self.clock)}, "
            f"from {format_count(len(self.instances), 'instance')}\n"
            f"  algorithms  {format_list(self.algorithms)}\n"
            f"  {kind:<10}  {format_list(names, 6)}\n"
            f"  differences between instances: sd of utilities {tau.min():.2g} to {tau.max():.2g}; "
            f"P(none) = {same:.2f}"
        )

    __repr__ = __str__


@dataclass(frozen=True, eq=False, repr=False)
class Predictions(FrozenRecord):
    """Predictive probabilities on several instances.

    Attributes
    ----------
    algorithms, times
        As in the posterior.
    prob_first
        Shape (instances, times, algorithms): P(the algorithm comes first on this instance).
    """

    algorithms: tuple[str, ...]
    times: Floats
    prob_first: Floats

    @property
    def best(self) -> list[list[str]]:
        """The algorithm that is most likely the first, for each instance and time."""
        return [[self.algorithms[k] for k in row] for row in self.prob_first.argmax(axis=2)]


def _softmax(utilities: Singles) -> Singles:
    rating = np.exp(utilities - utilities.max(axis=-1, keepdims=True))
    return rating / rating.sum(axis=-1, keepdims=True)
