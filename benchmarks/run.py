"""All benchmarks in one command: one table of ratios, measured in one run on one machine.

    python benchmarks/run.py                 # under 30 minutes on two cores; writes results
    python benchmarks/run.py race store      # some parts: prints their rows, writes nothing
    python benchmarks/run.py --quick         # under a minute: small sizes, and limits are checked

Writes table.md, table.json and growth.svg into benchmarks/results. A small run fails with a
sentence for each ratio that exceeds its limit; limits leave room for a busy machine, and what
exceeds one is measured again before it is believed.
"""

import json
import platform
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime

import drawing
import growth
import importing
import overhead
import passes
import race
import racing
import read_and_rank
import recorded_race
import samplers
import store
import track
from measuring import (
    HEAD,
    RESULTS,
    Row,
    check_limits,
    grouped,
    load,
    machine,
    make_parser,
    repeat_beyond_limits,
    share,
    shown,
    table,
)

QUICK_CPU_SECONDS = 110
NEEDS = ("choix",)

PARTS = {
    "inference": [samplers],
    "floor": [passes],
    "race": [recorded_race, racing, overhead, race, track],
    "store": [store],
    "reading": [read_and_rank],
    "drawing": [drawing],
    "import": [importing],
}
PACKAGES = (
    "polarbear-race numpy scipy pymc pymc-extras nutpie numpyro jax choix polars pyarrow "
    "distributed matplotlib psycopg"
)

NUMBERS = RESULTS / "table.json"

TEXT = """\
# Benchmarks: ours and others, side by side

Made by `python benchmarks/run.py` on {when}, in {minutes:.0f} minutes.

**Machine:** {machine}. Load {before} at the start, {after} at the end.{note}

**How to read it.** A ratio is what ours takes divided by what the other side takes: below one, ours
is faster, and 1/90 is ninety times as fast. Both sides of a row took turns. Seconds are of CPU
unless they say "wall", with one thread; medians of several. n algorithms, P instances, T times.

{rows}

{goals}

## Growth

![CPU seconds against algorithms, instances, times, runs; wall seconds against workers](growth.svg)

{slopes}
"""


def measured(wanted: list[str], quick: bool) -> Iterator[Row]:
    """Rows of all parts, or of some."""
    for part, modules in PARTS.items():
        if not wanted or part in wanted:
            for module in modules:
                yield from repeat_beyond_limits(module.rows) if quick else module.rows(quick)


def goals(rows: list[Row]) -> str:
    """Which goals were reached and which were not."""
    aimed = [(row, row.goal) for row in rows if row.goal is not None]
    missed = [
        f"- {row.part}, {row.what}: {share(row.ratio)} times {row.against}, and {share(goal)} "
        f"was the goal. {row.remark}."
        for row, goal in aimed
        if not row.reached
    ]
    said = f"**Goals:** {len(aimed) - len(missed)} of {len(aimed)} are reached."
    return "\n".join([said, "", *missed]) if missed else said


def slopes(found: growth.Points) -> str:
    """The figure in numbers."""
    lines = [
        [growth.NAMES[axis], name, listed(points), f"{growth.slope(points):.2f}"]
        for axis, series in found.items()
        for name, points in series.items()
    ]
    return table(["along", "what", "size: seconds", "slope, last decade"], lines)


def listed(points: list[list[float]]) -> str:
    return ", ".join(f"{size:,}: {spent:.2g}" for size, spent, *_ in points)


def facts(begin: float, before: str, note: str) -> dict[str, object]:
    """Where and when, for the table and for whoever reads the numbers."""
    packages = machine(*PACKAGES.split())
    return {
        "machine": f"{packages}, SQLite {sqlite3.sqlite_version}, {platform.system()}",
        "when": datetime.now(UTC).strftime("%Y-%m-%d"),
        "minutes": (time.monotonic() - begin) / 60,
        "before": before,
        "after": load(),
        "note": note and f"\n\n**Note:** {note}",
    }


def keep(rows: list[Row], grown: growth.Points, about: dict[str, object]) -> None:
    """All numbers, before anything is made of them."""
    numbers = {**about, "rows": list(map(asdict, rows)), "growth": grown}
    NUMBERS.write_text(json.dumps(numbers, indent=1) + "\n")


def write() -> None:
    """The table and the figure of growth, from the numbers that are kept."""
    kept = json.loads(NUMBERS.read_text())
    rows = [Row(**row) for row in kept.pop("rows")]
    found = kept.pop("growth")
    growth.draw(found, RESULTS / "growth.svg")
    lines = table(HEAD, grouped(rows))
    text = TEXT.format(rows=lines, goals=goals(rows), slopes=slopes(found), **kept)
    (RESULTS / "table.md").write_text(text)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("parts", nargs="*", help=f"some of {', '.join(PARTS)}; nothing: all")
    parser.add_argument("--table", action="store_true", help="write again what was measured")
    parser.add_argument("--note", default="", help="what was unusual, to be said in the table")
    wanted = parser.parse_args()
    if unknown := set(wanted.parts) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    if wanted.table:
        write()
        return
    begin, before = time.monotonic(), load()
    rows = shown(measured(wanted.parts, wanted.quick))
    if not wanted.quick and not wanted.parts:
        keep(rows, {}, facts(begin, before, wanted.note))
        keep(rows, growth.measured(), facts(begin, before, wanted.note))
        write()
    print(f"{time.monotonic() - begin:.0f} s, load {before} and {load()}")
    if wanted.quick:
        check_limits(rows)


if __name__ == "__main__":
    main()
