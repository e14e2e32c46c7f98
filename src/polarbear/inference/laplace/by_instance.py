"""The engine behind ``fit(classes=)`` and ``fit(features=)``: ratings that depend on the instance.

At each time the amount of pooling tau has the prior half-Cauchy(1), on a grid that includes 0,
where all instances have the same ratings. Features say nothing with a prior probability of 1/2. The
evidence of the Laplace approximations weights the values of tau; draws come from the closest
Gaussians (``improve_gaussian``). The length scale of features is one for all times: the shortest,
and so the most cautious one, whose evidence at two times is not clearly below the highest. Draws
are correlated over time as the scores of instances are (see ``cluster_robust``).
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from polarbear._text import format_list
from polarbear.data.instance_basis import UNKNOWN_CLASS, Basis, ClassBasis, FeatureBasis
from polarbear.data.instance_data import InstanceData, find_attribute, join_table
from polarbear.data.names import natural_sort_key, to_name
from polarbear.data.rankings import Rankings
from polarbear.data.table import to_table
from polarbear.errors import DataError
from polarbear.inference.e_values import count_outcomes, with_effective_weights
from polarbear.inference.instance_posterior import InstancePosterior
from polarbear.inference.laplace.cluster_robust import (
    autocorrelation_root,
    compute_instance_scores,
    shrinkage_at_times,
)
from polarbear.inference.laplace.independent import fit_independent
from polarbear.inference.laplace.unit_fit import (
    Design,
    UnitFit,
    UnitModel,
    fit_units,
    improve_gaussian,
)
from polarbear.inference.plackett_luce.likelihood import build_likelihood
from polarbear.inference.plackett_luce.unit_likelihood import (
    UnitLikelihood,
    build_unit_likelihoods,
)
from polarbear.inference.posterior import Evidence
from polarbear.inference.replacing import can_count
from polarbear.inference.scores import Scores
from polarbear.inference.threads import one_thread
from polarbear.priors.base import helmert_basis

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

TAUS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""The grid of the standard deviation of utilities between instances."""

PROB_NO_SIGNAL = 0.5
"""The prior probability that features say nothing; the slab beside this spike is half-Cauchy."""

LENGTHS, LENGTH_SLACK = (0.3, 1.0, 3.0), 3.0
"""The length scales of features that are tried, in standard deviations of a feature, and how far
the log-evidence of the one that is used may be below the highest."""

ESTIMATE_SLACK = 3.0
"""An error of the estimated log-evidence of a value of tau that is allowed for."""

MAX_LENGTH_INSTANCES = 500
"""The most instances, drawn at random, by which the length scale is chosen."""

MIN_TAU_WEIGHT = 0.01
"""Values of tau with a smaller posterior probability are left out."""

MAX_COEFFICIENTS, MIN_DRAWS, MAX_DRAWS = 20_000_000, 500, 4000
"""The most coefficients of all draws in memory, and bounds on the number of draws."""


class _Data(NamedTuple):
    """The likelihood at each time by units, and what all models of them share."""

    likelihoods: list[UnitLikelihood]
    alpha: float
    scores: Floats | None  # (T, units, n)
    tau_masses: Floats  # (taus,): the prior probabilities


def fit_attributes(
    rankings: Rankings,
    classes: str | None,
    features: object,
    scores: object,
    *,
    alpha: float = 1.0,
    evidence: Evidence = "instances",
    seed: int = 0,
    draws: int | None = None,
) -> InstancePosterior:
    """Fit ratings that depend on attributes of the instances, given as in :func:`polarbear.fit`."""
    if rankings.ties != "unordered":
        raise DataError("classes and features need rankings with ties='unordered'")
    if classes is not None and features is not None:
        raise DataError("give classes or features, not both: a class may be a feature of 0 and 1")
    if scores is not None and not isinstance(scores, Scores):
        scores = Scores.from_table(scores, rankings)
    columns = read_attributes(rankings, classes, features)
    given = rankings
    if evidence == "instances":
        groups = None if classes is None else np.unique(columns[classes], return_inverse=True)[1]
        rankings = with_effective_weights(rankings, groups)
    table = None if scores is None else scores.of_instances(rankings)
    with one_thread():
        rng = np.random.default_rng(seed)
        if features is None:
            basis: Basis = _class_basis(columns)
            phi = basis.locate(columns).phi
            merged = scores is None and phi.shape[1] > 0
            unit = np.argmax(phi, axis=1) if merged else np.arange(len(phi))
            design = Design(np.eye(phi.shape[1]) if merged else phi)
            data = _build_data(rankings, unit, alpha, table, 0.0)
        else:
            every = np.arange(len(rankings.instances))
            data = _build_data(rankings, every, alpha, table, PROB_NO_SIGNAL)
            basis, design = _choose_length(rankings, columns, alpha, table, rng)
        fits = _iterate_fits(data, design)
        posterior = _draw_posterior(
            rankings, basis, columns, data, fits, scores, evidence, rng, draws
        )
    weight = np.bincount(given.instance, given.weight, minlength=len(given.instances))
    return replace(posterior, weight=weight, decided=_share_decided(given, basis, columns))


def read_attributes(rankings: Rankings, classes: str | None, features: object) -> InstanceData:
    """Return the attributes of the instances of rankings that are asked for."""
    data = rankings.instance_data
    if classes is not None:
        names = [
            to_name(value) or UNKNOWN_CLASS for value in find_attribute(data, classes).tolist()
        ]
        return {classes: np.array(names)}
    if features is None:
        return {"": np.array(rankings.instances)}
    every = isinstance(features, str) and features == "all"
    if isinstance(features, str) and not every:
        features = [features]
    if isinstance(features, list | tuple):
        if not features:
            raise DataError("expected at least one name of an attribute", features=features)
        data = {name: find_attribute(data, name) for name in features}
    elif not every:
        data = join_table(to_table(features), "instance", rankings.instances)
    numbers = {name: values for name, values in data.items() if values.dtype.kind != "U"}
    texts = [name for name in data if name not in numbers]
    if texts and not every:
        raise DataError(f"features must be numbers, got {format_list(texts)}")
    if not numbers:
        shown = features if every else "the table"
        only = f", only texts ({format_list(texts)}), for classes=" if texts else ""
        raise DataError(
            f"the instances have no attribute that is a number{only}. Pass a "
            "table with a column 'instance' and one for each feature, or add it with "
            "runs.with_instance_data(table) before ranking",
            features=shown,
        )
    return numbers


def _class_basis(columns: InstanceData) -> ClassBasis:
    """Return the basis of the classes in the only column; that of no classes if it has no name."""
    if "" in columns:
        return ClassBasis((), ())
    names = [name for values in columns.values() for name in values.tolist()]
    return ClassBasis(tuple(columns), tuple(sorted(set(names), key=natural_sort_key)))


def _build_data(
    rankings: Rankings,
    unit_of: NDArray[np.intp],
    alpha: float,
    scores: Floats | None,
    prob_zero: float,
) -> _Data:
    """Return the likelihoods by units; ``unit_of`` (instances,) is the unit of each instance."""
    likelihoods = build_unit_likelihoods(rankings, unit_of[rankings.instance])
    return _Data(likelihoods, alpha, scores, tau_masses(prob_zero))


def tau_masses(prob_zero: float = 0.0) -> Floats:
    """Return the prior probability of each tau: of half-Cauchy(1), between geometric means.

    With probability ``prob_zero`` tau is 0 in any case.
    """
    edges = np.sqrt(np.array(TAUS[1:-1]) * TAUS[2:])
    bounds = np.array([0.0, TAUS[1] / 2, *edges, np.inf])
    masses = (1 - prob_zero) * np.diff(2 / np.pi * np.arctan(bounds))
    masses[0] += prob_zero
    return masses


def _fit_taus(
    data: _Data, design: Design, t: int, near: dict[int, UnitFit], first: int
) -> dict[int, UnitFit]:
    """Fit the values of tau that have posterior mass at a time, by climbing from ``first``.

    ``near`` has fits of another time, from whose modes the search begins. Neighbours on the grid
    are fitted if an estimate of their evidence shows that they may have mass.
    """
    log_prior, fits = np.log(data.tau_masses), dict[int, UnitFit]()
    scores = None if data.scores is None else data.scores[t]

    def fit(k: int, start: UnitFit | None) -> float:
        own = design.constant if k == 0 else design
        model = UnitModel(
            likelihood=data.likelihoods[t], design=own, tau=TAUS[k], alpha=data.alpha, scores=scores
        )
        fits[k] = fit_units(model, start)
        return fits[k].log_evidence + log_prior[k]

    best = fit(0, near.get(0))
    if design.n_columns == 1:
        return fits
    best = max(best, fit(first, near.get(first)))
    for step in (1, -1):
        k = first + step
        while 0 < k < len(TAUS):
            predicted = fits[k - step].predict(TAUS[k])
            estimate = predicted.log_evidence + log_prior[k]
            if estimate < best + np.log(MIN_TAU_WEIGHT) - ESTIMATE_SLACK:
                break
            best = max(best, fit(k, predicted))
            k += step
    return fits


def _weights(data: _Data, fits: dict[int, UnitFit]) -> Floats:
    """Return the posterior probability of each tau (taus,); 0 where it is negligible."""
    log_weight = np.full(len(TAUS), -np.inf)
    for k, fit in fits.items():
        log_weight[k] = fit.log_evidence + np.log(data.tau_masses[k])
    weight = np.exp(log_weight - log_weight.max())
    weight[weight < MIN_TAU_WEIGHT * weight.sum()] = 0.0
    return weight / weight.sum()


def _choose_length(
    rankings: Rankings,
    columns: InstanceData,
    alpha: float,
    scores: Floats | None,
    rng: np.random.Generator,
) -> tuple[FeatureBasis, Design]:
    """Return the basis of features with the length scale that the evidence at two times favours."""
    n_times, values = len(rankings.times), np.stack(list(columns.values()), axis=1)
    chosen = np.sort(rng.permutation(len(values))[:MAX_LENGTH_INSTANCES])
    table = None if scores is None else scores[:, chosen]
    every = np.arange(len(chosen))
    some = _build_data(rankings.take(chosen), every, alpha, table, PROB_NO_SIGNAL)
    times = sorted({n_times // 2, n_times - 1})
    first = dict.fromkeys(times, TAUS.index(1.0))
    evidence: list[float] = []
    tried: list[tuple[FeatureBasis, Design]] = []
    for length in LENGTHS:
        basis = FeatureBasis.build(values, list(columns), length)
        used = [columns[name] for name in basis.names]  # without those that never vary
        phi = basis.locate_values(np.stack(used, axis=1)).phi
        tried.append((basis, Design(phi)))
        design = Design(phi[chosen])
        evidence.append(0.0)
        fits = dict[int, UnitFit]()
        for t in times:
            fits = _fit_taus(some, design, t, fits, first[t])
            weight = _weights(some, fits)
            top = int(np.argmax(weight))
            first[t] = max(1, top)
            evidence[-1] += fits[top].log_evidence - np.log(weight[top])
    return tried[int(np.argmax(np.array(evidence) >= max(evidence) - LENGTH_SLACK))]


def _iterate_fits(data: _Data, design: Design) -> Iterator[dict[int, UnitFit]]:
    """Yield the fits of each time, by the index of their tau, without negligible ones."""
    near, first = dict[int, UnitFit](), TAUS.index(1.0)
    for t in range(len(data.likelihoods)):
        near = _fit_taus(data, design, t, near, first)
        weight = _weights(data, near)
        first = max(1, int(np.argmax(weight)))
        yield {k: improve_gaussian(fit) for k, fit in near.items() if weight[k] > 0}


def _draw_posterior(
    rankings: Rankings,
    basis: Basis,
    columns: InstanceData,
    data: _Data,
    fits: Iterator[dict[int, UnitFit]],
    scores: Scores | None,
    evidence: Evidence,
    rng: np.random.Generator,
    draws: int | None,
) -> InstancePosterior:
    """Draw the coefficients at all times, correlated over times by the scores of instances."""
    n, n_times = len(rankings.algorithms), len(rankings.times)
    located = basis.locate(columns, of_data=columns)
    c = located.phi.shape[1] + 1
    if draws is None:
        draws = int(np.clip(MAX_COEFFICIENTS // (n_times * n * c), MIN_DRAWS, MAX_DRAWS))
    overall = fit_independent(build_likelihood(rankings), data.alpha, n_times, n)
    root = np.eye(n_times)
    if evidence == "instances" and n_times > 1:
        gradients = compute_instance_scores(rankings, overall.mean, rng)
        root = autocorrelation_root(overall, gradients, shrinkage_at_times(rankings))
    half = -(-draws // 2)
    noise = rng.standard_normal((half, root.shape[1], (n - 1) * c + 1), dtype=np.float32)
    noise = np.swapaxes(noise, 0, 1).reshape(root.shape[1], -1)
    level = (rng.permutation(half) + 0.5) / half
    to_utilities = helmert_basis(n).astype(np.float32)
    coefficients = np.zeros((draws, n_times, n, c), dtype=np.float32)
    tau, slope = np.zeros((draws, n_times)), np.zeros((draws, n_times))
    information = 0.0
    for t, own in enumerate(fits):
        weight = _weights(data, own)
        component = np.searchsorted(np.cumsum(weight), level).clip(0, len(TAUS) - 1)
        at_time = (root[t].astype(np.float32) @ noise).reshape(half, -1)
        both = np.concatenate([at_time, -at_time])[:draws]
        component = np.concatenate([component, component])[:draws]
        for k, fit in own.items():
            mine = np.flatnonzero(component == k)
            functions = both[mine, :-1].reshape(len(mine), n - 1, c)
            drawn, slope[mine, t] = fit.draw(functions, both[mine, -1])
            coefficients[mine, t, :, : drawn.shape[2]] = to_utilities @ drawn.astype(np.float32)
            tau[mine, t] = TAUS[k]
        top = own[int(np.argmax(weight))]
        curvature = top.model.likelihood.derivatives(top.model.utilities(top.mode))[1]
        information += float(np.trace(curvature.sum(axis=0))) / (n - 1) / n_times
    return InstancePosterior(
        algorithms=rankings.algorithms,
        times=rankings.times,
        instances=rankings.instances,
        basis=basis,
        coefficients=coefficients,
        tau=tau.astype(np.float32),
        slope=slope.astype(np.float32),
        phi=located.phi,
        residual=located.residual,
        information=information / max(1, len(rankings.instances)),
        weight=np.ones(len(rankings.instances)),
        scores=scores,
        clock=rankings.clock,
        evidence=evidence,
        attributes=columns,
    )


def _share_decided(rankings: Rankings, basis: Basis, columns: InstanceData) -> Floats | None:
    """Return the share of duels that do not tie, on all instances and on those of each class."""
    if not can_count(rankings) or rankings.behind_top is not None:
        return None
    class_of = columns[basis.names[0]] if isinstance(basis, ClassBasis) and basis.names else []
    classes = [np.flatnonzero(class_of == name) for name in getattr(basis, "classes", ())]
    counted = [count_outcomes(one) for one in (rankings, *map(rankings.take, classes))]
    overall = counted[0].share_decided()
    if overall is None:
        return None
    first, second = np.triu_indices(len(rankings.algorithms), 1)
    shares: list[Floats] = []
    for own in counted:
        met = (own.wins + own.losses + own.ties)[:, first, second] > 0
        share = own.share_decided()
        shares.append(np.where(met, 1.0 if share is None else share, overall))
    return np.stack(shares)
