"""The methods: each takes a course, a certainty and a seed, and says whom it keeps at what cost."""

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from peers.courses import Course, Floats
from peers.friedman import better
from scipy import stats

import polarbear as pb
from polarbear.racing.events import Decided, Told
from polarbear.racing.race import Race

BATCH = 8
"""All methods look after every so many instances, if not less often."""

Summary = Literal["at the end", "mean over time"]
"""How a run becomes the one number that methods need which know no time."""


class Found(NamedTuple):
    """Whom a method keeps, what it spent, and whether it ended by itself.

    ``last``: what was spent when the last algorithm was left out; the rest went into showing that
    no other algorithm is dominated, or into nothing.
    """

    kept: frozenset[str]
    spent: float
    last: float
    runs: int
    instances: int
    ended: bool


Method = Callable[[Course, float, int], Found]


def default_race(course: Course, certainty: float, seed: int) -> Found:
    """Race with the default question."""
    return _replay(course, pb.ParetoSet(certainty=certainty), seed)


def paper_race(course: Course, certainty: float, seed: int) -> Found:
    """Race by the method of the PolarBear paper, with every ranking as evidence."""
    return _replay(course, pb.PaperParetoSet(certainty=certainty), seed)


def _replay(course: Course, question: pb.Question, seed: int) -> Found:
    with warnings.catch_warnings(action="ignore"):  # what is not decided stays open
        found = pb.replay(course.runs(), question, times=course.times, seed=seed)
    spent, last = 0.0, 0.0
    for event in found.events:
        spent += event.run.until if isinstance(event, Told) else 0.0
        last = spent if isinstance(event, Decided) and event.decision.eliminated else last
    instances = len(found.runs.instances)
    return Found(
        frozenset(found.pareto), spent, last, found.spent.runs, instances, found.status.resolved
    )


def uniform(course: Course, certainty: float, seed: int) -> Found:
    """Everybody runs to the end on every instance, until the same question is answered."""
    runs, order = course.runs(), _order(course, seed)
    names = [f"i{k}" for k in order]
    question = pb.ParetoSet(certainty=certainty)
    kept, resolved, seen, last = course.algorithms, False, 0, 0.0
    for seen in _looks(len(order)):
        race = Race(
            kept,
            course.times,
            direction="minimize",
            instances=names,
            question=question,
            seed=seed,
        )
        race.load(runs.filter(algorithms=kept, instances=names[:seen]))
        with warnings.catch_warnings(action="ignore"):  # what is not decided stays open
            race.ask()
        last = _cost(course, seen) if race.eliminated else last
        kept, resolved = race.pareto, race.status.resolved
        if resolved:
            break
    runs_made = seen * len(course.algorithms)
    return Found(frozenset(kept), _cost(course, seen), last, runs_made, seen, resolved)


def f_race(course: Course, certainty: float, seed: int, summary: Summary | None = None) -> Found:
    """Racing by Friedman's test, as F-Race and irace do; Wilcoxon's when two are left.

    With a ``summary`` as they are used: an algorithm that is worse than the best is out. Without,
    an algorithm is out if it is worse than another one at every time.
    """
    values = course.values if summary is None else _summed(course, summary)[None]
    order, alive = _order(course, seed), np.arange(len(course.algorithms))
    spent, last, runs, seen = 0.0, 0.0, 0, 0
    for start in range(0, len(order), BATCH):
        seen = min(start + BATCH, len(order))
        runs += (seen - start) * len(alive)
        spent += (seen - start) * len(alive) * float(course.times[-1])
        now = values[:, order[:seen]][..., alive]
        test = better if len(alive) > 2 else _wilcoxon
        beaten = np.all(test(now, 1 - certainty), axis=0)
        if summary is not None:
            best = int(np.argmin(stats.rankdata(now[0], axis=-1).sum(axis=0)))
            beaten = beaten[[best]]
        if beaten.any():
            last, alive = spent, alive[~beaten.any(axis=0)]
        if len(alive) == 1:
            break
    kept = frozenset(course.algorithms[k] for k in alive)
    return Found(kept, spent, last, runs, seen, len(alive) == 1)


def wilcoxon_pruner(course: Course, certainty: float, seed: int, summary: Summary) -> Found:
    """Optuna's WilcoxonPruner: one algorithm after the other, each against the best so far."""
    import optuna

    with warnings.catch_warnings(action="ignore"):  # it is called experimental
        pruner = optuna.pruners.WilcoxonPruner(p_threshold=1 - certainty, n_startup_steps=BATCH)
    values, order = _summed(course, summary), _order(course, seed)

    def reports(algorithm: int) -> Iterator[tuple[int, float]]:
        for k, instance in enumerate(order.tolist()):
            yield instance, float(values[instance, algorithm])
            if k % BATCH == BATCH - 1 or k == len(order) - 1:
                yield -1, float(values[order[: k + 1], algorithm].mean())

    kept, steps = _trials(course, seed, pruner, reports)
    spent = sum(steps) * float(course.times[-1])
    return Found(kept, spent, spent, sum(steps), max(steps), ended=True)


def halving(
    course: Course, certainty: float, seed: int, over: Literal["instances", "time"]
) -> Found:
    """Optuna's SuccessiveHalvingPruner: the resource is the number of instances, or the time.

    Over time every run is on the same 64 instances, and what is reported is their mean.
    """
    import optuna

    del certainty  # it has no certainty
    order = _order(course, seed)
    by_time = over == "time"
    pruner = optuna.pruners.SuccessiveHalvingPruner(
        min_resource=2 if by_time else BATCH, reduction_factor=2
    )
    values = _summed(course, "at the end")
    some = order[: min(64, len(order))]

    def reports(algorithm: int) -> Iterator[tuple[int, float]]:
        if by_time:
            for t in range(len(course.times)):
                yield t + 1, float(course.values[t, some, algorithm].mean())
        else:
            for k in range(1, len(order) + 1):
                yield k, float(values[order[:k], algorithm].mean())

    kept, steps = _trials(course, seed, pruner, reports)
    if not by_time:
        spent = sum(steps) * float(course.times[-1])
        return Found(kept, spent, spent, sum(steps), max(steps), ended=True)
    spent = len(some) * float(sum(course.times[s - 1] for s in steps))
    return Found(kept, spent, spent, len(some) * len(steps), len(some), ended=True)


def _trials(
    course: Course, seed: int, pruner: Any, reports: Callable[[int], Iterator[tuple[int, float]]]
) -> tuple[frozenset[str], list[int]]:
    """One trial of a study for each algorithm, in an order of chance: who is not pruned, and steps.

    A step of -1 is no report: it asks whether to prune, with the value so far. If there is none,
    every report asks.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction="minimize", pruner=pruner)
    asks = any(step == -1 for step, _ in reports(0))
    kept, steps = [], []
    for k in np.random.default_rng(seed).permutation(len(course.algorithms)).tolist():
        trial, taken, value, pruned = study.ask(), 0, 0.0, False
        for step, said in reports(k):
            value = said
            if step != -1:
                trial.report(said, step)
                taken += 1
            pruned = (step == -1 or not asks) and trial.should_prune()
            if pruned:
                break
        state = optuna.trial.TrialState.PRUNED if pruned else optuna.trial.TrialState.COMPLETE
        study.tell(trial, None if pruned else value, state=state)
        steps.append(taken)
        kept += [] if pruned else [course.algorithms[k]]
    return frozenset(kept), steps


def _wilcoxon(values: Floats, level: float) -> NDArray[np.bool_]:
    """Whether row is better than column, of two, by Wilcoxon's signed ranks: (T, 2, 2)."""
    found = np.zeros((len(values), 2, 2), dtype=bool)
    for t, pair in enumerate(values):
        gap = pair[:, 0] - pair[:, 1]
        if gap.any():
            with warnings.catch_warnings(action="ignore"):  # ties make it approximate
                tested: Any = stats.wilcoxon(gap)
            sure = tested.pvalue < level
            ranks = stats.rankdata(np.abs(gap))
            found[t, 0, 1] = sure and ranks[gap < 0].sum() > ranks[gap > 0].sum()
            found[t, 1, 0] = sure and not found[t, 0, 1]
    return found


def _summed(course: Course, summary: Summary) -> Floats:
    """One number for each run: (instances, n)."""
    return course.values[-1] if summary == "at the end" else course.values.mean(axis=0)


def _order(course: Course, seed: int) -> NDArray[np.intp]:
    return np.random.default_rng([seed, 1]).permutation(course.values.shape[1])


def _looks(instances: int) -> Iterator[int]:
    """After 8 instances, then whenever there are a quarter more, in whole batches."""
    seen = BATCH
    while seen < instances:
        yield seen
        seen += max(BATCH, seen // 4 // BATCH * BATCH)
    yield instances


def _cost(course: Course, seen: int) -> float:
    """Return the cost of all algorithms on this number of instances, to the end."""
    return seen * len(course.algorithms) * float(course.times[-1])


METHODS: dict[str, Method] = {
    "PolarBear": default_race,
    "PolarBear, the paper's method": paper_race,
    "uniform sampling, same rules": uniform,
    "F-Race at every time": f_race,
    "F-Race, value at the end": partial(f_race, summary="at the end"),
    "F-Race, mean over time": partial(f_race, summary="mean over time"),
    "WilcoxonPruner, value at the end": partial(wilcoxon_pruner, summary="at the end"),
    "WilcoxonPruner, mean over time": partial(wilcoxon_pruner, summary="mean over time"),
    "SuccessiveHalvingPruner over instances": partial(halving, over="instances"),
    "SuccessiveHalvingPruner over time": partial(halving, over="time"),
}
