"""(a) Known truth: n = 5, truth from the paper's synthetic prior, luck that persists or not."""

from collections.abc import Mapping
from functools import partial

import numpy as np
from calibration.cells import Arrays, Cell, Model, seeded
from calibration.models import fit, models

from polarbear.calibration.population import Truth
from polarbear.calibration.tally import Tally, tally_claims
from polarbear.simulation import PAPER_PRIOR, draw_truth, simulate_rankings

ALGORITHMS = 5
TIMES, PERSISTENCE, INSTANCES = (10, 30, 100), (0.0, 0.1, 0.5, np.inf), (16, 64, 256)


def measure(
    n_times: int, persistence: float, instances: int, model: Model, replicate: int
) -> Mapping[str, np.ndarray]:
    rng = seeded("known", n_times, persistence, instances, replicate)
    truth, _ = draw_truth(PAPER_PRIOR, np.linspace(0, 1, n_times), ALGORITHMS, rng)
    rankings = simulate_rankings(truth, instances, rng, persistence=persistence)
    return counts(tally_claims(fit(rankings, model), Truth(truth)))


def counts(tally: Tally) -> Arrays:
    """The arrays of a tally of one posterior."""
    return {name: getattr(tally, name)[0] for name in Tally.__dataclass_fields__}


def cells(quick: bool, replicates: int) -> list[Cell]:
    if quick:
        wanted = dict.fromkeys(models("Dirichlet", "RandomWalk"), 2)
        grid = [(10, 0.0, 16), (10, np.inf, 16)]
    else:
        wanted = dict.fromkeys(models(), replicates)
        grid = [(t, p, i) for t in TIMES for p in PERSISTENCE for i in INSTANCES]
    return [
        Cell("known", f"T{t}-L{p:g}-P{i}", partial(measure, t, p, i), wanted) for t, p, i in grid
    ]
