"""
Classical figures of the same runs
==================================

ECDF, AOCC and differences of empirical attainment. Unlike rankings, they need a range of values.
moocore computes the last ones: ``pip install 'polarbear-race[classical]'``
"""

import polarbear as pb

runs = pb.example("cma-variants")  # or yours: pb.read("results.csv", direction="minimize")

# %%
# The share of targets reached by each time, averaged over runs:

pb.plots.ecdf(runs)

# %%
# The area under each of these curves:

pb.plots.aocc(runs)

# %%
# Which of two algorithms reaches a value by a time more often? Each leads in some region, as in
# :doc:`pairs`.

pb.plots.eaf_difference(runs, "CSA", "XNES")
