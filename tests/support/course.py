"""A small race of real runs, for tests that disturb it.

As a script: ``course.py STORE SLOTS SECONDS [RUNS]``, which says on standard output how many events
are acknowledged, in 8 bytes each; a zero first, when all is loaded.
"""

import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import polarbear as pb
from polarbear.racing.events import Started
from polarbear.store.log import Store
from racers import PerLook

TIMES = (10.0, 30.0, 100.0)
SKILL = {
    "early": (1.5, 0.3, -1.5),
    "late": (-1.5, 0.3, 1.5),
    "good": (0.8, 0.8, 0.8),
    "bad": (-1.0, -1.0, -1.0),
    "worst": (-2.5, -2.5, -2.5),
}
QUESTION = PerLook(certainty=0.99, resolution="strict", epsilon=0.01)
BUDGET = pb.Budget(batch=(8, 16), runs=240)
HOLD = "POLARBEAR_TEST_HOLD"
"""The variable with the path of a file: as long as it exists, runs wait."""


def short(runs=BUDGET.runs):
    """The budget of a race of fewer runs, in smaller rounds, for tests that have little time."""
    return replace(BUDGET, batch=(4, 8), runs=runs)


SHORT = short(80)
"""The budget of most tests, with four rounds: forks of runs take most of their time."""


def solver(skill, seconds=0.0):
    def solve(job):
        while (held := os.environ.get(HOLD)) and Path(held).exists():
            time.sleep(0.01)
        luck = job.rng.gumbel(size=len(TIMES))
        for k, at in enumerate(TIMES):
            time.sleep(seconds)
            # A rising trend makes every time an improvement, and changes no ranking.
            yield at, luck[k] + skill[k] + 30 * k

    return solve


def solvers(seconds=0.0):
    return {name: solver(skill, seconds) for name, skill in SKILL.items()}


def instance(rng):
    return float(rng.random())


MODEL = pb.priors.Dirichlet(1 + 1e-9)
"""The default but for counting, which would make a short race longer."""


def quick(rankings, *, seed):
    """A posterior in no time, so that a test is about the race."""
    return pb.fit(rankings, MODEL, seed=seed, draws=200)


def run(store=None, executor=1, seconds=0.0, budget=SHORT, **more):
    return pb.race(
        solvers(seconds),
        instance,
        TIMES,
        direction="maximize",
        question=replace(more.pop("question", QUESTION), fit=more.pop("fit", quick)),
        budget=budget,
        store=store,
        executor=executor,
        **more,
    )


def decisions(events):
    """What was asked and decided, without the order in which runs came in.

    Nor what names stand for, which says how long solvers wait, nor which process made the runs, nor
    the name of the function that fits, which a script knows by another module.
    """
    left_out = ("Told", "Imported", "Identified", "Hosted")
    kept = [event for event in events if type(event).__name__ not in left_out]
    return [replace(one, model=None) if isinstance(one, Started) else one for one in kept]


def told(events):
    """The runs, whatever their order."""
    kept = [event.run for event in events if type(event).__name__ == "Told"]
    return sorted((r.algorithm, r.instance, r.repetition, r.time, r.value) for r in kept)


def witnessed(append):
    """An ``append`` that says how far the store goes when the events are acknowledged."""

    def method(store, events, **more):
        append(store, events, **more)
        say(store.n_events)

    return method


def say(number):
    os.write(1, number.to_bytes(8, "little"))


if __name__ == "__main__":
    Store.append = witnessed(Store.append)
    say(0)
    budget = short(*map(int, sys.argv[4:]))
    run(sys.argv[1], int(sys.argv[2]), seconds=float(sys.argv[3]), budget=budget).close()
