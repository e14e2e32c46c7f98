"""``InstancePosterior``: ratings that depend on the class or the features of an instance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarbear._text import escape_text, format_count, format_list, format_range, format_share
from polarbear.data.frozen import FrozenRecord
from polarbear.data.instance_basis import Basis, ClassBasis, Located, draw_utilities
from polarbear.data.names import find_indices, to_name
from polarbear.data.run_ends import RunEnds
from polarbear.data.table import to_table
from polarbear.errors import DataError
from polarbear.inference.diagnostics import Diagnostics
from polarbear.inference.posterior import Evidence, Posterior
from polarbear.inference.scores import Scores

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

PREDICTION_DRAWS = 500
"""The number of draws from which probabilities of many instances are computed."""

MIN_WIN_DRAWS, MAX_WINS = 100, 20_000_000
"""The fewest draws from which the probabilities of pairs on a mix of instances are computed, and
the most probabilities of all draws in memory, if there are enough draws."""

APPROXIMATED = Diagnostics(notes=("Gaussian approximation, not corrected by weights",))
"""The diagnostics of every fit by classes, features or scores."""

REMAINING = {
    "member": "worth running",
    "equivalent": "tied with another algorithm",
    "undecided": "undecided",
}
"""What a verdict says of algorithms that are not replaced, by its kind."""

AVERAGE_DRAWS, AVERAGE_INSTANCES, IMPORTANCE_INSTANCES = 200, 60, 300
"""The most draws and instances over which ratings with some attributes set are averaged, and the
most instances from which the importance of features is computed."""


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
    weight
        Shape (P,): the weights of the instances in the data.
    decided
        Shape (1 + C, T, n (n - 1) / 2): the share of duels of a pair that do not tie, on all
        instances and on those of each of C classes; None without ties.
    scores
        The scores by another method, if any.
    attributes
        The class or the features of the instances in the data, by name.
    diagnostics
        Whether the numerics can be trusted, which holds for the posteriors on all instances.
    ends, if_cut
        As in :class:`Posterior`: how runs ended, and the posterior under the other reading.

    Examples
    --------
    >>> import polarbear as pb
    >>> truth = np.repeat([[[2.0, 0.0], [0.0, 2.0]]], 60, axis=1)  # times, instances, algorithms
    >>> rankings = pb.simulation.simulate_rankings(truth, 120)
    >>> families = {"instance": rankings.instances, "family": ["easy"] * 60 + ["hard"] * 60}
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
    weight: Floats
    decided: Floats | None = None
    scores: Scores | None = None
    clock: str = "time"
    evidence: Evidence = "instances"
    attributes: Mapping[str, NDArray[Any]] = field(default_factory=dict[str, NDArray[Any]])
    diagnostics: Diagnostics = APPROXIMATED
    ends: tuple[RunEnds, ...] = ()
    if_cut: InstancePosterior | None = None

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
            that are not given count as missing. If they were always known in the data, their median
            is used, with a warning; :meth:`average_ratings` averages over them. A new class has the
            overall ratings, with the uncertainty of a new class. Features of :func:`cross_fit` may
            be given too.
        scores
            The score of each algorithm there, if the fit had scores from a table.
        """
        columns = self._to_columns(where, attributes)
        located = self.basis.locate(columns)
        known = None if self.scores is None else self.scores.at(columns, scores)
        utilities = self._draw(located, 0, known, np.random.default_rng(0))
        other = self.if_cut and self.if_cut.on(where, scores=scores, **attributes)
        names = columns.get(self.basis.names[0], []) if self.basis.names else []
        informed = round(self._informed_by(located.phi[0]))
        return self._to_posterior(utilities, informed, other, dict.fromkeys(names, 1.0))

    def population(self, weights: Mapping[str, float] | None = None) -> Posterior:
        """Return the posterior of a mix of classes, by default of the instances in the data.

        The rating is the probability to come first on an instance drawn from the mix. Win
        probabilities and equivalence are those of pairs on the mix, which do not follow from the
        ratings. ``weights`` are the shares of classes, by name.
        """
        located, share = self._choose_mix(weights)
        rng, total = np.random.default_rng(0), np.zeros((), dtype=np.float32)
        first, second = np.triu_indices(len(self.algorithms), 1)
        wanted = MAX_WINS // (len(self.times) * len(first))
        rows = _spread(len(self.tau), min(max(wanted, MIN_WIN_DRAWS), PREDICTION_DRAWS))
        wins = np.zeros((len(rows), len(self.times), len(first)), dtype=np.float32)
        for k in np.flatnonzero(share).tolist():
            weight = np.float32(share[k] / share.sum())
            known = None if self.scores is None else self.scores.values[k]
            rating = np.maximum(_softmax(self._draw(located, k, known, rng)), np.float32(1e-30))
            total = total + weight * rating
            for t in range(len(self.times)):  # so that intermediate arrays are small
                of_first, of_second = rating[rows, t][:, first], rating[rows, t][:, second]
                wins[:, t] += weight * of_first / (of_first + of_second)
        utilities = np.log(total)
        utilities -= utilities.mean(axis=2, keepdims=True)
        other = self.if_cut and self.if_cut.population(weights)
        mixed = self._to_posterior(utilities, len(self.instances), other, weights)
        return replace(mixed, wins=wins)

    def _choose_mix(self, weights: Mapping[str, float] | None) -> tuple[Located, Floats]:
        """Return where the instances of a mix lie, and their shares up to a factor.

        They are those in the data, or one for each class if instances of a class do not differ.
        """
        data = Located(self.phi, self.residual)
        has_classes = isinstance(self.basis, ClassBasis) and bool(self.basis.names)
        if weights is None and (self.scores is not None or not has_classes):
            return data, self.weight
        if not has_classes:
            raise DataError("weights are those of classes, but this posterior has no classes")
        class_of = self.attributes[self.basis.names[0]].tolist()
        counts = dict.fromkeys(self.count_by_class(), 0.0)
        for name, own in zip(class_of, self.weight.tolist(), strict=True):
            counts[name] += own
        weights = counts if weights is None else {to_name(k): w for k, w in weights.items()}
        share = np.array(list(weights.values()), dtype=float)
        if not (np.all((share >= 0) & (share < np.inf)) and share.sum() > 0):
            raise DataError("expected numbers that are not negative", weights=weights)
        if self.scores is None:
            return self.basis.locate({self.basis.names[0]: list(weights)}), share
        new = [repr(name) for name in weights if name not in counts]
        if new:
            raise DataError(
                f"no instance of class {format_list(new)} in the data, so its scores are not known"
            )
        shares = [weights.get(name, 0.0) / max(counts[name], 1e-300) for name in class_of]
        return data, self.weight * shares

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
        source = to_table(table)
        classes = self.basis.names if isinstance(self.basis, ClassBasis) else ()
        names = self._with_features_of_scores(self.basis.names)
        columns: dict[str, Any] = {
            name: source.read_labels(name).to_list()
            if name in classes
            else source.read_numbers(name)
            for name in names
            if name in source.names
        }
        if names and not columns:
            raise DataError(f"the table has no column of {format_list(names)}")
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

    def average_ratings(
        self,
        where: Mapping[str, Any],
        *,
        time: int | None = None,
        draws: int = AVERAGE_DRAWS,
        instances: int = AVERAGE_INSTANCES,
    ) -> Singles:
        """Return draws of ratings (draws, T, n) with some attributes set, averaged over instances.

        The other attributes are those of instances in the data, evenly spaced. It shows how ratings
        depend on one attribute (partial dependence, Friedman 2001). With ``time``, the index of a
        time, T is 1.

        >>> import polarbear as pb
        >>> rankings = pb.simulation.simulate_rankings(np.array([[1.0, 0.0]]), 30)
        >>> posterior = pb.fit(rankings, features={"instance": rankings.instances, "f": range(30)})
        >>> posterior.average_ratings({"f": 12}).shape
        (200, 1, 2)
        """
        find_indices(list(where), self.basis.accepted_names, "class or feature")
        rows = _spread(len(self.instances), instances)
        columns = {name: values[rows] for name, values in self.attributes.items()}
        columns |= {name: np.full(len(rows), value) for name, value in where.items()}
        located = self.basis.locate(columns, of_data=self.attributes.keys() - where.keys())
        chosen = slice(time, None if time is None else time + 1)
        some = _spread(len(self.coefficients), draws)
        tau, slope = self.tau[some, chosen], self.slope[some, chosen, None]
        coefficients, known = self.coefficients[some, chosen], None
        if self.scores is not None:
            changed = any(name in self.scores.features for name in where)
            known = self.scores.predict(columns) if changed else self.scores.values[rows]
        rng, total = np.random.default_rng(0), np.zeros(coefficients.shape[:3], dtype=np.float32)
        for k in range(len(rows)):
            own = float(located.residual[k])
            utilities = draw_utilities(coefficients, tau, located.phi[k], own, rng)
            if known is not None:
                at_time = known[k] if len(known[k]) == 1 else known[k][chosen]
                utilities += slope * at_time.astype(np.float32)
            total += _softmax(utilities) / np.float32(len(rows))
        return total

    def importance(self) -> dict[str, float]:
        """Return how much each feature matters, the most important one first.

        It is the mean change of the ratings if an instance had the feature of another one: the
        total variation distance (0 to 1) between P(first) before and after (permutation
        importance, Breiman 2001), at posterior means. Of features that tell the same, each matters
        little. What another method's scores make of a feature does not count.

        >>> import polarbear as pb
        >>> x = np.random.default_rng(0).normal(size=(200, 2))
        >>> costs = np.stack([-4 * x[:, 0], np.zeros(200)], axis=1)
        >>> rankings = pb.simulation.rank_costs(costs[None])
        >>> table = {"instance": rankings.instances, "size": x[:, 0], "noise": x[:, 1]}
        >>> importance = pb.fit(rankings, features=table).importance()
        >>> list(importance), importance["size"] > 0.3, importance["noise"] < 0.05
        (['size', 'noise'], True, True)
        """
        rows = _spread(len(self.instances), IMPORTANCE_INSTANCES)
        columns = {name: self.attributes[name][rows] for name in self.basis.names}
        coefficients = self.coefficients.mean(axis=0, dtype=np.float64)  # (T, n, 1 + d)

        def rate(table: Mapping[str, NDArray[Any]]) -> Floats:
            phi = self.basis.locate(table, of_data=table).phi
            functions = np.concatenate([np.ones((len(phi), 1)), phi], axis=1)
            return _softmax(np.einsum("pc,tnc->ptn", functions, coefficients))

        before, order = rate(columns), np.random.default_rng(0).permutation(len(rows))
        changes = {
            name: 0.5 * float(np.abs(rate({**columns, name: values[order]}) - before).sum(2).mean())
            for name, values in columns.items()
        }
        return dict(sorted(changes.items(), key=lambda item: -item[1]))

    def count_by_class(self) -> dict[str, int]:
        """Return the number of instances of each class.

        >>> import polarbear as pb
        >>> rankings = pb.simulation.simulate_rankings(np.array([[1.0, 0.0]]), 3)
        >>> kinds = {"instance": rankings.instances, "kind": ["x", "y", "x"]}
        >>> pb.fit(rankings.with_instance_data(kinds), classes="kind").count_by_class()
        {'x': 2, 'y': 1}
        """
        if not isinstance(self.basis, ClassBasis):
            raise DataError("this posterior has features, not classes")
        names = self.attributes[self.basis.names[0]].tolist() if self.basis.names else []
        return {name: names.count(name) for name in self.basis.classes}

    def by_class(self) -> dict[str, Posterior]:
        """Return the posterior on each class: with scores, on its instances in the data.

        >>> import polarbear as pb
        >>> rankings = pb.simulation.simulate_rankings(np.array([[1.0, 0.0]]), 3)
        >>> kinds = {"instance": rankings.instances, "kind": ["x", "y", "x"]}
        >>> list(pb.fit(rankings.with_instance_data(kinds), classes="kind").by_class())
        ['x', 'y']
        """
        return {
            name: self.on(name) if self.scores is None else self.population({name: 1.0})
            for name in self.count_by_class()
        }

    def verdict(self, certainty: float = 0.95) -> str:
        """Return in words which algorithms are best: in each class, or by which features.

        >>> import polarbear as pb
        >>> utilities = np.repeat([[3.0, 0.0], [0.0, 3.0]], 40, axis=0)
        >>> noise = np.random.default_rng(1).gumbel(size=(80, 2))
        >>> rankings = pb.simulation.rank_costs(-(utilities + noise)[None])
        >>> families = {"instance": rankings.instances, "kind": ["easy"] * 40 + ["hard"] * 40}
        >>> print(pb.fit(rankings.with_instance_data(families), classes="kind").verdict())
        easy (40 instances): a1 is worth running; the best at the end is a1 (> 99 %).
        hard (40 instances): a2 is worth running; the best at the end is a2 (> 99 %).
        Ratings differ between classes (> 99 %).
        """
        none = float(np.mean(self.tau == 0))
        has_cautions = self.if_cut is not None or any(one.fails_often for one in self.ends)
        cautions = self.population().verdict(certainty).cautions if has_cautions else ()
        if isinstance(self.basis, ClassBasis):
            counts = self.count_by_class()
            lines = [
                f"{escape_text(name)} ({format_count(counts[name], 'instance')}): "
                f"{_describe_class(posterior, certainty)}"
                for name, posterior in self.by_class().items()
            ]
            if len(lines) > 1:
                lines.append(f"Ratings differ between classes ({format_share(1 - none)}).")
            if not lines:  # the scores of another method alone tell instances apart
                described = _describe_class(self.population(), certainty)
                lines = [f"All {format_count(len(self.instances), 'instance')}: {described}"]
            return "\n".join([*cautions, *lines, *self.diagnostics.verdict_notes])
        top = [f"{escape_text(name)} ({x:.2f})" for name, x in self.importance().items()]
        means = [r[:, -1].mean(axis=0) for r in self.iterate_ratings(draws=AVERAGE_DRAWS)]
        lines = [
            f"Ratings depend on the features ({format_share(1 - none)}).",
            f"Mean change of P(first) by a feature of another instance: {format_list(top, 6)}.",
            _describe_shares(self.algorithms, np.argmax(means, axis=1)),
        ]
        return "\n".join([*cautions, *lines, *self.diagnostics.verdict_notes])

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
            names = self._with_features_of_scores(self.basis.names)
            if not isinstance(self.basis, ClassBasis) or not self.basis.names:
                if not names:
                    raise DataError(f"on({where!r}): there are no classes, give scores=")
                raise DataError(f"on({where!r}): expected features, as in on({{{names[0]!r}: 1}})")
            where = {self.basis.names[0]: where}
        given = {**(where or {}), **attributes}
        accepted = self._with_features_of_scores(self.basis.accepted_names)
        find_indices(list(given), accepted, "class or feature")
        if isinstance(self.basis, ClassBasis) and self.basis.names and not given:
            raise DataError(f"on() needs a class: {format_list(self.basis.classes)}")
        return {name: [value] for name, value in given.items()}

    def _with_features_of_scores(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Return names of attributes and those that predict the scores, each once."""
        features = () if self.scores is None else self.scores.features
        return tuple(dict.fromkeys([*names, *features]))

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

    def _share_decided(self, weights: Mapping[str, float] | None) -> Floats | None:
        """Return the share of duels (T, pairs) that do not tie on a mix of classes."""
        if self.decided is None or not isinstance(self.basis, ClassBasis):
            return None if self.decided is None else self.decided[0]
        mix = {to_name(name): own for name, own in (weights or {}).items()}
        shares = [mix.get(name, 0.0) for name in self.basis.classes]
        if not sum(shares):  # no class is named, or only new ones
            return self.decided[0]
        return np.average(self.decided[1:], axis=0, weights=shares)

    def _to_posterior(
        self,
        utilities: Singles,
        instances: int,
        if_cut: Posterior | None,
        weights: Mapping[str, float] | None,
    ) -> Posterior:
        """Return the posterior of a mix of classes, by draws of its utilities (D, T, n)."""
        return Posterior(
            self.algorithms,
            self.times,
            utilities,
            np.ones((len(utilities), 1), dtype=np.float32),
            hyper={"tau": self.tau.mean(axis=1, dtype=np.float64)},
            diagnostics=self.diagnostics,
            prior=f"Dirichlet() by {format_list(self.basis.names or ('scores',), 3)}",
            method="laplace",
            clock=self.clock,
            evidence=self.evidence,
            instances=instances,
            ends=self.ends,
            if_cut=if_cut,
            decided=self._share_decided(weights),
        )

    def __str__(self) -> str:
        kind = "classes" if isinstance(self.basis, ClassBasis) else "features"
        names = self.basis.classes if isinstance(self.basis, ClassBasis) else self.basis.names
        if not names:
            kind, names = "scores", ("of another method",)
        tau = self.tau.mean(axis=0, dtype=np.float64)
        sd = f"sd of utilities {tau.min():.2g} to {tau.max():.2g}"
        differences = f"{sd}; P(none) = {np.mean(self.tau == 0):.2f}"
        return (
            f"posterior of {len(self.algorithms)} algorithms by {kind} of instances, "
            f"{format_range(self.times[0], self.times[-1], self.clock)}, "
            f"from {format_count(len(self.instances), 'instance')}\n"
            f"  algorithms  {format_list(self.algorithms)}\n"
            f"  {kind:<10}  {format_list(names, 6)}\n"
            f"  differences between instances: {differences if self.basis.names else 'by scores'}\n"
            f"  numerics    {self.diagnostics}"
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

    def __str__(self) -> str:
        n_instances, n_times, n = self.prob_first.shape
        leader = self.prob_first[:, -1].argmax(axis=1)
        return (
            f"probabilities of {format_count(n, 'algorithm')} to come first on "
            f"{format_count(n_instances, 'instance')} at {format_count(n_times, 'time')}\n"
            f"  {_describe_shares(self.algorithms, leader)}"
        )

    __repr__ = __str__


def _describe_class(posterior: Posterior, certainty: float) -> str:
    """Return which algorithms are not dominated, and the best one at the end, in words."""
    verdicts, best = posterior.verdicts(certainty), posterior.prob_best()[-1]
    parts: list[str] = []
    for kind, claim in REMAINING.items():
        names = [one.algorithm for one in verdicts if one.kind == kind]
        if names:
            parts.append(f"{format_list(names)} {'is' if len(names) == 1 else 'are'} {claim}")
    leader = escape_text(posterior.algorithms[int(np.argmax(best))])
    parts.append(f"the best at the end is {leader} ({format_share(float(best.max()))})")
    return "; ".join(parts) + "."


def _describe_shares(algorithms: tuple[str, ...], leader: NDArray[np.intp]) -> str:
    """Return in words on which share of instances each algorithm is the leader (instances,)."""
    count = np.bincount(leader, minlength=len(algorithms))
    best = [
        f"{escape_text(algorithms[k])} on {100 * count[k] / count.sum():.0f} %"
        for k in np.argsort(-count, kind="stable")
        if count[k]
    ]
    return f"Most likely the first at the end: {format_list(best, 6)} of the instances."


def _spread(total: int, wanted: int) -> NDArray[np.intp]:
    """Return at most ``wanted`` evenly spaced indices of ``total`` items."""
    return np.unique(np.linspace(0, max(total - 1, 0), min(total, wanted)).astype(np.intp))


def _softmax(utilities: Any) -> Any:
    rating = np.exp(utilities - utilities.max(axis=-1, keepdims=True))
    return rating / rating.sum(axis=-1, keepdims=True)
