"""(c) The same runs asked at more times: nobody may get surer of what was asked before."""

from collections.abc import Mapping
from functools import partial

import numpy as np
from calibration.cells import Cell, Model, seeded
from calibration.models import fit, models
from calibration.recorded import pool

import polarbear as pb
from polarbear.data.rankings import Rankings, select_times
from polarbear.simulation import PAPER_PRIOR, draw_truth, simulate_rankings

INSTANCES = 64
SIMULATED = {"L0": 0.0, "L0.5": 0.5, "Linf": np.inf}


def simulated(persistence: float, rng: np.random.Generator) -> tuple[Rankings, np.ndarray]:
    """Rankings at 100 times, and which ten of them are asked first."""
    truth, _ = draw_truth(PAPER_PRIOR, np.linspace(0, 1, 100), 5, rng)
    rankings = simulate_rankings(truth, INSTANCES, rng, persistence=persistence)
    return rankings, np.arange(0, 100, 11)


def recorded(name: str, rng: np.random.Generator) -> tuple[Rankings, np.ndarray]:
    """Rankings at 55 times, and which ten of them are asked first."""
    whole = select_times(pool(name), np.arange(55))
    chosen = rng.choice(len(whole.instances), INSTANCES)
    return whole.take(chosen), np.arange(0, 55, 6)


def measure(kind: str, model: Model, replicate: int) -> Mapping[str, np.ndarray]:
    rng = seeded("refined", kind, replicate)
    known = kind in SIMULATED
    rankings, first = simulated(SIMULATED[kind], rng) if known else recorded(kind, rng)
    coarse, fine = fit(select_times(rankings, first), model), fit(rankings, model)
    row, column = np.triu_indices(len(rankings.algorithms), 1)
    few = coarse.prob_better()[:, row, column]
    many = fine.prob_better()[first][:, row, column]
    everywhere = np.array([_everywhere(posterior) for posterior in (coarse, fine)])
    open_ = (everywhere > 0.05).any(axis=0)
    gain = np.abs(many - 0.5) - np.abs(few - 0.5)
    change = np.diff(everywhere[:, open_], axis=0)
    return {
        # Sums and numbers of: changes at the common times, growth of certainty there, changes of
        # the probability to be ahead everywhere, and growth of that.
        "sums": np.array(
            [np.abs(many - few).sum(), gain.sum(), np.abs(change).sum(), change.sum()]
        ),
        "cases": np.array([few.size, few.size, change.size, change.size]),
    }


def _everywhere(posterior: pb.Posterior) -> np.ndarray:
    names = posterior.algorithms
    return np.array([posterior.prob_dominates(a, b) for a in names for b in names if a != b])


def cells(quick: bool, replicates: int) -> list[Cell]:
    if quick:
        wanted = dict.fromkeys(models("Dirichlet", "RandomWalk"), 1)
        return [Cell("refined", "Linf", partial(measure, "Linf"), wanted)]
    wanted = {model: max(2, replicates * 2 // 3) for model in models()}
    kinds = [*SIMULATED, "mabbob_d10"]
    return [Cell("refined", kind, partial(measure, kind), wanted) for kind in kinds]
