"""
Are the probabilities calibrated?
=================================

Fit samples of the problems, and count how often the claims of a sample are true of all problems.
"""

import polarbear as pb

runs = pb.example("cma-variants")  # or yours: pb.read("results.csv", direction="minimize")
calibration = pb.calibrate(runs, replicates=20)
print(calibration)

# %%
# On the diagonal, claims are calibrated. Below it they are overconfident.

pb.plots.calibration(calibration)
