"""How certain fits of repetitions are, with known truth. Writes repetitions.md.

Four algorithms are equal over all instances. On a single instance, a and b may differ; c and d do
not. So chance orders c and d anew in each repetition, and a and b have the same order in most.

python studies/orders/repetitions.py           # minutes
python studies/orders/repetitions.py --quick   # seconds: does it run at all?
"""

import argparse
import itertools
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from tools.markdown import table

import polarbear as pb

QUICK_CPU_SECONDS = 1

HERE = Path(__file__).parent
REPETITIONS, DATA_SETS = (1, 8), 400
PAIRS = ((0, 1), (2, 3))


def draw_rankings(rng, n_instances, n_repetitions, effect):
    """Return rankings by effects of instances on a and b, and by chance."""
    own = rng.normal(size=(n_instances, 1, 4)) * [effect, effect, 0, 0]
    utility = own + rng.gumbel(size=(n_instances, n_repetitions, 4))
    instance, repetition, algorithm = (index.ravel() for index in np.indices(utility.shape))
    runs = pb.Runs.from_frame(
        {"algorithm": np.array([*"abcd"])[algorithm], "instance": instance,
         "repetition": repetition, "time": np.ones(utility.size), "value": utility.ravel()},
        direction="maximize",
    )  # fmt: skip
    return pb.rank(runs, [1])


def measure(n_instances, n_repetitions, effect, n_sets):
    """Return z of the two pairs in each data set."""
    z = []
    for seed in range(n_sets):
        rng = np.random.default_rng(seed)
        posterior = pb.fit(draw_rankings(rng, n_instances, n_repetitions, effect))
        mu = posterior.utilities[:, 0].astype(np.float64)
        gaps = [mu[:, first] - mu[:, second] for first, second in PAIRS]
        z.append([gap.mean() / gap.std() for gap in gaps])
    return np.array(z)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    rows = []
    sizes = (12,) if quick else (12, 40, 160)
    for effect, n_instances, n_repetitions in itertools.product((3, 0), sizes, REPETITIONS):
        z = measure(n_instances, n_repetitions, effect, 3 if quick else DATA_SETS)
        outside = np.mean(np.abs(z) > 1.96, axis=0)
        rows.append([
            "a and b" if effect else "none", n_instances, n_repetitions,
            *(f"{x:.2f}" for x in z.std(axis=0)), *(f"{x:.3f}" for x in outside),
        ])  # fmt: skip
    text = [
        "# Repetitions of instances\n",
        f"{DATA_SETS} data sets; `python studies/orders/repetitions.py`\n",
        table(["differ on an instance", "instances", "repetitions", "sd of z: a and b", "c and d",
               "outside 95 %: a and b", "c and d"], rows),
        "",
    ]  # fmt: skip
    (sys.stdout.write if quick else (HERE / "repetitions.md").write_text)("\n".join(text))


if __name__ == "__main__":
    main()
