"""table.md, from what is in results/."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from peers.methods import METHODS
from tools.markdown import quartiles, table

HEAD = [
    "method",
    "races",
    "% of all evaluations",
    "... by the last elimination",
    "instances",
    "ended by itself",
    "members lost",
    "races that lose one",
    "worst regret",
    "kept beyond the set",
]


def write(folder: Path) -> str:
    """Write the tables, and give back what is in them."""
    parts = ["Made by `python studies/peers/run.py`; README.md says what each column is."]
    for path in sorted((folder / "results").glob("*.jsonl")):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        for alpha in sorted({row["alpha"] for row in rows}):
            some = [row for row in rows if row["alpha"] == alpha]
            named = {m: [r for r in some if r["method"] == m] for m in METHODS}
            lines = [_row(method, found) for method, found in named.items() if found]
            parts += [f"## {path.stem}, certainty {alpha}", table(HEAD, lines)]
    text = "\n\n".join(parts) + "\n"
    (folder / "table.md").write_text(text)
    return text


def _row(method: str, rows: list[dict[str, Any]]) -> list[object]:
    members, lost = sum(row["members"] for row in rows), sum(len(row["lost"]) for row in rows)
    return [
        method,
        len(rows),
        quartiles([100 * row["spent"] for row in rows]),
        quartiles([100 * row["last"] for row in rows]),
        quartiles([row["instances"] for row in rows]),
        f"{np.mean([row['ended'] for row in rows]):.2f}",
        f"{lost} of {members}",
        f"{np.mean([bool(row['lost']) for row in rows]):.2f}",
        f"{max(row['regret'] for row in rows):.2f}",
        f"{np.mean([len(row['extra']) for row in rows]):.1f}",
    ]
