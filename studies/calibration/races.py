"""(d) Two identical algorithms, and (e) races of five that all belong in the Pareto set."""

from collections.abc import Mapping
from functools import partial

import numpy as np
from cells import Cell, Model, seeded
from models import fit, lost, models

from polarbear.testing import simulate_rankings

ALPHA = (0.95, 0.99)
IDENTICAL_TIMES, IDENTICAL_INSTANCES = (1, 5, 20, 100), 32
LOOKS = tuple(range(8, 377, 8))
IDENTICAL_SHARE = {"HierarchicalDirichlet": 20}
RACE_SHARE = {"Dirichlet": 1, "HierarchicalDirichlet": 10, "BSpline": 10, "RandomWalk": 10}
"""One in so many of the data sets is for a prior: some take longer."""

DRAWS = 1000
"""Of each look: the standard error of a joint probability of 0.95 is then 0.007."""


def identical(n_times: int, model: Model, replicate: int) -> Mapping[str, np.ndarray]:
    """Two that are the same, and whoever is ahead on an instance is so at all times."""
    rng = seeded("identical", n_times, replicate)
    level = np.zeros((n_times, 2))
    rankings = simulate_rankings(level, IDENTICAL_INSTANCES, rng, persistence=np.inf)
    return {"lost": np.array(lost(fit(rankings, model), ALPHA))}


def wide() -> np.ndarray:
    """The first leads at most of 30 times; each of four others is ahead of it at seven.

    A challenger beats the leader with probability 0.52 at its own seven times, which are nobody
    else's, and with 0.35 elsewhere. So nobody is dominated: all five are in the Pareto set.
    """
    utilities = np.full((30, 5), np.log(0.35 / 0.65))
    utilities[:, 0] = 0.0
    for k in range(4):
        utilities[7 * k : 7 * k + 7, k + 1] = np.log(0.52 / 0.48)
    return utilities


def race(
    persistence: float, looks: tuple[int, ...], model: Model, replicate: int
) -> Mapping[str, np.ndarray]:
    """Whether a member was lost at any look; everybody goes on running, lost or not."""
    rng = seeded("wide", persistence, replicate)
    rankings = simulate_rankings(wide(), looks[-1], rng, persistence=persistence)
    ever = np.zeros((2, len(ALPHA)), dtype=bool)
    for look in looks:
        posterior = fit(rankings.take(np.arange(look)), model, draws=DRAWS)
        ever |= lost(posterior, ALPHA)
        if ever.all():
            break
    return {"lost": ever}


def cells(quick: bool, races: int) -> list[Cell]:
    if quick:
        few = models("Dirichlet", "RandomWalk")
        return [
            *(
                Cell("identical", f"T{t}", partial(identical, t), dict.fromkeys(few, 10))
                for t in (1, 20)
            ),
            Cell("race", "L0.5", partial(race, 0.5, (8, 64)), dict.fromkeys(few, 2)),
        ]
    # Four hundred of the default; fewer of what takes longer.
    found = []
    for n_times in IDENTICAL_TIMES:
        wanted = {model: races // IDENTICAL_SHARE.get(model.prior, 1) for model in models()}
        found.append(Cell("identical", f"T{n_times}", partial(identical, n_times), wanted))
    for persistence in (0.5, np.inf):
        wanted = {model: races // RACE_SHARE.get(model.prior, 20) for model in models()}
        measure = partial(race, persistence, LOOKS)
        found.append(Cell("race", f"L{persistence:g}", measure, wanted))
    return found
