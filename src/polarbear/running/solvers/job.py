"""``RunningJob``: the argument of a solver, through which it reports the values that it finds.

A solver is a function of a job. It reports values in one of three ways::

    def search(job):                       # 1. the objective is tracked: every call is counted
        minimize(job.track(job.instance), ...)

    def search(job):                       # 2. it calls report
        ...
        job.report(value)

    def search(job):                       # 3. it is a generator
        ...
        yield time, value                  # or the value alone

The solver may give the time of a value. Otherwise the clock of the race does: "evaluations"
(counted by ``track``), "wall" or "cpu" (seconds since the solver was called). With the clock
"reported" the solver has to give it.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from math import inf, isfinite, isnan
from time import monotonic, process_time
from typing import Any, Literal, NoReturn, get_args

import numpy as np

from polarbear.data.levels import encode_violations
from polarbear.data.run import Direction, Status, sign_of
from polarbear.errors import DataError, SolverError
from polarbear.racing.jobs import Job
from polarbear.running.solvers.processes import measure_children
from polarbear.running.solvers.shared_trajectory import SharedTrajectory

Clock = Literal["evaluations", "wall", "cpu", "reported"]
CLOCKS: tuple[Clock, ...] = get_args(Clock)

CHILDREN_SECONDS = 0.01
"""Seconds between measurements of the CPU time of child processes, which has this resolution."""

MAX_IGNORED_STOPS = 1_000
"""How often an optimiser may catch ``HorizonReached`` and go on before its process is ended."""


class HorizonReached(BaseException):
    """Raised inside a solver when its run has reached the time until which it is observed.

    Not an ``Exception``: optimisers that catch the errors of objectives have to let it pass.
    """


class RunningJob:
    """The run in progress that a solver is called with, and to which it reports values.

    Attributes
    ----------
    algorithm
        The name of the solver in the race.
    instance, name
        The instance to solve, and its name.
    seed, rng
        The random seed, a number below 2^31, and a numpy generator with that seed.
    horizon
        The time until which the run is observed, by the clock of the race.
    times
        The times at which the race compares algorithms.
    direction, clock
        "minimize" or "maximize"; "evaluations", "wall", "cpu" or "reported".

    Examples
    --------
    >>> job = make_trial_job(lambda x: x * x, horizon=3)
    >>> square = job.track(job.instance)
    >>> for x in (2.0, 3.0, 1.0, 0.0):
    ...     square(x)
    Traceback (most recent call last):
    polarbear.running.solvers.job.HorizonReached
    >>> job.improvements
    ([1.0, 3.0], [4.0, 1.0])
    """

    def __init__(
        self,
        job: Job,
        instance: Any,
        trajectory: SharedTrajectory,
        *,
        times: tuple[float, ...],
        direction: Direction,
        clock: Clock,
        in_own_process: bool = False,
    ) -> None:
        self.algorithm = job.algorithm
        self.instance = instance
        self.name = job.instance
        self.seed = job.seed
        self._instance_seed = job.instance_seed
        self.horizon = job.horizon
        self.times = times
        self.direction = direction
        self.clock = clock
        self.at_horizon = False
        self.remark = ""  # why the run has no value, if this is known
        self._trajectory = trajectory
        self.in_own_process = in_own_process
        self._sign = sign_of(direction)
        self._best_cost = inf
        self._latest_time = 0.0
        self._n_evaluations = 0
        self._max_evaluations = job.horizon // 1 if clock == "evaluations" else inf
        self._is_tracking = False
        self._n_ignored_stops = 0
        self._set_start()

    # For solvers

    @cached_property
    def rng(self) -> np.random.Generator:
        """A numpy random generator with the seed of the run."""
        return np.random.default_rng(self.seed)

    def report(
        self,
        value: Any = None,
        time: Any = None,
        *,
        violation: Any = 0.0,
        values: Sequence[float] | None = None,
        bounds: Sequence[tuple[float, float]] | None = None,
    ) -> None:
        """Report a value that the solver has found; after the planned end, this ends the run.

        Only values better than all before are kept. The worst infinity stands for no value.
        ``values`` are several objectives in place of one value, with the ``bounds`` of each (low,
        high). They become one value by random weights that all runs on an instance share. A
        ``violation`` of constraints above 0 ranks behind all values without one, by its size:

        >>> job = make_trial_job(None, horizon=9, clock="reported")
        >>> job.report(5.0, time=1, violation=2.5)
        >>> job.report(7.0, time=2)
        >>> job.report(1.0, time=3, violation=0.1)
        >>> times, values = job.improvements
        >>> times, values[-1]
        ([1.0, 2.0], 7.0)
        """
        number = _to_float(value) if values is None else self._scalarise(values, bounds)
        if violation:
            try:
                infeasible = encode_violations(0.0, _to_float(violation)).item()
            except DataError as error:
                raise SolverError(str(error)) from None
            number = self._sign * infeasible
        if isnan(number):
            raise SolverError("the value nan was reported: report only values that are numbers")
        now = self.now() if time is None else _to_time(time)
        if now < self._latest_time:
            raise SolverError(
                f"the solver reported time {now:.15g} after {self._latest_time:.15g}: times must "
                "not decrease"
            )
        self._latest_time = now
        if now > self.horizon:
            self.stop()
        if self._sign * number < self._best_cost:
            self._record(number, now)

    def _scalarise(
        self, values: Sequence[float], bounds: Sequence[tuple[float, float]] | None
    ) -> float:
        """Return the largest weighted objective, each scaled from its bounds to 0 and 1."""
        points = np.asarray(values, dtype=np.float64)
        if self.direction != "minimize" or bounds is None or np.shape(bounds) != (points.size, 2):
            raise SolverError(
                "several objectives are minimised, and need the bounds of each: "
                "job.report(values=(f1, f2), bounds=[(0, 1), (0, 10)])"
            )
        low, high = np.asarray(bounds, dtype=np.float64).T
        weights = np.random.default_rng(self._instance_seed).dirichlet(np.ones(points.size))
        return float(np.max(weights * (points - low) / (high - low)))

    def track(self, objective: Callable[..., Any]) -> "TrackedObjective":
        """Wrap an objective so that its evaluations are counted and improvements are recorded.

        The wrapper is called like the objective and has its attributes. An array of values counts
        as that many evaluations. A value of nan counts as an evaluation and is not recorded. The
        evaluation after the horizon ends the run.
        """
        if not callable(objective):
            raise SolverError(f"job.track takes a function, got {type(objective).__name__}")
        if self.clock == "reported":
            raise SolverError(
                "the clock of this race is 'reported', so times come from the solver: "
                "job.report(value, time=...)"
            )
        self._is_tracking = True
        return (TrackedObjective if self.clock == "evaluations" else TimedObjective)(
            self, objective
        )

    def now(self) -> float:
        """Return the current time of the run by the clock of the race."""
        if self.clock == "wall":
            return monotonic() - self._started_at
        if self.clock == "cpu":
            return max(self._latest_time, self._use_cpu() - self._started_cpu_seconds)
        if self.clock == "evaluations" and self._is_tracking:
            return float(self._n_evaluations)
        advice = {
            "evaluations": "nothing counts evaluations: call the objective through "
            "job.track(objective), or job.report(value, time=evaluations)",
            "reported": "the clock of this race is 'reported': job.report(value, time=...)",
        }
        raise SolverError(advice[self.clock])

    # For the process that runs the solver

    def set_remark(self, remark: str) -> None:
        """Set the reason to report if the run ends without a value; "" removes the reason."""
        self.remark = remark
        self._trajectory.write_remark(remark)

    @property
    def improvements(self) -> tuple[list[float], list[float]]:
        """The times and values of the improvements so far."""
        return self._trajectory.improvements()

    def start_clock(self) -> None:
        """Start the clock of the run, and record the start for its supervisor."""
        self._set_start()
        self._trajectory.begin(self._started_at, self._started_cpu_seconds)

    def _set_start(self) -> None:
        self._process = os.getpid()
        self._started_at = monotonic()
        self._measured_at = 0.0
        self._started_cpu_seconds = self._use_cpu() if self.clock == "cpu" else process_time()
        # By other clocks the supervisor or a report notices the horizon.
        self._ends_at = self._started_at + self.horizon if self.clock == "wall" else inf

    def call_solver(self, solver: Callable[["RunningJob"], Any]) -> None:
        """Call a solver, and report the values that it yields."""
        items = solver(self)
        if items is None:
            return
        if isinstance(items, str | bytes) or not isinstance(items, Iterable):
            raise SolverError(
                f"the solver returned {_shorten(items)}: it should yield (time, value), call "
                "job.report(value), or evaluate job.track(objective)"
            )
        for item in items:
            time, value = (
                item if isinstance(item, tuple | list) and len(item) == 2 else (None, item)
            )
            self.report(value, time)

    def observed_until(self) -> float:
        """Return until which time the run would be observed if it ended now."""
        now = self._latest_time
        if self.clock != "reported" and (self._is_tracking or self.clock != "evaluations"):
            now = max(now, self.now())
        return self.horizon if self.at_horizon else min(now, self.horizon)

    def stop(self) -> NoReturn:
        """End the run at its planned end by raising ``HorizonReached``."""
        self.at_horizon = True
        self._n_ignored_stops += 1
        if self._n_ignored_stops > MAX_IGNORED_STOPS and self.in_own_process:
            self._trajectory.end(Status.CUT, self.horizon, "")
            os._exit(0)
        raise HorizonReached

    def _use_cpu(self) -> float:
        """Return the CPU time of this process and its children, which are measured at times."""
        now = monotonic()
        if now >= self._measured_at + CHILDREN_SECONDS:
            self._measured_at, self._children_seconds = now, measure_children()
        return process_time() + self._children_seconds

    def _record(self, value: float, now: float) -> None:
        """Record an improvement, given its value and time."""
        if os.getpid() != self._process:
            raise SolverError(
                "a child process reported a value: report values in the process of the run itself"
            )
        self._best_cost = self._sign * value
        self._trajectory.record(now, value)


class TrackedObjective:
    """An objective function that counts its evaluations and records improvements."""

    __slots__ = ("_job", "_objective", "_sign")

    def __init__(self, job: RunningJob, objective: Callable[..., Any]) -> None:
        self._job = job
        self._objective = objective
        self._sign = job._sign

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Evaluate the objective function, and count the evaluation."""
        # The fast path is short on purpose: benchmarks/track.py measures it.
        job = self._job
        if job._n_evaluations >= job._max_evaluations:
            job.stop()
        value = self._objective(*args, **kwargs)
        if isinstance(value, float):
            job._n_evaluations += 1
            if self._sign * value < job._best_cost:
                self._record(float(value))
        else:
            self._count_values(value)
        return value

    def __getattr__(self, name: str) -> Any:
        return getattr(self._objective, name)

    def _record(self, value: float) -> None:
        self._job._record(value, float(self._job._n_evaluations))

    def _count_values(self, value: Any) -> None:
        """Count what an objective returned: 1 evaluation for a number, else an array's length."""
        job = self._job
        for number in _to_floats(value):
            if job._n_evaluations >= job._max_evaluations:
                job.stop()
            job._n_evaluations += 1
            if self._sign * number < job._best_cost:
                self._record(number)


class TimedObjective(TrackedObjective):
    """An objective function that records each improvement with its time in seconds."""

    __slots__ = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Evaluate the objective function, unless the planned end of the run has passed."""
        job = self._job
        if monotonic() > job._ends_at:
            job.stop()
        value = self._objective(*args, **kwargs)
        if isinstance(value, float):
            if self._sign * value < job._best_cost:
                self._record(float(value))
        else:
            self._count_values(value)
        return value

    def _record(self, value: float) -> None:
        self._job.report(value)


def make_trial_job(
    instance: Any,
    *,
    horizon: float,
    direction: Direction = "minimize",
    clock: Clock = "evaluations",
    seed: int = 0,
) -> RunningJob:
    """Make a job with which a solver can be tried in this process, without limits.

    >>> def half(job):
    ...     f, x = job.track(job.instance), 8.0
    ...     while True:
    ...         f(x)
    ...         x /= 2
    >>> job = make_trial_job(lambda x: x * x, horizon=3)
    >>> half(job)
    Traceback (most recent call last):
    polarbear.running.solvers.job.HorizonReached
    >>> job.improvements
    ([1.0, 2.0, 3.0], [64.0, 16.0, 4.0])
    """
    times = (float(horizon),)
    job = Job(
        algorithm="solver",
        instance="instance",
        repetition=0,
        horizon=float(horizon),
        seed=seed,
        instance_seed=seed,
    )
    trajectory = SharedTrajectory(times)
    return RunningJob(job, instance, trajectory, times=times, direction=direction, clock=clock)


def _to_float(value: Any) -> float:
    """Convert a value to a float; integers beyond the range of floats become infinite."""
    try:
        return float(value)
    except OverflowError:  # only the order of values counts
        return inf if value > 0 else -inf
    except Exception:
        raise SolverError(f"{_shorten(value)} is not a value: expected a number") from None


def _to_floats(value: Any) -> list[float]:
    """Convert an integer or an array of values to floats."""
    if isinstance(value, int):
        return [_to_float(value)]
    try:
        return np.asarray(value, dtype=np.float64).ravel().tolist()
    except Exception:
        raise SolverError(
            f"the objective returned {_shorten(value)}: expected a number, or an array of numbers"
        ) from None


def _to_time(value: Any) -> float:
    """Convert a time to a float, and check that it is finite and not negative."""
    number = _to_float(value)
    if not isfinite(number) or number < 0:
        raise SolverError(f"{_shorten(value)} is not a time: expected a number of at least 0")
    return number


def _shorten(value: Any) -> str:
    """Return a value as text of at most 80 characters, for an error message."""
    try:
        return repr(value)[:80]
    except Exception:
        return f"something of type {type(value).__name__}"
