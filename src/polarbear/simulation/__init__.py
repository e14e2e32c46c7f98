"""Simulated data with known truth, for tests, benchmarks and studies.

``draw_truth`` draws utilities from a prior, ``simulate_rankings`` and ``simulate_runs`` make data
of them. At every time the data follow a Plackett-Luce model. Parameters set the autocorrelation
over time, how much instances differ, ties, crashes and censoring. May import data and priors.
"""

from polarbear.simulation.simulate import (
    draw_noisy_utilities,
    draw_persistent_noise,
    rank_costs,
    simulate_rankings,
    simulate_runs,
)
from polarbear.simulation.truth import PAPER_PRIOR, PRIORS, draw_truth

__all__ = [
    "PAPER_PRIOR",
    "PRIORS",
    "draw_noisy_utilities",
    "draw_persistent_noise",
    "draw_truth",
    "rank_costs",
    "simulate_rankings",
    "simulate_runs",
]
