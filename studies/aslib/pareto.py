"""The Pareto set over cut-offs of each scenario of ASlib, and the leader at each cut-off.

python studies/aslib/pareto.py --scenarios FOLDER    # pareto.md; seconds for each scenario
python studies/aslib/pareto.py --quick               # some seconds: does it run at all?

The scenarios: git clone https://github.com/coseal/aslib_data
"""

import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from aslib.scenario import CUTOFF_SHARES, Scenario, read_scenario, write_small_scenario
from tools.markdown import table
from tools.options import parser

import polarbear as pb

QUICK_CPU_SECONDS = 1

HERE = Path(__file__).parent
MOST_ALGORITHMS, MOST_INSTANCES = 100, 10_000

TITLE = """# Pareto sets over cut-offs

Made by `python studies/aslib/pareto.py --scenarios FOLDER`. Members of the anytime Pareto set over
10 %, 30 % and 100 % of the cut-off, on all instances of a scenario, with a certainty of 0.99; at
each cut-off the algorithm with the highest rating, and P(it has the highest)."""


def describe(scenario: Scenario) -> list[str]:
    """Return a line of the table."""
    posterior = pb.fit(scenario.rankings)
    members, best = posterior.pareto(), posterior.prob_best()
    leaders = [
        f"{posterior.algorithms[k]} ({best[t, k]:.2f})" for t, k in enumerate(best.argmax(axis=1))
    ]
    size = f"{len(scenario.rankings.instances)} x {len(posterior.algorithms)}"
    unsolved = f"{100 * np.mean(~np.isfinite(scenario.runtime)):.0f} %"
    names = ", ".join(members[:6]) + (f" and {len(members) - 6} more" if len(members) > 6 else "")
    return [f"{scenario.name} ({size})", unsolved, f"{len(members)}: {names}", *leaders]


def write(folder: Path, target: Path) -> str:
    """Write the table of all scenarios in a folder, and return it."""
    lines = []
    for path in sorted(one for one in folder.iterdir() if (one / "description.txt").exists()):
        try:
            scenario = read_scenario(path, MOST_ALGORITHMS, MOST_INSTANCES)
        except pb.DataError as error:
            scenario = f"cannot be read: {error}"
        if isinstance(scenario, str):
            print(f"{path.name} {scenario}: left out", flush=True)
            continue
        lines.append(describe(scenario))
        print(*lines[-1], sep=" | ", flush=True)
    shares = [f"leader at {100 * share:.0f} %" for share in CUTOFF_SHARES]
    head = ["scenario (instances x algorithms)", "runs not solved", "Pareto set", *shares]
    text = f"{TITLE}\n\n{table(head, lines)}\n"
    target.write_text(text)
    return text


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--scenarios", type=Path, help="a folder of folders of scenarios")
    wanted = options.parse_args()
    warnings.simplefilter("ignore", pb.errors.DataWarning)
    if wanted.quick:
        with tempfile.TemporaryDirectory() as scratch:
            write_small_scenario(Path(scratch) / "scenarios" / "made")
            print(write(Path(scratch) / "scenarios", Path(scratch) / "pareto.md"))
        return
    if wanted.scenarios is None:
        options.error("--scenarios is missing: a folder of scenarios of ASlib")
    print(write(wanted.scenarios, HERE / "pareto.md"))


if __name__ == "__main__":
    main()
