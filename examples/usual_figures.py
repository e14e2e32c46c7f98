"""
The usual figures of the same runs
==================================

ECDF, AOCC and differences of attainment, by iohinspector and moocore: they need a range of values,
which rankings do not. ``pip install 'polarbear-race[classical]'``
"""

import polarbear as pb

runs = pb.example()  # or yours: pb.read("results.csv", direction="minimize")

# %%
# What share of targets was reached by then, on average over runs?

pb.plots.ecdf(runs)

# %%
# The area under each of these curves:

pb.plots.aocc(runs)

# %%
# Which of two reaches a value more often by then? One leads here and the other there, as in
# :doc:`pairs`.

pb.plots.eaf_difference(runs, "CSA", "XNES")
