"""A synthetic twin of a board of coding models: who solved which task, and at which cost.

The truth is known: a model solves a task by a budget with a probability that depends on the model,
the task and the budget. Sizes and the share of ties are those of SWE-bench's bash-only board.
"""

import numpy as np

from polarbear.simulation import rank_costs

BUDGETS = np.geomspace(0.01, 3.0, 16)


def simulate_costs(n_models=25, n_tasks=500, seed=0):
    """Return the cost at which each model solves each task (tasks, models), infinite if never."""
    rng = np.random.default_rng(seed)
    skill, typical_cost = rng.normal(0.6, 0.8, n_models), np.exp(rng.normal(-2.2, 1, n_models))
    difficulty = rng.normal(0, 2.5, (n_tasks, 1))
    chance = 1 / (1 + np.exp(difficulty - skill))
    cost = typical_cost * np.exp(rng.normal(0, 1, (n_tasks, n_models)) + 0.1 * difficulty)
    return np.where(rng.random(chance.shape) < chance, cost, np.inf)


def rank_solved(costs, budgets=BUDGETS):
    """Rank by solved or not at each budget; tied where both solved the task, or neither did."""
    return rank_costs((costs[None] > np.asarray(budgets)[:, None, None]).astype(float))
