"""A race as a file, and commands as somebody types them."""

import sys

MODULE = """
import time
from pathlib import Path

SKILL = {"early": (1.5, 0.3, -1.5), "late": (-1.5, 0.3, 1.5), "worst": (-2.5, -2.5, -2.5)}

def _solver(name):
    def solve(job):
        while not Path(__file__).with_name("go").exists():
            time.sleep(0.05)
        luck = job.rng.gumbel(size=3)
        for k, at in enumerate((10, 30, 100)):
            time.sleep(SECONDS)
            yield at, luck[k] + SKILL[name][k] + 30 * k
    return solve

early, late, worst = map(_solver, SKILL)

def instance(rng):
    return float(rng.random())
"""

RACE = """
times = [10, 30, 100]
direction = "maximize"
clock = "reported"
store = "race.db"
instances.python = "NAME:instance"
solvers.early.python = "NAME:early"
solvers.late.python = "NAME:late"
solvers.worst.python = "NAME:worst"
rules = { resolution = "strict", epsilon = 0.01, batch = [16, 16], max_runs = 80 }
"""


def prepared(folder, seconds, go=True):
    """A race as a file, whose runs take three times so many seconds, once there is a file "go"."""
    if go:
        (folder / "go").touch()
    name = f"mine_{folder.name}"
    (folder / f"{name}.py").write_text(MODULE.replace("SECONDS", str(seconds)))
    path = folder / "race.toml"
    path.write_text(RACE.replace("NAME", name))
    return path


def command(*words):
    return [sys.executable, "-m", "polarbear", *map(str, words)]
