"""``Supervisor``: makes runs in processes of their own, and knows how each ended, whatever it did.

1. A run is a child in a session of its own. It dies with its supervisor.
2. What it finds is on a board that both see, so it is known however the run ends.
3. When it is over, or over a limit, its group is killed, and then everything it has left behind:
   the supervisor is the parent of all orphans below it.
4. What it prints is read and forgotten but for the last of it.

The supervisor has to be single-threaded, for it forks, and has to have no other children, for it
kills all: ``slots`` starts such processes.
"""

import json
import os
import select
import signal
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from polarbear.data.run import Status
from polarbear.racing.jobs import Job
from polarbear.running.solvers.processes import (
    Usage,
    cpu_seconds,
    descendants,
    detach_descriptors,
    fork,
    kill_below,
    kill_group,
    machine_memory,
    proportional,
    reap,
    resident,
    start_when_possible,
)
from polarbear.running.solvers.setup import Limits, Setup
from polarbear.running.solvers.shared_trajectory import Board
from polarbear.running.workers.child import begin, perform
from polarbear.running.workers.outcomes import Outcome
from polarbear.running.workers.provenance import describe_worker

GRACE = 0.1
"""Seconds that a run has to end by itself at its horizon."""

LOOK = 0.05
"""Seconds between looks at what a run uses."""

LAST_LINES, LINE_CHARACTERS = 3, 200
"""How much of what a run printed is part of the reason why it failed."""

TAIL = 4_000
"""Bytes kept of what a run prints."""


class Abandoned(Exception):  # noqa: N818 (nothing is wrong here)
    """Whoever wanted the run is gone."""


class _Exceeded(NamedTuple):
    status: Status
    why: str


class Supervisor:
    """Makes runs, one at a time.

    Parameters
    ----------
    setup
        What to run.
    slots
        How many run on this machine at once, and share its memory.
    parent
        The parent of this process; if it changes, nothing waits for the run any more.
    announce
        Is told the session of each run, so that somebody else can kill it if this process is gone.
    """

    def __init__(
        self,
        setup: Setup,
        *,
        slots: int = 1,
        parent: int | None = None,
        announce: Callable[[int], None] | None = None,
    ) -> None:
        self._setup, self._slots = setup, slots
        self._parent, self._announce = parent, announce
        self._next: _Child | None = None

    def runs(self, jobs: Iterable[Job]) -> Iterator[Outcome]:
        """Make runs one after the other.

        A run that has said its last word and left nobody behind may still take a while to go: the
        next one starts meanwhile, unless it is timed.
        """
        leaving: _Watch | None = None
        watch: _Watch | None = None
        try:
            for job in jobs:
                watch = self._started(job)
                if leaving is not None:
                    yield leaving.outcome()
                    leaving = None
                if self._setup.clock != "wall":  # nothing is to disturb what is measured
                    self.prepare()
                watch.wait(self._parent, self._next)
                if watch.quiet:
                    leaving, watch = watch, None
                else:
                    yield watch.outcome()
            if leaving is not None:
                yield leaving.outcome()
        finally:
            for left in (leaving, watch):
                if left is not None:
                    left.close()

    def prepare(self) -> None:
        """Have the process of the next run ready: to make one takes longer than to wake it."""
        if self._next is None:
            with suppress(OSError):  # no room for it now: it is made when it is needed
                self._next = _Child(self._setup)

    def _started(self, job: Job) -> "_Watch":
        child, self._next = self._next or self._child(), None
        try:
            child.start(job)
        except BrokenPipeError:  # somebody killed it while it waited
            child.close()
            child = self._child()
            child.start(job)
        if self._announce is not None:
            self._announce(child.pid)
        return _Watch(self._setup, job, child, self._slots)

    def _child(self) -> "_Child":
        """A process for a run, as soon as the system has room for one."""
        try:
            return start_when_possible(
                lambda: _Child(self._setup), lambda: not self._is_abandoned()
            )
        except OSError:
            if self._is_abandoned():
                raise Abandoned from None
            raise

    def _is_abandoned(self) -> bool:
        """Whether the process that wanted the run is gone."""
        return self._parent not in (None, os.getppid())


class _Child:
    """A process that waits for its job."""

    def __init__(self, setup: Setup) -> None:
        self.board = Board(setup.times)
        # It starts with the pages of its parent, which are not its own doing.
        self.shared = resident([os.getpid()])
        self.output, writing = os.pipe()
        orders, self._orders = os.pipe()
        parent = os.getpid()
        try:
            self.pid = fork()
        except OSError:
            for descriptor in (self.output, writing, orders, self._orders):
                os.close(descriptor)
            self.board.close()
            raise
        if self.pid == 0:
            try:
                detach_descriptors(keep=(writing, orders))
                begin(parent, writing, setup.limits)
                with open(orders, "rb") as file:  # noqa: PTH123
                    job = Job(*json.load(file))
                perform(setup, job, self.board)
            finally:
                os._exit(1)
        os.close(writing)
        os.close(orders)
        os.set_blocking(self.output, False)
        self._closed = False
        self.pidfd = os.pidfd_open(self.pid) if hasattr(os, "pidfd_open") else None

    def start(self, job: Job) -> None:
        """Tell it what to do."""
        orders, self._orders = self._orders, -1
        with open(orders, "w") as file:  # noqa: PTH123
            json.dump(job, file)

    def close(self) -> None:
        """Forget it."""
        if self._closed:
            return
        self._closed = True
        if self._orders >= 0:
            os.close(self._orders)
            kill_group(self.pid)
        for descriptor in (self.output, self.pidfd):
            if descriptor is not None:
                os.close(descriptor)
        self.board.close()


class _Watch:
    """A run, seen by its supervisor."""

    def __init__(self, setup: Setup, job: Job, child: _Child, slots: int) -> None:
        self.began = self._looked = self._over = time.monotonic()
        self.quiet = False  # whether it has said its last word, and nobody else is left of it
        self._load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
        self._setup, self._job, self._child = setup, job, child
        self._tail = b""
        self._exceeds: _Exceeded | None = None
        self._spared: tuple[int, ...] = ()
        self._finished = False
        total = machine_memory()
        most = setup.limits.memory or (None if total is None else 0.9 * total / slots)
        self._memory_limit = most
        self._memory = None if most is None else most + child.shared

    def wait(self, parent: int | None, spared: _Child | None) -> None:
        """Until it ends, or exceeds a limit."""
        self._spared = () if spared is None else (spared.pid,)
        poll = select.poll()
        output, pidfd = self._child.output, self._child.pidfd
        for descriptor in (output, pidfd):
            if descriptor is not None:
                poll.register(descriptor, select.POLLIN)
        over = False
        while not over:
            ready = {descriptor for descriptor, _ in poll.poll(1000 * self._pause())}
            if parent not in (None, os.getppid()):
                raise Abandoned
            if output in ready and not self._drain():
                poll.unregister(output)
                self.quiet = self._is_quiet()
            ended = pidfd in ready or (pidfd is None and self._ended())
            # How it ended, it says itself or the system, however late it is seen.
            self._exceeds = None if ended else self._exceeded()
            over = ended or self.quiet or self._exceeds is not None
        self._over = time.monotonic()

    def outcome(self) -> Outcome:
        """Kill what is left, and say how it ended."""
        self._finished = True  # from now on the number of the process may be that of another
        kill_group(self._child.pid)
        status, usage = reap(self._child.pid)
        if not self.quiet:
            rest = kill_below(self._spared)
            usage = Usage(usage.cpu + rest.cpu, max(usage.memory, rest.memory))
        # What those wrote that are gone now; a bounded amount, for others may hold the pipe.
        for _ in range(16):
            if not self._drain():
                break
        # It began with the pages of the process that it was forked from.
        usage = Usage(usage.cpu, max(usage.memory - self._child.shared, 0))
        outcome = _outcome(self._setup, self._job, self._child.board, self._exceeds, status, usage)
        self.close()
        output = self._tail.decode(errors="replace")
        return outcome._replace(
            why=_with_last_lines(outcome, output),
            seconds=self._over - self.began,
            load=self._load,
            host=socket.gethostname(),
            output=output,
            worker=describe_worker(self._memory_limit),
        )

    def close(self) -> None:
        """Nothing stays behind, whatever happened."""
        if not self._finished:
            kill_group(self._child.pid)
            kill_below()
        self._child.close()

    def _is_quiet(self) -> bool:
        """Whether nothing is left but to go: all have closed their output, and it is alone."""
        if self._setup.clock == "wall" or self._child.board.ending() is None:
            return False
        return set(descendants(os.getpid())) <= {self._child.pid, *self._spared}

    def _pause(self) -> float:
        """Seconds until something has to be looked at."""
        now = time.monotonic()
        if self._child.pidfd is None:
            return 0.005
        return max(min(self._looked + LOOK, self._deadline()) - now, 0.0)

    def _deadline(self) -> float:
        last = self.began + self._setup.limits.wall
        began = self._child.board.began
        if began is not None and self._setup.clock == "wall":
            last = min(last, began + self._job.horizon + GRACE)
        return last

    def _drain(self) -> bool:
        """Read what was printed; false at its end, or if there is nothing."""
        try:
            chunk = os.read(self._child.output, 65_536)
        except BlockingIOError:
            return False
        self._tail = (self._tail + chunk)[-TAIL:]
        return bool(chunk)

    def _ended(self) -> bool:
        how = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self._child.pid, how) is not None

    def _exceeded(self) -> _Exceeded | None:
        now, limits = time.monotonic(), self._setup.limits
        if now >= self._deadline():
            if now >= self.began + limits.wall:
                return _Exceeded(Status.OUT_OF_TIME, f"over the limit of {limits.wall:g} seconds")
            return _Exceeded(Status.CUT, "")
        if now < self._looked + LOOK:
            return None
        self._looked = now
        pids = [pid for pid in descendants(os.getpid()) if pid not in self._spared]
        return self._too_much(pids, limits)

    def _too_much(self, pids: list[int], limits: Limits) -> _Exceeded | None:
        if len(pids) > limits.processes:
            return _Exceeded(Status.CRASHED, f"over the limit of {limits.processes} processes")
        most = self._memory
        if most is not None and resident(pids) > most and proportional(pids) > most:
            most = f"{most / 1e6:,.0f} MB"
            return _Exceeded(Status.OUT_OF_MEMORY, f"over the limit of {most} of memory")
        if limits.cpu is None and self._setup.clock != "cpu":
            return None
        used = cpu_seconds(pids)
        if limits.cpu is not None and used > limits.cpu:
            return _Exceeded(Status.OUT_OF_TIME, f"over the limit of {limits.cpu:g} CPU seconds")
        started = self._setup.clock == "cpu" and self._child.board.began is not None
        if started and used - self._child.board.began_cpu > self._job.horizon + GRACE:
            return _Exceeded(Status.CUT, "")
        return None


def _outcome(
    setup: Setup, job: Job, board: Board, exceeded: _Exceeded | None, exit_: int, usage: Usage
) -> Outcome:
    """How it ended, by what is known: the run's own word, our own deeds, the system's."""
    times, values = board.improvements()
    ending = board.ending()
    if ending is not None:
        status, until, why = ending
    else:
        status, why = exceeded or _fallen(exit_)
        why = why or board.remark()
        until = job.horizon if status == Status.CUT else _elapsed(setup, board, usage)
    latest = max(times, default=0.0)
    until = max(min(until, job.horizon), latest) if until == until else latest
    run = job.run(tuple(times), tuple(values), until=until, status=status)
    return Outcome(job, run, why, cpu=usage.cpu, memory=usage.memory)


def _with_last_lines(outcome: Outcome, output: str) -> str:
    """Why a run failed or found nothing, with the last lines that it printed."""
    odd = outcome.run.status not in (Status.CUT, Status.FINISHED) or not np.size(outcome.run.time)
    lines = [line.strip()[:LINE_CHARACTERS] for line in output.splitlines() if line.strip()]
    if not (odd and outcome.why and lines):
        return outcome.why
    return f"{outcome.why}; it printed last: {' | '.join(lines[-LAST_LINES:])}"


def _elapsed(setup: Setup, board: Board, usage: Usage) -> float:
    """The time of a run that could not say it, by its clock; counts are as of its last word."""
    if board.began is None:
        return 0.0
    if setup.clock == "wall":
        return time.monotonic() - board.began
    return usage.cpu if setup.clock == "cpu" else 0.0


def _fallen(exit_: int) -> _Exceeded:
    """A run that ended without a word, and not by us."""
    if os.WIFSIGNALED(exit_):
        number = os.WTERMSIG(exit_)
        name = signal.Signals(number).name if number in set(signal.Signals) else str(number)
        if number == signal.SIGKILL:
            return _Exceeded(
                Status.KILLED, "killed from outside: perhaps the machine was out of memory"
            )
        if number == signal.SIGXCPU:
            return _Exceeded(Status.OUT_OF_TIME, "over the limit of CPU seconds")
        return _Exceeded(Status.CRASHED, f"ended by {name}")
    code = os.WEXITSTATUS(exit_)
    return _Exceeded(Status.CRASHED, f"the process ended by itself, with exit code {code}")
