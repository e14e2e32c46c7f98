"""
A race
======

Run three optimisers until the anytime Pareto set is known, and plot the race.
"""

import numpy as np

import polarbear as pb


def valley(rng):
    """An ill-conditioned quadratic with a random centre."""
    centre, stretch = rng.uniform(-3, 3, 4), 10 ** np.linspace(0, 1, 4)
    return lambda x: float((stretch * (x - centre) ** 2).sum())


def random_search(job):
    """Sample uniformly."""
    f = job.track(job.instance)  # counts, keeps the best, and ends the run
    while True:
        f(job.rng.uniform(-5, 5, 4))


def climber(job, step=2.0, shrink=0.98):
    """Sample near the best solution; reduce the step size after a failure."""
    f, x = job.track(job.instance), job.rng.uniform(-5, 5, 4)
    best = f(x)
    while True:
        trial = x + step * job.rng.normal(size=4)
        value = f(trial)
        x, best, step = (trial, value, step) if value < best else (x, best, step * shrink)


def walker(job):
    """The same with a constant step size: good early, never precise."""
    climber(job, step=0.5, shrink=1.0)


if __name__ == "__main__":
    result = pb.race(
        [random_search, climber, walker],
        valley,
        times=pb.grid.log(30, 1_000, 6, whole=True),
        direction="minimize",
        question=pb.ParetoSet(certainty=0.95),
    )
    print(result)

    # Ratings over time of the remaining algorithms, and the race round by round.
    pb.plots.ratings(result, time="log")
    pb.plots.evolution(result)
