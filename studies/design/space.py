"""Configurations of modular CMA-ES, and who proposes them: chance, or a sampler of Optuna."""

from collections.abc import Mapping, Sequence
from typing import Any

from tools.records import seeded

SPACE: Mapping[str, tuple[Any, ...]] = {
    "ssa": ("CSA", "MSR", "TPA", "XNES", "MXNES", "LPXNES", "PSR"),
    "matrix_adaptation": ("COVARIANCE", "SEPARABLE", "MATRIX", "CHOLESKY", "CMSA", "NONE"),
    "weights": ("DEFAULT", "EQUAL", "EXPONENTIAL"),
    "mirrored": ("NONE", "MIRRORED", "PAIRWISE"),
    "restart_strategy": ("RESTART", "IPOP", "BIPOP"),
    "active": (False, True),
    "elitist": (False, True),
    "orthogonal": (False, True),
    "sequential_selection": (False, True),
    "sample_sigma": (False, True),
    "threshold_convergence": (False, True),
    "repelling_restart": (False, True),
}


def by_chance(number: int, told: Sequence[tuple[Mapping[str, Any], float]]) -> dict[str, Any]:
    """The proposal with this number, whatever came of those before."""
    del told
    rng = seeded("design", number)
    return {name: choices[rng.integers(len(choices))] for name, choices in SPACE.items()}


def by_optuna(number: int, told: Sequence[tuple[Mapping[str, Any], float]]) -> dict[str, Any]:
    """What Optuna's TPE proposes after what it was told: options, and what they were worth.

    The study is made anew each time: a proposal depends on what was told, and on nothing else.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    kinds: dict[str, Any] = {
        name: optuna.distributions.CategoricalDistribution(choices)
        for name, choices in SPACE.items()
    }
    sampler = optuna.samplers.TPESampler(seed=number)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    for options, worth in told:
        made = optuna.trial.create_trial(params=dict(options), distributions=kinds, value=worth)
        study.add_trial(made)
    return study.ask(fixed_distributions=kinds).params


PROPOSERS = {"chance": by_chance, "optuna": by_optuna}
