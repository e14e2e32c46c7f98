"""Whether posteriors of many algorithms are found and trusted, and what they cost.

Run it from the project's folder: python benchmarks/many_algorithms.py [--quick]

Truths are drawn from the default prior (even seeds) and from the paper's GP (odd seeds). The mode
is checked with the plain gradient of ``passes.py``, which shares no code with the engine. It takes
about 20 minutes of CPU. It is not part of ``run.py``, for it measures no ratio.
"""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from measuring import Figures, apart, keep, load, make_parser, peak, table
from passes import plain_pass

import polarbear as pb
from polarbear.calibration.population import fit_utilities, to_dense_positions
from polarbear.simulation import PAPER_PRIOR, PRIORS, draw_truth, simulate_rankings

QUICK_CPU_SECONDS = 9

ALGORITHMS, INSTANCES, TIMES, SEEDS = (100, 200, 300), 100, 20, 20
PRIOR_ALGORITHMS, PRIOR_SEEDS = 30, 2
TRUTHS = (PRIORS["Dirichlet"], PAPER_PRIOR)
WORKERS = 2

ABOUT = (
    f"Posteriors of n algorithms on {INSTANCES} instances at {TIMES} times. Slope: the largest "
    "derivative of the log-posterior by a log-utility at the mode with `Dirichlet()`, by a plain "
    f"gradient (the prior alone has slopes up to {max(ALGORITHMS) - 1}). Slope, decrement, k-hat "
    "and error are the worst of all seeds. Mode and fit are CPU seconds, medians; GB is the "
    "largest peak."
)


def fit_one(prior: str, n: int, seed: int) -> Figures:
    """Diagnostics, CPU seconds and memory of one posterior, and the slope at the mode."""
    truth = TRUTHS[seed % len(TRUTHS)]
    utilities, _ = draw_truth(truth, np.linspace(0, 1, TIMES), n, seed)
    rankings = simulate_rankings(utilities, INSTANCES, seed)
    begin = time.process_time()
    mode = fit_utilities(rankings)
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
    order = to_dense_positions(rankings).argsort(axis=2)
    rating = np.exp(mode - mode.max(axis=1, keepdims=True))
    rating /= rating.sum(axis=1, keepdims=True)
    slope = plain_pass(order, mode)[1] + 1 - mode.shape[1] * rating
    return float(np.abs(slope).max())


def summarise(found: list[Figures]) -> list[str]:
    """Cells of a table: how many are trusted, the worst diagnostics, the median cost."""

    def worst(name: str) -> float:
        return max(one[name] for one in found)

    cost = [f"{np.median([one[name] for one in found]):.1f}" for name in ("mode", "fit")]
    return [
        f"{sum(one['trusted'] for one in found)} of {len(found)}",
        f"{worst('slope'):.0e}",
        f"{worst('decrement'):.0e}",
        f"{worst('k-hat'):.2f}",
        f"{worst('error'):.3f}",
        *cost,
        f"{worst('fit'):.1f}",
        f"{worst('memory') / 1e9:.1f}",
    ]


HEAD = ("trusted", "slope", "decrement", "k-hat", "error", "mode", "fit", "fit at most", "GB")


def fits(prior: str, n: int, seeds: int) -> list[Figures]:
    """One posterior for each seed, two at a time."""
    with ThreadPoolExecutor(WORKERS) as pool:
        found = list(pool.map(lambda seed: apart(fit_one, prior, n, seed), range(seeds)))
    print(prior, n, *summarise(found), flush=True)
    return found


def rows_of_sizes(quick: bool) -> Iterator[list[str]]:
    """Rows for the default prior: one for each number of algorithms."""
    for n in (PRIOR_ALGORITHMS,) if quick else ALGORITHMS:
        yield [f"{n:,}", *summarise(fits("Dirichlet", n, 2 if quick else SEEDS))]


def rows_of_priors(quick: bool) -> Iterator[list[str]]:
    """Rows for each prior."""
    for prior in ("Dirichlet", "BSpline") if quick else PRIORS:
        seeds = 1 if quick else PRIOR_SEEDS
        yield [f"`{prior}`", *summarise(fits(prior, PRIOR_ALGORITHMS, seeds))]


def main() -> None:
    wanted = make_parser(__doc__).parse_args()
    before = load()
    text = "\n\n".join(
        [
            ABOUT,
            "## The default prior",
            table(("n", *HEAD), rows_of_sizes(wanted.quick)),
            f"## Every prior, {PRIOR_ALGORITHMS} algorithms",
            table(("prior", *HEAD), rows_of_priors(wanted.quick)),
        ]
    )
    print(text)
    if not wanted.quick:
        keep("many_algorithms", "Many algorithms", before, text)


if __name__ == "__main__":
    main()
