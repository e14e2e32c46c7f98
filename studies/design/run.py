"""An automated design loop: candidates join a running race, each gets its verdict. Writes table.md.

python studies/design/run.py                    # 200 candidates; hours; goes on where it was
python studies/design/run.py --proposer optuna  # a sampler that is told what candidates were worth
python studies/design/run.py --fixed            # then: the fixed evaluator, to compare the sets
python studies/design/run.py --table            # the tables again from results/
python studies/design/run.py --quick            # half a minute: does it run at all?
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from design.fixed import evaluate
from design.space import PROPOSERS
from design.tables import write
from mabbob.problem import ManyAffine
from tools.modular import cma_es
from tools.records import Records

import polarbear as pb
from polarbear.coordinator import Result

BASELINE = "baseline"
"""Modular CMA-ES as the paper configures it; what Optuna is told is measured against it."""

OPTIONS = {"ssa": "CSA", "matrix_adaptation": "COVARIANCE"}
DRAWS = 2000


class Size(NamedTuple):
    """How large a loop is; the fixed evaluator makes ``instances`` runs for each candidate."""

    candidates: int = 200
    instances: int = 216
    dimension: int = 5
    evaluations: int = 10_000
    times: int = 20


QUICK = Size(candidates=4, instances=16, dimension=2, evaluations=200, times=4)


def build(name: str, dimension: int) -> ManyAffine:
    return ManyAffine(int(name), dimension)


def begin(options: Mapping[str, Mapping[str, Any]], size: Size, store: Path, slots: int) -> Result:
    """The race with all candidates so far: it goes on where it was."""
    names = tuple(str(k) for k in range(1, size.instances + 1))
    return pb.race(
        {name: cma_es(**one) for name, one in options.items()},
        pb.Instances(names, partial(build, dimension=size.dimension)),
        pb.grid.log(100, size.evaluations, size.times),
        direction="minimize",
        clock="evaluations",
        rules=pb.Rules(alpha=0.95, max_failures=10),
        store=store,
        executor=slots,
        fit=partial(pb.fit, draws=DRAWS),
    )


def worth(found: Result, name: str) -> float:
    """How often a candidate is ahead of the baseline, over all times at which both were seen."""
    both = found.runs.filter(algorithms=[name, BASELINE])
    rate = pb.rank(both, found.race.posterior.times).win_rate(name, BASELINE)
    return float(np.nanmean(rate)) if np.isfinite(rate).any() else 0.0


def loop(size: Size, proposer: str, folder: Path, slots: int) -> None:
    """Propose, let join, and keep the verdict, until there are as many as wanted."""
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
        while len(proposed.rows) <= size.candidates:
            number = len(proposed.rows)
            told = [(options[row["name"]], row["worth"]) for row in verdicts.rows]
            name, one = f"c{number}", PROPOSERS[proposer](number, told)
            proposed.add({"name": name, "options": one})
            options[name] = one
            found.add(name, cma_es(**one))
            verdicts.add(_verdict(found, name))
            print(found.verdict(name), f"{found.spent.time:,.0f} evaluations", flush=True)
        ended = Records(place / "ended.jsonl", ("candidates",))
        if (size.candidates,) not in ended:
            ended.add(
                {
                    "candidates": size.candidates,
                    "pareto": list(found.pareto),
                    "spent": found.spent.time,
                    "runs": found.spent.runs,
                    "full": len(options) * size.instances * size.evaluations,
                }
            )


def _verdict(found: Result, name: str) -> dict[str, Any]:
    said = found.verdict(name)
    return {
        "name": name,
        "standing": said.standing,
        "by": said.by,
        "worth": 0.0 if said.standing == "removed" else round(worth(found, name), 4),
        "spent": found.spent.time,
        "runs": found.spent.runs,
        "racing": len(found.pareto),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--proposer", choices=PROPOSERS, default="chance")
    parser.add_argument("--candidates", type=int, default=Size().candidates)
    parser.add_argument("--fixed", action="store_true", help="run all on everything, and compare")
    parser.add_argument("--slots", type=int, default=2, help="runs at once")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--table", action="store_true")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) if wanted.quick else Path(__file__).parent
        size = QUICK if wanted.quick else Size(candidates=wanted.candidates)
        if not wanted.table:
            loop(size, wanted.proposer, folder, wanted.slots)
        if wanted.fixed or wanted.quick:
            place = folder / "results" / wanted.proposer
            problem = partial(build, dimension=size.dimension)
            times = pb.grid.log(100, size.evaluations, size.times)
            evaluate(place, problem, times, size.instances, wanted.slots)
        print(write(folder))


if __name__ == "__main__":
    main()
