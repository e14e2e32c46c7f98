"""(b) Real runs: recorded pools as populations, from which instances are drawn."""

from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path

import numpy as np
from calibration.cells import Cell, Model, seeded
from calibration.known import counts
from calibration.models import fit, models

from polarbear.calibration.population import Truth
from polarbear.calibration.tally import tally_claims
from polarbear.data.rankings import Rankings, select_times
from polarbear.simulation import rank_costs

POOLS = ("mabbob_d10", "mabbob_d5")
INSTANCES = (16, 64, 256)


@cache
def pool(name: str) -> Rankings:
    """A recorded pool at all its 60 times."""
    path = Path(__file__).parent / "pools" / f"{name}.npz"
    with np.load(path, allow_pickle=False) as file:
        positions, algorithms = file["position"], file["algorithms"].tolist()
        return rank_costs(
            positions.astype(np.float64), algorithms=algorithms, times=file["times"].astype(float)
        )


@cache
def population(name: str) -> tuple[Rankings, Truth]:
    """The pool at 30 times, and the model that is nearest to it."""
    every_other = select_times(pool(name), np.arange(0, 60, 2))
    return every_other, Truth.of_model(every_other)


def measure(
    name: str, instances: int, replace: bool, model: Model, replicate: int
) -> Mapping[str, np.ndarray]:
    rankings, truth = population(name)
    rng = seeded("recorded", name, instances, replicate)
    chosen = rng.choice(len(rankings.instances), instances, replace=replace)
    posterior = fit(rankings.take(chosen), model)
    return counts(tally_claims(posterior, truth))


def cells(quick: bool, replicates: int) -> list[Cell]:
    if quick:
        wanted = dict.fromkeys(models("Dirichlet", "RandomWalk"), 2)
        grid = [("mabbob_d10", 16)]
    else:
        wanted = dict.fromkeys(models(), replicates)
        grid = [(name, i) for name in POOLS for i in INSTANCES]
    return [
        Cell("recorded", f"{name}-P{i}", partial(measure, name, i, True), wanted)
        for name, i in grid
    ]
