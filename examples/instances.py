"""
Instances like mine
===================

Which algorithm is best depends on the instance: here on its size and its density.
"""

import numpy as np

import polarbear as pb

# %%
# Runs of three algorithms on 200 instances, simulated: Greedy is best for small budgets, Tabu on
# large instances, CP on small and dense ones. With your own runs: ``pb.rank(pb.read("logs/"))``.

rng = np.random.default_rng(1)
size, density = np.exp(rng.uniform(4, 11, 200)), rng.beta(2, 3, 200)
high, luck = (np.log(size) - 7.5) / 2, rng.gumbel(size=(200, 3))
times = np.geomspace(1, 600, 8)
costs = []
for share in np.linspace(0, 1, len(times)):
    greedy, tabu = 1.6 * (1 - share) + 0 * high, share * (1.2 + 1.5 * high)
    cp = 1.5 * share - 1.4 * high + 2 * (density - 0.4)
    costs.append(-(np.stack([greedy, tabu, cp], axis=1) + luck))
rankings = pb.simulation.rank_costs(
    np.stack(costs), algorithms=["Greedy", "Tabu", "CP"], times=times
)
table = {"instance": rankings.instances, "size": size, "density": density}

posterior = pb.fit(rankings, features=table)
print(posterior.verdict())

# %%
# Ratings against the most important feature, at a budget of 600:

pb.plots.feature_curve(posterior, "size", time=600)

# %%
# The best algorithm over both features at the end. Where it is pale, another one may be better.

pb.plots.best_map(posterior)

# %%
# The best algorithm over size and budget:

pb.plots.best_map(posterior, "size", over_time=True)

# %%
# With classes instead of features, a table:

kinds = np.where(size > 3000, "large", np.where(density > 0.5, "small, dense", "small, sparse"))
rankings = rankings.with_instance_data({"instance": rankings.instances, "kind": kinds})
by_kind = pb.fit(rankings, classes="kind")
print(by_kind.verdict())
pb.plots.class_table(by_kind)
