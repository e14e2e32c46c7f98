"""Read recorded runs, rank them over time, and see how the lead changes.

Run it from the project's folder: python examples/read_and_rank.py
"""

import polarbear as pb

runs = pb.example()
print(runs, end="\n\n")

rankings = pb.rank(runs)
print(f"{'evaluations':>12}  most often first, alone or tied")
for i in [*range(0, len(rankings.times) - 1, 5), -1]:
    first = rankings.algorithm[rankings.position[i] == 0]
    leads = {name: int((first == code).sum()) for code, name in enumerate(rankings.algorithms)}
    leader = max(leads, key=lambda name: leads[name])
    share = leads[leader] / len(rankings.instances)
    print(f"{rankings.times[i]:>12,.0f}  {leader:<7} on {share:.0%} of the problems")
