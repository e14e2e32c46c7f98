"""An automated design loop: candidates join a running race, each gets its verdict.

Writes table.md and figures/, and what both are made of to results/.

python studies/design/run.py                    # 200 candidates; hours; goes on where it was
python studies/design/run.py --proposer optuna  # a sampler that is told what candidates were worth
python studies/design/run.py --fixed            # then: the fixed evaluator, to compare the sets
python studies/design/run.py --fixed 20         # on the set, and on 20 of those who are out
python studies/design/run.py --table            # tables and figures again from results/
python studies/design/run.py --quick            # half a minute: does it run at all?
"""

import os
import sys
import tempfile
import time
from collections.abc import Mapping
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from design.fixed import evaluate
from design.size import QUICK, Size
from design.space import PROPOSERS
from design.tables import write
from mabbob.problem import ManyAffine
from tools.modular import cma_es
from tools.options import parser
from tools.records import Records

import polarbear as pb
from polarbear.coordinator.run_race import SolverRace

QUICK_CPU_SECONDS = 6

BASELINE = "baseline"
"""Modular CMA-ES as the paper configures it; what Optuna is told is measured against it."""

OPTIONS = {"ssa": "CSA", "matrix_adaptation": "COVARIANCE"}
DRAWS = 2000


def build(name: str, dimension: int) -> ManyAffine:
    return ManyAffine(int(name), dimension)


def begin(
    options: Mapping[str, Mapping[str, Any]], size: Size, store: Path, slots: int
) -> SolverRace:
    """The race with all candidates so far: it goes on where it was."""
    names = tuple(str(k) for k in range(1, size.instances + 1))
    return pb.race(
        {name: cma_es(**one) for name, one in options.items()},
        pb.Instances(names, partial(build, dimension=size.dimension)),
        pb.grid.log(100, size.evaluations, size.times),
        direction="minimize",
        clock="evaluations",
        question=pb.ParetoSet(fit={"draws": DRAWS}),
        budget=pb.Budget(failures=10),
        store=store,
        executor=slots,
    )


def worth(found: SolverRace, name: str) -> float:
    """How often a candidate is ahead of the baseline, over all times at which both were seen."""
    both = found.runs.filter(algorithms=[name, BASELINE])
    rate = pb.rank(both, found.times).win_rate(name, BASELINE)
    return float(np.nanmean(rate)) if np.isfinite(rate).any() else 0.0


def loop(
    size: Size, proposer: str, folder: Path, slots: int, hours: float | None = None
) -> pb.Runs:
    """Propose, let join, and keep the verdict, until there are as many as wanted: all runs.

    ``hours``: nobody else is proposed after so long.
    """
    end = inf if hours is None else time.monotonic() + 3600 * hours
    place = folder / "results" / proposer
    proposed = Records(place / "proposals.jsonl", ("name",))
    verdicts = Records(place / "verdicts.jsonl", ("name",))
    if not proposed.rows:
        proposed.add({"name": BASELINE, "options": OPTIONS})
    options = {row["name"]: row["options"] for row in proposed.rows}
    store = folder / f"{proposer}.db"
    with begin(options, size, store, slots) as found:
        # Whoever had joined when it was stopped, and had no verdict yet, has one now.
        for name in [name for name in options if (name,) not in verdicts and name != BASELINE]:
            verdicts.add(_verdict(found, name))
        while len(proposed.rows) <= size.candidates and time.monotonic() < end:
            number = len(proposed.rows)
            told = [(options[row["name"]], row["worth"]) for row in verdicts.rows]
            name, one = f"c{number}", PROPOSERS[proposer](number, told)
            proposed.add({"name": name, "options": one})
            options[name] = one
            found.add(name, cma_es(**one))
            found.resume()
            verdicts.add(_verdict(found, name))
            print(found.verdict(name), f"{found.spent.time:,.0f} evaluations", flush=True)
        _sum_up(found, size, options, place)
        return found.runs


def _verdict(found: SolverRace, name: str) -> dict[str, Any]:
    said = found.verdict(name)
    return {
        "name": name,
        "standing": said.kind,
        "by": said.rival,
        "worth": 0.0 if said.kind == "removed" else round(worth(found, name), 4),
        "spent": found.spent.time,
        "runs": found.spent.runs,
        "racing": len(found.pareto),
    }


def _sum_up(found: SolverRace, size: Size, options: Mapping[str, Any], place: Path) -> None:
    """What was spent in all, how everybody stands in the end, and what was run for it."""
    ended = Records(place / "ended.jsonl", ("candidates",))
    if (len(options) - 1,) not in ended:
        full = len(options) * size.instances * size.evaluations
        row = {"candidates": len(options) - 1, "pareto": list(found.pareto)}
        ended.add({**row, "spent": found.spent.time, "runs": found.spent.runs, "full": full})
    runs, path = found.runs, place / "standings.jsonl"
    path.unlink(missing_ok=True)
    kept = Records(path, ("name",))
    for name in options:
        until = runs.until[runs.algorithm == runs.algorithms.index(name)]
        row = {"name": name, "standing": found.verdict(name).kind}
        kept.add({**row, "runs": len(until), "evaluations": float(until.sum())})


def main() -> None:
    asked = parser(__doc__)
    asked.add_argument("--proposer", choices=PROPOSERS, default="chance")
    asked.add_argument("--candidates", type=int, default=Size().candidates)
    said = "run all on everything, or the set and so many of those who are out, and compare"
    asked.add_argument("--fixed", nargs="?", type=int, const=Size().candidates, help=said)
    wanted = asked.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) if wanted.quick else Path(__file__).parent
        size = QUICK if wanted.quick else Size(candidates=wanted.candidates)
        if not wanted.table:
            known = loop(size, wanted.proposer, folder, wanted.slots, wanted.hours)
            if wanted.fixed or wanted.quick:
                place = folder / "results" / wanted.proposer
                problem = partial(build, dimension=size.dimension)
                times = pb.grid.log(100, size.evaluations, size.times)
                out = wanted.fixed or size.candidates
                evaluate(place, problem, times, size.instances, wanted.slots, known, out)
        print(write(folder))


if __name__ == "__main__":
    main()
