"""Simulated data with known truth, and races that make no runs: replays, and the plan of a race.

``draw_truth`` draws utilities from a prior, ``draw_paper_example`` such as those of the paper's
examples. ``simulate_rankings`` and ``simulate_runs`` make data of them. At every time the data
follow a Plackett-Luce model. Parameters set the autocorrelation over time, how much instances
differ, ties, crashes and censoring. ``replays`` races over recorded runs, and ``power`` simulates
what a race can prove before it starts. May import racing, data and priors.
"""

from polarbear.simulation.paper_examples import draw_paper_example, find_members
from polarbear.simulation.replays import replay_many
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
    "draw_paper_example",
    "draw_persistent_noise",
    "draw_truth",
    "find_members",
    "rank_costs",
    "replay_many",
    "simulate_rankings",
    "simulate_runs",
]
