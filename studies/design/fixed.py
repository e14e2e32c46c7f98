"""The fixed evaluator on all candidates: who would be in the set then?"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tools.fixed import complete
from tools.modular import cma_es
from tools.records import Records

import polarbear as pb


def evaluate(
    folder: Path,
    build: Callable[[str], Any],
    times: NDArray[np.float64],
    instances: int,
    slots: int,
) -> None:
    """Run what is missing, and keep the Pareto set of all of it."""
    proposed = Records(folder / "proposals.jsonl", ("name",)).rows
    solvers = {row["name"]: cma_es(**row["options"]) for row in proposed}
    names = [str(k) for k in range(1, instances + 1)]
    runs = complete(folder / "fixed.npz", solvers, build, names, times, slots)
    posterior = pb.fit(pb.rank(runs, times), draws=2000)
    kept = Records(folder / "fixed.jsonl", ("candidates",))
    if (len(proposed) - 1,) not in kept:
        kept.add({"candidates": len(proposed) - 1, "pareto": list(posterior.pareto(0.95))})
