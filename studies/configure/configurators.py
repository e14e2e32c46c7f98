"""Configurators with the same number of runs: each returns a configuration and its cost."""

import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from configure.scenarios import BUDGET, SCENARIOS, run
from judge.in_process import InProcess

import polarbear as pb

N_INSTANCES = 200
"""Instances for configuration; others are for the final comparison."""

MAX_RUNS = 60
"""The limit of runs of a configuration that is judged, unless another is given."""

N_FIXED = 20
"""The number of instances on which random search compares configurations."""


class Configured(NamedTuple):
    """A configuration, the number of runs that it took, and the number of configurations tried."""

    options: dict[str, float]
    runs: int
    tried: int


class NotInstalledError(Exception):
    """A configurator is not installed here."""


def draw(scenario: str, rng: np.random.Generator) -> dict[str, float]:
    """A random configuration."""
    options = {}
    for name, low, high, log, integer in SCENARIOS[scenario].parameters:
        value = np.exp(rng.uniform(*np.log([low, high]))) if log else rng.uniform(low, high)
        options[name] = int(rng.integers(int(low), int(high) + 1)) if integer else float(value)
    return options


def search_at_random(scenario: str, n_runs: int, seed: int) -> Configured:
    """Each configuration runs on the same 20 instances; the lowest mean is the best."""
    rng, tried = np.random.default_rng(seed), []
    for _ in range(n_runs // N_FIXED):
        options = draw(scenario, rng)
        values = [run(scenario, options, k, seed) for k in range(1, N_FIXED + 1)]
        tried.append((float(np.mean(values)), len(tried), options))
    return Configured(min(tried)[2], N_FIXED * len(tried), len(tried))


def make_judge(folder: str, scenario: str, seed: int, max_runs: int) -> pb.design.Judge:
    def make_solver(options):
        def solve(job):
            yield BUDGET, run(scenario, options, job.instance, job.seed)

        return solve

    return pb.design.Judge(
        folder,
        make_solver,
        pb.Instances(tuple(str(k) for k in range(1, N_INSTANCES + 1)), int),
        [BUDGET],
        reference=SCENARIOS[scenario].default,
        direction="minimize",
        clock="evaluations",
        budget=pb.Budget(runs=max_runs, failures=3),
        executor=InProcess(),
        seed=seed,
    )


Propose = Callable[[list[tuple[dict[str, float], pb.design.Judgement]]], dict[str, float]]


def judge_configurations(
    scenario: str,
    n_runs: int,
    seed: int,
    propose: Propose,
    patience: int | None = None,
    max_runs: int = MAX_RUNS,
) -> Configured:
    """Judge what is proposed until the runs are used up, or the set is stable."""
    judged: list[tuple[dict[str, float], pb.design.Judgement]] = []
    with tempfile.TemporaryDirectory() as folder:
        judge, idle = make_judge(folder, scenario, seed, max_runs), 0
        while not judged or judge.status().n_runs < n_runs:
            options = propose(judged)
            judgement = judge(options)
            judged.append((options, judgement))
            idle = 0 if judgement.verdict.kind in ("member", "undecided") else idle + 1
            if patience is not None and idle >= patience:
                break
        members, cost = judge.members(), judge.status().n_runs
    kept = [(j.fitness, options) for options, j in judged if j.name in members]
    default = (0.5, SCENARIOS[scenario].default)
    best = max([*kept, default], key=lambda pair: pair[0])
    return Configured(best[1], cost, len(judged))


def judge_random(scenario: str, n_runs: int, seed: int, **options: int) -> Configured:
    """Random configurations, judged."""
    rng = np.random.default_rng(seed)
    return judge_configurations(scenario, n_runs, seed, lambda _: draw(scenario, rng), **options)


def judge_optuna(scenario: str, n_runs: int, seed: int) -> Configured:
    """Configurations of Optuna's TPE sampler, judged; it is told the fitness."""
    try:
        import optuna
    except ImportError as error:
        raise NotInstalledError(str(error)) from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    trials: list[Any] = []

    def propose(judged: list[tuple[dict[str, float], pb.design.Judgement]]) -> dict[str, float]:
        if judged:
            study.tell(trials[-1], judged[-1][1].fitness)
        trials.append(study.ask())
        return {
            name: trials[-1].suggest_int(name, int(low), int(high))
            if integer
            else trials[-1].suggest_float(name, low, high, log=log)
            for name, low, high, log, integer in SCENARIOS[scenario].parameters
        }

    return judge_configurations(scenario, n_runs, seed, propose)


def use_irace(scenario: str, n_runs: int, seed: int) -> Configured:
    """irace with its defaults; it asks this process for runs."""
    program = shutil.which("Rscript")
    if program is None:
        raise NotInstalledError("Rscript is not installed")
    lines = [
        f'{name} "" {"i" if integer else "r"}{",log" if log else ""} ({low}, {high})'
        for name, low, high, log, integer in SCENARIOS[scenario].parameters
    ]
    n, tried, best = 0, set(), None
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as server:
        file = Path(folder, "parameters.txt")
        file.write_text("\n".join(lines) + "\n")
        arguments = [str(server.getsockname()[1]), str(n_runs), str(seed), str(file)]
        script = Path(__file__).with_name("irace.R")
        with subprocess.Popen(
            [program, str(script), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as process:
            server.settimeout(60)
            connection, _ = server.accept()
            with connection, connection.makefile("rw") as lines_of_irace:
                for line in lines_of_irace:
                    first, number, text = line.split()
                    pairs = (pair.split("=") for pair in text.split(","))
                    options = {name: float(value) for name, value in pairs}
                    if first == "best":
                        best = options
                        break
                    n += 1
                    tried.add(text)
                    value = run(scenario, options, int(first), int(number))
                    lines_of_irace.write(f"{value!r}\n")
                    lines_of_irace.flush()
            output = process.communicate()[0].decode(errors="replace")
    if best is None:
        raise NotInstalledError(f"irace failed: {output[-500:]}")
    return Configured(best, n, len(tried))


def use_smac(scenario: str, n_runs: int, seed: int) -> Configured:
    """SMAC's facade for algorithm configuration with its defaults; the number is the feature.

    It has the 20 instances of random search: with 200, the first 40 runs took 60 CPU seconds
    instead of 13, and 400 runs did not end in a quarter of an hour.
    """
    try:
        import ConfigSpace
        import smac
    except ImportError as error:
        raise NotInstalledError(str(error)) from None
    space, default = ConfigSpace.ConfigurationSpace(seed=seed), SCENARIOS[scenario].default
    for name, low, high, log, integer in SCENARIOS[scenario].parameters:
        kind: Any = ConfigSpace.Integer if integer else ConfigSpace.Float
        space.add(kind(name, (low, high), log=log, default=default[name]))
    asked: list[tuple[tuple[str, float], ...]] = []

    def target(configuration: Any, instance: str, seed: int = 0) -> float:
        asked.append(tuple(sorted(dict(configuration).items())))
        return run(scenario, dict(configuration), int(instance), seed)

    names = [str(k) for k in range(1, N_FIXED + 1)]
    with tempfile.TemporaryDirectory() as folder:
        goal = smac.Scenario(
            space,
            deterministic=False,
            n_trials=n_runs,
            instances=names,
            instance_features={name: [float(name)] for name in names},
            seed=seed,
            output_directory=Path(folder),
        )
        facade = smac.AlgorithmConfigurationFacade(goal, target, logging_level=False)
        best = dict(facade.optimize())
    return Configured(best, len(asked), len({*asked}))


CONFIGURATORS: dict[str, Callable[[str, int, int], Configured]] = {
    "random, 20 runs each": search_at_random,
    "random, pb.Judge": judge_random,
    "random, pb.Judge, at most 20 runs each": partial(judge_random, max_runs=N_FIXED),
    "random, pb.Judge, patience 8": partial(judge_random, patience=8),
    "Optuna TPE, pb.Judge": judge_optuna,
    "irace": use_irace,
    "SMAC": use_smac,
}
