"""The floor: how many plain passes over the data a whole posterior costs.

    python benchmarks/passes.py            # prints a row for every default path
    python benchmarks/passes.py --quick    # three of them

A pass is the log-likelihood of all rankings at one array of utilities (T, n), with its gradient:
no method that looks at the data can do with less than one, and samplers take one a step. The plain
pass goes through the rankings one by one, in numpy. Ours, in the remark, is the one that the engine
has: up to 12 algorithms it has added up equal sets, and is so short that calls of numpy show. The
remark also says what it costs to look at the data once for each draw of the posterior, which is
the least that importance weights need.
"""

import statistics
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from measuring import Figures, Row, apart, cpu, measure_rows, seconds

QUICK_CPU_SECONDS = 6

FEW, MANY = 7, 20
"""Up to 12 algorithms sets are added up, beyond rankings are kept: one number on either side."""

INSTANCES = 200
TEMPORAL = ["BSpline", "RandomWalk", "SparseGP", "HSGP", "GP"]
GOAL, GOAL_OTHERS = 60, 150
"""Plain passes of the default prior and of the others."""


def plain_pass(order: np.ndarray, utilities: np.ndarray) -> tuple[float, np.ndarray]:
    """Plackett-Luce over rankings (T, P, n), best first: the value, and the gradient (T, n)."""
    times, _, n = order.shape
    highest = utilities.max(axis=1, keepdims=True)
    rate = np.take_along_axis(np.exp(utilities - highest)[:, None], order, axis=2)
    left = rate[..., ::-1].cumsum(axis=2)[..., ::-1]
    value = np.log(rate).sum() - np.log(left).sum()
    slope = 1 - rate * (1 / left).cumsum(axis=2)
    place = order + n * np.arange(times)[:, None, None]
    gradient = np.bincount(place.ravel(), slope.ravel(), minlength=times * n)
    return float(value), gradient.reshape(times, n)


def counted(prior: str, n: int, instances: int, times: int, rounds: int) -> Figures:
    """CPU seconds of a posterior by default, and of a pass of either kind, in turns."""
    import simulated

    import polarbear as pb
    from polarbear.calibration.population import to_dense_positions
    from polarbear.inference.plackett_luce.likelihood import build_likelihood

    rankings = simulated.rankings(n, instances, times)
    order = to_dense_positions(rankings).argsort(axis=2)
    data, at = build_likelihood(rankings), np.random.default_rng(0).normal(size=(times, n))
    value, gradient = plain_pass(order, at)
    assert np.isclose(value, data.value(at).sum()), "both are the same likelihood"
    assert np.allclose(gradient, data.gradient(at), atol=1e-6)
    own = getattr(pb.priors, prior)()
    draws = pb.fit(rankings, prior=own).draws  # what is loaded once is not counted
    some: Any = np.ascontiguousarray(draws[:500])  # single precision, as the engine has them
    lean = data.to_single_precision()
    spent: dict[str, list[float]] = {"posterior": [], "plain": [], "ours": [], "weighing": []}
    for _ in range(rounds):
        spent["posterior"].append(_each(lambda: pb.fit(rankings, prior=own), 0.0))
        spent["plain"].append(_each(lambda: plain_pass(order, at), 0.1))
        spent["ours"].append(_each(lambda: (data.value(at), data.gradient(at)), 0.1))
        spent["weighing"].append(_each(lambda: lean.value(some), 0.0) * len(draws) / len(some))
    found = {name: statistics.median(values) for name, values in spent.items()}
    return {**found, "draws": len(draws)}


def _each(call: Callable[[], object], least: float) -> float:
    """CPU seconds of a call, repeated for at least so many."""
    begin, calls = cpu(), 0
    while not calls or cpu() - begin < least:
        call()
        calls += 1
    return (cpu() - begin) / calls


def rows(quick: bool) -> Iterator[Row]:
    """Every default path: both representations, one time and many, each temporal prior."""
    cases = [("Dirichlet", n, times) for n in (FEW, MANY) for times in (1, 30, 200)]
    cases += [(prior, FEW, 30) for prior in ["HierarchicalDirichlet", *TEMPORAL]]
    if quick:
        cases = [("Dirichlet", FEW, 30), ("Dirichlet", MANY, 10), ("BSpline", FEW, 30)]
    for prior, n, times in cases:
        found = apart(counted, prior, n, INSTANCES, times, 2 if quick else 3)
        ours, weighing = found["posterior"] / found["ours"], found["weighing"] / found["plain"]
        yield Row(
            "floor",
            f"{prior}, n={n}, P={INSTANCES}, T={times}",
            "one plain pass",
            found["posterior"],
            found["plain"],
            goal=GOAL if prior == "Dirichlet" else GOAL_OTHERS,
            limit=1000,
            remark=f"To weigh its {found['draws']:,.0f} draws once takes {weighing:.0f} of these; "
            f"it is {ours:,.0f} of the engine's own passes, {seconds(found['ours'])} each",
        )


if __name__ == "__main__":
    measure_rows(__doc__, rows)
