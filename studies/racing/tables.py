"""The tables of table.md, from the files in results/."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from racing.cells import Columns, load
from racing.synthetic import EXAMPLES

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


def _quartiles(values: NDArray, form: str = "z,.0f") -> str:
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    return f"{middle:{form}} ({low:{form}} to {high:{form}})"


def _mean(values: NDArray, form: str) -> str:
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{values.mean():{form}} ± {error:{form}}"


def _synthetic(found: Results) -> list[str]:
    def row(cell: str, arm: str, one: Columns) -> list[object]:
        return [
            cell,
            arm,
            len(one["lost"]),
            EXAMPLES[cell.split("-")[0]].paper,
            _quartiles(one["instances"]),
            f"{one['resolved'].mean():.2f}",
            f"{one['missed'].sum()}, {one['lost'].sum()} of {one['eliminated'].sum()}",
            f"{np.median(one['seconds']):.1f}, {one['seconds'].max():.1f}",
        ]

    head = [
        "example",
        "question",
        "races",
        "instances in the paper",
        "instances",
        "resolved",
        "dropped: missed, strict members",
        "CPU s: median, most",
    ]
    title = "## (a) The paper's synthetic examples, certainty .95, open end"
    return [title, _table(head, _rows(found, row))]


def _few(found: Results) -> list[str]:
    def row(cell: str, arm: str, one: Columns) -> list[object]:
        return [
            cell,
            arm,
            len(one["eliminated"]),
            _mean(one["eliminated"] / 2, ".2f"),
            f"{one['missed'].sum()} of {one['eliminated'].sum()}",
        ]

    head = ["truth", "question", "races", "share of two rivals dropped", "missed"]
    title = "## (b) With few instances: two rivals that lose 70 % of their duels, certainty .95"
    return [title, _table(head, _rows(found, row))]


def _pools(found: Results) -> list[str]:
    def row(cell: str, arm: str, one: Columns) -> list[object]:
        return [
            cell,
            arm,
            len(one["saved"]),
            _quartiles(100 * one["saved"]),
            _quartiles(100 * one["runs"]),
            _quartiles(one["instances"]),
            f"{one['resolved'].mean():.2f}",
            _mean(one["dropped"], ".1f"),
            f"{one['missed'].sum()} of {one['dropped'].sum()}",
            f"{np.median(one['seconds']):.1f}",
        ]

    head = [
        "pool",
        "question",
        "replays",
        "% of the time saved",
        "% of the runs made",
        "instances",
        "resolved",
        "dropped",
        "missed",
        "CPU s",
    ]
    return ["## (c) Replays of recorded pools, certainty .95", _table(head, _rows(found, row))]


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
    "few": _few,
    "pools": _pools,
    "candidates": _candidates,
}
