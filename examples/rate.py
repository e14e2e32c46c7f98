"""Rate algorithms over time with uncertainty, and see how sure one can be.

Run it from the project's folder: python examples/rate.py
"""

import polarbear as pb

runs = pb.example()
posterior = pb.fit(runs)
print(posterior, end="\n\n")

print(f"{'evaluations':>12}  highest rating, and how sure that is")
best = posterior.best()
for i in [*range(0, len(posterior.times) - 1, 5), -1]:
    leader = int(best[i].argmax())
    name = posterior.algorithms[leader]
    low, high = posterior.interval(name)[:, i]
    print(
        f"{posterior.times[i]:>12,.0f}  {name:<7} P = {best[i, leader]:.2f}, "
        f"rating {low:.2f} to {high:.2f}"
    )
