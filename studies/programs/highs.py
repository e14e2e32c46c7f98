"""HiGHS as a program that says what it finds: "o", seconds since it began to solve, and the value.

python studies/programs/highs.py FILE --seconds=2 --seed=1 [--option=value ...]

The wheel of HiGHS brings no program of its own, and its log has incumbents to a tenth of a second.
"""

import sys
from typing import Any

import highspy

STARTED_BY = "run.py"


def main(path: str, *words: str) -> None:
    solver = highspy.Highs()
    solver.silent()
    solver.readModel(path)
    given = dict(word.removeprefix("--").split("=", 1) for word in words)
    solver.setOptionValue("time_limit", float(given.pop("seconds")))
    solver.setOptionValue("random_seed", int(given.pop("seed")))
    solver.setOptionValue("threads", 1)
    for name, value in given.items():
        solver.setOptionValue(name, float(value) if value[0].isdigit() else value)

    def say(event: Any) -> None:
        found = event.data_out
        print("o", found.running_time, found.objective_function_value, flush=True)

    solver.cbMipImprovingSolution += say
    solver.solve()
    value = solver.getInfo().objective_function_value
    if abs(value) < highspy.kHighsInf:
        print("o", solver.getRunTime(), value, flush=True)  # until when it ran


if __name__ == "__main__":
    main(*sys.argv[1:])
