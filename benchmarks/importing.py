"""What ``import polarbear`` costs, against Python alone and against importing numpy.

python benchmarks/importing.py [--quick]
"""

import subprocess
import sys
from collections.abc import Iterator

from measuring import Figures, Row, cpu, in_turns, measure_rows

QUICK_CPU_SECONDS = 1

ROUNDS = 15


def started(code: str) -> Figures:
    """CPU seconds of a new Python that does this."""
    before = cpu()
    subprocess.run([sys.executable, "-c", code], check=True)
    return {"cpu": cpu() - before}


def rows(quick: bool) -> Iterator[Row]:
    """Names are loaded when they are used, so that importing loads next to nothing."""
    sides = {"polarbear": "import polarbear", "bare": "pass", "numpy": "import numpy"}
    found = in_turns(
        5 if quick else ROUNDS,
        {name: lambda code=code: started(code) for name, code in sides.items()},
    )
    ours = found["polarbear"]["cpu"]
    what = "`import polarbear`"
    yield Row("import", what, "Python alone", ours, found["bare"]["cpu"], limit=2.0)
    yield Row("import", what, "`import numpy`", ours, found["numpy"]["cpu"], goal=1.0, limit=1.0)


if __name__ == "__main__":
    measure_rows(__doc__, rows)
