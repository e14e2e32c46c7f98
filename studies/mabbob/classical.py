"""What is usually looked at: ECDF and AOCC of complete runs, with the paper's bounds."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import trapezoid
from tools.markdown import table
from tools.records import Records

import polarbear as pb

Floats = NDArray[np.float64]

LOW, HIGH = -8.0, 2.0
"""Decimal logarithms of the bounds between which values count (paper, 5.2)."""


def attained(runs: pb.Runs, times: Floats) -> dict[str, Floats]:
    """Of each algorithm and instance, the share of the bounds attained at each time.

    The values of MA-BBOB are above the optimum, which is 0.
    """
    with np.errstate(divide="ignore"):
        share = (HIGH - np.log10(runs.at(times))) / (HIGH - LOW)
    share = np.clip(share, 0.0, 1.0)
    return {name: share[runs.algorithm == k] for k, name in enumerate(runs.algorithms)}


def aocc(share: Floats, times: Floats) -> Floats:
    """The area under the share attained, of each run, on a linear axis."""
    return trapezoid(share, times, axis=1) / (times[-1] - times[0])


def keep(runs: pb.Runs, times: Floats, folder: Path) -> None:
    """One row for each algorithm, in classical.jsonl."""
    path = folder / "classical.jsonl"
    path.unlink(missing_ok=True)
    kept = Records(path, ("algorithm",))
    at = np.linspace(0, len(times) - 1, 5).astype(int)
    for name, share in attained(runs, times).items():
        area = aocc(share, times)
        kept.add(
            {
                "algorithm": name,
                "instances": len(share),
                "aocc": round(float(area.mean()), 4),
                "error": round(float(area.std(ddof=1) / np.sqrt(len(area))), 4),
                "ecdf": {f"{times[k]:.0f}": round(float(share[:, k].mean()), 4) for k in at},
            }
        )


def section(folder: Path) -> list[str]:
    """The table, if there is anything."""
    rows = Records(folder / "classical.jsonl", ("algorithm",)).rows
    if not rows:
        return []
    rows = sorted(rows, key=lambda row: -row["aocc"])
    times = list(rows[0]["ecdf"])
    lines = [
        [row["algorithm"], f"{row['aocc']:.3f} ± {row['error']:.3f}", *row["ecdf"].values()]
        for row in rows
    ]
    head = ["algorithm", "AOCC", *(f"ECDF at {int(time):,}" for time in times)]
    return [f"### All to the end on {rows[0]['instances']:,} instances", table(head, lines)]
