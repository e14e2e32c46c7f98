"""
Few instances: plan, race, and what to run
==========================================

Three configurations of HiGHS on twelve small 0-1 programs. The plan says before the start that
twelve instances prove large differences only; the race ends with what to run all the same.
"""

import random
from importlib.util import find_spec

import polarbear as pb


def make(name):
    """Return the costs of a 0-1 program and its rows (indices, coefficients, least, most)."""
    rng, kind = random.Random(name), name.partition("-")[0]  # noqa: S311
    if kind == "cover":  # the cheapest sets, so that each element is in two of them
        rows = [(rng.sample(range(240), 10), [1] * 10, 2, 10) for _ in range(160)]
        return [rng.randint(500, 1500) for _ in range(240)], rows
    weights = [[rng.randint(5, 100) for _ in range(100)] for _ in range(8)]  # a knapsack
    rows = [(list(range(100)), row, 0, sum(row) // 3) for row in weights]
    return [-rng.randint(500, 1500) for _ in range(100)], rows


def configure(**options):
    """Return a solver: HiGHS with some options."""

    def solve(job):
        import highspy

        highs = highspy.Highs()
        highs.silent()
        cost, rows = make(job.name)
        highs.addBinaries(len(cost), obj=cost)
        for indices, coefficients, least, most in rows:
            highs.addRow(least, most, len(indices), indices, coefficients)
        settings = {"threads": 1, "random_seed": job.seed % 2**31, **options}
        for name, value in settings.items():
            highs.setOptionValue(name, value)
        highs.cbMipImprovingSolution += lambda event: job.report(
            event.data_out.objective_function_value
        )
        highs.run()

    return solve


default = configure()
heuristics = configure(mip_heuristic_effort=0.5)
plain = configure(presolve="off")
solvers = {"default": default, "heuristics": heuristics, "plain": plain}
instances = [f"{kind}-{k}" for kind in ("cover", "knapsack") for k in range(6)]


def main():
    """Say what can be proven, and race."""
    times = pb.grid.log(0.05, 0.5, 6)
    print(pb.plan(instances, solvers, times, clock="wall"), end="\n\n")
    if not find_spec("highspy"):
        return
    race = pb.race(solvers, instances, times, direction="minimize", clock="wall", executor=2)
    print(race)
    pb.plots.ribbon(race)


if __name__ == "__main__":
    main()
