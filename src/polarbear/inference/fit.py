"""``fit``: the posterior of data under a prior, by one of several engines."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from difflib import get_close_matches
from importlib import import_module
from inspect import Parameter, signature
from pathlib import Path
from statistics import NormalDist
from typing import Any, Literal, Protocol, cast, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from polarbear._text import format_count, format_list, format_range, name_point
from polarbear.data.columns import Columns
from polarbear.data.positions import UNKNOWN
from polarbear.data.rankings import Rankings, rank
from polarbear.data.runs import Runs, check_runs
from polarbear.errors import Argument, DataError, DataWarning, FitWarning, Text, warn
from polarbear.inference.counted import count_posterior
from polarbear.inference.diagnostics import ORDERED_BY, Diagnostics
from polarbear.inference.e_values import Outcomes, count_outcomes, with_effective_weights
from polarbear.inference.instance_posterior import InstancePosterior
from polarbear.inference.laplace.by_instance import fit_attributes
from polarbear.inference.model_check import find_contradicting_duels, find_contradicting_firsts
from polarbear.inference.plackett_luce.ordered_rankings import merge_comparisons
from polarbear.inference.posterior import Evidence, Posterior
from polarbear.inference.replacing import Places, can_count
from polarbear.priors.by_name import make_prior
from polarbear.priors.dirichlet import Dirichlet, HierarchicalDirichlet
from polarbear.priors.prior import Prior

Method = Literal["laplace", "nuts", "pathfinder", "pymc-laplace", "advi", "stan"]

ENGINES: Mapping[str, tuple[str, str]] = {
    "laplace": ("polarbear.inference.laplace.engine", "fit_laplace"),
    "nuts": ("polarbear.inference.reference.nuts", "fit_nuts"),
    "pathfinder": ("polarbear.inference.reference.variational", "fit_pathfinder"),
    "pymc-laplace": ("polarbear.inference.reference.variational", "fit_pymc_laplace"),
    "advi": ("polarbear.inference.reference.variational", "fit_advi"),
    "stan": ("polarbear.inference.reference.stan.sampler", "fit_stan"),
}

PRIOR_ONLY = "the prior alone speaks; are these times of the data?"

RANKING_OPTIONS = ("abs_tol", "rel_tol", "targets", "ties", "top", "weights")
"""Options of :func:`rank` that a race has, and that are sometimes passed to ``fit``."""

READING_OPTIONS = ("direction", "clock", "ended", *(one.name for one in fields(Columns)))
"""Options of :func:`read` and :meth:`Runs.from_frame` that are sometimes passed to ``fit``."""

CHOOSE_TIMES = "times=pb.grid.from_runs(runs, {})"
"""How Python passes the first or the last time."""

MAX_COUNTED = 60
"""The most algorithms whose ratings are counted, and whose duels are compared with the model's."""

START_TEST_LEVEL = 0.01
"""The level of the test for differences between algorithms at the first times of a grid."""

MAX_SINGLE_COMPARISONS = 10_000
"""With more comparisons at one time, equal ones are merged first: their units do not matter."""

MIN_INSTANCE_SHARE = 0.25
"""A warning is given for times with less than this share of the most instances at a time."""


class Engine(Protocol):
    """The type of functions that fit a posterior to rankings under a prior."""

    def __call__(self, rankings: Rankings, prior: Prior, *, seed: int, **options: Any) -> Posterior:
        """Return the posterior of rankings under a prior."""
        ...


@overload
def fit(  # pyright: ignore[reportOverlappingOverload] (None is without attributes)
    data: Runs | Rankings,
    prior: Prior | str | None = None,
    *,
    method: Method = "laplace",
    evidence: Evidence | None = None,
    seed: int = 0,
    times: ArrayLike | None = None,
    classes: None = None,
    features: None = None,
    scores: None = None,
    **options: Any,
) -> Posterior: ...
@overload
def fit(
    data: Runs | Rankings,
    prior: Prior | str | None = None,
    *,
    evidence: Evidence | None = None,
    seed: int = 0,
    times: ArrayLike | None = None,
    classes: str | None = None,
    features: object = None,
    scores: object = None,
    **options: Any,
) -> InstancePosterior: ...
def fit(
    data: Runs | Rankings,
    prior: Prior | str | None = None,
    *,
    method: Method = "laplace",
    evidence: Evidence | None = None,
    seed: int = 0,
    times: ArrayLike | None = None,
    classes: str | None = None,
    features: object = None,
    scores: object = None,
    **options: Any,
) -> Posterior | InstancePosterior:
    """Fit the ratings of algorithms over time, with uncertainty.

    Parameters
    ----------
    data
        Runs, which :func:`rank` ranks with its defaults, or Rankings.
    prior
        The prior over ratings as functions of time, one of :mod:`polarbear.priors` or its name,
        such as "BSpline". By default ``Dirichlet()``, under which times are independent. Ratings
        and win probabilities are then counted, with a model of rankings as their prior, unless
        there are more than 60 algorithms, very many instances, or averaged ties; probabilities of
        verdicts are counted from duels, as in races.
    method
        "laplace": the fast engine, nested Laplace approximations with importance sampling. For
        comparison: "nuts", "pathfinder", "pymc-laplace" and "advi" of the extra ``[pymc]``, and
        "stan".
    evidence
        The units of evidence. "instances", the default of "laplace": rankings of one instance at
        several times are dependent, and uncertainty is cluster-robust; repetitions of an instance
        count as much as they tell. "rankings", as in the paper: rankings at all times are
        independent; the other methods have only this.
    seed
        The random seed; the same seed gives the same posterior.
    times
        The times at which runs are ranked; by default those of :func:`polarbear.grid.from_runs`,
        whose ``start`` and ``stop`` limit them to a range.
    classes
        The attribute of instances that is their class, such as "family". The ratings of classes are
        then partially pooled: they shrink to the overall ratings by an amount learnt from the data.
        The result is an :class:`InstancePosterior`, whose ``on("hard")`` is the posterior of a
        class. See :meth:`Runs.with_instance_data`.
    features
        Features of the instances, on which ratings then depend: a table with a column "instance",
        or the names of attributes, or "all" for all attributes that are numbers. The result is an
        :class:`InstancePosterior`, whose ``on({"variables": 200})`` is the posterior there.
    scores
        Cross-fitted scores of the algorithms on each instance by another method, of which more is
        better: a table with a column for each algorithm, or what :func:`cross_fit` returns.
    options
        Those of the engine: ``draws`` of all; ``start``, an earlier posterior to start from, of
        "laplace"; ``sampler``, ``chains``, ``tune`` and more of "nuts".

    Returns
    -------
    Posterior or InstancePosterior
        The second if ratings depend on classes or features.

    Raises
    ------
    DataError
        If there are fewer than two algorithms, or an argument is invalid.
    FitError
        If the engine fails.

    Warns
    -----
    FitWarning
        If the posterior cannot be trusted; its ``diagnostics`` say why.

    Examples
    --------
    >>> import polarbear as pb
    >>> frame = {"algorithm": ["a", "b"] * 6, "instance": [k // 2 for k in range(12)],
    ...          "time": [1] * 12, "value": [1, 2, 1, 3, 2, 1, 1, 4, 0, 1, 1, 5]}
    >>> posterior = pb.fit(pb.Runs.from_frame(frame, direction="minimize"))
    >>> posterior.prob_better("a", "b").round(2)
    array([0.94])
    >>> posterior.diagnostics.trusted
    True
    """
    has_attributes = not (classes is None and features is None and scores is None)
    check_keywords(fit, options, method, only=("draws",) if has_attributes else None)
    rankings = as_rankings(data, times, "fit")
    model: dict[str, Any] = {
        "prior": make_prior(prior),
        "method": method,
        "evidence": evidence,
        "seed": seed,
        "classes": classes,
        "features": features,
        "scores": scores,
        **options,
    }
    posterior = _fit_rankings(rankings, **model)
    if rankings.if_cut is None:
        return posterior
    with warnings.catch_warnings():  # of the same things, once more
        warnings.simplefilter("ignore")
        return replace(posterior, if_cut=cast(Any, _fit_rankings(rankings.if_cut, **model)))


def _fit_rankings(
    rankings: Rankings,
    *,
    prior: Prior,
    method: Method,
    evidence: Evidence | None,
    seed: int,
    classes: str | None,
    features: object,
    scores: object,
    **options: Any,
) -> Posterior | InstancePosterior:
    """Fit rankings as :func:`fit` describes, under one reading of how runs ended."""
    n = len(rankings.algorithms)
    if n < 2:
        raise DataError(f"need at least 2 algorithms to compare, got {n}")
    n_instances = np.count_nonzero(np.bincount(rankings.instance[rankings.weight > 0]))
    has_attributes = not (classes is None and features is None and scores is None)
    ends = rankings.count_ends()
    by_instances = method == "laplace" and _check_evidence(evidence) == "instances"
    if by_instances and not has_attributes:
        rankings = with_effective_weights(rankings)
    whole = rankings
    if not has_attributes:
        rankings = _merge_if_large(rankings)
    groups = connected_groups(rankings)
    if len(groups) < n:
        _warn_of_unknown_times(rankings)
        _warn_of_few_instances(rankings)
    if has_attributes:
        if method != "laplace" or not isinstance(prior, Dirichlet):
            raise DataError("classes, features and scores need method='laplace' and Dirichlet()")
        by_instance = fit_attributes(
            rankings,
            classes,
            features,
            scores,
            alpha=prior.alpha,
            evidence=_check_evidence(evidence),
            seed=seed,
            **options,
        )
        diagnostics = _complete_diagnostics(by_instance.diagnostics, rankings, groups)
        return replace(by_instance, diagnostics=diagnostics, ends=ends)
    if rankings.ties == "partial" and method != "laplace":
        raise DataError(f"partial orders need method='laplace', got {method!r}")
    has_duels = can_count(whole) and rankings.ties != "partial"
    outcomes = count_outcomes(whole) if has_duels else None
    # By averaged ties a model's win is half a tie, which the duels that are decided have not.
    has_halves = outcomes and rankings.ties == "averaged" and outcomes.share_decided() is not None
    is_comparable = outcomes is not None and n <= MAX_COUNTED and not has_halves
    is_counted = is_comparable and by_instances and prior == Dirichlet()
    engine = load_engine(method)
    if method == "laplace":
        options["evidence"] = _check_evidence(evidence)
        options["curves"] = not is_counted
    elif evidence == "instances":
        raise DataError(
            f"evidence='instances' needs method='laplace', got {method!r}, which treats "
            "every ranking as independent evidence"
        )
    posterior = engine(rankings, prior, seed=seed, **options)
    diagnostics = _complete_diagnostics(posterior.diagnostics, rankings, groups)
    posterior = replace(posterior, instances=int(n_instances), diagnostics=diagnostics, ends=ends)
    if rankings.ties == "partial":  # whose positions are no places
        return posterior
    if outcomes is not None and rankings.behind_top is None:  # else a tie says nothing
        posterior = _add_duels(posterior, whole, outcomes, prior)
    if is_counted:
        return count_posterior(whole, posterior, seed, options.get("draws"))
    duels = find_contradicting_duels(outcomes, posterior) if is_comparable and outcomes else None
    if found := duels or find_contradicting_firsts(whole, posterior):
        notes = (*posterior.diagnostics.notes, found)
        posterior = replace(posterior, diagnostics=replace(posterior.diagnostics, notes=notes))
    return posterior


def _add_duels(
    posterior: Posterior, rankings: Rankings, outcomes: Outcomes, prior: Prior
) -> Posterior:
    """Add how often duels tie and, if verdicts are counted from duels, the places."""
    by_duels = prior in (Dirichlet(), HierarchicalDirichlet()) and outcomes.have_all_met()
    by_duels = by_duels and posterior.evidence == "instances"
    return replace(
        posterior,
        decided=outcomes.share_decided(),
        averaged=rankings.ties == "averaged",
        places=Places.of(rankings) if by_duels else None,
    )


def _complete_diagnostics(
    diagnostics: Diagnostics, rankings: Rankings, groups: list[tuple[str, ...]]
) -> Diagnostics:
    """Add notes on the rankings, and groups that are not compared; warn of problems."""
    ordered_by = (f"{ORDERED_BY} {rankings.order_by}.",) if rankings.order_by else ()
    start_note = (rankings.start_note,) if rankings.start_note else ()
    diagnostics = replace(diagnostics, notes=(*ordered_by, *start_note, *diagnostics.notes))
    if len(groups) > 1:
        problems = (_describe_groups(rankings, groups), *diagnostics.problems)
        diagnostics = replace(diagnostics, problems=problems)
    if not diagnostics.trusted:
        warn(f"do not trust this posterior: {'; '.join(diagnostics.problems)}", category=FitWarning)
    return diagnostics


def _merge_if_large(rankings: Rankings) -> Rankings:
    """Merge equal comparisons of large rankings at one time, unless they are partial orders."""
    is_large = len(rankings.times) == 1 and len(rankings.instance) > MAX_SINGLE_COMPARISONS
    return merge_comparisons(rankings) if is_large and rankings.ties != "partial" else rankings


RANGE_OPTIONS = {"since": "start", "start": "start", "until": "stop", "stop": "stop"}
"""Options with which users ask for a range of times; ``fit`` has ``times`` instead."""


def _reject_misplaced(function: str, options: Mapping[str, Any]) -> None:
    """Raise DataError for options of another function; the message says where they belong.

    ``start`` may also be a posterior.
    """
    for name, value in options.items():
        if name in RANGE_OPTIONS and isinstance(value, int | float):
            raise DataError(
                f"{function} has no {name}={value!r}: for a range of times pass ",
                Argument(RANGE_OPTIONS[name], value, CHOOSE_TIMES),
                ", which takes start= and stop=",
            )
        if name in RANKING_OPTIONS:
            raise DataError(
                f"{function} has no {name}=: pass it to rank, {function}(rank(runs, {name}=...))"
            )
        if name in READING_OPTIONS:
            raise DataError(
                f"{function} has no {name}=: pass it to read or Runs.from_frame, "
                f"{function}(read(data, {name}={value!r}))"
            )


def _check_evidence(evidence: Evidence | None) -> Evidence:
    """Return the unit of evidence, "instances" by default; DataError for an unknown unit."""
    if evidence not in (None, "instances", "rankings"):
        raise DataError("expected 'instances' or 'rankings'", evidence=evidence)
    return evidence or "instances"


def as_rankings(data: object, times: ArrayLike | None, function: str) -> Rankings:
    """Return the rankings of runs, or rankings as they are; DataError for other data."""
    if isinstance(data, Rankings):
        if times is not None:
            raise DataError("rankings have times already: leave out times=, or pass it to rank")
        return data
    if isinstance(data, str | Path):
        how = f"write {function}(read({str(data)!r}))"
        raise DataError(f"{function} takes Runs or Rankings, not a path: {how}")
    check_runs(data, function)
    return rank_runs(cast(Runs, data), times)


def rank_runs(runs: Runs, times: ArrayLike | None = None, **ranking: Any) -> Rankings:
    """Rank runs for a fit, and warn of times at which nothing can be told.

    All are tied where no run has a value yet, and chosen times may begin where none differs.
    """
    rankings = rank(runs, times, **ranking)
    if ranking.get("targets") is not None:
        return rankings
    if len(runs.time) and rankings.times[-1] < runs.time.min():
        when = format_range(float(rankings.times[0]), float(rankings.times[-1]), runs.clock)
        warn(f"no run has a value yet at any time asked for, {when}: {PRIOR_ONLY}")
    elif times is None:
        warn_of_undecided_start(rankings)
    return rankings


def warn_of_undecided_start(rankings: Rankings) -> None:
    """Warn if automatic times start where no algorithm differs clearly from the others.

    No algorithm is dominated at such times, so all stay in the anytime Pareto set.
    """
    differs = _has_differences(rankings)
    first = int(np.argmax(differs))
    if first == 0:  # at once, or never
        return
    start, stop = float(rankings.times[0]), float(rankings.times[first - 1])
    warn(
        f"the times start where no algorithm differs clearly from the others: {first} of "
        f"{len(differs)}, {format_range(start, stop, rankings.clock)}. None is dominated there, so "
        "all stay in the anytime Pareto set. Start later with ",
        Argument("start", _shorten(rankings.times[first]), CHOOSE_TIMES),
        ", if these times do not matter to you",
    )


def _has_differences(rankings: Rankings) -> NDArray[np.bool_]:
    """Return a mask of times at which some algorithm's mean position differs from chance.

    As in Friedman's test, positions are centred in each comparison. The variance of an algorithm's
    sum is that of its comparisons if all orders are equally likely. The level is corrected for the
    number of algorithms (Bonferroni).
    """
    n, sizes = len(rankings.algorithms), np.diff(rankings.offset)
    comparison = np.repeat(np.arange(len(sizes)), sizes)
    critical = NormalDist().inv_cdf(1 - START_TEST_LEVEL / (2 * n))
    differs = np.zeros(len(rankings.times), dtype=bool)
    for t, row in enumerate(rankings.position):
        known = row != UNKNOWN
        own, position = comparison[known], row[known].astype(np.float64)
        n_known = np.maximum(np.bincount(own, minlength=len(sizes)), 1)
        position -= (np.bincount(own, position, len(sizes)) / n_known)[own]
        variance = (np.bincount(own, position**2, len(sizes)) / n_known)[own]
        weight, algorithm = rankings.weight[own], rankings.algorithm[known]
        total = np.bincount(algorithm, weight * position, n)
        sd = np.sqrt(np.bincount(algorithm, weight**2 * variance, n))
        differs[t] = np.any(np.abs(total) > critical * sd)
    return differs


def load_engine(method: str) -> Engine:
    """Import the engine of a method; DataError if there is no such method."""
    if method not in ENGINES:
        raise DataError(f"expected one of {', '.join(ENGINES)}", method=method)
    module, name = ENGINES[method]
    return getattr(import_module(module), name)


def check_keywords(
    function: Callable[..., Any] | str,
    options: Mapping[str, Any],
    method: str = "laplace",
    *,
    own: Sequence[str] = (),
    only: Sequence[str] | None = None,
) -> None:
    """Raise DataError for options that neither a function nor its engine takes.

    The message has the most similar option, and all of them. ``own`` are those of a function that
    is given by its name. ``only`` are the options of the engine that the function takes.

    >>> check_keywords(fit, {"prir": "GP"})
    Traceback (most recent call last):
    polarbear.errors.DataError: fit has no option 'prir'; did you mean 'prior'? It takes prior, ...
    """
    of_engine = signature(load_engine(method)).parameters
    if any(p.kind is Parameter.VAR_KEYWORD for p in of_engine.values()):
        return  # the options of a sampler, which it checks itself
    inner = ("rankings", "prior", "seed", "evidence", "curves")
    known = list(own)
    if not isinstance(function, str):
        _reject_misplaced(function.__name__, options)
        _, *kinds = signature(function).parameters.values()
        known += [one.name for one in kinds if one.kind is not Parameter.VAR_KEYWORD]
    known += [name for name in of_engine if name not in inner] if only is None else only
    for option in options:
        if option not in known:
            close = get_close_matches(option, known, n=1)
            likely = f"; did you mean {close[0]!r}?" if close else "."
            caller = function if isinstance(function, str) else function.__name__
            raise DataError(
                f"{caller} has no option {option!r}{likely} It takes "
                f"{', '.join(dict.fromkeys(known))}"
            )


def connected_groups(rankings: Rankings) -> list[tuple[str, ...]]:
    """Return groups of algorithms compared directly or through other algorithms, largest first.

    A comparison of algorithms from two groups rests on the prior alone.

    >>> from polarbear.simulation import rank_costs
    >>> connected_groups(rank_costs(np.array([[[1.0, 2.0, np.nan], [2.0, 1.0, np.nan]]])))
    [('a1', 'a2'), ('a3',)]
    """
    n = len(rankings.algorithms)
    comparison = np.repeat(np.arange(len(rankings.instance)), np.diff(rankings.offset))
    known = (rankings.position != UNKNOWN).any(axis=0) & (rankings.weight > 0)[comparison]
    comparison, algorithm = comparison[known], rankings.algorithm[known].astype(np.int64)
    # Each entry is linked to the first one of its comparison; equal links are counted once.
    is_first = np.diff(comparison, prepend=-1) > 0
    link = algorithm[is_first][np.cumsum(is_first) - 1] * n + algorithm
    pair = np.divmod(np.flatnonzero(np.bincount(link, minlength=n * n)), n)
    graph = coo_array((np.ones(len(pair[0]), dtype=np.int8), pair), shape=(n, n))
    group = connected_components(graph, directed=False)[1]
    members: dict[int, list[str]] = {}
    for name, number in zip(rankings.algorithms, group.tolist(), strict=True):
        members.setdefault(number, []).append(name)
    return sorted(map(tuple, members.values()), key=len, reverse=True)


def _describe_groups(rankings: Rankings, groups: list[tuple[str, ...]]) -> str:
    """Return a message with the groups of algorithms between which nothing is compared."""
    if len(groups) == len(rankings.algorithms):
        when = format_range(float(rankings.times[0]), float(rankings.times[-1]), rankings.clock)
        return f"no two algorithms are compared at any time asked for, {when}: {PRIOR_ONLY}"
    named = " | ".join(format_list(members) for members in groups[::-1][:4])
    more = " | ..." if len(groups) > 4 else ""
    return (
        "no instance has runs from two of these groups, so their comparison rests on the prior "
        f"alone: {named}{more}"
    )


def _warn_of_unknown_times(rankings: Rankings) -> None:
    """Warn of times at which no run of an algorithm is known, for instance after cut-offs."""
    n = len(rankings.algorithms)
    is_known = np.stack(
        [
            np.bincount(rankings.algorithm, row != UNKNOWN, minlength=n) > 0
            for row in rankings.position
        ]
    )
    no_algorithm = ~is_known.any(axis=1)
    unknown = {
        rankings.algorithms[k]: ~is_known[:, k] & ~no_algorithm
        for k in np.flatnonzero(is_known.any(axis=0))
    }
    for name, rows in {"any algorithm": no_algorithm, **unknown}.items():
        if rows.any():
            at = rankings.times[rows]
            when = format_range(float(at[0]), float(at[-1]), rankings.clock)
            where = f"{format_count(len(at), 'time')}, {when}"
            warn(f"nothing is known of {name} at {where}: the prior alone decides there")


def _shorten(time: float) -> float:
    """Return a time as a user would type it: a whole number without a decimal point."""
    return int(time) if float(time).is_integer() else float(time)


class FewInstances(DataWarning):
    """Some times rest on far fewer instances than others."""


def _warn_of_few_instances(rankings: Rankings) -> None:
    """Warn of times with far fewer instances than others, for instance after cut-offs."""
    comparison = np.repeat(np.arange(len(rankings.instance)), np.diff(rankings.offset))
    n = len(rankings.instances)
    n_instances = np.empty(len(rankings.times), dtype=np.intp)
    for t, row in enumerate(rankings.position):
        compares = np.bincount(comparison, row != UNKNOWN, minlength=len(rankings.instance)) > 1
        n_instances[t] = np.count_nonzero(np.bincount(rankings.instance, compares, minlength=n))
    few = (n_instances > 0) & (n_instances < MIN_INSTANCE_SHARE * n_instances.max())
    if not few.any():
        return
    at, before = rankings.times[few], rankings.times[: int(np.argmax(few))]
    remedy: Text = ""
    if np.count_nonzero(before) > 1 and name_point(rankings.clock) == "time":
        remedy = (": leave them out with ", Argument("stop", _shorten(before[-1]), CHOOSE_TIMES))
    warn(
        f"at {format_count(len(at), 'time')} "
        f"({format_range(float(at[0]), float(at[-1]), rankings.clock)}) the "
        f"verdict rests on {format_count(int(n_instances[few].min()), 'instance')}, elsewhere on "
        f"up to {n_instances.max():,}",
        remedy,
        category=FewInstances,
    )
