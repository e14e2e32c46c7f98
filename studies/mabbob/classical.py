"""What is usually looked at: ECDF, AOCC and differences of attainment of complete runs.

With the bounds that the paper has: values between 1e-8 and 1e2 above the optimum, on a logarithmic
scale.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tools.figures import Panel, possible, sheet
from tools.markdown import table

import polarbear as pb

Floats = NDArray[np.float64]

LOW, HIGH = 1e-8, 1e2
FILE = "values.npz"
PARTS = 1000
"""Values are kept as logarithms, to a thousandth of a decade."""

PAIRS = (
    ("CSA", "TPA"),
    ("LPXNES", "MXNES"),
    ("MXNES", "RS"),
    ("CSA", "MXNES"),
    ("MSR", "XNES"),
    ("CSA", "XNES"),
)
"""Of whom the paper shows the difference."""


def keep(runs: pb.Runs, times: Floats, folder: Path) -> None:
    """The values of all runs at all times, small."""
    values = np.clip(runs.at(times), LOW, 1e32)
    np.savez_compressed(
        folder / FILE,
        value=np.rint(PARTS * np.log10(values)).astype(np.int16),
        algorithm=runs.algorithm.astype(np.int8),
        instance=np.array([runs.instances[k] for k in runs.instance]),
        algorithms=np.array(runs.algorithms),
        times=times,
    )


def load(folder: Path) -> pb.Runs | None:
    """What :func:`keep` has written, as runs."""
    if not (folder / FILE).exists():
        return None
    with np.load(folder / FILE, allow_pickle=False) as file:
        names, times = file["algorithms"].tolist(), file["times"]
        values = 10 ** (file["value"] / PARTS)
        records = [
            pb.Run(names[who], str(instance), times, value, float(times[-1]))
            for who, instance, value in zip(
                file["algorithm"], file["instance"], values, strict=True
            )
        ]
    return pb.Runs.from_records(records, direction="minimize", clock="evaluations")


def section(runs: pb.Runs) -> list[str]:
    """The table."""
    times = np.unique(runs.time)
    at = np.linspace(0, len(times) - 1, 5).astype(int)
    area = pb.plots.aocc_data(runs, low=LOW, high=HIGH)
    curve = pb.plots.ecdf_data(runs, low=LOW, high=HIGH, times=times[at])
    rows = []
    for k in np.argsort(-area.mean).tolist():
        error = area.values[k].std(ddof=1) / np.sqrt(len(area.values[k]))
        shares = [f"{share:.3f}" for share in curve.mean[:, k]]
        rows.append([area.cast.names[k], f"{area.mean[k]:.3f} ± {error:.3f}", *shares])
    head = ["algorithm", "AOCC", *(f"ECDF at {time:,.0f}" for time in times[at])]
    said = (
        "The mean share of 1e-8 to 1e2 (logarithmic) that was attained, and its mean over time, ± "
        "the standard error over instances. Before the first of these times nothing is attained."
    )
    return [f"### All to the end on {len(runs.instances):,} instances", said, table(head, rows)]


def draw(runs: pb.Runs, stem: Path) -> None:
    """Two pictures: ECDF and AOCC, and where pairs differ in what they attain."""
    if not possible():
        return
    bounds = {"low": LOW, "high": HIGH}
    curves: list[Panel] = [
        ("share attained by a time", partial(pb.plots.ecdf, runs, **bounds)),
        ("its mean over time, of every run", partial(pb.plots.aocc, runs, **bounds)),
    ]
    sheet(stem.with_name(f"{stem.name}-classical.png"), curves)
    pairs: list[Panel] = [
        (f"{one} or {two}", partial(_differ, runs, one, two)) for one, two in PAIRS
    ]
    sheet(stem.with_name(f"{stem.name}-attained.png"), pairs)


def _differ(runs: pb.Runs, one: str, two: str, ax: Any) -> None:
    """Where two attain more or less, and what half of the runs of each have attained."""
    data = pb.plots.eaf_difference_data(runs, one, two)
    # Of all colours some are shades of others; the first two are not.
    pb.plots.eaf_difference(replace(data, cast=pb.plots.Cast.of((one, two))), ax=ax)
    for name, look in ((one, "--"), (two, ":")):
        ax.step(*median(runs, name), look, where="post", color="black", linewidth=1)
    said = f"half of the runs are below: dashed {one}, dotted {two}"
    ax.text(0, 1.02, said, transform=ax.transAxes, fontsize=6, color="#6e6e6e")


def median(runs: pb.Runs, name: str) -> tuple[Floats, Floats]:
    """Times and values that half of the runs of an algorithm have attained, by moocore."""
    import moocore

    run = np.repeat(np.arange(len(runs)), np.diff(runs.offset))
    own = runs.algorithm[run] == runs.algorithms.index(name)
    points = np.stack([runs.time[own], runs.value[own]], axis=1)
    found = moocore.eaf(points, run[own], percentiles=[50])
    found = found[np.argsort(found[:, 0])]
    last = [runs.until.max(), found[-1, 1]]
    return tuple(np.vstack([found[:, :2], last]).T)
