"""table.md and figures/, from what is in results/."""

from pathlib import Path
from typing import Any

from mabbob import classical
from tools.figures import draw_kept
from tools.races import load_all
from tools.summaries import compared, explained, in_words, pictured, tables

FIXED = 1000
"""Instances on which all are run to the end, as standard practice for MA-BBOB has it."""

PAPER = {
    "pareto": ("Pareto set", "CSA, MXNES, TPA, XNES"),
    "eliminated": (
        "eliminated",
        "RS in 1 (8 instances), LPXNES in 3 (24 instances), MSR in 21 (168 instances)",
    ),
    "rounds": ("rounds; instances until all is settled", "51; 1,656"),
    "settled": ("settled in round", "XNES in 47, CSA in 48, MXNES, TPA in 51"),
    "saved": ("evaluations, against 1,000 instances to the end", "1.72e+08 of 4.2e+08: 59 % saved"),
    "beyond half": ("instances seen beyond half of the evaluations", "CSA 168, XNES 168"),
    "chosen": ("chosen if any number may be the last", "CSA; on a logarithmic scale CSA"),
}


def write(folder: Path) -> str:
    """Write the tables and the figures, and give back what is in the tables."""
    races = load_all(folder / "results")
    ours = {name: {**in_words(facts), "saved": _saved(facts)} for name, facts in races.items()}
    parts = [
        "Made by `python studies/mabbob/run.py`; README.md says what is compared.",
        compared(PAPER, "the paper (d=30, T=200)", ours),
        "Pictures of a race:",
        explained(),
    ]
    for name, facts in races.items():
        results, stem = folder / "results" / name, folder / "figures" / name
        parts += [f"## {name}", *tables(facts, "evaluations")]
        draw_kept(results, stem)
        runs = classical.load(results)
        if runs is not None:
            parts += classical.section(runs)
            classical.draw(runs, stem)
        parts += pictured(folder, name)
    text = "\n\n".join(parts) + "\n"
    (folder / "table.md").write_text(text)
    return text


def _saved(facts: dict[str, Any]) -> str:
    full = FIXED * len(facts["algorithms"]) * facts["times"][-1]
    share = f"{facts['spent']:.3g} of {full:.2g}"
    if facts["ended"] != "resolved":
        return f"{share} requested so far"
    return f"{share}: {100 * (1 - facts['spent'] / full):.0f} % saved"
