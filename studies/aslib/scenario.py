"""Scenarios of ASlib as this study uses them: runtimes, rankings at cut-offs, and folds."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import polarbear as pb

CUTOFF_SHARES = (0.1, 0.3, 1.0)
"""The cut-offs, as shares of the scenario's own."""


@dataclass(frozen=True)
class Scenario:
    """Runs on instances with features, and the fold of each instance.

    ``runtime`` has the shape (instances, algorithms) and is infinite where the instance was not
    solved. ``rankings`` has a ranking of each instance at each cut-off by runtime, ``solved`` one
    in which all algorithms that solved the instance tie ahead of the others.
    """

    name: str
    rankings: pb.Rankings
    solved: pb.Rankings
    runtime: np.ndarray
    fold: np.ndarray

    @property
    def cutoffs(self) -> np.ndarray:
        return self.rankings.times

    def par10(self) -> np.ndarray:
        """Return the runtimes (cut-offs, instances, algorithms), ten cut-offs if not solved."""
        cutoff = self.cutoffs[:, None, None]
        return np.where(self.runtime <= cutoff, self.runtime, 10 * cutoff)


def read_scenario(folder: Path, most_algorithms: int, most_instances: int) -> Scenario | str:
    """Return a scenario, or why it is left out."""
    for name in ("algorithm_runs.arff", "feature_values.arff", "cv.arff", "description.txt"):
        if not (folder / name).exists():
            return f"has no {name}"
    description = (folder / "description.txt").read_text()
    limit = re.search(r"algorithm_cutoff_time:\s*['\"]?([0-9.e+]+)", description)
    kind = re.search(r"performance_type:\s*\n?\s*-?\s*(\w+)", description)
    if limit is None or kind is None or kind[1].lower() != "runtime":
        return "is not about runtimes with a limit"
    fold_of = read_folds(folder / "cv.arff")
    if len(fold_of) > most_instances:
        return f"has {len(fold_of)} instances, more than {most_instances}"
    runs = pb.read(folder)
    if len(runs.algorithms) > most_algorithms:
        return f"has {len(runs.algorithms)} algorithms, more than {most_algorithms}"
    cutoffs = float(limit[1]) * np.array(CUTOFF_SHARES)
    return make_scenario(folder.name, runs, fold_of, cutoffs)


def make_scenario(
    name: str, runs: pb.Runs, fold_of: dict[str, int], cutoffs: np.ndarray
) -> Scenario:
    """Rank runs at each cut-off: by runtime, and by whether they solved the instance."""
    data = {"instance": list(runs.instances), **runs.instance_data}
    runs = pb.Runs.from_records(
        [run for run in runs if run.repetition == 1], direction="minimize", clock=runs.clock
    ).with_instance_data(data)
    records = [run._replace(value=run.time) for run in runs]
    timed = pb.Runs.from_records(records, direction="minimize", clock=runs.clock)
    rankings, solved = pb.rank(timed.with_instance_data(data), cutoffs), pb.rank(runs, cutoffs)
    row = {instance: k for k, instance in enumerate(rankings.instances)}
    column = {algorithm: k for k, algorithm in enumerate(rankings.algorithms)}
    runtime = np.full((len(row), len(column)), np.inf)
    for run in records:
        for time in np.asarray(run.time)[:1]:
            runtime[row[run.instance], column[run.algorithm]] = time
    fold = np.array([fold_of[instance] for instance in rankings.instances])
    return Scenario(name, rankings, solved, runtime, fold)


def read_folds(path: Path) -> dict[str, int]:
    """Return the fold of each instance in the first repetition of the scenario's folds."""
    rows = re.split(r"@data", path.read_text(), flags=re.IGNORECASE)[1].strip().splitlines()
    cells = [row.rsplit(",", 2) for row in rows if row.strip() and not row.startswith("%")]
    return {
        instance.strip().strip("'\""): int(float(fold))
        for instance, repetition, fold in cells
        if float(repetition) == 1
    }


def write_small_scenario(folder: Path, n_instances: int = 90, seed: int = 0) -> None:
    """Write a made scenario: the size decides which of three algorithms is fast."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    size, noise = rng.uniform(size=(2, n_instances))
    log_time = np.stack([1 + 5 * size, 6 - 5 * size, np.full(n_instances, 4.2)], axis=1)
    seconds = np.exp(log_time + 0.7 * rng.normal(size=log_time.shape))
    names = [f"i{k}" for k in range(n_instances)]
    (folder / "description.txt").write_text(
        "scenario_id: made\nperformance_measures:\n- runtime\nmaximize:\n- false\n"
        "performance_type:\n- runtime\nalgorithm_cutoff_time: 100\n"
    )
    runs = [
        f"{name},1,a{j},{min(s, 100.0):.3f},{'ok' if s <= 100 else 'timeout'}"
        for name, row in zip(names, seconds, strict=True)
        for j, s in enumerate(row)
    ]
    features = [f"{n},1,{a:.4f},{b:.4f}" for n, a, b in zip(names, size, noise, strict=True)]
    folds = [f"{name},1,{1 + k % 3}" for k, name in enumerate(names)]
    tables = {
        "algorithm_runs": (["algorithm", "runtime", "runstatus"], runs),
        "feature_values": (["size", "noise"], features),
        "cv": (["fold"], folds),
    }
    for name, (columns, rows) in tables.items():
        head = [f"@attribute {column} string" for column in ("instance_id", "repetition", *columns)]
        text = "\n".join([f"@relation {name}", *head, "@data", *rows])
        (folder / f"{name}.arff").write_text(text + "\n")
