"""
Can the certainty be trusted?
=============================

Take samples of the problems, and count how often what is claimed from a sample is true of all of
them.
"""

import polarbear as pb

runs = pb.example()  # or yours: pb.read("results.csv", direction="minimize")
calibration = pb.calibrate(runs, replicates=20)
print(calibration)

# %%
# On the diagonal, claims are calibrated. Below it they are overconfident.

pb.plots.calibration(calibration)
