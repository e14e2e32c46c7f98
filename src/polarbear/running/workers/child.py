"""What happens in the process of a run."""

import faulthandler
import os
import random
import signal
import sys
from typing import NoReturn

import numpy as np

from polarbear.data.run import Status
from polarbear.racing.jobs import Job
from polarbear.running.solvers.exceptions import describe_exception
from polarbear.running.solvers.job import HorizonReached, RunningJob
from polarbear.running.solvers.processes import die_with
from polarbear.running.solvers.setup import Limits, Setup
from polarbear.running.solvers.shared_trajectory import Board


def begin(parent: int, output: int, limits: Limits) -> None:
    """Become a process of one's own, with limits, and nothing to read."""
    os.setsid()
    die_with(parent)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for descriptor, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(descriptor, target)
    for descriptor in {nothing, output} - {0, 1, 2}:
        os.close(descriptor)
    # Not those of the parent: what it had not written yet would be written twice.
    sys.stdout = open(1, "w", 1, errors="replace", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, errors="replace", closefd=False)  # noqa: SIM115
    faulthandler.enable(sys.stderr)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    _restrict(limits)
    seed_all(0)  # what is touched now, while nobody waits, is at hand later


def seed_all(seed: int) -> None:
    """Seed the generators of the process, which solvers may use and all runs have in common."""
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002


def perform(setup: Setup, job: Job, board: Board) -> NoReturn:
    """Run a job to its end, which is written on the board, and with it end the process."""
    running = None
    status, why = Status.FINISHED, ""
    try:
        seed_all(job.seed)
        instance = setup.instances.make(job)
        running = RunningJob(
            job,
            instance,
            board,
            times=setup.times,
            direction=setup.direction,
            clock=setup.clock,
            contained=True,
        )
        running.begin()
        running.follow(setup.solvers[job.algorithm])
    except BaseException as error:
        status, why = _judged(error)
    finally:
        _end(running, board, status, why)


def _end(running: RunningJob | None, board: Board, status: Status, why: str) -> NoReturn:
    try:
        until = 0.0 if running is None else running.until()
        watched = running is not None and (running.over or until >= running.horizon)
        if running is not None and watched and status != Status.OUT_OF_MEMORY:
            # Whatever the solver made of it: an optimiser may wrap what ended it in an error.
            status, why, until = Status.CUT, "", running.horizon
        board.end(status, until, why or (running.remarked if running is not None else ""))
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        # With the last of those who could still write, the supervisor knows that it is over.
        os.close(1)
        os.close(2)
    finally:
        # Not sys.exit: threads that were left behind and exit handlers have no say.
        os._exit(0)


def _judged(error: BaseException) -> tuple[Status, str]:
    if isinstance(error, HorizonReached):
        return Status.CUT, ""
    if isinstance(error, MemoryError):
        return Status.OUT_OF_MEMORY, "out of memory"
    if isinstance(error, SystemExit) and error.code in (None, 0):
        return Status.FINISHED, "the solver called sys.exit()"
    return Status.CRASHED, describe_exception(error)


def _restrict(limits: Limits) -> None:
    import resource  # not there on Windows

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if limits.cpu is not None:
        # The supervisor counts more exactly; this is for when it cannot.
        seconds = int(limits.cpu) + 5
        _limit(resource.RLIMIT_CPU, seconds)
    if limits.address_space is not None:
        _limit(resource.RLIMIT_AS, int(limits.address_space))


def _limit(which: int, most: int) -> None:
    import resource

    hard = resource.getrlimit(which)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(which, (most, most))
