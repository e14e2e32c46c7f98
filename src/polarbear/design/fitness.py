"""The fitness of a candidate: log-odds of being ahead of a reference, from one fit of all runs.

Definitions of fitness are compared in ``studies/judge/fitness.md``. A win rate against the
reference saturates among good candidates, and depends on the times that were run to. A probability
of being better moves with the number of runs. The log-odds are those of the posterior mode: the
posterior mean orders candidates nearly the same, and its draws take about fifty times as long.

The prior is relative to the reference: it acts as half a win and half a loss of the judged
candidate against the reference (the prior of Jeffreys for a pair), and as many of all others
together. A Dirichlet prior on all algorithms acts as a first place of each, so that the fitness of
a winner was lower the more others there were (``studies/judge/prior.md``).
"""

import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from polarbear.data.rankings import Rankings
from polarbear.data.run import Run, Status
from polarbear.data.runs import Runs
from polarbear.errors import DataWarning
from polarbear.inference.laplace.engine import estimate_utilities
from polarbear.priors.dirichlet import Dirichlet
from polarbear.racing.model import Model, fit_posterior
from polarbear.racing.race import Race

MAX_FITTED = 60
"""The largest number of algorithms in a fit."""

PRIOR_WINS = 0.5
"""The wins, and the losses, against the reference that the prior of the judged candidate counts."""

DEFAULT = Model()

NO_PRIOR = Dirichlet(1e-6)
"""The prior of a fit whose prior is in the data."""


class Fitness(NamedTuple):
    """Probabilities of being ahead of the reference algorithm: over all times, and at each time."""

    overall: float
    at_times: tuple[float, ...]


def measure_fitness(
    runs: Runs,
    times: tuple[float, ...],
    names: list[str],
    reference: str,
    race: Race,
) -> dict[str, Fitness]:
    """Return the fitness of algorithms from one fit of all runs, eliminated algorithms included.

    The overall value is the logistic function of the mean log-odds over times, so times that were
    not run to count as far as the model of the race knows them. Of more than ``MAX_FITTED``
    algorithms those in the Pareto set and those with the most runs are fitted. The prior does not
    depend on the number of other algorithms.

    >>> pairs = [Run(a, i, (1, 2), (3, x), 5) for a, x in (("a", 1), ("b", 2)) for i in "vwxyz"]
    >>> runs = Runs.from_records(pairs, direction="minimize")
    >>> race = Race(["a", "b"], [1, 2], direction="minimize")
    >>> measured = measure_fitness(runs, (1.0, 2.0), ["a"], "b", race)["a"]
    >>> measured.overall > 0.6, [round(p, 1) for p in measured.at_times]
    (True, [0.5, 0.9])
    """
    chosen = runs.filter(algorithms=_choose(runs, [reference, *names, *race.pareto]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        rankings = race.state.setup.model.rank(chosen, times)
    known = {*rankings.algorithms}
    if reference not in known:
        return {}
    wanted = [name for name in names if name in known]
    utilities = _estimate_utilities(rankings, wanted, reference, race)
    odds = {name: utilities[name] - utilities[reference] for name in wanted if utilities}
    return {
        name: Fitness(_logistic(float(at_times.mean())), tuple(map(_logistic, at_times.tolist())))
        for name, at_times in odds.items()
    }


def _estimate_utilities(
    rankings: Rankings, names: list[str], reference: str, race: Race
) -> dict[str, NDArray[np.float64]]:
    """Return each algorithm's utilities over time by the model of a race; none of a single one.

    A Dirichlet prior is replaced by one that is relative to the reference.
    """
    model = race.state.setup.model
    if model.method != "laplace" or model.function or len(rankings.algorithms) == 1:
        posterior = fit_posterior(race.fit, rankings, 0, 0)  # another method, a user's function
        if posterior is None:
            return {}
        mean = posterior.utilities.mean(axis=0, dtype=np.float64)
        return dict(zip(posterior.algorithms, mean.T, strict=True))
    prior = model.prior
    if isinstance(prior, Dirichlet):
        wins = PRIOR_WINS * prior.alpha
        rankings = rankings.join(_rank_prior_pairs(rankings, names, reference, wins))
        prior = NO_PRIOR
    return dict(zip(rankings.algorithms, estimate_utilities(rankings, prior).T, strict=True))


def _rank_prior_pairs(
    rankings: Rankings, names: list[str], reference: str, wins: float
) -> Rankings:
    """Return a prior as rankings: ``wins``, and as many losses, against the reference at each time.

    These are those of each algorithm in ``names``. All others have as many together, so that the
    prior does not depend on their number.
    """
    codes = {name: code for code, name in enumerate(rankings.algorithms)}
    others = [name for name in codes if name not in names and name != reference]
    weights = {name: wins for name in names if name != reference}
    weights |= {name: wins / len(others) for name in others}
    fixed = codes[reference]
    won_and_lost = [(codes[name], fixed, fixed, codes[name]) for name in weights]
    n, longest = 2 * len(weights), max(map(len, rankings.instances))
    return replace(
        rankings,
        instances=tuple(f"prior {k:{longest}}" for k in range(n)),  # longer than all other names
        position=np.tile(np.array([0, 1], rankings.position.dtype), (len(rankings.times), n)),
        algorithm=np.ravel(won_and_lost).astype(rankings.algorithm.dtype),
        offset=np.arange(0, 2 * n + 1, 2),
        instance=np.arange(n, dtype=rankings.instance.dtype),
        weight=np.repeat([*weights.values()], 2),
        instance_data={},
    )


def _choose(runs: Runs, wanted: list[str]) -> list[str]:
    """Return the algorithms to fit: the requested ones, then those with the most runs."""
    counts = np.bincount(runs.algorithm, minlength=len(runs.algorithms))
    others = [runs.algorithms[k] for k in np.argsort(-counts, kind="stable").tolist()]
    ordered = [name for name in dict.fromkeys([*wanted, *others]) if name in runs.algorithms]
    return ordered[:MAX_FITTED]


def _logistic(log_odds: float) -> float:
    return float(1 / (1 + np.exp(-log_odds)))


def measure_win_rates(
    runs: Runs, times: tuple[float, ...], name: str, rival: str, model: Model = DEFAULT
) -> tuple[float | None, ...]:
    """Return at each time how often an algorithm beats a rival; None where no run of both is known.

    >>> pairs = [Run(a, i, (1, 2), (3, x), 5) for a, x in (("a", 1), ("b", 2)) for i in "yz"]
    >>> runs = Runs.from_records(pairs, direction="minimize")
    >>> measure_win_rates(runs, (1.0, 2.0, 9.0), "a", "b")
    (0.5, 1.0, None)
    """
    if name == rival or not {name, rival} <= {*runs.algorithms}:
        return (None,) * len(times)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        rankings = model.rank(runs.filter(algorithms=[name, rival]), times)
        rates = rankings.win_rate(name, rival)
    return tuple(None if np.isnan(rate) else round(float(rate), 4) for rate in rates)


def measure_class_win_rates(
    runs: Runs,
    times: tuple[float, ...],
    name: str,
    rival: str,
    classify: Callable[[str], str],
    model: Model = DEFAULT,
) -> tuple[tuple[str, float], ...]:
    """Return the share of wins of an algorithm over a rival in each class of instances.

    >>> pairs = [Run(a, i, (1,), (worth,), 5) for a, worth in (("a", 1), ("b", 2)) for i in "xyz"]
    >>> runs = Runs.from_records(pairs, direction="minimize")
    >>> measure_class_win_rates(runs, (1.0,), "a", "b", lambda name: "z" if name == "z" else "xy")
    (('xy', 1.0), ('z', 1.0))
    """
    if name == rival or not {name, rival} <= {*runs.algorithms}:
        return ()
    both = runs.filter(algorithms=[name, rival])
    classes: dict[str, list[str]] = {}
    for instance in both.instances:
        classes.setdefault(str(classify(instance)), []).append(instance)
    rates = {
        label: measure_win_rates(both.filter(instances=instances), times, name, rival, model)
        for label, instances in sorted(classes.items())
    }
    known = {label: [r for r in row if r is not None] for label, row in rates.items()}
    return tuple((label, float(np.mean(row))) for label, row in known.items() if row)


def find_identical(runs: Runs, name: str, min_runs: int) -> str | None:
    """Return another algorithm with the same runs on all common instances, or None.

    The two need ``min_runs`` such instances, on which they found a value. Runs are compared as far
    as both were observed. A run that failed or reached its time limit is the same as no other, and
    a run that finished is not the same as one that went on.

    >>> pairs = [Run(a, str(i), (1, 2), (i + 2, i), 5) for a in ("a", "b") for i in range(9)]
    >>> runs = Runs.from_records(pairs, direction="minimize")
    >>> find_identical(runs, "b", 8), find_identical(runs, "b", 10)
    ('a', None)
    """
    own = {run.instance: run for run in runs if run.algorithm == name}
    n_same: Counter[str] = Counter()
    different: set[str] = {name}
    for run in runs:
        mine = own.get(run.instance)
        if mine is None or run.algorithm in different:
            continue
        until = min(run.until, mine.until)
        improvements = _improvements(mine, until)
        if not _are_comparable(mine, run) or improvements != _improvements(run, until):
            different.add(run.algorithm)
        elif improvements:
            n_same[run.algorithm] += 1
    same = [other for other, n in n_same.items() if other not in different and n >= min_runs]
    return same[0] if same else None


def _are_comparable(first: Run, second: Run) -> bool:
    """Return whether neither run failed, nor ended by itself before the other one did."""
    shorter, longer = sorted((first, second), key=lambda run: run.until)
    if not {shorter.status, longer.status} <= {Status.CUT, Status.FINISHED}:
        return False
    return shorter.status == Status.CUT or shorter.until == longer.until


def _improvements(run: Run, until: float) -> list[tuple[float, float]]:
    """Return the times and values of a run's improvements up to a time."""
    times, values = np.asarray(run.time).tolist(), np.asarray(run.value).tolist()
    return [pair for pair in zip(times, values, strict=True) if pair[0] <= until]
