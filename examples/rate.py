"""
How good is each, and how sure is that
======================================

Rate algorithms over time with uncertainty, and read who belongs to the anytime Pareto set.
"""

import polarbear as pb

runs = pb.example()  # or yours: pb.read("results.csv", direction="minimize")
posterior = pb.fit(runs)
print(posterior)

# %%
# A rating is the probability to come first of all. Lines are means, and bands hold the rating with
# a probability of 95 %.

pb.plots.ratings(posterior)

# %%
# The same in words. Whatever one values about time, the best choice is among those who belong.

print(posterior.verdict(alpha=0.95))
