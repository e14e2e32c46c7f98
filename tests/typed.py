"""A race as a file, and commands as somebody types them."""

import sys

MODULE = """
import time

SKILL = {"early": (1.5, 0.3, -1.5), "late": (-1.5, 0.3, 1.5), "worst": (-2.5, -2.5, -2.5)}

def _solver(name):
    def solve(job):
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


def prepared(folder, seconds):
    """A race as a file, whose runs take three times so many seconds."""
    name = f"mine_{folder.name}"
    (folder / f"{name}.py").write_text(MODULE.replace("SECONDS", str(seconds)))
    path = folder / "race.toml"
    path.write_text(RACE.replace("NAME", name))
    return path


def command(*words):
    return [sys.executable, "-m", "polarbear", *map(str, words)]
