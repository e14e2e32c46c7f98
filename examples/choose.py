"""
Which one to run
================

Choose an algorithm, or several to run in parallel, for what is known about the time one has.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import polarbear as pb

runs = pb.example()  # or yours: pb.read("results.csv", direction="minimize")
posterior = pb.fit(runs)
print(pb.select(posterior, pb.preferences.between(100, 200)))

# %%
# With more time, and a careful choice: what the choice is worth in the worst 5 % of cases counts.

late = pb.preferences.between(5_000, 10_000)
print(pb.select(posterior, late, risk=0.05))

# %%
# What each is worth to somebody who stops between 5,000 and 10,000 evaluations, and how sure that
# is:

pb.plots.values(posterior, late)

# %%
# Four in parallel, good even at their worst time:

always = pb.preferences.increasing(lambda curves: curves.min(axis=-1))
print(pb.select(posterior, always, size=4, repeats=True))

# %%
# What goes to the machine that must choose is one small file.

with TemporaryDirectory() as folder:
    path = Path(folder) / "ratings.json"
    pb.Ratings.of(posterior).save(path)
    chosen = pb.select(pb.Ratings.load(path), pb.preferences.final())
    print(f"a file of {path.stat().st_size / 1000:,.0f} kB says for the end: {chosen.choice}")
