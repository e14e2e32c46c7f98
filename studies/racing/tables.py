"""The tables of table.md, from the files in results/."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from racing.cells import Columns, load
from racing.recorded import pool
from racing.synthetic import EXAMPLES
from scipy.stats import binom

from polarbear.data.names import natural_sort_key

Results = dict[str, dict[str, Columns]]
"""By cell and arm."""


def collect(part: str, folder: Path) -> Results:
    """What is there of a part."""
    paths = (folder / "results").glob(f"{part}-*.npz")
    named = {path.stem.removeprefix(f"{part}-"): path for path in paths}
    return {name: load(named[name]) for name in sorted(named, key=natural_sort_key)}


def write(folder: Path) -> str:
    """Write table.md, and give back what is in it."""
    parts: list[str] = []
    for part, section in SECTIONS.items():
        found = collect(part, folder)
        parts += section(found) if found else []
    head = "Made by `python studies/racing/run.py`; README.md says what each table shows."
    text = "\n\n".join([head, *parts]) + "\n"
    (folder / "table.md").write_text(text)
    return text


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def _rows(found: Results, row: Callable[[str, str, Columns], Sequence[object]]) -> list:
    return [row(cell, arm, one) for cell, arms in found.items() for arm, one in arms.items()]


def _quartiles(values: NDArray, form: str = ",.0f") -> str:
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    return f"{middle:{form}} ({low:{form}} to {high:{form}})"


def _share(part: float, whole: float) -> str:
    return f"{part / whole:.4f}" if whole else "-"


def _synthetic(found: Results) -> list[str]:
    def row(cell: str, arm: str, one: Columns) -> list[object]:
        return [
            cell,
            arm,
            len(one["lost"]),
            EXAMPLES[cell].paper,
            _quartiles(one["instances"]),
            f"{one['resolved'].mean():.2f}",
            f"{one['lost'].sum()} of {one['eliminated'].sum()}",
            f"{np.mean(one['lost'] > 0):.3f}",
            one["silent"].sum(),
            f"{np.median(one['seconds']):.1f}, {one['seconds'].max():.1f}",
        ]

    head = [
        "example",
        "method",
        "races",
        "instances in the paper",
        "instances",
        "resolved",
        "members lost, of eliminations",
        "races that lose one",
        "rounds without trust",
        "CPU s: median, most",
    ]
    title = "## (a) The paper's synthetic examples, certainty .99, epsilon .05"
    return [title, _table(head, _rows(found, row))]


def _false(found: Results) -> list[str]:
    def row(cell: str, arm: str, one: Columns) -> list[object]:
        members, lost, races = int(one["members"].sum()), int(one["lost"].sum()), len(one["lost"])
        error = 1 - float(arm.split(";")[0].rsplit("certainty ", 1)[1])
        limit = binom.ppf(0.975, members, error) / members
        return [
            cell,
            arm,
            races,
            members,
            _share(lost, members),
            f"{limit:.4f}",
            "yes" if lost / members <= limit else "**no**",
            _share(int(np.sum(one["lost"] > 0)), races),
            _share(lost, one["eliminated"].sum()),
            _quartiles(one["instances"]),
            f"{np.mean(one['resolved']):.2f}",
            f"{np.mean(one['seconds']):.2f}",
        ]

    head = [
        "kind",
        "method",
        "races",
        "members",
        "members lost",
        "limit",
        "held",
        "races that lose one",
        "wrong eliminations",
        "instances",
        "resolved",
        "CPU s",
    ]
    return ["## (b) Members of the Pareto set that are eliminated", _table(head, _rows(found, row))]


def _replay(found: Results) -> list[str]:
    def row(cell: str, arm: str, one: Columns) -> list[object]:
        same = (one["lost"] == 0) & (one["extra"] == 0)
        return [
            cell,
            arm,
            len(same),
            _quartiles(100 * one["saved"]),
            _quartiles(100 * one["runs_saved"]),
            _quartiles(one["instances"]),
            f"{one['resolved'].mean():.2f}",
            f"{same.mean():.2f}",
            f"{one['lost'].mean():.2f}, {one['extra'].mean():.2f}",
            f"{one['lost_nearest'].mean():.2f}",
        ]

    def limits(cell: str, arm: str, one: Columns) -> list[object]:
        names = pool(cell, None).algorithms
        pairs = [f"{a}-{b}" for a, b in combinations(names, 2)]
        return [
            cell,
            arm,
            _most(pairs, one["open"].mean(axis=0)),
            _most(names, one["spent"].mean(axis=0) / one["spent"].mean(axis=0).sum()),
            _most(names, 1 - one["kept"].mean(axis=0), most=7),
        ]

    head = [
        "pool",
        "method",
        "replays",
        "% of evaluations saved",
        "% of runs saved",
        "instances",
        "resolved",
        "same set as all data",
        "lost, kept beyond it",
        "lost of the nearest model's",
    ]
    why = ["pool", "method", "open at the end", "share of what is spent", "eliminated"]
    return [
        "## (c) Replays of recorded pools, against all algorithms on all instances",
        _table(head, _rows(found, row)),
        "### What limits it: shares of replays, and of evaluations",
        _table(why, _rows(found, limits)),
    ]


def _most(names: Sequence[str], shares: NDArray, most: int = 4) -> str:
    order = np.argsort(-shares, kind="stable")[:most]
    return ", ".join(f"{names[k]} {shares[k]:.2f}" for k in order if shares[k] > 0.005) or "-"


def _candidates(found: Results) -> list[str]:
    rows = []
    for arms in found.values():
        for arm, one in arms.items():
            slowest = one["slowest"]
            step = max(1, -(-slowest.shape[1] // 10))
            for k in range(0, slowest.shape[1], step):
                some = slice(k, k + step)
                seconds = np.quantile(slowest[:, some], [0.5, 0.95, 1.0])
                rows.append(
                    [
                        arm,
                        f"{k + 2} to {min(k + step, slowest.shape[1]) + 1}",
                        *(f"{s:.2f}" for s in seconds),
                        _quartiles(one["racing"][:, some]),
                        one["racing"][:, some].max(),
                        f"{one['rounds'][:, some].mean():.1f}",
                        f"{one['runs'][:, some].max():,}",
                    ]
                )
    head = [
        "rules",
        "candidate",
        "CPU s of its slowest decision: median",
        "95 %",
        "most",
        "racing",
        "most",
        "rounds of each",
        "runs by then",
    ]
    return ["## (d) A thousand candidates, one after another", _table(head, rows)]


SECTIONS: Mapping[str, Callable[[Results], list[str]]] = {
    "synthetic": _synthetic,
    "false": _false,
    "replay": _replay,
    "candidates": _candidates,
}
