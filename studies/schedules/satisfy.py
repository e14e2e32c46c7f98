"""Three small programs for Boolean formulas, and three families of formulas.

``python satisfy.py PROGRAM FORMULA`` ends with exit code 0 once the formula of this name is solved:
an assignment was found that satisfies it, or it was proved that there is none.
"""

import random
import sys
from typing import Any

STARTED_BY = "carried_out.py"

Formula = list[list[int]]
"""Clauses of literals: 3 is the third variable, -3 its negation."""


def make_random(rng: random.Random, size: int, ratio: float) -> Formula:
    """Clauses of three random literals, so many for each variable."""
    pick = range(1, size + 1)
    return [
        [rng.choice((-1, 1)) * one for one in rng.sample(pick, 3)] for _ in range(int(ratio * size))
    ]


def make_pigeons(rng: random.Random, size: int) -> Formula:
    """Put each pigeon into a hole of its own, with one hole too few; names are shuffled."""
    name = list(range(1, size * (size - 1) + 1))
    rng.shuffle(name)
    holes = [name[k * (size - 1) : (k + 1) * (size - 1)] for k in range(size)]
    apart = [
        [-first[h], -second[h]]
        for k, first in enumerate(holes)
        for second in holes[:k]
        for h in range(size - 1)
    ]
    return holes + apart


def make_formula(name: str) -> Formula:
    """Make the formula of a name such as ``loose-3``, the same on every machine."""
    family, rng = name.split("-")[0], random.Random(name)
    if family == "loose":  # mostly satisfiable
        return make_random(rng, rng.randint(250, 400), rng.uniform(3.9, 4.1))
    if family == "tight":  # mostly not
        return make_random(rng, rng.randint(65, 80), rng.uniform(5.0, 6.0))
    return make_pigeons(rng, rng.randint(8, 18))


def walk(formula: Formula) -> None:
    """WalkSAT: flip a variable of a random clause that is not satisfied, until there is none."""
    rng = random.Random(1)
    n = max(abs(one) for clause in formula for one in clause)
    holds = [rng.random() < 0.5 for _ in range(n + 1)]
    where: dict[int, list[int]] = {k * sign: [] for k in range(1, n + 1) for sign in (-1, 1)}
    for c, clause in enumerate(formula):
        for one in clause:
            where[one].append(c)
    true = [sum(holds[abs(one)] == (one > 0) for one in clause) for clause in formula]
    broken = [c for c, count in enumerate(true) if not count]
    place = {c: k for k, c in enumerate(broken)}
    while broken:
        clause = formula[rng.choice(broken)]
        # what a flip breaks: the clauses that only the opposite literal satisfies
        breaks = [sum(true[c] == 1 for c in where[-one]) for one in clause]
        least = min(breaks)
        free = least == 0 or rng.random() < 0.5
        flip = clause[breaks.index(least)] if free else rng.choice(clause)
        holds[abs(flip)] = flip > 0
        for c in where[flip]:
            true[c] += 1
            if true[c] == 1:
                last, at = broken.pop(), place.pop(c)
                if last != c:
                    broken[at], place[last] = last, at
        for c in where[-flip]:
            true[c] -= 1
            if not true[c]:
                place[c] = len(broken)
                broken.append(c)


def branch(formula: Formula) -> bool:
    """Set units, then branch on the most frequent variable of the shortest clauses."""
    while unit := next((clause[0] for clause in formula if len(clause) == 1), None):
        formula = assign(formula, unit)
    if not formula or [] in formula:
        return not formula
    shortest = min(map(len, formula))
    count: dict[int, int] = {}
    for clause in formula:
        for one in clause if len(clause) == shortest else ():
            count[one] = count.get(one, 0) + 1
    most = max(count, key=lambda one: count[one])
    return any(branch(assign(formula, one)) for one in (most, -most))


def assign(formula: Formula, literal: int) -> Formula:
    """Return what is left of the formula if a literal is true."""
    left = [clause for clause in formula if literal not in clause]
    return [[one for one in clause if one != -literal] for clause in left]


def relax(formula: Formula) -> None:
    """HiGHS: each clause is a row of a 0-1 program."""
    import highspy

    solver: Any = highspy.Highs()
    solver.silent()
    solver.setOptionValue("threads", 1)
    n = max(abs(one) for clause in formula for one in clause)
    for _ in range(n):
        solver.addVar(0.0, 1.0)
    for k in range(n):
        solver.changeColIntegrality(k, highspy.HighsVarType.kInteger)
    for clause in formula:
        least = 1.0 - sum(one < 0 for one in clause)
        signs = [1.0 if one > 0 else -1.0 for one in clause]
        solver.addRow(least, solver.inf, len(clause), [abs(one) - 1 for one in clause], signs)
    solver.run()
    if solver.getModelStatus() not in (
        highspy.HighsModelStatus.kOptimal,
        highspy.HighsModelStatus.kInfeasible,
    ):
        raise SystemExit(1)


PROGRAMS = {"WalkSAT": walk, "branching": branch, "HiGHS": relax}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](make_formula(sys.argv[2]))
