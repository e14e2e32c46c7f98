"""The paper's three synthetic examples, one race of each.

Writes table.md and figures/, and what both are made of to results/.

python studies/synthetic/run.py           # with figures; goes on where it was
python studies/synthetic/run.py --table   # table and figures again from results/
python studies/synthetic/run.py --quick   # seconds: does it run at all?
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

from synthetic.examples import EXAMPLES, METHODS, PAPER, Raced, raced
from synthetic.figures import PANELS, draw
from tools import story
from tools.figures import possible
from tools.markdown import table
from tools.records import Records
from tools.summaries import CAPTIONS, explained, pictured

QUICK_CPU_SECONDS = 4

SHOWN = {
    "rounds": """The true ratings; ratings after the rounds in which an algorithm was eliminated or
settled, with the truth dotted, both among the rated algorithms; and the values at the end.""",
    "course": CAPTIONS["course"],
}
HEAD = [
    "example",
    "method",
    "instances in the paper",
    "instances",
    "rounds",
    "true members",
    "Pareto set",
    "lost",
    "instances until each elimination",
    "CPU s",
]


def measured(name: str, method: str, found: Raced, seconds: float) -> dict[str, Any]:
    out = {who: one["instances"] for one in found.rounds for who, *_ in one["eliminated"]}
    return {
        "example": name,
        "method": method,
        "instances": found.rounds[-1]["instances"],
        "rounds": len(found.rounds),
        "members": list(found.members),
        "pareto": list(found.race.pareto),
        "eliminated": out,
        "ended": found.race.ended,
        "seconds": round(seconds, 1),
    }


def write(folder: Path) -> str:
    """Write the table and the figures, and give back what is in the table."""
    kept = Records(folder / "results" / "races.jsonl", ("example", "method"))
    order = [(name, method) for name in EXAMPLES for method in METHODS]
    named = {(row["example"], row["method"]): row for row in kept.rows}
    rows = [_row(named[key]) for key in order if key in named]
    said = "Made by `python studies/synthetic/run.py`; README.md says what is compared."
    parts = [said, table(HEAD, rows), "Pictures of a race:", explained(SHOWN)]
    for name, method in order:
        path = folder / "results" / f"{name}-{method}.npz"
        if path.exists() and possible():
            draw(story.load(path), folder / "figures" / path.stem)
            parts += [f"## {name}, {method}", *pictured(folder, path.stem, SHOWN)]
    text = "\n\n".join(parts) + "\n"
    (folder / "table.md").write_text(text)
    return text


def _row(row: dict[str, Any]) -> list[object]:
    out = ", ".join(f"{who} {number}" for who, number in row["eliminated"].items())
    return [
        row["example"],
        row["method"],
        PAPER[row["example"]],
        row["instances"],
        row["rounds"],
        ", ".join(row["members"]),
        ", ".join(row["pareto"]) + ("" if row["ended"] == "resolved" else " (not resolved)"),
        ", ".join(sorted(set(row["members"]) - set(row["pareto"]))) or "none",
        out,
        row["seconds"],
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--examples", nargs="+", choices=EXAMPLES, default=list(EXAMPLES))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--table", action="store_true")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder, chosen = Path(__file__).parent, wanted.examples
        options: dict[str, Any] = {}
        if wanted.quick:
            folder, chosen, wanted.methods = Path(scratch), ["crossing"], ["default"]
            options = {"instances": 40}
        kept = Records(folder / "results" / "races.jsonl", ("example", "method"))
        for name in chosen if not wanted.table else ():
            for method in wanted.methods:
                path = folder / "results" / f"{name}-{method}.npz"
                if (name, method) in kept and path.exists():
                    continue
                began = time.process_time()
                found = raced(name, method, **options)
                seconds = time.process_time() - began
                story.save(story.tell(found.race, found.rounds, PANELS, found.truth), path)
                if (name, method) not in kept:
                    kept.add(measured(name, method, found, seconds))
                print(f"{name}, {method}: {found.race.ended}", flush=True)
        print(write(folder))


if __name__ == "__main__":
    main()
