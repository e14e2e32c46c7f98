"""
What a race would have saved
============================

Race over recorded runs: which algorithms would have been eliminated when, and which runs would not
have been needed?
"""

import polarbear as pb

runs = pb.example("cma-variants")  # or yours: pb.read("results.csv", direction="minimize")
raced = pb.replay(runs, pb.ParetoSet(certainty=0.95))
print(raced)

# %%
# Round by round: the probability that each algorithm is dominated, and the share of resolved pairs.

pb.plots.evolution(raced)

# %%
# The number of problems on which each algorithm was run, by time. Light areas were saved.

pb.plots.allocation(raced)
