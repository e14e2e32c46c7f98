"""Choose an algorithm, or several to run in parallel, for what is known about the time one has.

Run it from the project's folder: python examples/choose.py
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import polarbear as pb

runs = pb.example()
posterior = pb.fit(runs)

print(pb.select(posterior, pb.preferences.between(100, 200)), end="\n\n")
print(pb.select(posterior, pb.preferences.between(5_000, 10_000), risk=0.05), end="\n\n")

print("four in parallel, good even at their worst time")
always = pb.preferences.increasing(lambda curves: curves.min(axis=-1))
print(pb.select(posterior, always, size=4, repeats=True), end="\n\n")

# What goes to the machine that must choose: one small file.
with TemporaryDirectory() as folder:
    path = Path(folder) / "ratings.json"
    pb.Ratings.of(posterior).save(path)
    chosen = pb.select(pb.Ratings.load(path), pb.preferences.final())
    print(f"a file of {path.stat().st_size / 1000:,.0f} kB says for the end: {chosen.choice}")
