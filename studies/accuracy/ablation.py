"""Each correction of the fast engine switched off, one by one: writes ablation.md.

python studies/accuracy/ablation.py            # some minutes; goes on where it was stopped
python studies/accuracy/ablation.py "sweep, GP"
python studies/accuracy/ablation.py --quick    # one case, three corrections
python studies/accuracy/ablation.py --table    # the table again, from results/ablation.json
"""

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from accuracy.scenarios import SCENARIOS
from calibration.models import MODEL

import polarbear as pb
from polarbear.data.rankings import Rankings
from polarbear.simulation import PRIORS, draw_persistent_noise, rank_costs, simulate_rankings

QUICK_CPU_SECONDS = 3

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results" / "ablation.json"
SEEDS = 3
MATTERS = 0.005
"""A correction that moves no probability by more than this, on average over seeds, can go."""

GONE = """
Deleted, because they moved nothing:

- The copula compared directions rotated to common ones (in commit 14584909). Over 12 seeds that
  moved 0.0026 with 4 instances, where other seeds moved 0.0038, and over 10 seeds 0.0059 with 2
  instances, where other seeds moved 0.0044.
- HMC jumped on the grid of hyperparameters (in commit 37149269). Over 8 seeds that moved 0.0050
  (other seeds 0.0049), 0.0051 (0.0038), 0.0068 (0.0069) and 0.0049 (0.0042) in the four cases
  found in which it acts, and fits with HMC take a third of the time without it.
- Leads of draws shifted to the probabilities of pairs (in commit 5b7133dc). It acted with one or
  two instances and the two priors of independent times (it moved 0.23 here), whose verdicts are
  counted from duels now. With BSpline, RandomWalk and GP and 3 to 48 instances it moved nothing.

Kept although they move nothing beyond the noise, because they save time: equal times merged (here
0.85 to 1.45 times the time without); a doubtful k-hat measured again (not in play in these cases;
with 4 algorithms, 10 instances and 400 times 6.5 times the time without); skewed draws of many
shifted (1.5 to 1.9 times with 12 and 30 algorithms); the mean instead of the mode and more draws
without weights (1.2 times with 200 algorithms). Measured is the model alone, which is by default
only the prior of what is counted.
"""

Switches = dict[str, Any]  # what replaces which name of polarbear.inference


def _weigh_equally(log_ratio: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.full(log_ratio.shape, 1 / len(log_ratio)), np.zeros(log_ratio.shape[1])


def _weigh_plainly(log_ratio: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    from polarbear.inference.psis import smooth_weights

    weight = np.exp(log_ratio - log_ratio.max(axis=0))
    return weight / weight.sum(axis=0), smooth_weights(log_ratio).k_hat


def _count_ahead(utilities: np.ndarray, *_: Any, **__: Any) -> np.ndarray:
    mu = utilities.swapaxes(0, 1)
    both = np.ones((mu.shape[1], mu.shape[2], mu.shape[2]), dtype=bool)
    for at in mu:
        both &= at[:, :, None] > at[:, None, :]
    return both.mean(axis=0)


CORRECTIONS: dict[str, Switches] = {
    "skewed marginals": {"laplace.independent.find_skew": lambda *_: None},
    "skewed draws of many shifted": {"laplace.independent.SKEW_SHIFTS": 0},
    "importance weights": {"laplace.mixture.smooth_weights": _weigh_equally},
    "Pareto smoothing of weights": {"laplace.mixture.smooth_weights": _weigh_plainly},
    "HMC where weights fail": {
        "laplace.engine.unreliable_blocks": lambda sample, _: np.zeros(len(sample.k_hat), bool)
    },
    "HMC rotates the other times": {"laplace.engine.CoupledBlocks": lambda *_: None},
    "grid laid again by corrected evidence": {"laplace.engine.MAX_BOUNDARY_MASS": np.inf},
    "evidence of other blocks in weights": {
        "laplace.mixture.compute_log_shifts": lambda mixture, _: np.repeat(
            -mixture.log_correction[:, None], mixture.components[0].shape[0], axis=1
        )
    },
    "doubtful k-hat measured again": {"laplace.sampling.MAX_DOUBTFUL_SHARE": 0.0},
    "mean instead of mode": {
        "laplace.engine.shift_to_mean": lambda grid, _: grid,
        "laplace.sampling.shift_to_mean": lambda grid, _: grid,
    },
    "more draws without weights": {
        "laplace.engine.count_curves": lambda *_: 0,
        "laplace.sampling.count_curves": lambda *_: 0,
    },
    "closed form of pairs": {"laplace.engine._closed_form_mixture": lambda *_: None},
    "joint statements calibrated": {"posterior.prob_ahead_everywhere_matrix": _count_ahead},
    "repetitions weighed": {"laplace.ranking_model.has_repetitions": lambda _: False},
    "repetitions shrunk to a sphere": {
        "laplace.repetitions._shrink_to_sphere": lambda matrix, _: matrix
    },
    "copula over times": {"laplace.engine._correlate_times": lambda *given: given[2]},
    "copula and sandwich shrunk": {
        "laplace.engine.shrinkage_at_times": lambda rankings: np.zeros(len(rankings.times))
    },
    "sandwich": {"laplace.engine._apply_sandwich": lambda *given: given[3]},
    "sandwich keeps the weights": {"laplace.engine.match_moments": lambda wide, *_: wide},
    "classes: closest Gaussian": {"laplace.by_instance.improve_gaussian": lambda fit: fit},
    "equal times merged": {
        "laplace.engine.merge_equal_times": lambda rankings: (
            rankings,
            np.arange(len(rankings.times)),
        )
    },
}


def lasting(n: int, instances: int, times: int, luck: float, seed: int = 0) -> Rankings:
    """Runs whose luck lasts for the share ``luck`` of the time axis."""
    rng = np.random.default_rng(seed)
    mu = np.linspace(0.8, 0.0, n) * np.linspace(0.5, 1.5, times)[:, None]
    noise = draw_persistent_noise(np.linspace(0, 1, times), (instances, n), luck, rng)
    return rank_costs(-(mu[:, None] + noise))


def repeated(instances: int, repetitions: int, times: int, effect: float = 1.0) -> Rankings:
    """Four algorithms, several comparisons on each instance that share some of their luck."""
    rng = np.random.default_rng(5)
    mu = np.array([0.6, 0.3, 0.0, 0.0]) + effect * rng.normal(size=(instances, 4))
    costs = -np.repeat(mu, repetitions, axis=0) - rng.gumbel(
        size=(times, instances * repetitions, 4)
    )
    rankings = rank_costs(costs)
    instance = np.repeat(np.arange(instances), repetitions)
    return replace(
        rankings,
        instances=tuple(f"i{k}" for k in range(instances)),
        instance=instance,
        weight=np.full(len(instance), 1 / repetitions),
    )


def moody() -> Rankings:
    """One algorithm is the first or the last."""
    rng = np.random.default_rng(3)
    costs = rng.gumbel(size=(5, 80, 4)) * 0.3
    costs[..., 1] += np.where(rng.random(80) < 0.6, 3.0, -3.0)
    return rank_costs(costs)


def clear(n: int, instances: int, times: int, seed: int = 1) -> Rankings:
    """Utilities spread evenly; the first always wins and the last always loses."""
    mu = np.tile(np.linspace(2, 0, n), (times, 1))
    mu[:, 0], mu[:, -1] = 100.0, -100.0
    return simulate_rankings(mu, instances, np.random.default_rng(seed))


def families() -> Rankings:
    """Three classes of instances, the smallest with four."""
    sizes = (20, 8, 4)
    mu = np.repeat([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 4.0]], sizes, axis=0)
    rankings = simulate_rankings(np.stack([mu, 1.5 * mu]), sum(sizes), np.random.default_rng(8))
    names = np.repeat(["a", "b", "c"], sizes).tolist()
    return rankings.with_instance_data({"instance": rankings.instances, "family": names})


DEFAULT, SOME = ("Dirichlet",), ("Dirichlet", "HierarchicalDirichlet", "GP")
DATA: dict[str, tuple[Callable[[], Rankings], tuple[str, ...]]] = {
    "1 instance": (partial(lasting, 4, 1, 6, 1.0), SOME[:2]),
    "2 instances": (partial(lasting, 5, 2, 20, 1.0), SOME[::2]),
    "clear, 12 algorithms": (partial(clear, 12, 6, 8), SOME[:2]),
    "5 repetitions": (partial(repeated, 12, 5, 3), DEFAULT),
    "clear, 30 algorithms": (partial(clear, 30, 10, 3), DEFAULT),
    "lasting luck, 20 instances": (partial(lasting, 4, 20, 20, 0.5), SOME),
    "200 algorithms": (partial(clear, 200, 15, 1), DEFAULT),
    "classes": (families, DEFAULT),
    "lasting luck, 4 instances": (partial(lasting, 5, 4, 20, 0.5), SOME[:2]),
    "20 repetitions": (partial(repeated, 40, 20, 1), DEFAULT),
    "moody": (moody, DEFAULT),
    "equal times": (partial(lasting, 4, 20, 40, np.inf), DEFAULT),
}


def list_cases() -> list[tuple[str, str]]:
    """Return the data and the prior of each case."""
    cases = [("sweep", prior) for prior in (*SOME, "BSpline")]
    cases += [(data, prior) for data, (_, priors) in DATA.items() for prior in priors]
    return [*cases, ("middle", "Dirichlet"), ("large", "Dirichlet"), ("large", "BSpline")]


class Case:
    """Data and a prior, the probabilities of the engine, and those of NUTS if they are known."""

    def __init__(self, data: str, prior: str) -> None:
        self.name, self.reference = f"{data}, {prior}", FOLDER / "reference" / f"{data}-{prior}.npz"
        if data in SCENARIOS:
            self.rankings, self.prior = SCENARIOS[data](), PRIORS[prior]
            self.options: dict[str, Any] = {"evidence": "rankings"}
        else:
            self.rankings, self.prior, self.options = DATA[data][0](), PRIORS[prior], {}
            if self.prior == pb.priors.Dirichlet():
                self.prior = MODEL  # the default counts
        if data == "classes":
            self.options = {"classes": "family"}

    def state(self, seeds: range) -> tuple[dict[str, np.ndarray], float]:
        """Return the probabilities, as means over seeds, and the CPU seconds of a fit."""
        said: dict[str, list[np.ndarray]] = {}
        spent = 0.0
        for seed in seeds:
            begin = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                posterior: Any = pb.fit(self.rankings, self.prior, seed=seed, **self.options)
            parts = posterior.by_class().values() if "classes" in self.options else [posterior]
            many = len(self.rankings.algorithms) > 50
            for kind in ("ahead", "always", "replaces", "worth")[: 1 if many else 4]:
                said.setdefault(kind, []).append(np.stack([_state(one, kind) for one in parts]))
            spent += time.process_time() - begin
        return {kind: np.mean(each, axis=0) for kind, each in said.items()}, spent / len(seeds)

    def error(self, said: dict[str, np.ndarray]) -> float | None:
        """Return the largest difference of P(ahead), or P(always ahead), to NUTS."""
        if not self.reference.exists():
            return None
        with np.load(self.reference) as nuts:
            others = ~np.eye(nuts["ahead"].shape[-1], dtype=bool)
            both = [np.abs(said[kind][0] - nuts[kind])[..., others] for kind in ("ahead", "always")]
        return float(max(one.max() for one in both))


def _state(posterior: pb.Posterior, kind: str) -> np.ndarray:
    names = posterior.algorithms
    if kind == "ahead":
        return posterior.prob_better()
    if kind == "always":
        return posterior.prob_dominates()
    if kind == "worth":
        return np.array(list(posterior.prob_in_pareto().values()))
    return np.array([posterior.prob_replaces(a, b) for a, b in permutations(names, 2)])


@contextmanager
def switched(switches: Switches) -> Iterator[None]:
    """Replace names of modules for a while."""
    before: list[tuple[Any, str, Any]] = []
    for path, value in switches.items():
        module, name = path.rsplit(".", 1)
        home = import_module(f"polarbear.inference.{module}")
        before.append((home, name, getattr(home, name)))
        setattr(home, name, value)
    try:
        yield
    finally:
        for home, name, value in before:
            setattr(home, name, value)


def find_active(case: Case) -> set[str]:
    """Return the corrections that a fit of the case calls; those by numbers always count."""
    called = set[str]()

    def note(name: str, original: Any, *given: Any, **options: Any) -> Any:
        called.add(name)
        return original(*given, **options)

    wrapped: Switches = {}
    for name, switches in CORRECTIONS.items():
        for path in switches:
            module, attribute = path.rsplit(".", 1)
            original = getattr(import_module(f"polarbear.inference.{module}"), attribute)
            if not callable(original):
                called.add(name)
            else:
                wrapped[path] = partial(note, name, wrapped.get(path, original))
    with switched(wrapped):
        case.state(range(1))
    return called


def largest(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> tuple[float, str]:
    """Return the largest difference of two sets of probabilities, and of which kind it is."""
    return max((float(np.abs(a[kind] - b[kind]).max()), kind) for kind in a)


def measure(
    case: Case, known: dict[str, Any], seeds: int, chosen: Collection[str] = CORRECTIONS
) -> Iterator[dict[str, Any]]:
    """Yield what each correction that is not known yet moves, beside what other seeds move."""
    active = find_active(case)
    missing = [name for name in chosen if name in active and name not in known]
    if not missing:
        return
    (one, _), (first, spent) = case.state(range(1)), case.state(range(seeds))
    if "all" not in known:
        noise, _ = largest(first, case.state(range(seeds, 2 * seeds))[0])
        known |= {"all": {"noise": noise, "error": case.error(first), "seconds": spent}}
    for name in missing:
        with switched(CORRECTIONS[name]):
            try:
                without, seconds = case.state(range(1))
                moved, kind, error = 0.0, "", None
                if largest(one, without)[0]:  # else it is not in play
                    without, seconds = case.state(range(seeds))
                    moved, kind = largest(first, without)
                    error = case.error(without)
            except (ArithmeticError, ValueError) as problem:  # the correction prevents it
                yield (known := known | {name: {"fails": str(problem)[:80]}})
                continue
        row = {"moved": moved, "kind": kind, "error": error, "seconds": seconds}
        yield (known := known | {name: row})


def write_table(found: dict[str, Any]) -> str:
    """Return the table: of each correction, where it moves most, beyond the noise of seeds."""
    lines = [
        "Each correction of the fast engine, switched off by itself: the largest change of a",
        "probability (ahead at a time, always ahead, replaces, worth running), as a mean over",
        f"{SEEDS} seeds, beside the change by other seeds in the same case; in how many of the",
        f"cases in which it acts it is more than {MATTERS} beyond that noise; the largest",
        "difference to long NUTS over the cases with one (sweep, middle, large), with it and",
        "without; and the CPU time without it.",
        f"`python studies/accuracy/ablation.py`; {len(found)} of {len(list_cases())} cases are",
        "measured, some of them in part.",
        "",
        "| correction | moves | noise | of | where | cases | NUTS, with | without | CPU |",
        "|---|--:|--:|---|---|--:|--:|--:|--:|",
    ]
    rows: list[tuple[float, str]] = []
    for name in CORRECTIONS:
        own = {
            c: rows[name] | {"noise": rows["all"]["noise"]}
            for c, rows in found.items()
            if name in rows
        }
        fails = [c for c, one in own.items() if "fails" in one]
        own = {c: one for c, one in own.items() if "fails" not in one}
        if not own:
            rows.append((-2.0, f"| {name} | not measured yet | | | | | | | |"))
            continue
        where = max(own, key=lambda c: own[c]["moved"] - own[c]["noise"])
        top = own[where]
        count = sum(one["moved"] - one["noise"] > MATTERS for one in own.values())
        moved = {c for c, one in own.items() if one["moved"] > 0 and one["error"] is not None}
        with_it = max((found[c]["all"]["error"] for c in moved), default=None)
        without = max((own[c]["error"] for c in moved), default=None)
        spent = sum(found[c]["all"]["seconds"] for c in own)
        ratio = sum(one["seconds"] for one in own.values()) / spent
        errors = " | ".join("" if x is None else f"{x:.4f}" for x in (with_it, without))
        also = f"; fails: {'; '.join(fails)}" if fails else ""
        acts = sum(one["moved"] > 0 for one in own.values())
        text = f"| {name} | {top['moved']:.4f} | {top['noise']:.4f} | {top['kind']} | {where}{also}"
        text += f" | {count} of {acts} | {errors} | {ratio:.2f} |"
        rows.append((top["moved"] - top["noise"] if acts else -1.0, text))
    return "\n".join([*lines, *(text for _, text in sorted(rows, reverse=True))]) + "\n" + GONE


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case", nargs="*", help="such as 'sweep, GP'; by default all")
    parser.add_argument("--correction", action="append", help="only this one; may be repeated")
    parser.add_argument("--quick", action="store_true", help="small: does it run at all?")
    parser.add_argument("--table", action="store_true", help="write the table from what is there")
    wanted = parser.parse_args()
    if wanted.quick:
        print(next(measure(Case("middle", "Dirichlet"), {}, 1)))
        return
    found: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for data, prior in [] if wanted.table else list_cases():
        name = f"{data}, {prior}"
        if wanted.case and name not in wanted.case:
            continue
        chosen = wanted.correction or CORRECTIONS
        for known in measure(Case(data, prior), found.get(name, {}), SEEDS, chosen):
            found[name] = known
            RESULTS.parent.mkdir(exist_ok=True)
            RESULTS.write_text(json.dumps(found, indent=0) + "\n")
    (FOLDER / "ablation.md").write_text(write_table(found))


if __name__ == "__main__":
    main()
