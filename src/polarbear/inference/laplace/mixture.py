"""From Gaussian approximations at points of a hyper-grid to weighted draws that can be trusted.

Draws of the mixture are weighted by importance, and their Pareto k-hat says whether that is
enough. Where it is not, the draws are moved by Hamiltonian Monte Carlo, whose coordinates are those
in which the approximation is standard normal.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from polarbear.inference.draws import even
from polarbear.inference.laplace.cluster_robust import Spread
from polarbear.inference.laplace.conditional import Conditional
from polarbear.inference.laplace.hmc import Target, sweep, tuned
from polarbear.inference.psis import smooth

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Ints = NDArray[np.intp]

PILOT = 200
"""The number of draws, the same for all components, that correct the evidence of each."""

AT_ONCE = 500
"""The most draws placed at once, which bounds memory."""

BURN, BURN_JUMPING, MOST_BURN, KEEP = 10, 30, 60, 16
"""Sweeps in which chains forget where they started, at least (more if they also jump) and at most,
and those to keep."""

JUMPS = 4
"""The number of proposed jumps to another component in a sweep of a chain."""

FORGOTTEN = 0.1
"""Chains have forgotten their start when no coordinate has a correlation with it above this."""


class Parts(NamedTuple):
    """Gaussians at the points of a grid over hyperparameters, and the chance of each."""

    components: Sequence[Conditional]
    chance: Floats
    corrected: Floats  # the correction of its evidence that is in the chance
    point: Floats  # (components, hyperparameters): logarithms
    spreads: Sequence[Spread] = ()  # how to draw their noise, if not independently


class Sample(NamedTuple):
    """Draws with weights: one weight per draw and block."""

    component: Ints  # (D,)
    noise: Singles  # (D, B, size)
    utilities: Singles  # (D, T, n)
    weight: Floats  # (D, B), each block summing to 1
    k: Floats  # (B,)
    bent: Singles | None  # (D, T, n): by how much the draws are not those of the Gaussians


def weigh(parts: Parts, draws: int, rng: np.random.Generator) -> Sample:
    """Draw from the mixture of components with these chances, and weigh the draws."""
    components = parts.components
    log_shift = shifts(parts, rng)
    component = spread(parts.chance, draws)
    blocks, size = components[0].shape[0], max(c.shape[1] for c in components)
    noise = np.empty((draws, blocks, size), dtype=np.float32)
    for g, rows in _groups(component):
        _fill(noise[rows], parts, g, rng)
    return weighed(parts, component, noise, log_shift)


def weighed(parts: Parts, component: Ints, noise: Singles, log_shift: Floats) -> Sample:
    """Noise (D, blocks, size) of draws, sorted by component, placed and weighed."""
    components, draws = parts.components, len(noise)
    utilities = np.empty((draws, *components[0].mean.shape), dtype=np.float32)
    log_ratio = np.empty(noise.shape[:2])
    skewed = any(one.skew is not None for one in components)
    bent = np.zeros_like(utilities) if skewed else None
    for g, rows in _groups(component):
        drawn = _drawn(components[g], noise[rows].astype(np.float64))
        utilities[rows], log_ratio[rows] = drawn.utilities, drawn.log_ratio
        if bent is not None:
            bent[rows] = drawn.bent
    log_ratio += log_shift[component]
    weight, k = smooth(log_ratio)
    return Sample(component, noise, utilities, weight, k, bent)


def _fill(noise: NDArray[Any], parts: Parts, g: int, rng: np.random.Generator) -> None:
    """Standard normal noise, every draw with its mirror image: they err on opposite sides."""
    half, spread = -(-len(noise) // 2), parts.spreads[g] if parts.spreads else None
    if spread is None:
        drawn = rng.standard_normal((half, *noise.shape[1:]))
    else:
        drawn = spread.noise(rng.standard_normal((half, spread.width)))
    noise[:half] = drawn
    np.negative(drawn[: len(noise) - half], out=noise[half:], casting="same_kind")


def respread(parts: Parts, component: Ints, rng: np.random.Generator) -> Singles:
    """Utilities (D, T, n) of draws, sorted by component, with noise as spread as it should be."""
    mean = parts.components[0].mean
    utilities = np.empty((len(component), *mean.shape), dtype=np.float32)
    for g, rows in _groups(component):
        one = parts.components[g]
        noise = np.empty((rows.stop - rows.start, *one.shape))
        _fill(noise, parts, g, rng)
        utilities[rows] = one.place(noise)
    return utilities


class _Drawn(NamedTuple):
    utilities: Floats
    log_ratio: Floats
    bent: Floats | float


def _drawn(one: Conditional, noise: Floats) -> _Drawn:
    """Place standard normal noise, bent where the component is skewed."""
    if one.skew is None:
        noise = noise[..., : one.shape[1]]
        utilities = one.place(noise)
        return _Drawn(utilities, one.ratio(noise, utilities), 0.0)
    there = one.skew.bend(noise)
    utilities = one.place(there.noise)
    log_ratio = one.ratio(there.noise, utilities) + there.log_ratio
    return _Drawn(utilities, log_ratio, there.moved)


def spread(chance: Floats, draws: int) -> Ints:
    """Which component each draw comes from: as even as whole numbers allow, in order.

    >>> spread(np.array([0.5, 0.25, 0.25]), 4)
    array([0, 0, 1, 2])
    """
    edges = np.round(np.cumsum(chance) / np.sum(chance) * draws).astype(np.intp)
    return np.repeat(np.arange(len(chance)), np.diff(edges, prepend=0))


def evidence_left(component: Conditional, rng: np.random.Generator) -> Floats:
    """What Laplace's evidence leaves out, in logs, for each block: estimated with a few draws."""
    noise = rng.standard_normal((PILOT, *component.shape))
    return logsumexp(_drawn(component, noise).log_ratio, axis=0) - np.log(PILOT)


def shifts(parts: Parts, rng: np.random.Generator) -> Floats:
    """What to add to the log-ratios (components, blocks) so that each block is weighed by itself.

    Given the hyperparameters blocks are independent, so a draw of one block should not carry the
    ratios of the others, only what all the blocks together say of its component: the evidence,
    corrected with draws that are the same for all components, so that most of the noise cancels.
    With a single block, or a single component, the ratios say it themselves.
    """
    components, blocks = parts.components, parts.components[0].shape[0]
    shift = np.repeat(-parts.corrected[:, None], blocks, axis=1)
    if len(components) > 1 and blocks > 1:
        seed = int(rng.integers(2**63))  # the same draws for all, so that most noise cancels
        for g, component in enumerate(components):
            own = evidence_left(component, np.random.default_rng(seed))
            shift[g] += own.sum() - own
    return shift - shift.max()


def _groups(component: Ints) -> Iterator[tuple[int, slice]]:
    """Ranges of draws of one component each, for draws sorted by component."""
    edges = np.flatnonzero(np.diff(component, prepend=-1, append=-1))
    for start, stop in pairwise(edges):
        for begin in range(start, stop, AT_ONCE):
            yield int(component[start]), slice(begin, min(begin + AT_ONCE, stop))


def _place(
    components: Sequence[Conditional], component: Ints, noise: Floats
) -> tuple[Floats, Floats]:
    """Utilities and log-ratios of draws from several components."""
    mean = components[0].mean
    utilities = np.empty((len(noise), *mean.shape))
    log_ratio = np.empty(noise.shape[:2])
    for g in np.unique(component):
        mine = component == g
        utilities[mine], log_ratio[mine] = _drawn(components[g], noise[mine])[:2]
    return utilities, log_ratio


class Chains(NamedTuple):
    """Draws that were moved: they weigh the same."""

    component: Ints
    utilities: Singles
    acceptance: float
    memory: float  # the largest correlation of a coordinate with where it started
    company: Singles  # (D, blocks, size): the noise of blocks that went along


def move(
    parts: Parts,
    sample: Sample,
    rng: np.random.Generator,
    *,
    share: Floats,
    chains: int,
    keep: int,
    jump: bool,
    company: "Company | None" = None,
) -> Chains:
    """Move draws until they have forgotten where they came from, and go on for ``keep`` sweeps.

    ``share`` says how many draws each component has to begin with. Where the sample is all there
    is, they ``jump`` from component to component: one is proposed by its chance while the noise
    stays, so that the utilities move along and most proposals are accepted.
    """
    components = parts.components
    if company is None:
        component, noise = resampled(sample, share, chains, rng)
        beside = np.empty((chains, 0, noise.shape[-1]))
    else:
        component, whole = _in_company(company, share, chains)
        noise, beside = whole[:, company.moved], whole[:, ~company.moved]

    def moved(step: float) -> float:
        nonlocal component, noise, beside
        target = _target(components, component)
        if company is None:
            noise, acceptance, _ = sweep(target, noise, step, rng)
        else:
            momentum = company.momentum(component, rng)
            own, other = momentum[:, company.moved], momentum[:, ~company.moved]
            noise, acceptance, path = sweep(target, noise, step, rng, own)
            beside = np.cos(path) * beside + np.sin(path) * other
        for _ in range(JUMPS if jump else 0):
            component = _jump(parts, component, noise, rng)
        return acceptance

    def coordinates() -> Floats:
        flat = noise.reshape(len(noise), -1)
        return np.hstack([flat, parts.point[component]]) if jump else flat

    start, step, memory = coordinates(), 1.2 * noise.shape[-1] ** -0.25, 1.0
    for k in range(MOST_BURN):
        acceptance = moved(step)
        # Who is refused falls behind those that turn along: in company that must be rare.
        limits = (0.7, 0.9) if company is None or company.moved.all() else (0.95, 0.99)
        step, memory = tuned(step, acceptance, *limits), _correlation(start, coordinates())
        if k >= (BURN_JUMPING if jump else BURN) and memory <= FORGOTTEN:
            break
    kept, accepted = [], []
    for _ in range(keep):
        accepted.append(moved(step))
        utilities, _ = _place(components, component, noise)
        kept.append((component, utilities.astype(np.float32), beside.astype(np.float32)))
    found = [np.concatenate(one) for one in zip(*kept, strict=True)]
    return Chains(found[0], found[1], float(np.mean(accepted)), memory, found[2])


class Company(NamedTuple):
    """Blocks that are to go on together, some of which are moved.

    The others are standard normal as they are. They turn by as much and with the same momentum, so
    that all of them still go together when they have forgotten where they started.
    """

    moved: NDArray[np.bool_]  # (B,)
    sample: Sample
    spreads: Sequence[Spread]

    def momentum(self, component: Ints, rng: np.random.Generator) -> Floats:
        """Momentum (D, B, size) that goes together over blocks."""
        found = np.empty((len(component), *self.sample.noise.shape[1:]))
        for g in np.unique(component):
            mine = np.flatnonzero(component == g)
            one = self.spreads[g]
            found[mine] = one.noise(rng.standard_normal((len(mine), one.width)))
        return found


def _in_company(company: Company, share: Floats, draws: int) -> tuple[Ints, Floats]:
    """Draws with all their blocks, so many of each component."""
    sample = company.sample
    drawn = np.bincount(sample.component, minlength=len(share))
    component = spread(share * (drawn > 0), draws)
    first = np.searchsorted(sample.component, component)
    count = np.bincount(component, minlength=len(share))
    place = np.concatenate(
        [np.arange(k) * d // max(k, 1) for k, d in zip(count, drawn, strict=True)]
    )
    return component, sample.noise[first + place].astype(np.float64)


def _target(components: Sequence[Conditional], component: Ints) -> Target:
    """The posterior of the noise of draws, given the component of each."""
    return Target(
        lambda noise: _place(components, component, noise)[1] - 0.5 * np.sum(noise**2, axis=-1),
        lambda noise: _slope(components, component, noise),
    )


def shares(component: Ints, weight: Floats, number: int) -> Floats:
    """The share of each component in draws with weights (D, B)."""
    return np.bincount(component, weight.mean(axis=1), minlength=number).astype(np.float64)


def resampled(
    sample: Sample, share: Floats, draws: int, rng: np.random.Generator
) -> tuple[Ints, Floats]:
    """Draws that weigh the same; each block by itself, among the draws of a component."""
    drawn = np.bincount(sample.component, minlength=len(share)) > 0
    component = spread(share * drawn, draws)
    _, blocks, size = sample.noise.shape
    noise = np.empty((draws, blocks, size))
    for g in np.unique(component):
        mine, rows = np.flatnonzero(component == g), np.flatnonzero(sample.component == g)
        for b in range(blocks):
            chosen = rows[even(sample.weight[rows, b], len(mine), rng.random())]
            noise[mine, b] = sample.noise[rng.permutation(chosen), b]
    return component, noise


def _slope(components: Sequence[Conditional], component: Ints, noise: Floats) -> Floats:
    # Coordinates that a component does not have are standard normal.
    slope = -noise
    for g in np.unique(component):
        mine, one = component == g, components[g]
        if one.skew is None:
            slope[mine, :, : one.shape[1]] = one.slope(noise[mine][..., : one.shape[1]])
        else:
            bent = one.skew.bend(noise[mine])
            slope[mine] = one.skew.pull(bent, one.slope(bent.noise))
    return slope


def _jump(parts: Parts, component: Ints, noise: Floats, rng: np.random.Generator) -> Ints:
    chance = parts.chance / parts.chance.sum()
    proposed = rng.choice(len(chance), size=len(component), p=chance)
    here, there = (_place(parts.components, at, noise)[1][:, 0] for at in (component, proposed))
    gain = there - here - parts.corrected[proposed] + parts.corrected[component]
    return np.where(np.log(rng.random(len(gain))) < gain, proposed, component)


def _correlation(before: Floats, after: Floats) -> float:
    """The largest correlation of a coordinate with its start, beyond what chance alone does.

    Coordinates that do not vary, or have not moved at all, count as remembering everything.
    """
    if np.any(np.ptp(after, axis=0) == 0) or np.any(np.ptp(before, axis=0) == 0):
        return 1.0
    before, after = before - before.mean(axis=0), after - after.mean(axis=0)
    own = np.sqrt(np.sum(before**2, axis=0) * np.sum(after**2, axis=0))
    chance = np.sqrt(2 * np.log(2 * own.size) / len(before))  # the largest of so many is near it
    return float(np.max(np.abs(np.sum(before * after, axis=0) / own)) - chance)
