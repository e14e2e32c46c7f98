"""How many lines and branches of each room the tests reach, from the data of coverage.

python .ci/check_coverage.py    # writes tests/coverage.md again; fails if a room is below its floor

`nox -s coverage` runs the tests before. pyproject.toml says what is left out, and why.
"""

import json
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from coverage import Coverage

ROOT = Path(__file__).resolve().parents[1]
FLOOR = 95
"""Per cent of lines and branches of the rooms in which results are computed and kept."""
ROOMS = ("racing", "inference", "data", "store", "selection")
HEAD = f"""\
# Coverage

`nox -s coverage` writes this file: which lines and branches of each room are reached by the fast
tests and the examples in docstrings, `pytest -m "not slow" tests src`. Slow tests reach more. The
first {len(ROOMS)} rooms must not fall below {FLOOR} %.

| room | lines and branches | not reached | reached |
|---|---|---|---|"""


def count_by_room() -> dict[str, tuple[int, int]]:
    """Return how many lines and branches each room has, and how many of them were reached."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        data = Coverage()
        data.load()
        data.json_report(outfile=str(report))
        files = json.loads(report.read_text("utf-8"))["files"]
    counts = defaultdict(lambda: (0, 0))
    for name, file in files.items():
        parts, of = Path(name).parts, file["summary"]
        room = parts[parts.index("polarbear") + 1]
        has, reached = counts[room if not room.endswith(".py") else "top"]
        has += of["num_statements"] + of["num_branches"]
        reached += of["covered_lines"] + of["covered_branches"]
        counts[room if not room.endswith(".py") else "top"] = has, reached
    return dict(counts)


def main() -> int:
    """Write the table; return whether a room is below its floor."""
    counts = count_by_room()
    order = [*ROOMS, *sorted(counts.keys() - set(ROOMS))]
    share = {room: 100 * counts[room][1] / counts[room][0] for room in order}
    rows = [
        f"| {room} | {has:,} | {has - reached:,} | {share[room]:.1f} % |"
        for room, (has, reached) in ((room, counts[room]) for room in order)
    ]
    (ROOT / "tests" / "coverage.md").write_text("\n".join([HEAD, *rows, ""]), "utf-8")
    print("\n".join(rows))
    low = [room for room in ROOMS if share[room] < FLOOR]
    print(f"below {FLOOR} %: {', '.join(low) or 'none'}")
    return int(bool(low))


if __name__ == "__main__":
    sys.exit(main())
