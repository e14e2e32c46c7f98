"""``RunningJob``: what a solver is called with, and how it says what it finds.

A solver is a function of a job. It says what it finds in one of three ways::

    def search(job):                       # 1. an optimiser calls the objective, and we count
        minimize(job.track(job.instance), ...)

    def search(job):                       # 2. it reports
        ...
        job.report(value)

    def search(job):                       # 3. it yields
        ...
        yield time, value                  # or the value alone

The time of a value is the one that the solver gives. Where it gives none, the clock of the race
does: "evaluations" (counted by ``track``), "wall" or "cpu" (seconds since the solver was called),
or "reported" (the solver has to give it).
"""

import os
from collections.abc import Callable, Iterable
from functools import cached_property
from math import inf, isfinite, isnan
from time import monotonic, process_time
from typing import Any, Literal, NoReturn, get_args

import numpy as np

from polarbear.data.run import Direction, Status, sign_of
from polarbear.errors import SolverError
from polarbear.racing.jobs import Job
from polarbear.running.solvers.shared_trajectory import Board

Clock = Literal["evaluations", "wall", "cpu", "reported"]
CLOCKS: tuple[Clock, ...] = get_args(Clock)

PATIENCE = 1_000
"""An optimiser may catch the end of its run; one that does so again and again is ended."""


class HorizonReached(BaseException):
    """The run is at its horizon.

    Not an ``Exception``: it is to pass through optimisers that catch what objectives raise.
    """


class RunningJob:
    """A run that is under way, as its solver sees it.

    Attributes
    ----------
    algorithm
        The name under which the solver takes part.
    instance, name
        What to solve, and its name.
    seed, rng
        Where chance comes from: a number below 2^31, and a numpy generator made of it.
    horizon
        Until when the run is watched, by the clock of the race.
    times
        The times at which the race looks.
    direction, clock
        "minimize" or "maximize"; "evaluations", "wall", "cpu" or "reported".

    Examples
    --------
    >>> job = watched(lambda x: x * x, horizon=3)
    >>> square = job.track(job.instance)
    >>> for x in (2.0, 3.0, 1.0, 0.0):
    ...     square(x)
    Traceback (most recent call last):
    polarbear.running.solvers.job.HorizonReached
    >>> job.found
    ([1.0, 3.0], [4.0, 1.0])
    """

    def __init__(
        self,
        job: Job,
        instance: Any,
        board: Board,
        *,
        times: tuple[float, ...],
        direction: Direction,
        clock: Clock,
        contained: bool = False,
    ) -> None:
        self.algorithm = job.algorithm
        self.instance = instance
        self.name = job.instance
        self.seed = job.seed
        self.horizon = job.horizon
        self.times = times
        self.direction = direction
        self.clock = clock
        self.over = False  # whether the horizon was reached
        self.remarked = ""  # why nothing is found, if it is known
        self._board = board
        self._contained = contained
        self._sign = sign_of(direction)
        self._best = inf  # as a cost
        self._latest = 0.0
        self._count = 0  # evaluations
        self._most = job.horizon if clock == "evaluations" else inf
        self._tracking = False
        self._ignored = 0
        self._start()

    # For solvers

    @cached_property
    def rng(self) -> np.random.Generator:
        """A generator of the seed of the run."""
        return np.random.default_rng(self.seed)

    def report(self, value: Any, time: Any = None) -> None:
        """Say what was found; at the horizon this ends the run.

        Only values better than all before are kept. The worst infinity stands for no value.
        """
        number = _number(value)
        if isnan(number):
            raise SolverError("the value nan was reported: report only what was found")
        now = self.now() if time is None else _time(time)
        if now < self._latest:
            raise SolverError(f"time went backwards, from {self._latest:.15g} to {now:.15g}")
        self._latest = now
        if now > self.horizon:
            self.stop()
        if self._sign * number < self._best:
            self._improved(number, now)

    def track(self, objective: Callable[..., Any]) -> "Tracked":
        """The objective, watched: evaluations are counted, the best so far is kept.

        It is called like the objective and has its attributes. An array of values counts as that
        many evaluations. A value of nan counts as an evaluation and is not kept. The evaluation
        after the horizon ends the run.
        """
        if not callable(objective):
            raise SolverError(f"track takes a function, not {type(objective).__name__}")
        if self.clock == "reported":
            raise SolverError(
                "the clock of this race is 'reported', so times come from the solver: "
                "job.report(value, time=...)"
            )
        self._tracking = True
        return (Tracked if self.clock == "evaluations" else Timed)(self, objective)

    def now(self) -> float:
        """The time of the run by its clock."""
        if self.clock == "wall":
            return monotonic() - self._began
        if self.clock == "cpu":
            return process_time() - self._began_cpu
        if self.clock == "evaluations" and self._tracking:
            return float(self._count)
        how = {
            "evaluations": "nothing counts evaluations: call the objective through "
            "job.track(objective), or job.report(value, time=evaluations)",
            "reported": "the clock of this race is 'reported': job.report(value, time=...)",
        }
        raise SolverError(how[self.clock])

    # For what runs the solver

    def remark(self, text: str) -> None:
        """Leave a reason for the case that nothing is found; "" takes it back."""
        self.remarked = text
        self._board.write_remark(text)

    @property
    def found(self) -> tuple[list[float], list[float]]:
        """Times and values of the improvements so far."""
        return self._board.improvements()

    def begin(self) -> None:
        """Start the clock."""
        self._start()
        self._board.begin(self._began, self._began_cpu)

    def _start(self) -> None:
        self._began = monotonic()
        self._began_cpu = process_time()
        # By other clocks the supervisor looks, or a report does.
        self._end = self._began + self.horizon if self.clock == "wall" else inf

    def follow(self, solver: Callable[["RunningJob"], Any]) -> None:
        """Call a solver, and take what it yields."""
        found = solver(self)
        if found is None:
            return
        if isinstance(found, str | bytes) or not isinstance(found, Iterable):
            raise SolverError(
                f"the solver returned {_shown(found)}: it should yield (time, value), call "
                "job.report(value), or let job.track(objective) be called"
            )
        for item in found:
            when, value = (
                item if isinstance(item, tuple | list) and len(item) == 2 else (None, item)
            )
            self.report(value, when)

    def until(self) -> float:
        """Until when it was watched, if it is over now."""
        now = self._latest
        if self.clock != "reported" and (self._tracking or self.clock != "evaluations"):
            now = max(now, self.now())
        return self.horizon if self.over else min(now, self.horizon)

    def stop(self) -> NoReturn:
        """End the run, for it is at its horizon."""
        self.over = True
        self._ignored += 1
        if self._ignored > PATIENCE and self._contained:
            self._board.end(Status.CUT, self.horizon, "")
            os._exit(0)
        raise HorizonReached

    def _improved(self, value: float, now: float) -> None:
        self._best = self._sign * value
        self._board.record(now, value)


class Tracked:
    """An objective whose evaluations are counted."""

    __slots__ = ("_job", "_objective", "_sign")

    def __init__(self, job: RunningJob, objective: Callable[..., Any]) -> None:
        self._job = job
        self._objective = objective
        self._sign = job._sign

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Evaluate."""
        # The fast path is short on purpose: benchmarks/track.py measures it.
        job = self._job
        if job._count >= job._most:
            job.stop()
        value = self._objective(*args, **kwargs)
        if isinstance(value, float):
            job._count += 1
            if self._sign * value < job._best:
                self._improved(float(value))
        else:
            self._other(value)
        return value

    def __getattr__(self, name: str) -> Any:
        return getattr(self._objective, name)

    def _improved(self, value: float) -> None:
        self._job._improved(value, float(self._job._count))

    def _other(self, value: Any) -> None:
        """Whole numbers, arrays of one value, and of many."""
        job = self._job
        for number in _numbers(value):
            if job._count >= job._most:
                job.stop()
            job._count += 1
            if self._sign * number < job._best:
                self._improved(number)


class Timed(Tracked):
    """An objective whose evaluations are timed."""

    __slots__ = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Evaluate."""
        job = self._job
        if monotonic() > job._end:
            job.stop()
        value = self._objective(*args, **kwargs)
        if isinstance(value, float):
            if self._sign * value < job._best:
                self._improved(float(value))
        else:
            self._other(value)
        return value

    def _improved(self, value: float) -> None:
        self._job.report(value)


def watched(
    instance: Any,
    *,
    horizon: float,
    direction: Direction = "minimize",
    clock: Clock = "evaluations",
    seed: int = 0,
) -> RunningJob:
    """A job to try a solver on by hand, without a process of its own.

    >>> def half(job):
    ...     f, x = job.track(job.instance), 8.0
    ...     while True:
    ...         f(x)
    ...         x /= 2
    >>> job = watched(lambda x: x * x, horizon=3)
    >>> half(job)
    Traceback (most recent call last):
    polarbear.running.solvers.job.HorizonReached
    >>> job.found
    ([1.0, 2.0, 3.0], [64.0, 16.0, 4.0])
    """
    times = (float(horizon),)
    job = Job("solver", "instance", 0, float(horizon), seed, seed)
    board = Board(times)
    return RunningJob(job, instance, board, times=times, direction=direction, clock=clock)


def _number(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number beyond all floats: only the order counts
        return inf if value > 0 else -inf
    except Exception:
        raise SolverError(f"{_shown(value)} is not a value: expected a number") from None


def _numbers(value: Any) -> list[float]:
    if isinstance(value, int):
        return [_number(value)]
    try:
        return np.asarray(value, dtype=np.float64).ravel().tolist()
    except Exception:
        raise SolverError(
            f"the objective returned {_shown(value)}: expected a number, or an array of numbers"
        ) from None


def _time(value: Any) -> float:
    number = _number(value)
    if not isfinite(number) or number < 0:
        raise SolverError(f"{_shown(value)} is not a time: expected a number of at least 0")
    return number


def _shown(value: Any) -> str:
    """A value in a message, whatever it is."""
    try:
        return repr(value)[:80]
    except Exception:
        return f"something of type {type(value).__name__}"
