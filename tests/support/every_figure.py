"""Every figure, from data of every kind: real runs, a simulated example whose truth is known,
thirty algorithms, two, a single time, and a race that has not begun.

python tests/support/every_figure.py [folder]   # writes a PNG of each; without a folder, only draws
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot

import polarbear as pb
from polarbear import plots

mpl.use("Agg")


@dataclass
class Case:
    """What there is to draw: runs, and the truth behind them if it is known."""

    name: str
    runs: pb.Runs
    prior: Any = None
    truth: Any = None
    columns: Any = 1

    @cached_property
    def rankings(self) -> pb.Rankings:
        """Who was ahead."""
        return pb.rank(self.runs)

    @cached_property
    def posterior(self) -> pb.Posterior:
        """How good each is."""
        return pb.fit(self.rankings, prior=self.prior)

    @cached_property
    def race(self) -> Any:
        """What a race over the runs does."""
        return pb.replay(self.runs, pb.ParetoSet(certainty=0.95))

    @property
    def pair(self) -> list[str]:
        """The two that are ahead most often over time."""
        rated = self.posterior.mean().mean(axis=0)
        return [self.runs.algorithms[k] for k in np.argsort(-rated)[:2]]


def simulated(name: str, n: int, instances: int, times: Any, seed: int, **more: Any) -> Case:
    """Runs of algorithms whose true utilities the paper's prior has drawn."""
    truth, _ = pb.simulation.draw_truth(pb.simulation.PAPER_PRIOR, times, n, seed)
    spread = np.linspace(1, -2, n) if n > 8 else np.zeros(n)
    runs = pb.simulation.simulate_runs(truth + spread, instances, seed, times, persistence=0.5)
    order = [int(label[1:]) - 1 for label in runs.algorithms]
    return Case(name, runs, truth=(truth + spread)[:, order], **more)


def cases() -> Iterator[Case]:
    """All but the empty race."""
    yield Case("mabbob", pb.example("cma-variants"))
    yield simulated("synthetic", 5, 100, np.linspace(0, 1, 15), 3, prior=pb.priors.BSpline())
    yield simulated("thirty", 30, 40, np.geomspace(100, 1e5, 8), 2, columns=2)
    yield simulated("two", 2, 60, np.geomspace(1, 1000, 15), 5)
    yield simulated("one_time", 4, 60, np.array([60.0]), 1)


FIGURES: dict[str, Callable[[Case], Any]] = {
    "ribbon": lambda case: plots.ribbon(case.posterior, columns=case.columns),
    "ratings": lambda case: plots.ratings(case.posterior, truth=case.truth, columns=case.columns),
    "ratings_linear": lambda case: plots.ratings(
        case.posterior, time="linear", columns=case.columns
    ),
    "values": lambda case: plots.values(case.posterior, columns=case.columns),
    "evolution": lambda case: plots.evolution(case.race, columns=case.columns),
    "allocation": lambda case: plots.allocation(case.race, columns=case.columns),
    "pairs": lambda case: plots.pairs(case.posterior, certainty=0.95, columns=case.columns),
    "pairs_at_a_time": lambda case: plots.pairs(
        case.posterior, case.posterior.times[0], certainty=0.95, columns=case.columns
    ),
    "crossings": lambda case: plots.crossings(
        case.posterior, *case.pair, certainty=0.95, rankings=case.rankings
    ),
    "ecdf": lambda case: plots.ecdf(
        case.runs, pareto=case.posterior.pareto(), columns=case.columns
    ),
    "aocc": lambda case: plots.aocc(
        case.runs, pareto=case.posterior.pareto(), columns=case.columns
    ),
    "eaf_difference": lambda case: plots.eaf_difference(case.runs, *case.pair),
}


def sheet(case: Case) -> Any:
    """Four figures on one sheet for two columns of a paper."""
    _, axes = pyplot.subplots(2, 2, figsize=plots.figsize(2, height=5.2), layout="constrained")
    plots.ratings(case.posterior, axes[0, 0])
    plots.values(case.posterior, pb.preferences.between(3_000, 10_000), axes[0, 1])
    plots.crossings(case.posterior, "CSA", "XNES", axes[1, 0], certainty=0.95)
    return plots.evolution(case.race, axes[1, 1])


def draw() -> Iterator[tuple[str, Any]]:
    """The name and the axes of every figure."""
    for case in cases():
        for name, figure in FIGURES.items():
            try:
                yield f"{case.name}-{name}", figure(case)
            except pb.errors.MissingDependency as error:
                print(f"{case.name}-{name} is left out: {error}")
        if case.name == "mabbob":
            yield "sheet", sheet(case)
        if case.name == "two":
            found = pb.calibrate(case.rankings, replicates=40)
            yield f"{case.name}-calibration", plots.calibration(found)
    race = pb.Race(["a", "b", "c"], [1, 10, 100], direction="minimize")
    for figure in (
        plots.ribbon,
        plots.ratings,
        plots.values,
        plots.evolution,
        plots.allocation,
        plots.pairs,
    ):
        yield f"empty-{figure.__name__}", figure(race)


def main(folder: str | None = None) -> None:
    """Draw everything."""
    for name, ax in draw():
        ax.figure.canvas.draw()
        if folder is not None:
            Path(folder).mkdir(parents=True, exist_ok=True)
            ax.figure.savefig(Path(folder) / f"{name}.png", dpi=200)
        pyplot.close(ax.figure)
        print(name, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:2])
