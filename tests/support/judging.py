"""A judge of walks on a line, for tests: a module, so that other processes can import it."""

import polarbear as pb

TIMES = [10, 30]

WALK = """
def walk(job):
    x, best = 9.0, float("inf")
    for evaluations in range(1, 31):
        trial = x + {step} * job.rng.normal()
        value = abs(trial - job.instance) + {handicap}
        if value < best:
            x, best = trial, value
            yield evaluations, best
"""


def code(step, handicap=0):
    return WALK.format(step=step, handicap=handicap)


def make_solver(text):
    return pb.design.load_code(text)["walk"]


def make_instance(rng):
    return rng.normal()


def make_judge(folder, **changes):
    budget = pb.Budget(runs=changes.pop("max_runs", 24), failures=3)
    limits = pb.Limits(wall_seconds=30)
    arguments = {"budget": budget, "executor": 2, "limits": limits, **changes}
    instances = arguments.pop("instances", make_instance)
    return pb.design.Judge(
        folder,
        arguments.pop("make_solver", make_solver),
        instances,
        TIMES,
        reference=arguments.pop("reference", code(0.3)),
        direction="minimize",
        **arguments,
    )


def judge_one(folder, text):
    return make_judge(folder, executor=1, max_runs=16)(text).verdict.kind


HANGING = """
def walk(job):
    while True:
        pass
"""

PRINTING = code(2.5).replace("    x, best", '    print("x" * 100_000)\n    x, best', 1)

PROPOSALS = [
    *[code(step) for step in (0.01, 0.1, 0.5, 1, 2, 3, 4, 6, 8, 10, 20, 30)],
    *[code(step, handicap=5) for step in (0.5, 1, 2, 3, 4)],
    code("1 / 0"),
    HANGING,
    "def walk(job): yield",
    "def walk(job:",
    "import os; os._exit(3)",
    PRINTING,
    code(2).replace("trial", "attempt"),  # a copy with other names
    f"{code(3)}\n# a copy\n",
    code("(1 + 3)"),  # a copy that is computed
    *[code(step) for step in (1.5, 2.2, 5, 7)],
]
"""Thirty programs: good, bad, broken, hanging, printing and copied ones."""


def make_loop_judge(folder):
    """A judge that is fast enough for a loop of thirty candidates."""
    limits = pb.Limits(cpu_seconds=1, wall_seconds=100)  # the machine may be busy
    return make_judge(folder, limits=limits, max_runs=16)
