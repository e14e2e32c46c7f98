"""Simulated data with known truth, for tests, benchmarks and studies.

``draw_truth`` draws utilities from a prior, ``simulate_rankings`` and ``simulate_runs`` make data
of them. At every time the data are Plackett and Luce's; whether a run remembers its luck from one
time to the next, how much instances differ, ties, crashes and early cuts are up to you.
"""

from polarbear.simulation.simulate import (
    noisy_utilities,
    persistent_noise,
    rankings_of,
    simulate_rankings,
    simulate_runs,
)
from polarbear.simulation.truth import PAPER, PRIORS, draw_truth

__all__ = [
    "PAPER",
    "PRIORS",
    "draw_truth",
    "noisy_utilities",
    "persistent_noise",
    "rankings_of",
    "simulate_rankings",
    "simulate_runs",
]
