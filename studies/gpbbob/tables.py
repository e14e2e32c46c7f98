"""table.md and figures/, from what is in results/."""

from pathlib import Path

from gpbbob import landscape
from tools.figures import draw_kept, possible
from tools.races import load_all
from tools.summaries import CAPTIONS, compared, explained, in_words, pictured, tables

PAPER = {
    "pareto": ("Pareto set", "NONE, SEP"),
    "eliminated": (
        "eliminated in round",
        "NAT in 2, RS, MAT in 5, COV, CMSA in 8, CHO in 14",
    ),
    "rounds": ("rounds; instances until all is settled", "14; 528"),
    "chosen": ("chosen if any time may be the last", "NONE by a little"),
    "hours": ("hours of runs", "-"),
}


SHOWN = {what: CAPTIONS[what] for what in ("rounds", "course", "end")}


def write(folder: Path) -> str:
    """Write the tables and the figures, and give back what is in the tables."""
    races = load_all(folder / "results")
    ours = {
        name: {**in_words(facts), "hours": f"{facts['spent'] / 3600:.2g}"}
        for name, facts in races.items()
    }
    parts = [
        "Made by `python studies/gpbbob/run.py`; README.md says what is compared.",
        compared(PAPER, "the paper (d about 240, 30 s)", ours),
        "Pictures of a race:",
        explained(SHOWN),
    ]
    for name, facts in races.items():
        parts += [f"## {name}", *tables(facts, "seconds")]
        draw_kept(folder / "results" / name, folder / "figures" / name)
        parts += pictured(folder, name, SHOWN)
    if (kept := folder / "results" / landscape.FILE).exists() and possible():
        landscape.draw_kept(kept, folder / "figures" / "landscape.png")
    text = "\n\n".join(parts) + "\n"
    (folder / "table.md").write_text(text)
    return text
