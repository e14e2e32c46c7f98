"""The fixed evaluator: who would be in the set then?"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tools.fixed import complete
from tools.modular import cma_es
from tools.records import Records, seeded

import polarbear as pb


def evaluate(
    folder: Path,
    build: Callable[[str], Any],
    times: NDArray[np.float64],
    instances: int,
    slots: int,
    known: pb.Runs,
    out: int,
) -> None:
    """Run what is missing, and keep the Pareto set of all of it.

    Of all candidates; or of those in the set of the race, and so many of those who are ``out``:
    whoever is dominated is so by one that is in the set.
    """
    proposed = Records(folder / "proposals.jsonl", ("name",)).rows
    ours = Records(folder / "ended.jsonl", ("candidates",)).rows[-1]["pareto"]
    rest = [row["name"] for row in proposed if row["name"] not in ours]
    drawn = seeded("fixed").permutation(rest)[:out].tolist()
    solvers = {
        row["name"]: cma_es(**row["options"]) for row in proposed if row["name"] in {*ours, *drawn}
    }
    names = [str(k) for k in range(1, instances + 1)]
    runs = complete(folder / "fixed.npz", solvers, build, names, times, slots, known)
    posterior = pb.fit(pb.rank(runs, times), draws=2000)
    kept = Records(folder / "fixed.jsonl", ("candidates", "out"))
    if (len(proposed) - 1, len(drawn)) not in kept:
        row = {"candidates": len(proposed) - 1, "out": len(drawn)}
        kept.add({**row, "pareto": list(posterior.pareto(0.95))})
