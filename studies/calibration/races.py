"""(d) Two identical algorithms, and (e) races of five that all belong in the Pareto set."""

from collections.abc import Mapping
from functools import partial

import numpy as np
from calibration.cells import Cell, Model, seeded
from calibration.models import fit, models, strongest

from polarbear.simulation import simulate_rankings

ALPHA = (0.95, 0.99)
IDENTICAL_TIMES, IDENTICAL_INSTANCES = (1, 5, 20, 100), 32
LOOKS = tuple(range(8, 377, 8))
IDENTICAL_SHARE = {"Dirichlet": 1, "HierarchicalDirichlet": 20}
RACE_SHARE = {"Dirichlet": 8, "BSpline": 40, "RandomWalk": 40}
"""One in so many of the data sets is for a prior: some take longer. The default gets all."""

DRAWS = 1000
"""Of each look: the standard error of a joint probability of 0.95 is then 0.007."""


def identical(n_times: int, model: Model, replicate: int) -> Mapping[str, np.ndarray]:
    """Two that are the same, and whoever is ahead on an instance is so at all times."""
    rng = seeded("identical", n_times, replicate)
    level = np.zeros((n_times, 2))
    rankings = simulate_rankings(level, IDENTICAL_INSTANCES, rng, persistence=np.inf)
    return {"strongest": np.array([strongest(fit(rankings, model))])}


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


def beaten() -> np.ndarray:
    """As before, but the last one never beats the leader with more than 0.4: it is dominated."""
    utilities = wide()
    utilities[:, 4] = np.minimum(utilities[:, 4], np.log(0.4 / 0.6))
    return utilities


def race(
    persistence: float, looks: tuple[int, ...], model: Model, replicate: int
) -> Mapping[str, np.ndarray]:
    """How sure the surest elimination is at each look; all are wrong, and everybody runs on."""
    rng = seeded("wide", persistence, replicate)
    rankings = simulate_rankings(wide(), looks[-1], rng, persistence=persistence)
    seen = [strongest(fit(rankings.take(np.arange(look)), model, draws=DRAWS)) for look in looks]
    return {"strongest": np.array(seen, dtype=np.float32)}


def price(
    persistence: float, looks: tuple[int, ...], model: Model, replicate: int
) -> Mapping[str, np.ndarray]:
    """How sure one is at each look that the leader dominates the one that it does dominate."""
    rng = seeded("beaten", persistence, replicate)
    rankings = simulate_rankings(beaten(), looks[-1], rng, persistence=persistence)
    seen = []
    for look in looks:
        posterior = fit(rankings.take(np.arange(look)), model, draws=DRAWS)
        least = float(posterior.prob_better("a1", "a5").min())
        seen.append([least, posterior.prob_dominates("a1", "a5")])
    return {"strongest": np.array(seen, dtype=np.float32)}


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
        wanted = {model: races // IDENTICAL_SHARE.get(model.prior, 8) for model in models()}
        found.append(Cell("identical", f"T{n_times}", partial(identical, n_times), wanted))
    default = [Model("Dirichlet", "instances")]
    for persistence in (0.5, np.inf):
        wanted = dict.fromkeys(default, races)
        wanted |= {m: races // RACE_SHARE.get(m.prior, 100) for m in models() if m not in wanted}
        measure = partial(race, persistence, LOOKS)
        found.append(Cell("race", f"L{persistence:g}", measure, wanted))
    measure = partial(price, 0.5, LOOKS)
    found.append(Cell("price", "L0.5", measure, dict.fromkeys(default, races // 8)))
    return found
