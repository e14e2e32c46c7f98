"""``fit``: from data and a prior to a posterior, by the engine of your choice."""

from collections.abc import Mapping
from dataclasses import fields, replace
from importlib import import_module
from inspect import Parameter, signature
from pathlib import Path
from statistics import NormalDist
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from polarbear._text import format_count, format_list, format_range
from polarbear.data.long_table import ColumnNaming, check_frame_complete
from polarbear.data.rankings import UNKNOWN, Rankings, rank
from polarbear.data.runs import Runs
from polarbear.errors import DataError, FitWarning, warn
from polarbear.inference.posterior import Evidence, Posterior
from polarbear.priors.dirichlet import Dirichlet
from polarbear.priors.hyper import Hyper
from polarbear.priors.prior import Prior

Method = Literal["laplace", "nuts", "pathfinder", "pymc-laplace", "advi", "stan"]

ENGINES: Mapping[str, tuple[str, str]] = {
    "laplace": ("polarbear.inference.laplace.engine", "fit_laplace"),
    "nuts": ("polarbear.inference.reference.nuts", "nuts"),
    "pathfinder": ("polarbear.inference.reference.variational", "pathfinder"),
    "pymc-laplace": ("polarbear.inference.reference.variational", "pymc_laplace"),
    "advi": ("polarbear.inference.reference.variational", "advi"),
    "stan": ("polarbear.inference.reference.stan.sampler", "stan"),
}

PRIOR_ONLY = "the prior alone speaks; are these times of the data?"

RANKING = ("abs_tol", "rel_tol", "weights")
"""Options of :func:`rank` that :func:`fit` takes for runs and data frames."""

START_ERROR = 0.01
"""How often a grid may count as started well by chance, though no algorithm differs."""

FEW = 0.25
"""A time that rests on less than this part of the instances that others rest on is warned of."""


class Engine(Protocol):
    """How a posterior is made."""

    def __call__(self, rankings: Rankings, prior: Prior, *, seed: int, **options: Any) -> Posterior:
        """Fit."""
        ...


def fit(
    data: object,
    *,
    prior: Prior | None = None,
    method: Method = "laplace",
    evidence: Evidence | None = None,
    seed: int = 0,
    times: ArrayLike | None = None,
    direction: Literal["minimize", "maximize"] | None = None,
    **options: Any,
) -> Posterior:
    """Rate the algorithms over time, with uncertainty.

    Parameters
    ----------
    data
        Rankings, Runs, or a data frame as in :meth:`Runs.from_frame`.
    prior
        How ratings may move over time: one of :mod:`polarbear.priors`. By default
        ``Dirichlet()``, for which every time speaks for itself.
    method
        "laplace": the fast engine, nested Laplace certified by importance sampling. To compare it
        with: "nuts", "pathfinder", "pymc-laplace" and "advi" of the extra ``[pymc]``, and "stan".
    evidence
        What counts as new evidence. "instances", the default of "laplace": the runs on an instance
        are looked at again and again, and do not tell more for it. "rankings" is the paper's: every
        ranking at every time is new; the other methods have only this.
    seed
        The same seed gives the same posterior.
    times
        The times to rank runs at; by default :func:`polarbear.grid.from_runs` chooses them. Its
        ``start`` and ``stop`` limit them to a range.
    direction
        Whether small or large values are good; for data frames.
    options
        For data frames, the names of columns as in :meth:`Runs.from_frame`, such as
        ``algorithm="solver"``. For data frames and runs, ``abs_tol``, ``rel_tol`` and ``weights``
        as in :func:`rank`. All others are for the engine: ``draws`` for all; ``start``, an
        earlier posterior to start from, for "laplace"; ``sampler``, ``chains``, ``tune`` and more
        for "nuts".

    Examples
    --------
    >>> import polarbear as pb
    >>> posterior = pb.fit(
    ...     {"algorithm": ["a", "b"] * 6, "instance": [k // 2 for k in range(12)],
    ...      "time": [1] * 12, "value": [1, 2, 1, 3, 2, 1, 1, 4, 0, 1, 1, 5]},
    ...     direction="minimize")
    >>> posterior.better("a", "b").round(2)
    array([0.94])
    >>> posterior.diagnostics.trusted
    True
    """
    _refuse_range(data, options)
    columns, options = apart(options)
    rankings = as_rankings(data, times, direction, columns)
    if len(rankings.algorithms) < 2:
        raise DataError("a single algorithm has nobody to be ahead of: at least two are needed")
    groups = connected_groups(rankings)
    if len(groups) < len(rankings.algorithms):
        _warn_of_silence(rankings)
        _warn_of_few(rankings)
    engine = engine_of(method, options)
    if method == "laplace":
        options["evidence"] = _evidence(evidence)
    elif evidence == "instances":
        raise DataError(f"{method} counts every ranking as evidence: use method='laplace'")
    prior = Dirichlet() if prior is None else prior
    check_prior(prior)
    posterior = engine(rankings, prior, seed=seed, **options)
    if len(groups) > 1:
        made = posterior.diagnostics
        made = replace(made, problems=(_prior_alone(rankings, groups), *made.problems))
        posterior = replace(posterior, diagnostics=made)
    if not posterior.diagnostics.trusted:
        warn(
            f"do not trust this posterior: {'; '.join(posterior.diagnostics.problems)}", FitWarning
        )
    return posterior


RANGE_STARTS = ("since", "start", "begin", "t_min", "min_time")
RANGE_STOPS = ("until", "stop", "end", "t_max", "max_time")
"""What a range of times is asked for by; ``fit`` takes times instead."""


def _refuse_range(data: object, options: Mapping[str, Any]) -> None:
    """Say how to fit a range of times; ``start`` and ``until`` may also mean something else."""
    for names, argument in ((RANGE_STARTS, "start"), (RANGE_STOPS, "stop")):
        for name in names:
            value = options.get(name)
            is_column = name == "until" and not isinstance(data, Runs | Rankings)
            if isinstance(value, int | float) and not is_column:
                how = f"times=pb.grid.from_runs(runs, {argument}={value!r})"
                raise DataError(
                    f"fit has no {name}={value!r}: for a range of times pass {how}, which takes "
                    "start= and stop="
                )


def _evidence(evidence: str | None) -> str:
    if evidence not in (None, "instances", "rankings"):
        raise DataError(f"evidence={evidence!r}: expected 'instances' or 'rankings'")
    return evidence or "instances"


def check_prior(prior: Any) -> None:
    """Refuse what is not a prior."""
    if isinstance(prior, type):
        raise DataError(f"prior={prior.__name__} is a class: write {prior.__name__}()")
    if not hasattr(prior, "hypers"):
        raise DataError(f"prior={prior!r}: expected a prior such as polarbear.priors.GP()")
    for name, hyper in prior.hypers().items():
        if not isinstance(hyper, Hyper):
            raise DataError(
                f"{name}={hyper!r} in {type(prior).__name__}: expected a distribution, such as "
                "polarbear.priors.LogNormal(0.0, 0.5); one with a small sd keeps to a value"
            )


def apart(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is for the data (names of columns, how to rank), and what is for an engine."""
    naming = {"clock", *RANKING, *(field.name for field in fields(ColumnNaming))}
    columns = {name: value for name, value in options.items() if name in naming}
    return columns, {name: value for name, value in options.items() if name not in naming}


def as_rankings(
    data: object, times: ArrayLike | None, direction: Any, columns: Mapping[str, Any]
) -> Rankings:
    """Rankings of whatever :func:`fit` takes; ``columns`` are named for a data frame only.

    They may have options of :func:`rank` among them, which runs have a use for as well.
    """
    ranking = {name: value for name, value in columns.items() if name in RANKING}
    columns = {name: value for name, value in columns.items() if name not in RANKING}
    if ranking and isinstance(data, Rankings):
        raise DataError(f"rankings are made already: pass {format_list(list(ranking))} to rank")
    if columns and isinstance(data, Rankings | Runs):
        (name, value), *_ = columns.items()
        raise DataError(f"{name}={value!r} is for data frames, and these are {type(data).__name__}")
    if isinstance(data, Rankings):
        if times is not None or direction is not None:
            raise DataError("rankings have their times and direction: pass neither with them")
        return data
    if isinstance(data, str | Path):
        raise DataError(f"fit takes data, not a path: fit(read({str(data)!r}))")
    if isinstance(data, Runs):
        if direction is not None and direction != data.direction:
            raise DataError(f"direction={direction!r}, but these runs {data.direction}")
        return _ranked(data, times, ranking)
    if not isinstance(data, Mapping) and not hasattr(data, "columns"):
        raise DataError(f"fit takes Rankings, Runs or a data frame, not {type(data).__name__}")
    check_frame_complete(data, "pb.fit", direction, columns)
    return _ranked(Runs.from_frame(data, direction=direction, **columns), times, ranking)


def _ranked(runs: Runs, times: ArrayLike | None, ranking: Mapping[str, Any]) -> Rankings:
    """Rankings, with a word if all times come before the first values: all are tied there."""
    rankings = rank(runs, times, **ranking)
    if len(runs.time) and rankings.times[-1] < runs.time.min():
        when = format_range(float(rankings.times[0]), float(rankings.times[-1]), runs.clock)
        warn(f"nobody has a value yet at any time asked for, {when}: {PRIOR_ONLY}")
    elif times is None:
        warn_of_start(rankings)
    return rankings


def warn_of_start(rankings: Rankings) -> None:
    """Say so if an automatic grid starts where no algorithm differs from the others.

    None is dominated at such times, so that all stay in the anytime Pareto set because of them.
    """
    told = _told_apart(rankings)
    first = int(np.argmax(told))
    if first == 0:  # at once, or never
        return
    start, stop = float(rankings.times[0]), float(rankings.times[first - 1])
    warn(
        f"the times start where no algorithm differs clearly from the others: {first} of "
        f"{len(told)}, {format_range(start, stop, rankings.clock)}. None is dominated there, so "
        f"all stay in the anytime Pareto set. Start later with times=pb.grid.from_runs(runs, "
        f"start={rankings.times[first]:.7g}), if these times do not matter to you"
    )


def _told_apart(rankings: Rankings) -> NDArray[np.bool_]:
    """Whether some algorithm's mean position differs from chance, at each time (a rank test).

    As in Friedman's test, positions are centred in each comparison. The sum of an algorithm has
    the variance that its comparisons have if every order is equally likely.
    """
    n, sizes = len(rankings.algorithms), np.diff(rankings.offset)
    comparison = np.repeat(np.arange(len(sizes)), sizes)
    critical = NormalDist().inv_cdf(1 - START_ERROR / (2 * n))
    told = np.zeros(len(rankings.times), dtype=bool)
    for t, row in enumerate(rankings.position):
        known = row != UNKNOWN
        own, place = comparison[known], row[known].astype(np.float64)
        counted = np.maximum(np.bincount(own, minlength=len(sizes)), 1)
        place -= (np.bincount(own, place, len(sizes)) / counted)[own]
        variance = (np.bincount(own, place**2, len(sizes)) / counted)[own]
        weight, algorithm = rankings.weight[own], rankings.algorithm[known]
        total = np.bincount(algorithm, weight * place, n)
        spread = np.sqrt(np.bincount(algorithm, weight**2 * variance, n))
        told[t] = np.any(np.abs(total) > critical * spread)
    return told


def engine_of(method: str, options: Mapping[str, Any]) -> Engine:
    """The function behind a method; an error if there is none, or it has no such option."""
    if method not in ENGINES:
        raise DataError(f"no method {method!r}; there are {', '.join(ENGINES)}")
    module, name = ENGINES[method]
    engine = getattr(import_module(module), name)
    parameters = signature(engine).parameters
    if not any(p.kind is Parameter.VAR_KEYWORD for p in parameters.values()):
        given = ("rankings", "prior", "seed", "evidence")
        known = [name for name in parameters if name not in given]
        for option in options:
            if option not in known:
                raise DataError(f"{method} has no option {option!r}; it has {', '.join(known)}")
    return engine


def connected_groups(rankings: Rankings) -> list[tuple[str, ...]]:
    """Algorithms that rankings compare, directly or through others: groups, the largest first.

    What is said about algorithms of two groups rests on the prior alone.

    >>> from polarbear.simulation import rank_costs
    >>> connected_groups(rank_costs(np.array([[[1.0, 2.0, np.nan], [2.0, 1.0, np.nan]]])))
    [('a1', 'a2'), ('a3',)]
    """
    n, comparisons = len(rankings.algorithms), len(rankings.instance)
    comparison = np.repeat(np.arange(comparisons), np.diff(rankings.offset))
    known = (rankings.position != UNKNOWN).any(axis=0) & (rankings.weight > 0)[comparison]
    link = (rankings.algorithm[known], n + comparison[known])
    size = n + comparisons
    graph = coo_array((np.ones(known.sum(), dtype=np.int8), link), shape=(size, size))
    group = connected_components(graph, directed=False)[1][:n]
    members: dict[int, list[str]] = {}
    for name, number in zip(rankings.algorithms, group.tolist(), strict=True):
        members.setdefault(number, []).append(name)
    return sorted(map(tuple, members.values()), key=len, reverse=True)


def _prior_alone(rankings: Rankings, groups: list[tuple[str, ...]]) -> str:
    """What the prior alone says, in words, where the data do not compare all algorithms."""
    if len(groups) == len(rankings.algorithms):
        when = format_range(float(rankings.times[0]), float(rankings.times[-1]), rankings.clock)
        return f"no two algorithms are compared at any time asked for, {when}: {PRIOR_ONLY}"
    named = " | ".join(format_list(members) for members in groups[::-1][:4])
    more = " | ..." if len(groups) > 4 else ""
    return (
        "no instance has runs from two of these groups, so their comparison rests on the prior "
        f"alone: {named}{more}"
    )


def _warn_of_silence(rankings: Rankings) -> None:
    """Say which algorithms are known at no instance at some times, such as after all were cut."""
    n = len(rankings.algorithms)
    seen = np.stack(
        [
            np.bincount(rankings.algorithm, row != UNKNOWN, minlength=n) > 0
            for row in rankings.position
        ]
    )
    nobody = ~seen.any(axis=1)
    silent = {rankings.algorithms[k]: ~seen[:, k] & ~nobody for k in np.flatnonzero(seen.any(0))}
    for who, rows in {"anybody": nobody, **silent}.items():
        if rows.any():
            at = rankings.times[rows]
            when = format_range(float(at[0]), float(at[-1]), rankings.clock)
            where = f"{format_count(len(at), 'time')}, {when}"
            warn(f"nothing is known of {who} at {where}: what is said there is the prior's")


def _warn_of_few(rankings: Rankings) -> None:
    """Say which times rest on far fewer instances than others, such as after most were cut."""
    comparison = np.repeat(np.arange(len(rankings.instance)), np.diff(rankings.offset))
    n = len(rankings.instances)
    rests = np.empty(len(rankings.times), dtype=np.intp)
    for t, row in enumerate(rankings.position):
        together = np.bincount(comparison, row != UNKNOWN, minlength=len(rankings.instance)) > 1
        rests[t] = np.count_nonzero(np.bincount(rankings.instance, together, minlength=n))
    few = (rests > 0) & (rests < FEW * rests.max())
    if not few.any():
        return
    at, before = rankings.times[few], rankings.times[: int(np.argmax(few))]
    remedy = ""
    if np.count_nonzero(before) > 1:
        start, stop = before[before > 0][[0, -1]]
        remedy = f": leave out such times with times=pb.grid.log({start:g}, {stop:g}, 30)"
    warn(
        f"at {format_count(len(at), 'time')} "
        f"({format_range(float(at[0]), float(at[-1]), rankings.clock)}) the "
        f"verdict rests on {format_count(int(rests[few].min()), 'instance')}, elsewhere on up to "
        f"{rests.max():,}{remedy}"
    )
