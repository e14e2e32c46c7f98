"""Whether posteriors of many algorithms are found and trusted, and what they cost.

Run it from the project's folder: python benchmarks/many_algorithms.py [--quick] [--no-write]

Truths are drawn from the default prior and from the paper's GP, with 20 seeds each. The mode is
checked with the plain gradient of ``passes.py``, which shares no code with the engine. It takes
about 25 minutes of CPU. It is not part of ``run.py``, for it measures no ratio.
"""

import time
from collections.abc import Iterator

import numpy as np
from measuring import Figures, apart, asked, keep, load, peak, table
from passes import plain_pass

import polarbear as pb
from polarbear.calibration.pool import dense_positions, nearest_utilities
from polarbear.testing import PAPER, PRIORS, draw_truth, simulate_rankings

ALGORITHMS, INSTANCES, TIMES, SEEDS = (100, 200, 300), 100, 20, 20
PRIOR_ALGORITHMS, PRIOR_SEEDS = 30, 3
TRUTHS = {"Dirichlet": PRIORS["Dirichlet"], "GP": PAPER}

ABOUT = (
    f"Posteriors of n algorithms on {INSTANCES} instances at {TIMES} times. Slope: the largest "
    "derivative of the log-posterior by a log-utility at the mode with `Dirichlet()`, by a plain "
    f"gradient (the prior alone has slopes up to {max(ALGORITHMS) - 1}). Slope, decrement, k-hat "
    "and error are the worst of all seeds. Mode and fit are CPU seconds, medians; GB is the "
    "largest peak."
)


def fit_one(truth: str, prior: str, n: int, seed: int) -> Figures:
    """Diagnostics, CPU seconds and memory of one posterior, and the slope at the mode."""
    utilities, _ = draw_truth(TRUTHS[truth], np.linspace(0, 1, TIMES), n, seed)
    rankings = simulate_rankings(utilities, INSTANCES, seed)
    begin = time.process_time()
    mode = nearest_utilities(rankings)
    middle = time.process_time()
    posterior = pb.fit(rankings, prior=PRIORS[prior], seed=seed)
    measured = posterior.diagnostics.measured
    return {
        "trusted": posterior.diagnostics.trusted,
        "mode": middle - begin,
        "fit": time.process_time() - middle,
        "slope": steepest(rankings, mode),
        "decrement": measured["Newton decrement"],
        "k-hat": measured["k-hat"],
        "error": measured["error"],
        "memory": peak(),
    }


def steepest(rankings: pb.Rankings, mode: np.ndarray) -> float:
    """The largest slope of the log-posterior with Dirichlet(1) by a utility, at a mode (T, n)."""
    order = dense_positions(rankings).argsort(axis=2)
    rating = np.exp(mode - mode.max(axis=1, keepdims=True))
    rating /= rating.sum(axis=1, keepdims=True)
    slope = plain_pass(order, mode)[1] + 1 - mode.shape[1] * rating
    return float(np.abs(slope).max())


def summarise(fits: list[Figures]) -> list[str]:
    """Cells of a table: how many are trusted, the worst diagnostics, the median cost."""

    def worst(name: str) -> float:
        return max(one[name] for one in fits)

    cost = [f"{np.median([one[name] for one in fits]):.1f}" for name in ("mode", "fit")]
    return [
        f"{sum(one['trusted'] for one in fits)} of {len(fits)}",
        f"{worst('slope'):.0e}",
        f"{worst('decrement'):.0e}",
        f"{worst('k-hat'):.2f}",
        f"{worst('error'):.3f}",
        *cost,
        f"{worst('fit'):.1f}",
        f"{worst('memory') / 1e9:.1f}",
    ]


HEAD = ("trusted", "slope", "decrement", "k-hat", "error", "mode", "fit", "fit at most", "GB")


def rows_of_sizes(quick: bool) -> Iterator[list[str]]:
    """Rows for the default prior: one for each truth and number of algorithms."""
    for truth in TRUTHS:
        for n in ALGORITHMS[: 1 if quick else None]:
            seeds = range(2 if quick else SEEDS)
            fits = [apart(fit_one, truth, "Dirichlet", n, seed) for seed in seeds]
            yield [truth, f"{n:,}", *summarise(fits)]


def rows_of_priors(quick: bool) -> Iterator[list[str]]:
    """Rows for each prior, with truths of the paper's GP."""
    for prior in PRIORS:
        seeds = range(1 if quick else PRIOR_SEEDS)
        fits = [apart(fit_one, "GP", prior, PRIOR_ALGORITHMS, seed) for seed in seeds]
        yield [f"`{prior}`", *summarise(fits)]


def main() -> None:
    wanted = asked(__doc__, "two seeds of the smallest size")
    before = load()
    text = "\n\n".join(
        [
            ABOUT,
            "## The default prior",
            table(("truth", "n", *HEAD), rows_of_sizes(wanted.quick)),
            f"## Every prior, {PRIOR_ALGORITHMS} algorithms",
            table(("prior", *HEAD), rows_of_priors(wanted.quick)),
        ]
    )
    print(text)
    if not wanted.no_write:
        keep("many_algorithms", "Many algorithms", before, text)


if __name__ == "__main__":
    main()
