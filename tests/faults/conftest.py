"""What the faults did, kept as a table: see ``results.md``."""

import os
import subprocess
from pathlib import Path

import pytest

RESULTS = Path(__file__).with_name("results.md")
COMMAND = "POLARBEAR_KILLS=100 pytest tests/faults"
HEADS = (
    "what was done",
    "times",
    "races",
    "runs",
    "acknowledged and lost",
    "counted twice",
    "other decisions",
    "processes left after 2 s",
    "code",
)
ABOUT = f"""\
# What the faults did

Written by `{COMMAND}`, row by row as its tests end; they say what is done.
Each race is compared with one that nobody disturbs: the same runs, the same decisions, event by
event. Acknowledged is what `append` has said to be durable. The code is that of the commit named,
with a plus if there were changes that were not committed yet.

"""


def commit():
    """Which code this is."""
    name = git("describe", "--always", "--exclude=*")
    changed = git("status", "--porcelain", "--", ":/", f":!{RESULTS.name}")
    return f"{name}+" if changed else name or "unknown"


def git(*said):
    done = ["git", *said]
    found = subprocess.run(done, cwd=RESULTS.parent, capture_output=True, text=True, check=False)
    return found.stdout.strip()


@pytest.fixture
def report():
    """Takes a row of the table; rows of tests that did not run this time stay."""

    def write(what, times, races, runs, lost, twice, different, left):
        if int(os.environ.get("POLARBEAR_KILLS", "0")) < 100:
            return
        numbers = (f"{n:,}" for n in (times, races, runs, lost, twice, different, left))
        cells = (what, *numbers, commit())
        rows = {HEADS[0]: HEADS, "---": ("---",) * len(HEADS)}
        if RESULTS.exists():
            lines = [li for li in RESULTS.read_text().splitlines() if li.startswith("|")]
            split = (tuple(c.strip() for c in line.strip("|").split("|")) for line in lines)
            rows |= {row[0]: row for row in split}
        rows[what] = cells
        text = ABOUT + "".join(f"| {' | '.join(row)} |\n" for row in rows.values())
        RESULTS.write_text(text)

    return write
