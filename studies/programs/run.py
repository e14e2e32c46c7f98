"""Programs by the clock: HiGHS with several options, and a local search.

Writes table.md and figures/, and what both are made of to results/.

python studies/programs/run.py            # 2 s a run; about half an hour; goes on where it was
python studies/programs/run.py --hours 1  # no new round after so long
python studies/programs/run.py --table    # tables and figures again from results/
python studies/programs/run.py --quick    # half a minute: does it run at all?
"""

import sys
import tempfile
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from programs.knapsack import draw
from programs.knapsack import write as write_instance
from tools import story
from tools.figures import overview, possible
from tools.markdown import table
from tools.options import parser, within
from tools.races import keep, load
from tools.records import seeded
from tools.summaries import tables

import polarbear as pb

QUICK_CPU_SECONDS = 8

HERE = Path(__file__).parent
HIGHS = {
    "HiGHS": [],
    "no heuristics": ["--mip_heuristic_effort=0"],
    "more heuristics": ["--mip_heuristic_effort=0.5"],
    "no presolve": ["--presolve=off"],
}
PATTERN = r"^o (?P<time>\S+) (?P<value>\S+)"
QUESTION = pb.ParetoSet(certainty=0.99)


def command(program: str, *options: str) -> pb.Command:
    words = [sys.executable, str(HERE / program), "{instance}", "--seconds={horizon}"]
    return pb.Command([*words, "--seed={seed}", *options], pattern=PATTERN)


def solvers() -> dict[str, pb.Command]:
    found = {name: command("highs.py", *options) for name, options in HIGHS.items()}
    return {**found, "local search": command("search.py")}


def instances(folder: Path, number: int, items: int) -> list[Path]:
    """Files, made by their number: the same on every machine."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"knapsack-{items}-{k}.lp" for k in range(number)]
    for path in paths:
        if not path.exists():
            write_instance(path, *draw(seeded(path.name), items))
    return paths


def write(folder: Path) -> str:
    facts = load(folder / "results")
    parts = ["Made by `python studies/programs/run.py`; README.md says what is raced."]
    if facts is not None:
        full = len(facts["algorithms"]) * facts["instances"] * facts["times"][-1]
        row = [
            ", ".join(facts["pareto"]),
            len(facts["rounds"]),
            facts["instances"],
            facts["runs"],
            f"{facts['spent'] / 60:.1f}",
            f"{100 * (1 - facts['spent'] / full):.0f}",
            facts["ended"],
        ]
        head = ["Pareto set", "rounds", "instances", "runs", "minutes of runs", "% saved", "ended"]
        said = "*Saved*: against all on the same instances to the end."
        parts += [table(head, [row]), said, *tables(facts, "seconds")]
        told = folder / "results" / story.FILE
        if told.exists() and possible():
            overview(story.load(told), folder / "figures" / "race.png", clock="seconds")
            parts.append("![Who is ahead when, and how the race found out](figures/race.png)")
    text = "\n\n".join(parts) + "\n"
    (folder / "table.md").write_text(text)
    return text


def main() -> None:
    wanted = parser(__doc__, slots="runs at once, one for each idle core").parse_args()
    if wanted.table:
        print(write(HERE))
        return
    budget = within(pb.Budget(), wanted.hours)
    with tempfile.TemporaryDirectory() as scratch:
        folder, number, items, times = HERE, 300, 200, pb.grid.log(0.02, 2.0, 20)
        if wanted.quick:
            folder, number, items, times = Path(scratch), 4, 20, pb.grid.log(0.01, 0.1, 4)
            budget = replace(budget, runs=20, batch=(4, 4))
        found = pb.race(
            solvers(),
            instances(folder / "instances", number, items),
            times,
            direction="minimize",
            question=QUESTION,
            budget=budget,
            store=folder / "race.db",
            executor=pb.backends.LocalProcesses(wanted.slots, pin=True),
        )
        print(found)
        keep(found, folder / "results")
        print(write(folder))
        if wanted.quick and found.failures:
            raise SystemExit("not all of them work")


if __name__ == "__main__":
    main()
