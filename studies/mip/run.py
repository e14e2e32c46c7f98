"""Six MIP solvers on 40 small 0-1 programs, read from their logs.

Writes logs/, then table.md and figures/ from them. Solvers that are not installed are left out.

python studies/mip/run.py            # 10 s a run; about half an hour on an idle core; goes on
python studies/mip/run.py --table    # table and figures again from the logs
python studies/mip/run.py --quick    # some seconds: does it run at all?

pip install --group studies ortools pyscipopt pulp gurobipy coptpy
"""

import subprocess
import sys
import tarfile
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from mip.models import FAMILIES, make_model, write_mps
from mip.solve import SOLVERS
from tools.figures import possible
from tools.markdown import table
from tools.options import parser

import polarbear as pb

QUICK_CPU_SECONDS = 4

HERE = Path(__file__).parent
LIMIT_SECONDS = 10.0
SHIFT_SECONDS = 1.0
PENALTY = 10.0


class Worker:
    """A process that solves models with one solver."""

    def __init__(self, solver: str, folder: Path, seconds: float, size: float):
        words = [sys.executable, str(HERE / "solve.py"), solver, str(seconds), str(size)]
        self.process = subprocess.Popen(
            words, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        (folder / "logs" / solver).mkdir(parents=True, exist_ok=True)
        self.is_ready = self.answer() == "ready"

    def answer(self) -> str:
        return (self.process.stdout.readline() if self.process.stdout else "").strip()

    def solve(self, name: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(f"{name}\n")
        self.process.stdin.flush()
        if self.answer() != "done":
            raise SystemExit(f"{self.process.args}: ended while it solved {name}")


def solve_all(folder: Path, names: list[str], seconds: float, size: float) -> None:
    """Solve each model with all solvers, one after the other; skip what has a log."""
    (folder / "instances").mkdir(parents=True, exist_ok=True)
    for name in names:
        write_mps(make_model(name, size), folder / "instances" / f"{name}.mps")
    workers = {solver: Worker(solver, folder, seconds, size) for solver in SOLVERS}
    for name in names:
        for solver, worker in workers.items():
            if worker.is_ready and not (folder / "logs" / solver / f"{name}.log").exists():
                worker.solve(name)
        print(name, flush=True)
    for worker in workers.values():
        worker.process.communicate()


def read_runs(folder: Path) -> pb.Runs:
    with warnings.catch_warnings():  # Gurobi's whole seconds cost nothing: see below
        warnings.simplefilter("ignore", pb.errors.DataWarning)
        logs = folder / "logs"
        logs = logs if logs.exists() else folder / "results" / "logs.tar.gz"
        return pb.read(logs, direction="minimize", names="{algorithm}/{instance}.log")


def shifted_mean(seconds: np.ndarray) -> float:
    """Return the shifted geometric mean, as benchmarks of MIP solvers report it."""
    return float(np.exp(np.mean(np.log(seconds + SHIFT_SECONDS))) - SHIFT_SECONDS)


def summarise(runs: pb.Runs, times: np.ndarray, limit: float) -> list[list[str]]:
    """Make a row for each solver: what usual summaries of the same logs say."""
    gaps = pb.plots.gaps_data(runs, times=times)
    last = {run.name(): float(np.append(np.inf, run.value)[-1]) for run in runs}
    best = {i: min(last[r.name()] for r in runs if r.instance == i) for i in runs.instances}
    rows = []
    for k, name in enumerate(runs.algorithms):
        own = [run for run in runs if run.algorithm == name]
        solved = np.array([run.status is pb.Status.FINISHED for run in own])
        until = np.array([min(run.until, limit) for run in own])
        primal = [
            1.0 if np.isinf(last[run.name()])
            else abs(last[run.name()] - best[run.instance]) / max(1.0, abs(best[run.instance]))
            for run in own
        ]  # fmt: skip
        rows.append([
            name,
            f"{solved.sum()} of {len(own)}",
            f"{shifted_mean(np.where(solved, until, limit)):.2f}",
            f"{shifted_mean(np.where(solved, until, PENALTY * limit)):.2f}",
            f"{100 * np.mean(primal):.2f}",
            f"{100 * gaps.mean[0, k]:.1f}",
            f"{100 * gaps.mean[-1, k]:.1f}",
        ])  # fmt: skip
    return sorted(rows, key=lambda row: float(row[2]))


def write(folder: Path, times: np.ndarray, limit: float) -> str:
    """Write the table and the figures, and return the table."""
    runs = read_runs(folder)
    posterior = pb.fit(pb.rank(runs, times))
    first, last = times[0], times[-1]
    head = [
        "solver", "solved", f"shifted geometric mean (s), {limit:g} s if unsolved",
        f"the same, {PENALTY * limit:g} s if unsolved", "% above the best value at the end",
        f"% mean gap at {first:g} s", f"at {last:g} s",
    ]  # fmt: skip
    parts = [
        "# Six MIP solvers, read from their logs",
        "Made by `python studies/mip/run.py`; README.md says what is compared.",
        f"```\n{runs}\n```",
        "What the race of values says:",
        f"```\n{posterior.verdict()}\n```",
        "What the usual summaries say of the same logs, by the first of them:",
        table(head, summarise(runs, times, limit)),
    ]
    if possible():
        figures = folder / "figures"
        figures.mkdir(exist_ok=True)
        for name, axes in (
            ("gaps", pb.plots.gaps(runs, times=times)),
            ("ratings", pb.plots.ratings(posterior)),
        ):
            root: Any = axes.figure
            root.savefig(figures / f"{name}.png", dpi=150)
        parts.append("![Mean gap over time](figures/gaps.png)")
        parts.append("![Ratings over time](figures/ratings.png)")
    text = "\n\n".join(parts) + "\n"
    (folder / "table.md").write_text(text)
    return text


def main() -> None:
    wanted = parser(__doc__).parse_args()
    # At whole seconds Gurobi's logs are exact: what was found before is printed as earlier.
    times = np.arange(1.0, LIMIT_SECONDS)  # some are stopped just before the limit
    if wanted.quick:
        with tempfile.TemporaryDirectory() as scratch:
            solve_all(Path(scratch), [f"{family}-0" for family in FAMILIES], 0.5, 0.1)
            print(write(Path(scratch), np.array([0.2, 0.4]), 0.5))
        return
    if not wanted.table:
        names = [f"{family}-{k}" for k in range(10) for family in FAMILIES]
        solve_all(HERE, names, LIMIT_SECONDS, 1.0)
        for log in (HERE / "logs").rglob("*.log"):  # without the paths of this machine
            log.write_text(log.read_text(errors="replace").replace(f"{HERE}/", ""))
        (HERE / "results").mkdir(exist_ok=True)
        with tarfile.open(HERE / "results" / "logs.tar.gz", "w:gz") as archive:
            archive.add(HERE / "logs", "logs")
    print(write(HERE, times, LIMIT_SECONDS))


if __name__ == "__main__":
    main()
