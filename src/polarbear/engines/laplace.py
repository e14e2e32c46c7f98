"""The fast engine: nested Laplace, certified and corrected by importance sampling.

Given hyperparameters the posterior is log-concave and nearly Gaussian; its evidence weighs the
points of a small grid over them, and the posterior is the mixture. Draws of the mixture, weighted
by importance, certify and correct it, and are moved by Hamiltonian Monte Carlo where the
certificate fails.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from polarbear.data.rankings import Rankings
from polarbear.engines.conditional import Conditional, chain, dense
from polarbear.engines.hypergrid import integrate
from polarbear.engines.independent import independent
from polarbear.engines.mixture import Chains, Sample, move, weigh
from polarbear.engines.psis import ENOUGH
from polarbear.likelihood.choices import choices
from polarbear.posterior import Diagnostics, Mixture, Posterior
from polarbear.priors.any import Prior
from polarbear.priors.base import helmert, unit_times
from polarbear.priors.dirichlet import Dirichlet, HierarchicalDirichlet
from polarbear.priors.hyper import Hyper

Floats = NDArray[np.float64]
At = Callable[[Mapping[str, float], Conditional | None], Conditional]

FEW, MANY = 1000, 4000
"""How many draws: few where times are independent and the weights leave little to correct."""

ERROR = 0.002
"""The standard error of a probability above which few draws are not enough."""

CHAINS = 1000
"""How many chains move where the weights fail and all times hang together."""

EDGE = 0.01
"""The mass that may lie beyond the grid of hyperparameters."""


def laplace(
    rankings: Rankings,
    prior: Prior,
    *,
    seed: int = 0,
    start: Posterior | None = None,
    draws: int | None = None,
) -> Posterior:
    """Fit by nested Laplace.

    Parameters
    ----------
    rankings, prior, seed
        What to fit. The same seed gives the same draws.
    start
        An earlier posterior to start from, of some of the same algorithms and times.
    draws
        How many draws; by default 4000, or 1000 where those are as good.
    """
    rng = np.random.default_rng(seed)
    hypers, at = _model(rankings, prior, start)
    found = _approximate(hypers, at, start)
    sample = _drawn(found, draws, rng)
    failed = sample.k > ENOUGH
    if not failed.any():
        return _posterior(rankings, prior, found, sample, None)
    if len(failed) > 1:
        sample, moved = _moved_times(rankings, prior, found, sample, failed, rng)
    else:
        chains = min(CHAINS, len(sample.component))
        moved = move(found.components, found.chance, sample, rng, chains=chains)
        even = np.full((len(moved.component), 1), 1 / len(moved.component))
        sample = Sample(moved.component, sample.noise, moved.utilities, even, sample.k)
        failed = np.ones(len(rankings.times), dtype=bool)
    return _posterior(rankings, prior, found, sample, _Moved(failed, moved))


class Approximation(NamedTuple):
    """Gaussians at the points of a grid over hyperparameters."""

    components: Sequence[Conditional]
    chance: Floats
    hyper: Mapping[str, Floats]  # the value of each at each point
    edge: float


class _Moved(NamedTuple):
    times: NDArray[np.bool_]
    chains: Chains


def _model(
    rankings: Rankings, prior: Prior, start: Posterior | None
) -> tuple[Mapping[str, Hyper], At]:
    """The hyperparameters, and the posterior given them, started from another if there is one."""
    data = choices(rankings)
    n_times, n = len(rankings.times), len(rankings.algorithms)
    begin = np.zeros((n_times, n)) if start is None else _utilities(start, rankings)
    if isinstance(prior, Dirichlet | HierarchicalDirichlet):

        def at(hyper: Mapping[str, float], warm: Conditional | None) -> Conditional:
            alpha = prior.alpha if isinstance(prior, Dirichlet) else hyper["kappa"] / n
            return independent(data, alpha, n_times, n, begin if warm is None else warm.mean)

        return {} if isinstance(prior, Dirichlet) else {"kappa": prior.kappa}, at

    times = unit_times(rankings.times, prior.warp)
    mode = begin @ helmert(n)

    def gaussian(hyper: Mapping[str, float], warm: Conditional | None) -> Conditional:
        states = prior.chain(times, hyper)
        if states is None:
            return dense(data, prior.factor(times, hyper), n, mode if warm is None else warm.state)
        first = np.zeros((n_times, len(states.start), n - 1))
        first[:, 0] = mode
        return chain(data, states, n, first.ravel() if warm is None else warm.state)

    return prior.hypers(), gaussian


def _utilities(start: Posterior, rankings: Rankings) -> Floats:
    """Mean utilities of an earlier posterior, for the algorithms and times of these rankings."""
    mean = start.utilities.mean(axis=0, dtype=np.float64)
    row = np.minimum(np.searchsorted(start.times, rankings.times), len(start.times) - 1)
    column = {name: k for k, name in enumerate(start.algorithms)}
    found = np.zeros((len(rankings.times), len(rankings.algorithms)))
    for k, name in enumerate(rankings.algorithms):
        if name in column:
            found[:, k] = mean[row, column[name]]
    return found - found.mean(axis=1, keepdims=True)


def _approximate(hypers: Mapping[str, Hyper], at: At, start: Posterior | None) -> Approximation:
    """Lay the grid over the hyperparameters."""
    if not hypers:
        return Approximation([at({}, None)], np.ones(1), {}, 0.0)

    def log_density(u: Floats, warm: Conditional | None) -> tuple[float, Conditional]:
        found = at(dict(zip(hypers, np.exp(u), strict=True)), warm)
        weight = sum(h.log_density(x) for h, x in zip(hypers.values(), u, strict=True))
        return found.evidence + weight, found

    earlier = {} if start is None else start.hyper
    first = [
        float(np.log(earlier[name]).mean() if name in earlier else np.log(hyper.quantile(0.5)))
        for name, hyper in hypers.items()
    ]
    grid = integrate(log_density, first)
    values = np.exp(grid.point).T
    return Approximation(grid.found, grid.weight, dict(zip(hypers, values, strict=True)), grid.edge)


def _drawn(found: Approximation, draws: int | None, rng: np.random.Generator) -> Sample:
    """As many weighted draws as it takes for the correction to be precise."""
    if draws is not None:
        return weigh(found.components, found.chance, draws, rng)
    if found.components[0].shape[0] > 1:
        sample = weigh(found.components, found.chance, FEW, rng)
        # Half the spread of the weights: the most that can be wrong with any probability.
        error = 0.5 * np.sqrt(np.maximum(np.sum(sample.weight**2, axis=0) - 1 / FEW, 0.0))
        if error.max() <= ERROR:
            return sample
    return weigh(found.components, found.chance, MANY, rng)


def _moved_times(
    rankings: Rankings,
    prior: Prior,
    found: Approximation,
    sample: Sample,
    failed: NDArray[np.bool_],
    rng: np.random.Generator,
) -> tuple[Sample, Chains]:
    """Replace the draws at the times whose weights fail; times do not know of each other."""
    part = replace(rankings, times=rankings.times[failed], position=rankings.position[failed])
    _, at = _model(part, prior, None)
    components = [
        at({name: float(values[g]) for name, values in found.hyper.items()}, None)
        for g in range(len(found.components))
    ]
    those = sample._replace(noise=sample.noise[:, failed], weight=sample.weight[:, failed])
    moved = move(components, found.chance, those, rng, chains=len(sample.component), keep=1)
    utilities, weight = sample.utilities.copy(), sample.weight.copy()
    utilities[:, failed] = moved.utilities
    weight[:, failed] = 1 / len(weight)
    return sample._replace(utilities=utilities, weight=weight), moved


def _posterior(
    rankings: Rankings,
    prior: Prior,
    found: Approximation,
    sample: Sample,
    moved: _Moved | None,
) -> Posterior:
    used, count = np.unique(sample.component, return_counts=True)
    holds = np.ones(len(rankings.times), dtype=bool) if moved is None else ~moved.times
    mixture = None
    if holds.any():
        mixture = Mixture(
            count / count.sum(),
            np.stack([found.components[g].mean for g in used]),
            np.stack([found.components[g].covariance for g in used]),
            holds,
        )
    return Posterior(
        rankings.algorithms,
        rankings.times,
        sample.utilities.astype(np.float32),
        sample.weight.astype(np.float32),
        mixture,
        {name: values[sample.component] for name, values in found.hyper.items()},
        _diagnostics(found, sample, moved),
        repr(prior),
        "laplace",
        rankings.clock,
    )


def _diagnostics(found: Approximation, sample: Sample, moved: _Moved | None) -> Diagnostics:
    decrement = max(component.decrement for component in found.components)
    measured = {"k-hat": float(sample.k.max()), "Newton decrement": decrement}
    problems, notes = [], []
    if found.hyper:
        measured["hyper-grid edge"] = found.edge
        if found.edge > EDGE:
            problems.append(f"{found.edge:.0%} of the hyperparameters may lie beyond the grid")
    if decrement > 1e-6:
        problems.append("Newton's method stopped before the mode")
    if moved is not None:
        measured |= {"acceptance": moved.chains.acceptance, "memory": moved.chains.memory}
        times = f"at {moved.times.sum()} of {len(moved.times)} times"
        notes.append(f"k-hat is above {ENOUGH} {times}: draws there were moved by HMC")
        if moved.chains.acceptance < 0.4 or moved.chains.memory > 0.1:
            problems.append("and HMC did not mix: use method='nuts'")
    return Diagnostics(measured, tuple(problems), tuple(notes))
