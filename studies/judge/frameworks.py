"""The acceptance rules of design frameworks, by their own functions where they are installed."""

import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

Scores = Iterator[tuple[float, float]]
"""Scores of the incumbent and of the candidate on one instance after the other."""


class NotInstalledError(Exception):
    """A framework is not installed here."""


def load(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise NotInstalledError(f"not measured here ({error})") from None


class Gepa:
    """GEPA accepts a proposal whose sum of scores on a minibatch is above that of its parent."""

    incumbent_runs, runs_incumbent = 0, 1

    def __init__(self, minibatch: int = 3) -> None:
        self._rule = load("gepa.strategies.acceptance").StrictImprovementAcceptance()
        self._minibatch = minibatch

    def rejects(self, scores: Scores) -> bool:
        before, after = zip(*islice(scores, self._minibatch), strict=True)
        proposal = SimpleNamespace(subsample_scores_before=before, subsample_scores_after=after)
        return not self._rule.should_accept(proposal, None)


class OpenEvolve:
    """OpenEvolve compares scores that its evaluator measured once for each program.

    The evaluator takes the mean over instances: the same for all programs, or new ones each time.
    """

    runs_incumbent = 0

    def __init__(self, n_instances: int = 20, *, same: bool = True) -> None:
        self.incumbent_runs = n_instances
        database = load("openevolve.database")
        config = load("openevolve.config").DatabaseConfig(in_memory=True)
        self._database, self._program = database.ProgramDatabase(config), database.Program
        self._n_instances, self._same = n_instances, same

    def rejects(self, scores: Scores) -> bool:
        n = self._n_instances
        incumbent, candidate = zip(*islice(scores, n), strict=True)
        if not self._same:
            # Other instances: their difficulty is drawn anew for the incumbent.
            rng = np.random.default_rng(abs(hash(candidate)))
            incumbent = rng.normal(size=n)
        programs = [
            self._program(name, "", metrics={"combined_score": float(np.mean(values))})
            for name, values in (("incumbent", incumbent), ("candidate", candidate))
        ]
        return not self._database._is_better(programs[1], programs[0])


class ShinkaEvolve:
    """ShinkaEvolve stops an evaluation early if it is confident about a threshold to beat.

    The threshold is the true mean of the incumbent, which is more than a user would know.
    """

    incumbent_runs, runs_incumbent = 100, 0

    def __init__(self, method: str = "BayesianEarlyStop", max_trials: int = 100) -> None:
        package = find_spec("shinka")
        if package is None or package.origin is None:
            raise NotInstalledError("not measured here (no module named 'shinka')")
        # The file alone: its package imports much that this rule does not need.
        path = Path(package.origin).parent / "utils" / "eval_stop.py"
        spec = spec_from_file_location("eval_stop", path)
        assert spec
        assert spec.loader
        module = module_from_spec(spec)
        sys.modules["eval_stop"] = module
        spec.loader.exec_module(module)
        self._rule, self._max_trials = getattr(module, method)(), max_trials

    def rejects(self, scores: Scores) -> bool:
        seen: list[float] = []
        for _, candidate in islice(scores, self._max_trials):
            seen.append(candidate)
            decision = self._rule.check(seen, 0.0)
            if decision.should_stop:
                return decision.prediction == "fails"
        return float(np.mean(seen)) <= 0


RULES = {
    "GEPA, minibatch of 3": Gepa,
    "GEPA, minibatch of 20": lambda: Gepa(20),
    "GEPA, minibatch of 85": lambda: Gepa(85),
    "OpenEvolve, the same 20 instances": OpenEvolve,
    "OpenEvolve, the same 85 instances": lambda: OpenEvolve(85),
    "OpenEvolve, 20 new instances": lambda: OpenEvolve(same=False),
    "ShinkaEvolve, Bayesian early stop": ShinkaEvolve,
    "ShinkaEvolve, hybrid early stop": lambda: ShinkaEvolve("HybridEarlyStop"),
}
