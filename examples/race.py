"""
A race
======

Run three optimisers until it is settled who belongs to the anytime Pareto set, and look at
what happened.
"""

import numpy as np

import polarbear as pb


def valley(rng):
    """A narrow valley, somewhere else each time."""
    centre, stretch = rng.uniform(-3, 3, 4), 10 ** np.linspace(0, 1, 4)
    return lambda x: float((stretch * (x - centre) ** 2).sum())


def random_search(job):
    """Looks everywhere."""
    f = job.track(job.instance)  # counts, keeps the best, and ends the run
    while True:
        f(job.rng.uniform(-5, 5, 4))


def climber(job, step=2.0, shrink=0.98):
    """Looks near the best it knows, and nearer if that does not help."""
    f, x = job.track(job.instance), job.rng.uniform(-5, 5, 4)
    best = f(x)
    while True:
        trial = x + step * job.rng.normal(size=4)
        value = f(trial)
        x, best, step = (trial, value, step) if value < best else (x, best, step * shrink)


def steady(job):
    """The same with steps that stay: good soon, and never exact."""
    climber(job, step=0.5, shrink=1.0)


if __name__ == "__main__":
    found = pb.race(
        [random_search, climber, steady],
        valley,
        times=pb.grid.log(30, 1_000, 6, whole=True),
        direction="minimize",
        rules=pb.Rules(alpha=0.95),
    )
    print(found)

    # Ratings over time of those that are left, and how the race came to know.
    pb.plots.ratings(found, time="log")
    pb.plots.evolution(found)
