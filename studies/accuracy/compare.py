"""The fast engine against the long NUTS runs in reference/: writes table.md.

python studies/accuracy/compare.py            # half a minute
python studies/accuracy/compare.py --quick    # one of the data sets, with two priors
"""

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from accuracy.scenarios import SCENARIOS

import polarbear as pb
from polarbear.simulation import PRIORS

QUICK_CPU_SECONDS = 1

FOLDER = Path(__file__).parent
HEAD = """P(A ahead of B at a time): the largest and the mean difference between the fast engine and
long NUTS, and the largest standard error of NUTS itself; P(A ahead of B at all times): the largest
difference. Limits: 0.02, 0.005 and 0.02. `python studies/accuracy/compare.py`; NUTS by
`python studies/accuracy/reference.py`. "moved": importance weights failed and draws were moved.

| data | prior | largest | mean | at all times | NUTS error | NUTS R-hat, ESS, diverged | ours | |
|---|---|---|---|---|---|---|---|---|
"""


def row(scenario: str, prior: str) -> str:
    posterior = pb.fit(SCENARIOS[scenario](), prior=PRIORS[prior], evidence="rankings")
    others = ~np.eye(len(posterior.algorithms), dtype=bool)
    with np.load(FOLDER / "reference" / f"{scenario}-{prior}.npz") as nuts:
        error = np.abs(posterior.prob_better() - nuts["ahead"])[:, others]
        joint = np.abs(posterior.prob_dominates() - nuts["always"])[others].max()
        judged = f"{nuts['rhat']:.3f}, {nuts['ess']:.0f}, {nuts['divergences']}"
        own = nuts["ahead_error"].max()
    within = error.max() <= 0.02 and error.mean() <= 0.005 and joint <= 0.02
    said = "trusted" if posterior.diagnostics.trusted else "not trusted"
    said += ", moved" if "moved" in str(posterior.diagnostics) else ""
    return (
        f"| {scenario} | {prior} | {error.max():.4f} | {error.mean():.4f} | {joint:.4f} | "
        f"{own:.4f} | {judged} | {said} | {'within' if within else '**beyond**'} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small: does it run at all?")
    if parser.parse_args().quick:
        print("\n".join(row("middle", prior) for prior in ("Dirichlet", "BSpline")))
        return
    rows = [row(scenario, prior) for scenario in SCENARIOS for prior in PRIORS]
    (FOLDER / "table.md").write_text(HEAD + "\n".join(rows) + "\n")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
