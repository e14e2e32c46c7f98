"""Recorded pools: who was ahead of whom at 60 times, as runs that are ranked the same."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import polarbear as pb

FOLDER = Path(__file__).parents[1] / "calibration" / "pools"


def recorded_runs(
    name: str, chosen: slice | NDArray[np.intp], instances: int | None = None
) -> pb.Runs:
    """Return the runs of a pool at some of its times, on its first instances."""
    with np.load(FOLDER / f"{name}.npz", allow_pickle=False) as file:
        position = file["position"][chosen, :instances].astype(np.float64)
        algorithms, times = file["algorithms"].tolist(), file["times"][chosen].astype(float)
    # A common trend makes every time an improvement, and changes no ranking.
    value = position - position.shape[2] * np.arange(len(times))[:, None, None]
    records = [
        pb.Run(algorithm, f"i{k}", times, value[:, k, a], float(times[-1]))
        for k in range(position.shape[1])
        for a, algorithm in enumerate(algorithms)
    ]
    return pb.Runs.from_records(records, direction="minimize", clock="evaluations")
