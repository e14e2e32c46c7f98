"""A schedule of real programs, carried out with timeouts: does it solve what was predicted?

Three programs run on one half of the formulas, `pb.selection.schedule` chooses from these runs, and
its steps are then carried out on the other half, beside the best single program. Seconds are CPU
seconds, so that whatever else the machine does changes nothing.

python studies/schedules/carried_out.py           # writes carried_out.md; some CPU minutes
python studies/schedules/carried_out.py --quick   # seconds: does it run at all?
"""

import argparse
import csv
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil

sys.path.insert(0, str(Path(__file__).parents[1]))

from schedules.satisfy import PROGRAMS
from tools.markdown import table

import polarbear as pb
from polarbear.selection.schedules import Schedule

QUICK_CPU_SECONDS = 20

HERE = Path(__file__).parent
FAMILIES = ("loose", "tight", "pigeons")
BUDGET, EACH = 1.5, 40
"""CPU seconds for a formula, and how many formulas of each family."""


def list_commands(formula: str) -> dict[str, list[str]]:
    """Return the command of each program for a formula."""
    words = [sys.executable, str(HERE / "satisfy.py")]
    return {name: [*words, name, formula] for name in PROGRAMS}


def run(command: list[str], seconds: float) -> tuple[bool, float]:
    """Return whether a program solves its formula in so many CPU seconds, and how many it took."""
    before = read_cpu_seconds()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as child:
        seen = psutil.Process(child.pid)
        while child.poll() is None:
            if sum(seen.cpu_times()[:2]) >= seconds:
                child.kill()
            time.sleep(0.01)
    used = read_cpu_seconds() - before
    return child.returncode == 0 and used <= seconds, min(used, seconds)


def read_cpu_seconds() -> float:
    """Return the CPU seconds of all programs that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def carry_out(schedule: Schedule, commands: dict[str, list[str]], budget: float) -> str | None:
    """Return the program that solved it, if any, as docs/how-to/deploy-more-than-one.md does."""
    spent = 0.0
    for name, until in schedule.steps:
        is_solved, used = run(commands[name], min(until, budget) - spent)
        if is_solved:
            return name
        spent += used
    return None


def record(formulas: list[str], budget: float, path: Path) -> pb.Runs:
    """Run each program on each formula, write what came, and read it as anybody would."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["program", "formula", "solved", "seconds"])
        for formula in formulas:
            for name, command in list_commands(formula).items():
                is_solved, seconds = run(command, budget)
                writer.writerow([name, formula, int(is_solved), f"{seconds:.3f}"])
    return pb.read(
        path,
        algorithm="program",
        instance="formula",
        value="solved",
        time="seconds",
        clock="seconds",
    )


def compare(each: int, budget: float, path: Path) -> str:
    """Return what was predicted from one half, and what happened on the other."""
    formulas = [f"{family}-{k}" for k in range(each) for family in FAMILIES]
    half = len(formulas) // 2
    best = pb.selection.schedule(
        record(formulas[:half], budget, path), budget, steps=3, score="solved"
    )
    done = np.array([
        (
            carry_out(best, list_commands(formula), budget) is not None,
            run(list_commands(formula)[best.single], budget)[0],
        )
        for formula in formulas[half:]
    ])  # fmt: skip
    lead = np.subtract(*done.T.astype(float))
    error = 1.96 * lead.std(ddof=1) / np.sqrt(len(lead))
    solved, n = done.sum(axis=0), len(done)
    rows = [
        [what, f"{100 * stated:.1f} %", f"{count} of {n}, {100 * count / n:.1f} %"]
        for what, stated, count in zip((best.name, best.single), best.values, solved, strict=True)
    ]
    gains = [100 * (lead.mean() + one) for one in (0, -error, error)]
    form = "{:+.1f} ({:+.1f} to {:+.1f})"
    stated = form.format(*(100 * one for one in best.gain))
    rows.append(["gain, points (95 % interval)", stated, form.format(*gains)])
    said = f"{half} formulas recorded, {n} others solved for real, {budget:g} CPU s each."
    return f"{said}\n\n```\n{best}\n```\n\n" + table(["", "predicted", "carried out"], rows)


def main() -> None:
    """Write carried_out.md, and the recorded runs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small: does it run at all?")
    if parser.parse_args().quick:
        with tempfile.TemporaryDirectory() as folder:
            print(compare(3, 1.0, Path(folder, "recorded.csv")))
        return
    text = compare(EACH, BUDGET, HERE / "recorded.csv")
    print(text)
    made = "Made by `python studies/schedules/carried_out.py`."
    (HERE / "carried_out.md").write_text(f"{made}\n\n{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
