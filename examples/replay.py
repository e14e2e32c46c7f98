"""
What a race would have saved
============================

Race over runs that are there already: who would have been left out when, and what would not have
been run?
"""

import polarbear as pb

runs = pb.example()  # or yours: pb.read("results.csv", direction="minimize")
raced = pb.replay(runs, pb.Rules(alpha=0.95))
print(raced)

# %%
# Round by round: how sure one is that somebody is dominated, and how many pairs are resolved.

pb.plots.evolution(raced)

# %%
# On how many problems each was run until when. Light places are what was saved.

pb.plots.allocation(raced)
