"""``run_job``: call the solver of a run, in the process of that run."""

import faulthandler
import os
import random
import signal
import sys
from typing import NoReturn

import numpy as np

from polarbear.data.run import Status
from polarbear.racing.jobs import Job
from polarbear.running.solvers.environment import restrict_environment
from polarbear.running.solvers.exceptions import KilledProgramError, describe_exception
from polarbear.running.solvers.job import HorizonReached, RunningJob
from polarbear.running.solvers.processes import end_with_parent
from polarbear.running.solvers.setup import Limits, Setup
from polarbear.running.solvers.shared_trajectory import SharedTrajectory


def prepare_process(parent: int, output: int, limits: Limits) -> None:
    """Detach a forked process from its parent: own session, streams, signals and limits."""
    os.setsid()
    end_with_parent(parent)
    devnull = os.open(os.devnull, os.O_RDONLY)
    for descriptor, target in ((devnull, 0), (output, 1), (output, 2)):
        os.dup2(descriptor, target)
    for descriptor in {devnull, output} - {0, 1, 2}:
        os.close(descriptor)
    # New streams: text that the parent had not flushed yet would be written twice.
    sys.stdout = open(1, "w", 1, errors="replace", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, errors="replace", closefd=False)  # noqa: SIM115
    faulthandler.enable(sys.stderr)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    _apply_limits(limits)
    seed_generators(0)  # copies their pages now, before the clock of the run starts


def seed_generators(seed: int) -> None:
    """Seed the global random generators of Python and numpy, which solvers may use."""
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002


def run_job(setup: Setup, job: Job, trajectory: SharedTrajectory) -> NoReturn:
    """Run a job to its end, record how it ended, and exit the process."""
    running = None
    status, why = Status.FINISHED, ""
    try:
        if setup.limits.environment is not None:
            restrict_environment(setup.limits.environment)
        seed_generators(job.seed)
        instance = setup.instances.make(job)
        running = RunningJob(
            job,
            instance,
            trajectory,
            times=setup.times,
            direction=setup.direction,
            clock=setup.clock,
            in_own_process=True,
        )
        running.start_clock()
        running.call_solver(setup.solvers[job.algorithm])
    except BaseException as error:
        status, why = _classify_exception(error)
    finally:
        _record_ending(running, trajectory, status, why)


def _record_ending(
    running: RunningJob | None, trajectory: SharedTrajectory, status: Status, why: str
) -> NoReturn:
    """Record how a run ended, and exit the process."""
    try:
        until = 0.0 if running is None else running.observed_until()
        at_horizon = running is not None and (running.at_horizon or until >= running.horizon)
        if running is not None and at_horizon and status != Status.OUT_OF_MEMORY:
            # An optimiser may have wrapped the exception at the horizon in an error of its own.
            status, why, until = Status.CUT, "", running.horizon
        trajectory.end(status, until, why or (running.remark if running is not None else ""))
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        # The supervisor notices the end when the last writer closes the output.
        os.close(1)
        os.close(2)
    finally:
        # Not sys.exit, which waits for threads and calls exit handlers of the solver.
        os._exit(0)


def _classify_exception(error: BaseException) -> tuple[Status, str]:
    """Return the status and the reason of a run whose solver raised an exception."""
    if isinstance(error, HorizonReached):
        return Status.CUT, ""
    if isinstance(error, MemoryError):
        return Status.OUT_OF_MEMORY, "out of memory"
    if isinstance(error, SystemExit) and error.code in (None, 0):
        return Status.FINISHED, "the solver called sys.exit()"
    status = Status.KILLED if isinstance(error, KilledProgramError) else Status.CRASHED
    return status, describe_exception(error)


def _apply_limits(limits: Limits) -> None:
    """Let the operating system limit address space and CPU time, and write no core files."""
    import resource  # not there on Windows

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if limits.cpu_seconds is not None:
        # The supervisor measures more exactly; this is in case that it is stopped or killed.
        _set_limit(resource.RLIMIT_CPU, int(limits.cpu_seconds) + 5)
    if limits.address_space is not None:
        _set_limit(resource.RLIMIT_AS, int(limits.address_space))


def _set_limit(resource_number: int, limit: int) -> None:
    """Set a limit of the operating system, or its hard limit if that is lower."""
    import resource

    hard_limit = resource.getrlimit(resource_number)[1]
    limit = limit if hard_limit == resource.RLIM_INFINITY else min(limit, hard_limit)
    resource.setrlimit(resource_number, (limit, limit))
