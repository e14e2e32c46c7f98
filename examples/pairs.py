"""
Pairs, and when the lead changes
================================

For each pair of algorithms: is one ahead of the other at all times, or do they cross?
"""

import polarbear as pb

runs = pb.example("cma-variants")  # or yours: pb.read("results.csv", direction="minimize")
rankings = pb.rank(runs)
posterior = pb.fit(rankings)

# %%
# All pairs. A row that is certainly ahead of a column at all times dominates it: every other
# algorithm dominates RS, random search. An x means that the two certainly cross.

pb.plots.pairs(posterior, certainty=0.95)

# %%
# One pair over time. Where the curve is high, CSA is ahead; where it is low, XNES is. The dots are
# the observed shares of problems on which CSA was ahead, and the thin lines bound their true
# value, however often the data were analysed before (a 95 % confidence sequence).

pb.plots.crossings(posterior, "CSA", "XNES", certainty=0.95, rankings=rankings)

# %%
# When the lead changes, in numbers:

print(pb.plots.crossings_data(posterior, "CSA", "XNES").crossings)
