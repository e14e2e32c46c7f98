"""Learning curves from a CSV: maximise, noisy, few seeds. Writes table.md and a figure.

python studies/curves/run.py          # the verdicts, from curves.csv
python studies/curves/run.py --make   # curves.csv again, which takes a minute or two
python studies/curves/run.py --quick  # and are some curves made again just as they are in the file?
"""

import argparse
import csv
import os
import sys
import tempfile
from functools import partial
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

from curves.learning import CHECKPOINTS, LEARNERS, curve
from tools.figures import Panel, possible, sheet
from tools.markdown import table

import polarbear as pb

QUICK_CPU_SECONDS = 5

HERE = Path(__file__).parent
CSV = HERE / "curves.csv"
TASKS, SEEDS = 24, 3
HEAD = ["algorithm", "task", "seed", "steps", "return", "expected"]
ALPHA = 0.95
DOUBTFUL = 0.2
"""Who belongs to the Pareto set with less than this probability is named."""


def rows(name: str, task: int, seed: int) -> list[list[str]]:
    return [
        [name, str(task), str(seed), str(steps), f"{tried:.4f}", f"{expected:.4f}"]
        for steps, tried, expected in curve(name, task, seed)
    ]


def make() -> None:
    part = CSV.with_suffix(".part")
    with part.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEAD)
        for name in LEARNERS:
            for task in range(TASKS):
                for seed in range(SEEDS):
                    writer.writerows(rows(name, task, seed))
    part.replace(CSV)  # a file is whole or not there


def read(value: str) -> pb.Runs:
    return pb.read(
        CSV,
        direction="maximize",
        algorithm="algorithm",
        instance="task",
        repetition="seed",
        time="steps",
        value=value,
        until=float(CHECKPOINTS[-1]),
        clock="steps",
    )


def looks() -> list[tuple[str, pb.Runs]]:
    """The same curves, looked at in several ways."""
    tried, expected = read("return"), read("expected")
    few = [str(task) for task in range(6)]
    return [
        ("one seed, all tasks", tried.filter(where=tried.repetition == 0)),
        ("three seeds, all tasks", tried),
        ("three seeds, six tasks", tried.filter(instances=few)),
        ("three seeds, all tasks, expected returns", expected),
    ]


def more(runs: pb.Runs) -> str:
    """On about how many more tasks one would have to run to settle every pair."""
    asked = pb.ParetoSet(certainty=ALPHA)
    race = pb.Race(
        runs.algorithms, CHECKPOINTS, direction="maximize", question=asked, clock="steps"
    )
    race.load(runs)
    race.ask()
    if race.status.forecast is None:
        return "-"
    low, middle, high = race.status.forecast.instances
    return f"{middle:,.0f} ({low:,.0f} to {high:,.0f})"


def write(folder: Path) -> str:
    lines, verdicts, panels = [], [], list[Panel]()
    for said, runs in looks():
        posterior = pb.fit(pb.rank(runs, CHECKPOINTS))
        chosen = pb.select(posterior, pb.preferences.final()).algorithms
        belongs = posterior.prob_in_pareto()
        out = sorted(set(runs.algorithms) - set(posterior.pareto(ALPHA)))
        likely = [f"{name} ({p:.2f})" for name, p in belongs.items() if p < DOUBTFUL]
        lines.append(
            [
                said,
                len(runs),
                ", ".join(out) or "nobody",
                ", ".join(likely) or "nobody",
                more(runs),
                ", ".join(chosen),
            ]
        )
        panels.append((said, partial(pb.plots.ratings, posterior, time="log")))
        verdicts += [f"## {said}", f"```\n{posterior.verdict(ALPHA)}\n```"]
    head = [
        "",
        "runs",
        f"dominated for sure ({ALPHA})",
        "hardly in the set (P)",
        "more tasks to settle all",
        "to run for 20,000 steps",
    ]
    parts = ["Made by `python studies/curves/run.py`; README.md says what is compared."]
    parts.append(table(head, lines))
    if possible():
        sheet(folder / "figures" / "ratings.png", panels)
        parts.append(
            "![Ratings, with one seed and more, with all tasks and few](figures/ratings.png)"
        )
    text = "\n\n".join([*parts, *verdicts]) + "\n"
    (folder / "table.md").write_text(text)
    return text


def check() -> None:
    """Some curves of the file, made again."""
    with CSV.open(newline="") as file:
        kept = [row for row in csv.reader(file) if row[1:3] == ["7", "1"]]
    made = [row for name in LEARNERS for row in rows(name, 7, 1)]
    if kept != made:
        raise SystemExit("curves.csv holds other curves than those made now: --make")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--make", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--table", action="store_true", help="the same as without")
    wanted = parser.parse_args()
    if wanted.make:
        make()
    if wanted.quick:
        check()
    with tempfile.TemporaryDirectory() as scratch:
        print(write(Path(scratch) if wanted.quick else HERE))


if __name__ == "__main__":
    main()
