"""A race as a file, and commands as somebody types them."""

import sys

import polarbear as pb

MODULE = """
import time
from pathlib import Path

GO, FURTHER = (Path(__file__).with_name(name) for name in ("go", "further"))
SKILL = {"early": (1.5, 0.3, -1.5), "late": (-1.5, 0.3, 1.5), "worst": (-2.5, -2.5, -2.5)}

def _solver(name):
    def solve(job):
        while not (GO if int(job.name) <= LAST else FURTHER).exists():
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

[question]
kind = "PaperParetoSet"
certainty = 0.99
resolution = "strict"
epsilon = 0.01

[budget]
batch = [16, 16]
runs = 80
"""


def prepared(folder, seconds, go=True, last=10**9):
    """A race as a file, whose runs take three times so many seconds, once there is a file "go".

    Runs on instances after the ``last`` wait for a file "further": the race stands still meanwhile.
    """
    if go:
        (folder / "go").touch()
    name = f"mine_{folder.name}"
    code = MODULE.replace("SECONDS", str(seconds)).replace("LAST", str(last))
    (folder / f"{name}.py").write_text(code)
    path = folder / "race.toml"
    path.write_text(RACE.replace("NAME", name))
    return path


def begun(path):
    """Whether anything of a race is in its store."""
    try:
        with pb.open_store(path, read_only=True) as store:
            return store.n_events > 0
    except pb.errors.StoreError:
        return False


def command(*words):
    return [sys.executable, "-m", "polarbear", *map(str, words)]
