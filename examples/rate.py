"""
Ratings over time, with uncertainty
===================================

Rate algorithms over time, and find the anytime Pareto set.
"""

import polarbear as pb

runs = pb.example("cma-variants")  # or yours: pb.read("results.csv", direction="minimize")
posterior = pb.fit(runs)
print(posterior)

# %%
# A rating is the probability of coming first. Lines are means, and bands are 95 % credible
# intervals.

pb.plots.ratings(posterior)

# %%
# The same in words. For every preference, one that stays is the best choice, up to the margin.

print(posterior.verdict(certainty=0.95))
