"""Long NUTS runs (PyMC model, nutpie sampler) of every prior on every scenario.

    python studies/accuracy/reference.py            # what is missing in reference/
    python studies/accuracy/reference.py sweep GP   # one of them
    python studies/accuracy/reference.py --quick    # short chains of one; most of it is compiling

Needs the extra [pymc], and jax for speed. One core; about two hours for all.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from accuracy.scenarios import SCENARIOS

from polarbear.simulation import PRIORS

QUICK_CPU_SECONDS = 9

FOLDER = Path(__file__).parent / "reference"
DRAWS = {"middle": 10_000, "sweep": 10_000, "large": 5_000}
BATCHES = 50


def sample(scenario: str, prior: str, draws: int, tune: int = 1000) -> dict[str, Any]:
    """Sample, and keep what the comparison needs."""
    import arviz
    import nutpie

    from polarbear.inference.reference.pymc_model import build_pymc_model

    model = build_pymc_model(SCENARIOS[scenario](), PRIORS[prior])
    compiled = nutpie.compile_pymc_model(model, backend="jax", gradient_backend="jax")
    begin = time.process_time()
    trace: Any = nutpie.sample(
        compiled,
        draws=draws,
        tune=tune,
        chains=4,
        cores=1,
        seed=7,
        target_accept=0.9,
        low_rank_modified_mass_matrix=True,
        progress_bar=False,
        blocking=True,
    )
    spent = time.process_time() - begin
    mu = np.asarray(trace.posterior["mu"])  # chain, draw, time, algorithm
    mu = mu.reshape(BATCHES, -1, *mu.shape[2:])
    ahead = np.stack([_pairs(batch) for batch in mu])
    always = np.stack([_always(batch) for batch in mu])
    judged: Any = arviz.rhat(trace.posterior), arviz.ess(trace.posterior)
    rhat = max(float(v.max()) for v in judged[0].data_vars.values())
    ess = min(float(v.min()) for v in judged[1].data_vars.values())
    return {
        "ahead": ahead.mean(axis=0).astype(np.float32),
        "ahead_error": (ahead.std(axis=0, ddof=1) / BATCHES**0.5).astype(np.float32),
        "always": always.mean(axis=0).astype(np.float32),
        "always_error": (always.std(axis=0, ddof=1) / BATCHES**0.5).astype(np.float32),
        "rhat": np.array(rhat),
        "ess": np.array(ess),
        "divergences": np.array(int(trace.sample_stats["diverging"].sum())),
        "cpu_seconds": np.array(spent),
    }


def _pairs(mu: np.ndarray) -> np.ndarray:
    """How often each is ahead of each at each time: (time, algorithm, algorithm)."""
    return np.stack([(at[:, :, None] > at[:, None, :]).mean(axis=0) for at in mu.swapaxes(0, 1)])


def _always(mu: np.ndarray) -> np.ndarray:
    """How often each is ahead of each at all times."""
    both = np.ones((len(mu), mu.shape[-1], mu.shape[-1]), dtype=bool)
    for at in mu.swapaxes(0, 1):
        both &= at[:, :, None] > at[:, None, :]
    return both.mean(axis=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenario", nargs="?", choices=SCENARIOS)
    parser.add_argument("prior", nargs="?", choices=PRIORS)
    parser.add_argument("--quick", action="store_true", help="small: does it run at all?")
    wanted = parser.parse_args()
    if wanted.quick:
        print(sorted(sample("middle", "Dirichlet", draws=BATCHES, tune=50)))
        return
    FOLDER.mkdir(exist_ok=True)
    one = [[wanted.scenario, wanted.prior]] if wanted.prior else []
    for scenario, prior in one or [[s, p] for s in SCENARIOS for p in PRIORS]:
        path = FOLDER / f"{scenario}-{prior}.npz"
        if path.exists() and not one:
            continue
        found = sample(scenario, prior, DRAWS[scenario])
        np.savez_compressed(path, **found)
        print(
            f"{path.name}: rhat {found['rhat']:.4f}, ess {found['ess']:.0f}, "
            f"{found['divergences']} divergences, largest error {found['ahead_error'].max():.4f}, "
            f"{found['cpu_seconds']:.0f} CPU seconds",
            flush=True,
        )


if __name__ == "__main__":
    main()
