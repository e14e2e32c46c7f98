"""What ``job.track`` costs per evaluation, over a bare Python wrapper around the objective.

    python benchmarks/track.py [--quick]

Both are timed in turns, a few times over, and the least of each counts: whatever else the machine
does can only add to it.
"""

import time
from collections.abc import Callable, Iterator

from measuring import Row, measure_rows

from polarbear.running.solvers.job import Clock, make_trial_job

QUICK_CPU_SECONDS = 1

CALLS, ROUNDS = 200_000, 15
CLOCKS: dict[Clock, str] = {"evaluations": "by evaluations", "wall": "by the wall clock"}


def objective(x: float) -> float:
    return x * x


def wrapped(function: Callable) -> Callable:
    """The least that a wrapper in Python can do."""

    def call(*args, **kwargs):
        return function(*args, **kwargs)

    return call


def each(function: Callable, calls: int) -> float:
    """Seconds of a call."""
    start = time.process_time()
    for _ in range(calls):
        function(0.5)
    return (time.process_time() - start) / calls


def rows(quick: bool) -> Iterator[Row]:
    """A call of each kind."""
    functions: dict[str, Callable] = {"bare": wrapped(objective)}
    functions |= {c: make_trial_job(None, horizon=1e18, clock=c).track(objective) for c in CLOCKS}
    calls, rounds = (CALLS // 4, 5) if quick else (CALLS, ROUNDS)
    turns = [{name: each(f, calls) for name, f in functions.items()} for _ in range(rounds)]
    least = {name: min(turn[name] for turn in turns) for name in functions}
    for clock, said in CLOCKS.items():
        more = 1e6 * (least[clock] - least["bare"])
        yield Row(
            "race",
            f"`job.track`, {said}",
            "a bare wrapper",
            least[clock],
            least["bare"],
            limit=4.0,
            remark=f"{more:.2f} us more for each evaluation",
        )


if __name__ == "__main__":
    measure_rows(__doc__, rows)
