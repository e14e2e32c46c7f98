"""Four families of small 0-1 programs, made from their numbers; all are minimised.

They stay below 2,000 variables and 2,000 constraints, the limits of the free editions.
"""

import random
from pathlib import Path
from typing import NamedTuple


class Model(NamedTuple):
    """Minimise ``cost @ x`` over binary x; each row is (indices, coefficients, sense, limit)."""

    cost: list[int]
    rows: list[tuple[list[int], list[int], str, int]]


def make_cover(rng: random.Random, size: float) -> Model:
    """Set cover: choose the cheapest sets so that each element is in two of them."""
    n = int(600 * size)
    rows = [(rng.sample(range(n), 12), [1] * 12, "G", 2) for _ in range(int(400 * size))]
    return Model([rng.randint(500, 1500) for _ in range(n)], rows)


def make_knapsack(rng: random.Random, size: float) -> Model:
    """Knapsack with ten limits: the most valuable items that fit."""
    n = int(200 * size)
    weights = [[rng.randint(5, 100) for _ in range(n)] for _ in range(10)]
    rows = [(list(range(n)), row, "L", sum(row) // 3) for row in weights]
    return Model([-rng.randint(500, 1500) for _ in range(n)], rows)


def make_assignment(rng: random.Random, size: float) -> Model:
    """Generalised assignment: each job to one of 15 machines with a capacity each."""
    jobs, machines = int(80 * size), 15
    time = [[rng.randint(5, 40) for _ in range(machines)] for _ in range(jobs)]
    cost = [60 - t + rng.randint(0, 15) for row in time for t in row]
    rows = [
        (list(range(j * machines, (j + 1) * machines)), [1] * machines, "E", 1) for j in range(jobs)
    ]
    for m in range(machines):
        used = [row[m] for row in time]
        rows.append((list(range(m, jobs * machines, machines)), used, "L", sum(used) // 13))
    return Model(cost, rows)


def make_location(rng: random.Random, size: float) -> Model:
    """Facility location: open places, and serve each customer from one that is open."""
    places, customers = 20, int(70 * size)
    spots = [(rng.randint(0, 999), rng.randint(0, 999)) for _ in range(places + customers)]
    cost, rows = [rng.randint(2000, 4000) for _ in range(places)], []
    for x, y in spots[places:]:
        first = len(cost)
        cost += [abs(x - a) + abs(y - b) for a, b in spots[:places]]
        rows.append((list(range(first, first + places)), [1] * places, "E", 1))
        rows += [([first + p, p], [1, -1], "L", 0) for p in range(places)]
    return Model(cost, rows)


FAMILIES = {
    "cover": make_cover,
    "knapsack": make_knapsack,
    "assignment": make_assignment,
    "location": make_location,
}


def make_model(name: str, size: float = 1.0) -> Model:
    """Make the model of a name such as ``cover-3``, the same on every machine."""
    return FAMILIES[name.split("-")[0]](random.Random(name), size)


def write_mps(model: Model, path: Path) -> None:
    """Write a model as fixed MPS, which all solvers but CP-SAT read alike."""

    def entry(first: str, second: str, number: int, kind: str = "") -> str:
        return f" {kind:<2} {first:<8}  {second:<8}  {number:>12}"

    columns = [[entry(f"x{j}", "cost", c)] for j, c in enumerate(model.cost)]
    for i, (indices, coefficients, _, _) in enumerate(model.rows):
        for j, a in zip(indices, coefficients, strict=True):
            columns[j].append(entry(f"x{j}", f"r{i}", a))
    marker = "    MARKER                 'MARKER'                 '{}'"
    lines = [f"NAME          {path.stem}", "ROWS", " N  cost"]
    lines += [f" {sense}  r{i}" for i, (_, _, sense, _) in enumerate(model.rows)]
    lines += ["COLUMNS", marker.format("INTORG"), *(line for part in columns for line in part)]
    lines += [marker.format("INTEND"), "RHS"]
    lines += [entry("RHS", f"r{i}", limit) for i, (_, _, _, limit) in enumerate(model.rows)]
    lines += ["BOUNDS", *(entry("BND", f"x{j}", 1, "UP") for j in range(len(model.cost)))]
    path.write_text("\n".join([*lines, "ENDATA"]) + "\n")
