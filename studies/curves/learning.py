"""Tabular reinforcement learning on small worlds, with learning curves as such studies have them.

A world is a grid with a goal and some pits; a step goes astray now and then. At a checkpoint the
greedy policy is tried in five episodes, which is noisy, and its expected return is computed, which
is what the five episodes estimate.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from tools.records import seeded

Floats = NDArray[np.float64]

SIZE, PITS, SLIP, DISCOUNT, LONGEST = 6, 6, 0.15, 0.97, 60
STEP = -0.01
"""What a step costs; the goal is worth 1, a pit -1."""

CHECKPOINTS = np.unique(np.geomspace(1_000, 20_000, 14).astype(int))
EPISODES = 5
"""In which a policy is tried at a checkpoint."""


class World(NamedTuple):
    """Where each action leads to from each cell, what it is worth to get there, and ends."""

    moves: list[list[int]]
    reward: list[float]
    end: list[bool]


def world(task: int) -> World:
    """The world with this number."""
    rng = seeded("world", task)
    n = SIZE * SIZE
    free = {0, 1, SIZE, n - 1, n - 2, n - 1 - SIZE}  # one can begin, and arrive
    pits = rng.choice(sorted(set(range(n)) - free), PITS, replace=False).tolist()
    moves = []
    for cell in range(n):
        row, column = divmod(cell, SIZE)
        to = [(row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)]
        inside = [(min(max(r, 0), SIZE - 1), min(max(c, 0), SIZE - 1)) for r, c in to]
        moves.append([r * SIZE + c for r, c in inside])
    reward = [STEP] * n
    reward[n - 1] = 1.0
    for pit in pits:
        reward[pit] = -1.0
    return World(moves, reward, [k == n - 1 or k in pits for k in range(n)])


def expected_return(on: World, policy: list[int]) -> float:
    """Of a policy from the first cell, discounted."""
    n = len(policy)
    step = np.zeros((n, n))
    for cell in range(n):
        if not on.end[cell]:
            for action, to in enumerate(on.moves[cell]):
                step[cell, to] += SLIP / 4 + (1 - SLIP) * (action == policy[cell])
    value = np.linalg.solve(np.eye(n) - DISCOUNT * step, step @ np.array(on.reward))
    return float(value[0])


class Learner(NamedTuple):
    """How to learn: the update, how much to explore, and what actions seem worth at first."""

    kind: str
    explore: float = 0.1
    rate: float = 0.1
    first: float = 0.0


LEARNERS = {
    "Q-learning": Learner("q"),
    "SARSA": Learner("sarsa"),
    "expected SARSA": Learner("expected"),
    "double Q-learning": Learner("double"),
    "optimistic Q-learning": Learner("q", explore=0.02, first=1.0),
    "slow Q-learning": Learner("q", explore=0.3, rate=0.02),
}


def curve(name: str, task: int, seed: int) -> Iterator[tuple[int, float, float]]:
    """(steps, return in a few episodes, expected return) at each checkpoint of a run."""
    learner, on, rng = LEARNERS[name], world(task), seeded(name, task, seed)
    tables = [np.full((SIZE * SIZE, 4), learner.first).tolist() for _ in range(2)]
    wanted = iter(CHECKPOINTS.tolist())
    due, cell, age = next(wanted), 0, 0
    action = _choose(tables, cell, learner, rng)
    for steps in range(1, int(CHECKPOINTS[-1]) + 1):
        to = on.moves[cell][action if rng.random() > SLIP else int(4 * rng.random())]
        following = _choose(tables, to, learner, rng)
        _learn(tables, learner, rng, cell, action, on, to, following)
        cell, action, age = to, following, age + 1
        if on.end[cell] or age >= LONGEST:
            cell, age = 0, 0
            action = _choose(tables, cell, learner, rng)
        if steps == due:
            policy = [_best(_sum(tables, cell_)) for cell_ in range(SIZE * SIZE)]
            tried = np.mean([_episode(on, policy, rng) for _ in range(EPISODES)])
            yield steps, float(tried), expected_return(on, policy)
            due = next(wanted, -1)


def _learn(
    tables: list[list[list[float]]],
    learner: Learner,
    rng: np.random.Generator,
    cell: int,
    action: int,
    on: World,
    to: int,
    following: int,
) -> None:
    own, other = tables[0], tables[0]
    if learner.kind == "double":
        own, other = tables if rng.random() < 0.5 else tables[::-1]
    later = 0.0
    if not on.end[to]:
        values = other[to]
        if learner.kind == "sarsa":
            later = values[following]
        elif learner.kind == "expected":
            mean = sum(values) / 4
            later = (1 - learner.explore) * max(values) + learner.explore * mean
        else:
            later = values[_best(own[to])]
    goal = on.reward[to] + DISCOUNT * later
    own[cell][action] += learner.rate * (goal - own[cell][action])


def _choose(
    tables: list[list[list[float]]], cell: int, learner: Learner, rng: np.random.Generator
) -> int:
    if rng.random() < learner.explore:
        return int(4 * rng.random())
    return _best(_sum(tables, cell) if learner.kind == "double" else tables[0][cell])


def _sum(tables: list[list[list[float]]], cell: int) -> list[float]:
    return [a + b for a, b in zip(tables[0][cell], tables[1][cell], strict=True)]


def _best(values: list[float]) -> int:
    return max(range(4), key=values.__getitem__)


def _episode(on: World, policy: list[int], rng: np.random.Generator) -> float:
    cell, total, worth = 0, 0.0, 1.0
    for _ in range(LONGEST):
        cell = on.moves[cell][policy[cell] if rng.random() > SLIP else int(4 * rng.random())]
        total += worth * on.reward[cell]
        worth *= DISCOUNT
        if on.end[cell]:
            break
    return total
