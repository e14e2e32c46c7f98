"""What candidates cost in the race, and what the fixed evaluator would have spent on them."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from design.size import Size
from tools.figures import Panel, sheet
from tools.records import Records

Rows = list[dict[str, Any]]

FIXED_RUNS, FIXED_EVALUATIONS = Size().instances, Size().evaluations
"""Of a candidate, by the fixed evaluator, and of each run."""

LOOKS = {
    "dominated": ("#b4b4b4", "o"),
    "member": ("#0033d3", "D"),
    "equivalent": ("#5b8dff", "d"),
    "undecided": ("#b68e00", "^"),
    "removed": ("#7e3500", "x"),
}
"""The colour and the mark of each verdict."""

BESIDE: dict[str, Any] = {"textcoords": "offset points", "ha": "left"}


def draw(place: Path, path: Path) -> None:
    """Evaluations so far, and what everybody was given; the latter when the loop has ended."""
    verdicts = Records(place / "verdicts.jsonl", ("name",)).rows
    standings = Records(place / "standings.jsonl", ("name",)).rows
    panels: list[Panel] = [("evaluations, when each had its verdict", partial(_course, verdicts))]
    if standings:
        panels.append(
            ("what each was given, and how it stands in the end", partial(_given, standings))
        )
    sheet(path, panels)


def _course(verdicts: Rows, ax: Any) -> None:
    number, spent = np.arange(1, len(verdicts) + 1), np.array([row["spent"] for row in verdicts])
    fixed = (number + 1) * FIXED_RUNS * FIXED_EVALUATIONS  # the baseline, too
    ax.plot(number, fixed, color="black", linewidth=1)
    ax.plot(number, spent, color="#6e6e6e", linewidth=0.8)
    _marks(ax, number, spent, [row["standing"] for row in verdicts], "lower right")
    ax.set_yscale("log")
    middle = len(number) // 2
    what = f"fixed: {FIXED_RUNS} runs of {FIXED_EVALUATIONS:,} each"
    above = {**BESIDE, "ha": "right"}
    ax.annotate(what, (number[middle], fixed[middle]), (0, 8), fontsize=7, **above)
    ax.annotate("the race", (number[middle], spent[middle]), (0, -16), fontsize=7, **BESIDE)
    ax.margins(y=0.15)
    _axes(ax, "Candidates so far", "Evaluations in all (log)")


def _given(standings: Rows, ax: Any) -> None:
    runs, spent = (np.array([row[what] for row in standings]) for what in ("runs", "evaluations"))
    _marks(ax, runs, spent, [row["standing"] for row in standings], "upper left")
    full = FIXED_RUNS * FIXED_EVALUATIONS
    # A ring, for those in the set lie within it: they were given as much.
    ax.plot(FIXED_RUNS, full, "o", color="black", markersize=11, markerfacecolor="none")
    said = f"each, by the fixed evaluator:\n{FIXED_RUNS} runs, {full:,} evaluations"
    place = {"textcoords": "offset points", "ha": "right", "va": "center"}
    ax.annotate(said, (FIXED_RUNS, full), (-9, 4), fontsize=7, **place)
    ax.set_yscale("log")
    ax.set_ylim(spent.min() / 1.5, 2 * full)
    ax.set_xlim(0, 1.05 * max(FIXED_RUNS, runs.max()))
    _axes(ax, "Runs of a candidate", "Its evaluations (log)")


def _marks(ax: Any, x: Any, y: Any, standing: list[str], legend: str) -> None:
    """A mark for each candidate, and what marks mean."""
    for said, (colour, mark) in LOOKS.items():
        here = np.array([one == said for one in standing])
        if here.any():
            label = f"{'failed' if said == 'removed' else said} ({here.sum()})"
            ax.plot(x[here], y[here], mark, color=colour, markersize=4, alpha=0.8, label=label)
    ax.legend(fontsize=7, frameon=False, loc=legend, handletextpad=0.2)


def _axes(ax: Any, across: str, up: str) -> None:
    ax.set_xlabel(across, fontsize=8)
    ax.set_ylabel(up, fontsize=8)
    ax.tick_params(labelsize=7)
    ax.spines[["top", "right"]].set_visible(False)
