"""
Which algorithm to run
======================

Choose an algorithm, or several to run in parallel, for a budget that is only partly known.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import polarbear as pb

runs = pb.example("cma-variants")  # or yours: pb.read("results.csv", direction="minimize")
posterior = pb.fit(runs)
print(pb.select(posterior, pb.preferences.between(100, 200)))

# %%
# A larger budget, and a cautious choice: the algorithm with the highest 5 % quantile of its value.

late = pb.preferences.between(5_000, 10_000)
print(pb.select(posterior, late, risk=0.05))

# %%
# The value of each algorithm for a budget between 5,000 and 10,000 evaluations, with its
# uncertainty:

pb.plots.values(posterior, late)

# %%
# Four in parallel, chosen by their rating at their worst time:

always = pb.preferences.increasing(lambda curves: curves.min(axis=-1))
print(pb.select(posterior, always, size=4, repeats=True))

# %%
# To choose on another machine, save the ratings in one small file.

with TemporaryDirectory() as folder:
    path = Path(folder) / "ratings.json"
    pb.selection.Ratings.of(posterior).save(path)
    chosen = pb.select(pb.selection.Ratings.load(path), pb.preferences.final())
    print(
        f"from a file of {path.stat().st_size / 1000:,.0f} kB, for the last time: {chosen.choice}"
    )
