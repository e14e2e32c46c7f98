"""table.md, from what is in results/."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from peers.methods import METHODS
from tools.markdown import quartiles, table

Named = dict[tuple[str, float], dict[str, list[dict[str, Any]]]]
"""Rows by course and certainty, and by method."""

GLANCE = (
    "The median of what is spent, of all evaluations that there are, and how many algorithms were "
    "left out that nobody kept replaces. In bold: none in any race."
)
HEAD = [
    "method",
    "races",
    "% of all evaluations",
    "... by the last elimination",
    "instances",
    "ended by itself",
    "missed",
    "races that miss one",
    "members lost",
    "worst regret",
    "kept beyond the set",
]


def write(folder: Path) -> str:
    """Write the tables, and give back what is in them."""
    parts = ["Made by `python studies/peers/run.py`; README.md says what each column is."]
    named: Named = {}
    for path in sorted((folder / "results").glob("*.jsonl")):
        for row in map(json.loads, path.read_text().splitlines()):
            rows = named.setdefault((path.stem, row["certainty"]), {})
            rows.setdefault(row["method"], []).append(row)
    named = dict(sorted(named.items()))
    parts += ["## All at a glance", table(*_glance(named)), GLANCE]
    for (course, certainty), methods in named.items():
        lines = [_row(method, methods[method]) for method in METHODS if method in methods]
        parts += [f"## {course}, certainty {certainty}", table(HEAD, lines)]
    text = "\n\n".join(parts) + "\n"
    (folder / "table.md").write_text(text)
    return text


def _glance(named: Named) -> tuple[list[str], list[list[object]]]:
    """What each method spends and misses on each course."""
    lines: list[list[object]] = []
    for method in METHODS:
        cells = []
        for methods in named.values():
            rows = methods.get(method, [])
            missed = sum(len(row["missed"]) for row in rows)
            spent = f"{np.median([100 * row['spent'] for row in rows]):.0f} %" if rows else "-"
            cells.append(f"{spent}, misses {missed}" if missed else f"**{spent}**" if rows else "-")
        lines.append([method, *cells])
    head = [f"{course}, {certainty} ({_races(m)})" for (course, certainty), m in named.items()]
    return ["method", *head], lines


def _races(methods: dict[str, list[dict[str, Any]]]) -> str:
    fewest = min(len(rows) for rows in methods.values())
    return f"{fewest} race" if fewest == 1 else f"{fewest} races"


def _row(method: str, rows: list[dict[str, Any]]) -> list[object]:
    members, lost = sum(row["members"] for row in rows), sum(len(row["lost"]) for row in rows)
    return [
        method,
        len(rows),
        quartiles([100 * row["spent"] for row in rows]),
        quartiles([100 * row["last"] for row in rows]),
        quartiles([row["instances"] for row in rows]),
        f"{np.mean([row['ended'] for row in rows]):.2f}",
        sum(len(row["missed"]) for row in rows),
        f"{np.mean([bool(row['missed']) for row in rows]):.2f}",
        f"{lost} of {members}",
        f"{max(row['regret'] for row in rows):.2f}",
        f"{np.mean([len(row['extra']) for row in rows]):.1f}",
    ]
