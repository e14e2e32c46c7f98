"""table.md, from what is in results/."""

from pathlib import Path
from typing import Any

from mabbob.classical import section
from tools.markdown import table
from tools.races import load, tables

from polarbear.data.names import natural

FIXED = 1000
"""Instances on which all are run to the end, as standard practice for MA-BBOB has it."""

PAPER = ["the paper, d = 30", "CSA, MXNES, TPA, XNES", 51, "1,656", "1.72e+08", "59"]


def write(folder: Path) -> str:
    """Write the tables, and give back what is in them."""
    names = sorted((path.name for path in (folder / "results").glob("*")), key=natural)
    races = {name: facts for name in names if (facts := load(folder / "results" / name))}
    head = ["race", "Pareto set", "rounds", "instances", "evaluations", "% saved", "ended"]
    rows = [[*PAPER, "resolved"], *(_row(name, facts) for name, facts in races.items())]
    parts = [
        "Made by `python studies/mabbob/run.py`; README.md says what is compared.",
        "*Saved*: against all seven algorithms on 1,000 instances to the end.",
        table(head, rows),
    ]
    for name, facts in races.items():
        parts += [f"## {name}", *tables(facts, "evaluations"), _chosen(facts)]
        parts += section(folder / "results" / name)
    text = "\n\n".join(parts) + "\n"
    (folder / "table.md").write_text(text)
    return text


def _row(name: str, facts: dict[str, Any]) -> list[object]:
    full = FIXED * len(facts["algorithms"]) * facts["times"][-1]
    return [
        name,
        ", ".join(facts["pareto"]),
        len(facts["rounds"]),
        f"{facts['instances']:,}",
        f"{facts['spent']:.3g}",
        f"{100 * (1 - facts['spent'] / full):.0f}",
        facts["ended"],
    ]


def _chosen(facts: dict[str, Any]) -> str:
    chosen = facts["chosen"]
    if not chosen:
        return "Nothing is decided yet."
    return (
        f"To run if any number of evaluations is as likely to be the last: "
        f"{', '.join(chosen['linear'])}; any order of magnitude: {', '.join(chosen['log'])}."
    )
