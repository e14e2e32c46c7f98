"""
Read and rank runs
==================

Read recorded runs, rank the algorithms over time, and see how the lead changes.
"""

from matplotlib import pyplot

import polarbear as pb

runs = pb.example("cma-variants")  # or yours: pb.read("results.csv", direction="minimize")
print(runs)

# %%
# On each of the 60 problems the algorithms are ranked at each of 30 times. Which algorithm comes
# first most often?

rankings = pb.rank(runs)
print(f"{'evaluations':>12}  most often first, alone or tied")
for i in [*range(0, len(rankings.times) - 1, 5), -1]:
    first = rankings.algorithm[rankings.position[i] == 0]
    leads = {name: int((first == code).sum()) for code, name in enumerate(rankings.algorithms)}
    leader = max(leads, key=lambda name: leads[name])
    share = leads[leader] / len(rankings.instances)
    print(f"{rankings.times[i]:>12,.0f}  {leader:<7} on {share:.0%} of the problems")

# %%
# The share of problems on which each algorithm beats CSA depends on the time: MXNES leads CSA at
# first, and XNES at the end.

_, ax = pyplot.subplots(figsize=pb.plots.figsize(1), layout="constrained")
for name in ["MXNES", "XNES", "RS"]:
    ax.plot(rankings.times, rankings.win_rate(name, "CSA"), label=name)
ax.axhline(0.5, color="grey", linewidth=0.8)
ax.set(xscale="log", ylim=(0, 1), xlabel="Evaluations", ylabel="Share ahead of CSA")
ax.legend(frameon=False)
