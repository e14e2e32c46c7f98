"""This version against an earlier commit: what both can do, measured in turns.

    python benchmarks/against.py                # takes ten minutes; writes results/against.md
    python benchmarks/against.py --quick        # small sizes, against the last commit; seconds
    python benchmarks/against.py --commit NAME

Each side measures itself by the benchmarks of its own commit, in processes of its own with one
thread. A ratio is that of the least seconds of all rounds, which other programs disturb least: CPU
seconds, but for reading and ranking.
"""

import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from measuring import RESULTS, SINGLE, Figures, Row, machine, make_parser, seconds, share, table

QUICK_CPU_SECONDS = 20

PROJECT = Path(__file__).parents[1]

BEFORE = "2fe1ddad"
"""The last commit with a single object for all rules of a race."""

LIMIT = 1.05

CALL = """\
import sys; sys.path.insert(0, sys.argv[1])
import importlib, json
function = getattr(importlib.import_module(sys.argv[2]), sys.argv[3])
print(json.dumps(function(*json.loads(sys.argv[4]))))
"""


class Task(NamedTuple):
    """A function of a benchmark that both commits have, and the figure that counts."""

    part: str
    what: str
    module: str
    function: str
    arguments: tuple[object, ...]
    figure: str


ROUNDS = {"import": 15, "reading": 9, "ranking": 9}
"""How often a short part is measured, for a machine is slower at times; others five times."""


def call(tree: Path, module: str, function: str, arguments: tuple[object, ...]) -> Figures:
    """What this function of the benchmarks of a tree finds, with the package of that tree."""
    command = [str(tree / "benchmarks"), module, function, json.dumps(arguments)]
    done = subprocess.run(
        [sys.executable, "-c", CALL, *command],
        env={**os.environ, **SINGLE, "PYTHONPATH": str(tree / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{tree.name}: {module}.{function}{arguments}:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def measure(tree: Path, task: Task) -> float:
    """The figure of a task, in seconds."""
    return call(tree, task.module, task.function, task.arguments)[task.figure]


def extract(commit: str, folder: Path) -> Path:
    """The package and the benchmarks of a commit, as files."""
    parts = ["src", "benchmarks", "studies/calibration/pools/mabbob_d10.npz"]
    command = ["git", "-C", str(PROJECT), "archive", commit, *parts]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(f"commit {commit}: {done.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder


def list_tasks(folder: Path, quick: bool) -> Iterator[Task]:
    """Everything that is measured; data of the tasks are in the folder."""
    code = "import polarbear"
    yield Task("import", f"`{code}`", "importing", "started", (code,), "cpu")
    sizes = [(7, 20, 10)] if quick else [(7, 200, 20), (20, 100, 20), (50, 40, 50)]
    cases = [("BSpline", *size) for size in sizes]
    if not quick:
        others = ("Dirichlet", "RandomWalk", "GP", "HSGP", "SparseGP", "HierarchicalDirichlet")
        cases += [(prior, 7, 200, 20) for prior in others]
    for prior, n, instances, times in cases:
        what = f"{prior}, {n} algorithms, {instances} instances, {times} times"
        yield Task("fit", what, "passes", "counted", (prior, n, instances, times, 1), "posterior")
    runs = 500 if quick else 20_000
    paths = str(folder / "runs.parquet"), str(folder / "few.parquet")
    what = f"{100 * runs:,} rows of Parquet"
    yield Task("reading", what, "read_and_rank", "ours", paths, "read")
    yield Task("ranking", f"{runs:,} runs at 50 times", "read_and_rank", "ours", paths, "rank")
    rounds, times = (3, 30) if quick else (50, 200)
    what = f"{rounds} rounds of recorded MA-BBOB runs, 7 algorithms, {times} times"
    yield Task("race", what, "recorded_race", "raced", (rounds, times), "race")
    runs = 1000 if quick else 100_000
    stored = str(folder / "race.db"), runs
    yield Task("resume", f"{runs:,} runs in SQLite", "store", "resume", stored, "cpu")


def prepare(tree: Path, folder: Path, quick: bool) -> list[Task]:
    """Write the data of all tasks as this tree writes them."""
    folder.mkdir()
    tasks = list(list_tasks(folder, quick))
    runs = 500 if quick else 20_000
    for task in tasks:
        if task.part == "reading":
            whole, few = task.arguments
            call(tree, "read_and_rank", "write_file", (whole, runs, False))
            call(tree, "read_and_rank", "write_file", (few, 10, False))
        elif task.part == "resume":
            call(tree, "store", "append", (*task.arguments, 4096))
    return tasks


def rows(commit: str, quick: bool) -> Iterator[Row]:
    """What each task takes now and took then."""
    with tempfile.TemporaryDirectory() as place:
        trees = PROJECT, extract(commit, Path(place) / commit)
        both = [
            prepare(tree, Path(place) / name, quick)
            for tree, name in zip(trees, ("now", "then"), strict=True)
        ]
        for now, then in zip(*both, strict=True):
            sides, found = [(trees[0], now), (trees[1], then)], ([], [])
            for k in range(1 if quick else ROUNDS.get(now.part, 5)):
                for side in (0, 1) if k % 2 else (1, 0):
                    found[side].append(measure(*sides[side]))
            ours, theirs = map(min, found)
            yield Row(now.part, now.what, commit, ours, theirs, goal=LIMIT)


REPORT = """\
Made by `python benchmarks/against.py --commit {commit}` on {machine}: the least of all rounds.

{rows}
"""


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--commit", default=None, help=f"the other side, by default {BEFORE}")
    wanted = parser.parse_args()
    commit = wanted.commit or ("HEAD" if wanted.quick else BEFORE)
    lines = []
    for row in rows(commit, wanted.quick):
        lines.append(
            (row.part, row.what, f"**{share(row.ratio)}**", seconds(row.ours), seconds(row.theirs))
        )
        print(*lines[-1], flush=True)
    head = ["part", "what", "now / then", "now", "then"]
    if not wanted.quick:
        text = REPORT.format(commit=commit, machine=machine(), rows=table(head, lines))
        (RESULTS / "against.md").write_text(text)


if __name__ == "__main__":
    main()
