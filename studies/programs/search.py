"""A local search for knapsacks as a program: "o", seconds since it began, and the value.

python studies/programs/search.py FILE --seconds=2 --seed=1

Adds items in a noisy order of worth, then takes some out at random and fills up again, and again.
"""

import sys
import time
from pathlib import Path

import numpy as np
from knapsack import read  # beside this file

STARTED_BY = "run.py"


def main(path: str, *words: str) -> None:
    profit, weight, capacity = read(Path(path))
    given = dict(word.removeprefix("--").split("=", 1) for word in words)
    rng = np.random.default_rng(int(given["seed"]))
    began, best = time.monotonic(), 0.0
    worth = profit / (weight / capacity[:, None]).sum(axis=0)
    chosen = np.zeros(len(profit), dtype=bool)
    kept = chosen
    while time.monotonic() - began < float(given["seconds"]):
        chosen = kept & (rng.random(len(profit)) > 0.1)
        left = capacity - weight[:, chosen].sum(axis=1)
        for k in np.argsort(-worth * rng.lognormal(0, 0.1, len(worth))).tolist():
            if not chosen[k] and np.all(weight[:, k] <= left):
                chosen[k] = True
                left -= weight[:, k]
        value = float(profit[chosen].sum())
        if value >= best:
            kept = chosen
            if value > best:
                best = value
                print("o", time.monotonic() - began, -value, flush=True)
    print("o", time.monotonic() - began, -best, flush=True)  # until when it ran


if __name__ == "__main__":
    main(*sys.argv[1:])
