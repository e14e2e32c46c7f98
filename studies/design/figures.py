"""What candidates cost in the race, and what the fixed evaluator would have spent on them."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tools.figures import Panel, sheet
from tools.records import Records

Rows = list[dict[str, Any]]

FIXED_RUNS, FIXED_EVALUATIONS = 216, 10_000
"""Of a candidate, by the fixed evaluator."""

LOOKS = {
    "dominated": ("#b4b4b4", "o"),
    "in the set": ("#0033d3", "D"),
    "undecided": ("#b68e00", "^"),
    "removed": ("#7e3500", "x"),
}
"""The colour and the mark of each verdict."""


def draw(place: Path, path: Path) -> None:
    """Evaluations so far, and what everybody was given; the latter when the loop has ended."""
    verdicts = Records(place / "verdicts.jsonl", ("name",)).rows
    standings = Records(place / "standings.jsonl", ("name",)).rows
    panels: list[Panel] = [("evaluations, when each had its verdict", partial(_course, verdicts))]
    if standings:
        panels.append(("runs of each, and how it stands in the end", partial(_runs, standings)))
    sheet(path, panels, 2, width=5.0, height=3.4)


def _course(verdicts: Rows, ax: Any) -> None:
    number, spent = np.arange(1, len(verdicts) + 1), np.array([row["spent"] for row in verdicts])
    fixed = (number + 1) * FIXED_RUNS * FIXED_EVALUATIONS  # the baseline, too
    ax.plot(number, fixed, color="black", linewidth=1)
    ax.plot(number, spent, color="#6e6e6e", linewidth=0.8)
    _marks(ax, number, spent, [row["standing"] for row in verdicts])
    ax.set_yscale("log")
    middle = len(number) // 2
    what = f"fixed: {FIXED_RUNS} runs of {FIXED_EVALUATIONS:,} each"
    ax.annotate(what, (number[middle], fixed[middle]), (0, 6), fontsize=7, **_BESIDE)
    ax.annotate("the race", (number[middle], spent[middle]), (0, -13), fontsize=7, **_BESIDE)
    ax.margins(y=0.15)
    _axes(ax, "Candidates so far", "Evaluations in all (log)")


def _runs(standings: Rows, ax: Any) -> None:
    number, runs = np.arange(len(standings)), np.array([row["runs"] for row in standings])
    ax.vlines(number, 0, runs, color="#d8d8d8", linewidth=0.8, zorder=1)
    _marks(ax, number, runs, [row["standing"] for row in standings])
    ax.axhline(FIXED_RUNS, color="black", linewidth=1)
    text = {"fontsize": 7, "ha": "right", "xycoords": ("axes fraction", "data")}
    ax.annotate(f"fixed: {FIXED_RUNS}", (1, FIXED_RUNS), (0, 4), textcoords="offset points", **text)
    median = float(np.median(runs))
    ax.axhline(median, color="#6e6e6e", linewidth=0.8, linestyle=":")
    ax.annotate(f"median: {median:g}", (1, median), (0, 4), textcoords="offset points", **text)
    ax.set_ylim(0, 1.12 * max(FIXED_RUNS, runs.max()))
    _axes(ax, "Candidate, in the order of joining", "Runs")


_BESIDE: dict[str, Any] = {"textcoords": "offset points", "ha": "center"}


def _marks(ax: Any, x: Any, y: Any, standing: list[str]) -> None:
    """A mark for each candidate, and what marks mean."""
    for said, (colour, mark) in LOOKS.items():
        here = np.array([one == said for one in standing])
        if here.any():
            label = f"{'failed' if said == 'removed' else said} ({here.sum()})"
            ax.plot(x[here], y[here], mark, color=colour, markersize=3.5, label=label)
    ax.legend(fontsize=7, frameon=False, loc="best", handletextpad=0.2)


def _axes(ax: Any, across: str, up: str) -> None:
    ax.set_xlabel(across, fontsize=8)
    ax.set_ylabel(up, fontsize=8)
    ax.tick_params(labelsize=7)
    ax.spines[["top", "right"]].set_visible(False)
