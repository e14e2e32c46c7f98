"""
Recover known ratings
=====================

Draw true ratings, simulate runs from them, and compare the fit with the truth.
"""

import numpy as np

import polarbear as pb

times = np.linspace(0, 1, 15)
truth, _ = pb.simulation.draw_truth(pb.simulation.PAPER_PRIOR, times, 5, seed=3)
runs = pb.simulation.simulate_runs(truth, 100, seed=3, times=times, persistence=0.5)
posterior = pb.fit(runs, times=times, prior=pb.priors.BSpline())

# %%
# Dotted lines are the true ratings.

pb.plots.ratings(posterior, truth=truth)
