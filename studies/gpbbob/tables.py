"""table.md, from what is in results/."""

from pathlib import Path
from typing import Any

from tools.markdown import table
from tools.races import load, tables

from polarbear.data.names import natural

PAPER = ["the paper, d about 240, 30 s", "NONE, SEP", 14, "528", "-", "resolved"]


def write(folder: Path) -> str:
    """Write the tables, and give back what is in them."""
    names = sorted((path.name for path in (folder / "results").glob("*")), key=natural)
    races = {name: facts for name in names if (facts := load(folder / "results" / name))}
    head = ["race", "Pareto set", "rounds", "instances", "hours of runs", "ended"]
    parts = [
        "Made by `python studies/gpbbob/run.py`; README.md says what is compared.",
        table(head, [PAPER, *(_row(name, facts) for name, facts in races.items())]),
    ]
    for name, facts in races.items():
        parts += [f"## {name}", *tables(facts, "seconds")]
    text = "\n\n".join(parts) + "\n"
    (folder / "table.md").write_text(text)
    return text


def _row(name: str, facts: dict[str, Any]) -> list[object]:
    return [
        name,
        ", ".join(facts["pareto"]),
        len(facts["rounds"]),
        f"{facts['instances']:,}",
        f"{facts['spent'] / 3600:.2g}",
        facts["ended"],
    ]
