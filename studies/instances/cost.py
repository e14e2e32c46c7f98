"""CPU seconds of fits by class and by features, as the numbers of everything grow.

python studies/instances/cost.py                        # cost.md; one to two CPU minutes
python studies/instances/cost.py --scenarios FOLDER     # also MAXSAT15 of ASlib, with many ties
python studies/instances/cost.py --quick                # some seconds: does it run at all?

The scenarios: git clone https://github.com/coseal/aslib_data
"""

import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from aslib.scenario import Scenario, read_scenario
from tools.markdown import table
from tools.options import parser

import polarbear as pb
from polarbear.simulation import rank_costs

QUICK_CPU_SECONDS = 1

HERE = Path(__file__).parent
SIZES = {  # algorithms n, instances P, features, times T
    "the goal": (15, 2000, 20, 20),
    "half the algorithms": (8, 2000, 20, 20),
    "twice the algorithms": (30, 2000, 20, 5),
    "a quarter of the instances": (15, 500, 20, 20),
    "four times the instances": (15, 8000, 20, 5),
    "a quarter of the times": (15, 2000, 20, 5),
    "three times the features": (15, 2000, 60, 5),
}
QUICK = {"small": (4, 100, 3, 2)}
TIED_SCENARIO = "MAXSAT15-PMS-INDU"

TITLE = """# CPU seconds of fits by features and by class

Made by `python studies/instances/cost.py --scenarios FOLDER`, with one thread."""


def simulate(n: int, n_instances: int, n_features: int, n_times: int) -> pb.Rankings:
    """Rank algorithms whose utilities depend on features, more so at later times; add classes."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n_instances, n_features))
    mu = rng.normal(size=n) + x @ rng.normal(size=(n_features, n)) / np.sqrt(n_features)
    mu += np.sin(2 * x[:, :1]) * rng.normal(size=n)
    noise = rng.gumbel(size=mu.shape)
    rankings = rank_costs(np.stack([-(mu * (1 + t / n_times) + noise) for t in range(n_times)]))
    columns = {f"f{k}": column for k, column in enumerate(x.T)}
    columns["family"] = np.array([f"c{k % 10}" for k in range(n_instances)])
    return rankings.with_instance_data({"instance": rankings.instances, **columns})


def spend(function: Callable[[], Any]) -> str:
    """Return the CPU seconds of a call, as text."""
    start = time.process_time()
    function()
    return f"{time.process_time() - start:.1f}"


def measure(rankings: pb.Rankings) -> list[str]:
    """Return the CPU seconds of a fit without attributes, by ten classes, and by features."""
    return [
        spend(lambda: pb.fit(rankings)),
        spend(lambda: pb.fit(rankings, classes="family")),
        spend(lambda: pb.fit(rankings, features="all")),
    ]


def measure_ties(folder: Path) -> list[str]:
    """Return the CPU seconds of a fit without attributes, and by features, with many ties."""
    scenario = read_scenario(folder / TIED_SCENARIO, 100, 10_000)
    if not isinstance(scenario, Scenario):
        raise SystemExit(f"{TIED_SCENARIO} {scenario}")
    rankings = scenario.rankings
    size = [len(rankings.algorithms), len(rankings.instances), len(rankings.times)]
    tied = np.mean(~np.isfinite(scenario.runtime))
    return [
        *map(str, size),
        f"{100 * tied:.0f} %",
        spend(lambda: pb.fit(rankings)),
        spend(lambda: pb.fit(rankings, features="all")),
    ]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--scenarios", type=Path, help="a folder of folders of scenarios")
    wanted = options.parse_args()
    warnings.simplefilter("ignore", pb.errors.DataWarning)
    pb.fit(simulate(3, 20, 1, 1))  # what is loaded at first use is not counted
    lines = [
        [name, *map(str, size), *measure(simulate(*size))]
        for name, size in (QUICK if wanted.quick else SIZES).items()
    ]
    head = ["", "n", "P", "features", "T", "no attributes", "ten classes", "features"]
    parts = [TITLE, table(head, lines)]
    if wanted.scenarios is not None:
        head = ["n", "P", "T", "runs not solved", "no attributes", "features"]
        parts += [f"{TIED_SCENARIO} of ASlib:", table(head, [measure_ties(wanted.scenarios)])]
    text = "\n\n".join(parts) + "\n"
    if not wanted.quick:
        (HERE / "cost.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
