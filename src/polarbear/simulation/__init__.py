"""Simulated data with known truth, for tests, benchmarks and studies.

``draw_truth`` draws utilities from a prior, ``simulate_rankings`` and ``simulate_runs`` make data
of them. At every time the data are Plackett and Luce's; whether a run remembers its luck from one
time to the next, how much instances differ, ties, crashes and early cuts are up to you.
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
