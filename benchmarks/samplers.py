"""Inference against PyMC's NUTS, nutpie, NumPyro, Pathfinder and choix, on the same rankings.

    python benchmarks/samplers.py            # prints a row for each peer
    python benchmarks/samplers.py --quick    # short chains; most of the time is compiling

Needs the extras [pymc] and [jax], and choix. All have the same model, the same data and one
thread, and every ranking is evidence for ours too. NUTS has 4 chains of 1000 + 1000; what it takes
to compile is not part of the ratio, but for NumPyro's. choix gives a point without uncertainty.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from measuring import Figures, Row, apart, cpu, measure_rows, peak

QUICK_CPU_SECONDS = 60
NEEDS = ("choix",)

NUTS = {"nutpie": "nutpie", "PyMC's NUTS": "pymc", "NumPyro's NUTS, with compiling": "numpyro"}
TUNE, DRAWS = 1000, 1000


# What is measured, each in a process of its own


def ours(prior: str, n: int, instances: int, times: int, each: int = 0, fits: int = 1) -> Figures:
    """The fast engine; with ``each``, only so many of the algorithms take part on an instance."""
    import polarbear as pb
    from polarbear.inference.laplace.engine import fit_laplace  # so that imports are not measured

    rankings, own = data(n, instances, times, each), getattr(pb.priors, prior)()
    spent, waited, found = [], [], None
    for _ in range(fits):
        before, wall = cpu(), time.perf_counter()
        found = fit_laplace(rankings, own, evidence="rankings")
        spent.append(cpu() - before)
        waited.append(time.perf_counter() - wall)
    assert found is not None
    return {
        "cpu": statistics.median(spent),
        "wall": statistics.median(waited),
        "trusted": float(found.diagnostics.trusted),
        "k": found.diagnostics.measured["k-hat"],
        "memory": peak() / 2**20,
        "moved": float("acceptance" in found.diagnostics.measured),
        "ahead": ahead(found),
        "rating": found.mean().tolist(),
    }


def nuts(
    sampler: str, prior: str, n: int, instances: int, times: int, tune: int, draws: int
) -> Figures:
    """Sampling apart from compiling."""
    import polarbear as pb

    rankings, own = data(n, instances, times), getattr(pb.priors, prior)()
    compiling, sampling, found = SPLIT[sampler](sampler, rankings, own, tune, draws)
    measured = found.diagnostics.measured
    return {
        "sampling": sampling,
        "compiling": compiling,
        "rhat": measured["R-hat"],
        "ess": measured["ESS"],
        "divergences": measured["divergences"],
        "ahead": ahead(found),
    }


def by_difference(sampler: str, rankings, prior, tune: int, draws: int):
    """What a few draws cost is what every call compiles; the first call finds no caches."""
    spent, sample = [], None
    for tuned, drawn in ((20, 20), (20, 20), (tune, draws)):
        before = cpu()
        sample = sample or prepared(sampler, rankings, prior)
        found = sample(tune=tuned, draws=drawn)
        spent.append(cpu() - before)
    return spent[0], spent[2] - spent[1], found


def as_a_whole(sampler: str, rankings, prior, tune: int, draws: int):
    """NumPyro compiles in every call, for longer than it samples: the two cannot be told apart."""
    before = cpu()
    found = prepared(sampler, rankings, prior)(tune=tune, draws=draws)
    return 0.0, cpu() - before, found


SPLIT = {"nutpie": by_difference, "pymc": by_difference, "numpyro": as_a_whole}


def prepared(sampler: Any, rankings, prior) -> Callable:
    """What samples. nutpie compiles beforehand, others in every call."""
    import pymc  # noqa: F401

    from polarbear.inference.reference import chains, nuts, pymc_model

    if sampler != "nutpie":
        return partial(nuts.fit_nuts, rankings, prior, sampler=sampler, cores=1)
    import nutpie

    compiled = nutpie.compile_pymc_model(pymc_model.build_pymc_model(rankings, prior))

    def sample(*, tune: int, draws: int):
        trace = nutpie.sample(
            compiled,
            tune=tune,
            draws=draws,
            chains=4,
            cores=1,
            seed=0,
            target_accept=0.9,
            progress_bar=False,
            blocking=True,
        )
        found = pymc_model.extract_draws(trace, prior)
        judged = chains.diagnose_chains(found, int(np.sum(trace["sample_stats"]["diverging"])))
        return chains.posterior_from_chains(rankings, prior, found, judged, "nutpie")

    return sample


def pathfinder(prior: str, n: int, instances: int, times: int, only: int | None = None) -> Figures:
    """Pathfinder of pymc-extras, at all times or at one."""
    import polarbear as pb

    rankings, own = data(n, instances, times), getattr(pb.priors, prior)()
    if only is not None:
        at = slice(only, only + 1)
        rankings = replace(rankings, times=rankings.times[at], position=rankings.position[at])
    compiling, computing, found = find_paths(rankings, own)
    return {
        "cpu": compiling + computing,
        "sampling": computing,
        "compiling": compiling,
        "k": found.diagnostics.measured["k-hat"],
        "ahead": ahead(found),
    }


def find_paths(rankings, prior, draws: int = 1000, seed: int = 1):
    """Pathfinder's CPU seconds to compile and to compute, and its posterior.

    It reports wall seconds of both, and CPU seconds are divided in the same ratio.
    """
    import pymc  # noqa: F401
    import pymc_extras

    from polarbear.inference.diagnostics import Diagnostics
    from polarbear.inference.reference import pymc_model
    from polarbear.inference.reference.chains import posterior_from_chains

    model = pymc_model.build_pymc_model(rankings, prior)
    before = cpu()
    trace = pymc_extras.fit_pathfinder(
        model=model,
        num_draws=draws,
        concurrent=None,
        progressbar=False,
        display_summary=False,
        random_seed=seed,
    )
    spent, said = cpu() - before, trace["sample_stats"]
    drawn = pymc_model.extract_draws(trace, prior)
    judged = Diagnostics({"k-hat": float(np.max(said["pareto_k"]))}, ())
    found = posterior_from_chains(rankings, prior, drawn, judged, "pathfinder")
    computing = spent * float(said["compute_time"] / (said["compute_time"] + said["compile_time"]))
    return spent - computing, computing, found


def choix(n: int, instances: int, times: int, each: int = 0) -> Figures:
    """The maximum of the likelihood at each time, by iterative Luce spectral ranking."""
    import choix as peer
    import simulated

    rankings = data(n, instances, times, each)
    orders: list[Any] = [simulated.orders(rankings, k) for k in range(len(rankings.times))]
    before = cpu()
    found = np.array([peer.ilsr_rankings(n, order, alpha=1e-3) for order in orders])
    spent = cpu() - before
    rating = np.exp(found - found.max(axis=1, keepdims=True))
    return {"cpu": spent, "rating": (rating / rating.sum(axis=1, keepdims=True)).tolist()}


def data(n: int, instances: int, times: int, each: int = 0):
    import simulated

    if each:
        return simulated.some_of_many(n, each, instances)
    return simulated.rankings(n, instances, times)


def ahead(posterior) -> list[list[float]]:
    """P(ahead) of every pair at every time, if these are not too many to be passed on."""
    names = posterior.algorithms if len(posterior.algorithms) <= 12 else ()
    pairs = [(a, b) for k, a in enumerate(names) for b in names[k + 1 :]]
    return [posterior.prob_better(a, b).tolist() for a, b in pairs]


# Rows of the table


def furthest(a: Figures, b: Figures, what: str) -> float:
    """The largest difference between the two."""
    return float(np.abs(np.array(a[what]) - np.array(b[what])).max())


def compared(
    name: str, peer: Callable[[], Figures], prior: str, n: int, instances: int, times: int
) -> Row:
    """Ours before and after a peer."""
    first = apart(ours, prior, n, instances, times, 0, 3)
    theirs = peer()
    last = apart(ours, prior, n, instances, times, 0, 3)
    said = f"P(ahead) within {furthest(last, theirs, 'ahead'):.3f}"
    if "ess" in theirs:
        said += f" at R-hat {theirs['rhat']:.2f} and ESS {theirs['ess']:,.0f}"
    else:
        said += f" at a k-hat of {theirs['k']:.1f}"
    compiling = theirs["compiling"]
    return Row(
        "inference",
        f"{prior}, n={n}, P={instances}, T={times}",
        name,
        statistics.median([first["cpu"], last["cpu"]]),
        theirs["sampling"],
        goal=1.0,
        limit=0.5,
        remark=said + (f"; it compiles for {compiling:.0f} s more" if compiling else ""),
    )


def point(n: int, instances: int, times: int, each: int = 0) -> Row:
    """A whole posterior against a point."""
    first = apart(ours, "Dirichlet", n, instances, times, each, 3)
    theirs = apart(choix, n, instances, times, each)
    last = apart(ours, "Dirichlet", n, instances, times, each, 3)
    size = f"{each} of " * bool(each) + f"n={n}, P={instances:,}, T={times}"
    return Row(
        "inference",
        f"Dirichlet, {size}",
        "choix, a point",
        statistics.median([first["cpu"], last["cpu"]]),
        theirs["cpu"],
        remark=f"ratings within {furthest(last, theirs, 'rating'):.3f} of our means",
    )


def rows(quick: bool) -> Iterator[Row]:
    """A temporal prior and the default one, against all peers; if small, one prior."""
    sizes = (("BSpline", 5, 30, 30), ("Dirichlet", 7, 200, 3))
    chains = (100, 100) if quick else (TUNE, DRAWS)
    for size in sizes[1:] if quick else sizes:
        for name, sampler in NUTS.items():
            yield compared(name, partial(apart, nuts, sampler, *size, *chains), *size)
        yield compared("Pathfinder", partial(apart, pathfinder, *size), *size)
    yield point(7, 200, 3)
    if not quick:
        yield point(300, 3000, 1, 20)


if __name__ == "__main__":
    measure_rows(__doc__, rows)
