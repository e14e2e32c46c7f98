"""A judge and a sampler as a configurator, beside irace at equal cost.

Writes table.md, and a row for each configurator, scenario and seed to results/.

python studies/configure/run.py             # minutes; goes on
python studies/configure/run.py --quick     # does it run at all?
python studies/configure/run.py --table     # the table again from results/
"""

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from configure.configurators import CONFIGURATORS, NotInstalledError
from configure.scenarios import SCENARIOS, run
from tools.markdown import table
from tools.options import parser
from tools.records import Records

QUICK_CPU_SECONDS = 8

BASE = "random, 20 runs each"
"""The configurator with which the others are compared, seed by seed."""

N_TEST = 1_000
"""Other instances, on which the configurations are compared with the default."""


def evaluate(scenario: str, options: dict[str, float], n_test: int) -> tuple[float, float]:
    """The fixed evaluator: how often it is ahead of the default, and the mean log10 of values."""
    instances = range(10_001, 10_001 + n_test)
    ours = np.array([run(scenario, options, k, 1) for k in instances])
    theirs = np.array([run(scenario, SCENARIOS[scenario].default, k, 1) for k in instances])
    ahead = float(np.mean((ours < theirs) + (ours == theirs) / 2))
    return ahead, float(np.mean(np.log10(np.maximum(ours, 1e-12))))


def measure(
    name: str, scenario: str, n_runs: int, seed: int, n_test: int = N_TEST
) -> dict[str, Any]:
    """A row of the results."""
    start = time.process_time()
    configured = CONFIGURATORS[name](scenario, n_runs, seed)
    seconds = time.process_time() - start
    ahead, value = evaluate(scenario, configured.options, n_test)
    return {
        "configurator": name,
        "scenario": scenario,
        "seed": seed,
        "limit": n_runs,
        "runs": configured.runs,
        "tried": configured.tried,
        "ahead": round(ahead, 4),
        "log10": round(value, 4),
        "options": configured.options,
        "seconds": round(seconds, 1),
    }


def paired_difference(rows: list[dict[str, Any]], base: list[dict[str, Any]], key: str) -> str:
    """The mean difference over the seeds that both have, and its standard error."""
    known = {row["seed"]: row[key] for row in base}
    differences = [row[key] - known[row["seed"]] for row in rows if row["seed"] in known]
    if len(differences) < 2:
        return "-"
    error = np.std(differences, ddof=1) / np.sqrt(len(differences))
    return f"{np.mean(differences):+.3f} ({error:.3f})"


def tabulate(rows: list[dict[str, Any]]) -> str:
    lines = []
    for scenario in SCENARIOS:
        found = {
            name: [r for r in rows if (r["scenario"], r["configurator"]) == (scenario, name)]
            for name in CONFIGURATORS
        }
        for name, some in found.items():
            if not some:
                continue
            line = [scenario, name, len(some)]
            line.append(f"{np.mean([row['runs'] for row in some]):,.0f}")
            line.append(f"{np.mean([row['tried'] for row in some]):.0f}")
            for key, digits in (("ahead", 3), ("log10", 2)):
                values = [row[key] for row in some]
                numbers = (np.mean(values), min(values), max(values))
                line.append("{} ({} to {})".format(*(f"{x:.{digits}f}" for x in numbers)))
                line.append(paired_difference(some, found[BASE], key) if name != BASE else "")
            lines.append(line)
    head = ["scenario", "configurator", "seeds", "runs", "configurations"]
    for value in ("ahead of the default", "mean log10 of the value"):
        head += [value, f"minus that of {BASE} (s.e.)"]
    limit = max(row["limit"] for row in rows)
    return (
        f"# Configurators at equal cost\n\nAbout {limit} runs each. The chosen configuration is "
        f"compared with the default on {N_TEST:,} other instances: means over seeds, and their "
        f"range. Lower values are better.\n\n{table(head, lines)}\n"
    )


def main() -> None:
    asked = parser(__doc__)
    asked.add_argument("--configurators", nargs="*", default=list(CONFIGURATORS))
    asked.add_argument("--seeds", type=int, default=10)
    asked.add_argument("--runs", type=int, default=400)
    wanted = asked.parse_args()
    seeds, n_runs, n_test, scenarios = wanted.seeds, wanted.runs, N_TEST, [*SCENARIOS]
    if wanted.quick:
        seeds, n_runs, n_test, scenarios = 1, 200, 20, scenarios[:1]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) if wanted.quick else Path(__file__).parent
        kept = Records(folder / "results" / "rows.jsonl", ("configurator", "scenario", "seed"))
        for seed in range(1, seeds + 1) if not wanted.table else ():
            for scenario in scenarios:
                for name in wanted.configurators:
                    if (name, scenario, seed) in kept:
                        continue
                    try:
                        kept.add(measure(name, scenario, n_runs, seed, n_test))
                        print(kept.rows[-1], flush=True)
                    except NotInstalledError as missing:
                        print(f"{name}: not measured here ({missing})", flush=True)
        text = tabulate(kept.rows)
        (folder / "table.md").write_text(text)
        print(text)


if __name__ == "__main__":
    main()
