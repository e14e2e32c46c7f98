"""``Supervisor``: makes each run in a process of its own, and determines how it ended.

1. A run is a child process in a session of its own. It ends with its supervisor.
2. Its improvements are in shared memory, so they are known however the run ends.
3. When it ends or exceeds a limit, its process group is killed, and then all its descendants: the
   supervisor adopts all orphans below it.
4. Of its output only the end is kept.

The supervisor has to be single-threaded, because it forks. It has to have no other children,
because it kills all: ``WorkerProcess`` starts such processes.
"""

import json
import os
import select
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

import numpy as np

from polarbear.data.run import Status
from polarbear.racing.jobs import QUOTES, Job
from polarbear.running.solvers.processes import (
    Usage,
    detach_descriptors,
    find_descendants,
    fork,
    get_available_memory,
    kill_descendants,
    kill_group,
    measure_cpu_seconds,
    measure_proportional_bytes,
    measure_resident_bytes,
    reap,
    start_when_possible,
)
from polarbear.running.solvers.setup import Setup
from polarbear.running.solvers.shared_trajectory import SharedTrajectory
from polarbear.running.workers.child import prepare_process, run_job
from polarbear.running.workers.endings import Cause, EndEvidence, conclude, read_wait_status
from polarbear.running.workers.outcomes import RunOutcome
from polarbear.running.workers.provenance import describe_worker

GRACE_SECONDS = 0.1
"""Seconds that a run has to end by itself at its horizon."""

MEASURE_SECONDS = 0.05
"""Seconds between measurements of the resources that a run uses."""

MAX_QUOTED_LINES, MAX_QUOTED_CHARACTERS = 3, 200
"""How many of the last lines are quoted in the reason of a failure, and how much of each."""

MAX_OUTPUT_BYTES = 4_000
"""Bytes kept of the output of a run."""


class ParentGone(Exception):  # noqa: N818 (nothing is wrong here)
    """Raised if the process that requested the run has ended."""


class Supervisor:
    """Makes runs one at a time, each in a process of its own.

    Parameters
    ----------
    setup
        Solvers, instances and limits.
    n_workers
        The number of workers on this machine, which share its memory.
    parent
        The parent of this process; if it changes, the run is not wanted any more.
    announce
        Is called with the session of each run, so that another process can kill it if this one is
        killed.
    """

    def __init__(
        self,
        setup: Setup,
        *,
        n_workers: int = 1,
        parent: int | None = None,
        announce: Callable[[int], None] | None = None,
    ) -> None:
        self._setup, self._n_workers = setup, n_workers
        self._parent, self._announce = parent, announce
        self._next: _RunProcess | None = None

    def make_runs(self, jobs: Iterable[Job]) -> Iterator[RunOutcome]:
        """Make runs one after the other, and yield their outcomes.

        A process may need a while to exit after its run has recorded its ending. The next run
        starts meanwhile, unless wall time is measured.
        """
        exiting: _SupervisedRun | None = None
        current: _SupervisedRun | None = None
        try:
            for job in jobs:
                current = self._start(job)
                if exiting is not None:
                    yield exiting.finish()
                    exiting = None
                if self._setup.clock != "wall":  # nothing may disturb the measured run
                    self.prepare()
                current.wait(self._parent, self._next)
                if current.is_only_exiting:
                    exiting, current = current, None
                else:
                    yield current.finish()
            if exiting is not None:
                yield exiting.finish()
        finally:
            for left in (exiting, current):
                if left is not None:
                    left.close()

    def prepare(self) -> None:
        """Fork the process of the next run in advance, to save time when its job comes."""
        if self._next is None:
            with suppress(OSError):  # no room for it now: it is forked when it is needed
                self._next = _RunProcess(self._setup)

    def _start(self, job: Job) -> "_SupervisedRun":
        """Start a run in the process forked in advance, or in a new one."""
        process, self._next = self._next or self._fork(), None
        try:
            process.start(job)
        except BrokenPipeError:  # it was killed while it waited
            process.close()
            process = self._fork()
            process.start(job)
        if self._announce is not None:
            self._announce(process.pid)
        return _SupervisedRun(self._setup, job, process, self._n_workers)

    def _fork(self) -> "_RunProcess":
        """Fork a process for a run; wait if the system has no room for another process."""
        try:
            return start_when_possible(
                lambda: _RunProcess(self._setup), lambda: not self._is_parent_gone()
            )
        except OSError:
            if self._is_parent_gone():
                raise ParentGone from None
            raise

    def _is_parent_gone(self) -> bool:
        return self._parent not in (None, os.getppid())


class _RunProcess:
    """A forked process that waits for a job to run."""

    def __init__(self, setup: Setup) -> None:
        self.trajectory = SharedTrajectory(setup.times)
        # It starts with the pages of its parent, which do not count as its own.
        self.inherited_bytes = measure_resident_bytes([os.getpid()])
        self.output, writing = os.pipe()
        reading, self._job_pipe = os.pipe()
        parent = os.getpid()
        try:
            self.pid = fork()
        except OSError:
            for descriptor in (self.output, writing, reading, self._job_pipe):
                os.close(descriptor)
            self.trajectory.close()
            raise
        if self.pid == 0:
            try:
                detach_descriptors(keep=(writing, reading))
                prepare_process(parent, writing, setup.limits)
                with open(reading, "rb") as file:  # noqa: PTH123
                    job = Job(*json.load(file))
                run_job(setup, job, self.trajectory)
            finally:
                os._exit(1)
        os.close(writing)
        os.close(reading)
        os.set_blocking(self.output, False)
        self._is_closed = False
        self.pidfd = os.pidfd_open(self.pid) if hasattr(os, "pidfd_open") else None

    def start(self, job: Job) -> None:
        """Send a job to the process, which then runs it."""
        descriptor, self._job_pipe = self._job_pipe, -1
        with open(descriptor, "w") as file:  # noqa: PTH123
            json.dump(job, file)

    def close(self) -> None:
        """Release descriptors and memory; kill the process if it has not received a job."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._job_pipe >= 0:
            os.close(self._job_pipe)
            kill_group(self.pid)
        for descriptor in (self.output, self.pidfd):
            if descriptor is not None:
                os.close(descriptor)
        self.trajectory.close()


class _SupervisedRun:
    """A run in progress that a supervisor watches.

    Attributes
    ----------
    is_only_exiting
        Whether the run has recorded its ending and its process, which has no other processes,
        only has to exit.
    """

    def __init__(self, setup: Setup, job: Job, process: _RunProcess, n_workers: int) -> None:
        self._started_at = self._measured_at = self._ended_at = time.monotonic()
        self.is_only_exiting = False
        self._load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
        self._setup, self._job, self._process = setup, job, process
        self._output_end = b""
        self._exceeded: EndEvidence | None = None
        self._spared: tuple[int, ...] = ()
        self._is_finished = False
        self._memory_limit = setup.limits.memory or 0.9 * get_available_memory() / n_workers

    def wait(self, parent: int | None, prepared: _RunProcess | None) -> None:
        """Wait until the run ends or exceeds a limit; ignore the process forked in advance."""
        self._spared = () if prepared is None else (prepared.pid,)
        poll = select.poll()
        output, pidfd = self._process.output, self._process.pidfd
        for descriptor in (output, pidfd):
            if descriptor is not None:
                poll.register(descriptor, select.POLLIN)
        while True:
            ready = {descriptor for descriptor, _ in poll.poll(1000 * self._seconds_to_wait())}
            if parent not in (None, os.getppid()):
                raise ParentGone
            if output in ready and not self._read_output():
                poll.unregister(output)
                self.is_only_exiting = self._check_only_exiting()
            has_exited = pidfd in ready or (pidfd is None and self._has_exited())
            # A run that has ended exceeds no limit, however late its end is noticed.
            if has_exited or self.is_only_exiting:
                break
            self._exceeded = self._find_exceeded_limit()
            if self._exceeded is not None:
                break
        self._ended_at = time.monotonic()

    def finish(self) -> RunOutcome:
        """Kill the remaining processes of the run, and return its outcome."""
        self._is_finished = True  # once it is reaped, its process id may be that of another
        process = self._process
        kill_group(process.pid)
        wait_status, usage = reap(process.pid)
        if not self.is_only_exiting:
            rest = kill_descendants(self._spared)
            usage = Usage(
                usage.cpu_seconds + rest.cpu_seconds, max(usage.peak_bytes, rest.peak_bytes)
            )
        # Read what the killed processes had written. Others may hold the pipe: read only so often.
        for _ in range(16):
            if not self._read_output():
                break
        outcome = conclude(
            self._job,
            process.trajectory,
            self._exceeded or read_wait_status(wait_status),
            self._elapsed(usage),
        )
        self.close()
        output = self._output_end.decode(errors="replace")
        return outcome._replace(
            why=_add_last_lines(outcome, output),
            seconds=self._ended_at - self._started_at,
            cpu=usage.cpu_seconds,
            memory=max(usage.peak_bytes - process.inherited_bytes, 0),
            load=self._load,
            host=socket.gethostname(),
            output=output,
            worker=describe_worker(self._memory_limit),
        )

    def close(self) -> None:
        """Kill all processes of the run, unless it is finished, and release its memory."""
        if not self._is_finished:
            kill_group(self._process.pid)
            kill_descendants()
        self._process.close()

    def _check_only_exiting(self) -> bool:
        """Return whether a run that has closed its output is ending, and has no other processes."""
        if self._setup.clock == "wall" or self._process.trajectory.ending() is None:
            return False
        return set(find_descendants(os.getpid())) <= {self._process.pid, *self._spared}

    def _seconds_to_wait(self) -> float:
        """Return the seconds until the next measurement of the run, or its deadline."""
        now = time.monotonic()
        if self._process.pidfd is None:
            return 0.005
        return max(min(self._measured_at + MEASURE_SECONDS, self._deadline()) - now, 0.0)

    def _deadline(self) -> float:
        """Return when to end the run: at its limit or after its planned end, if that is earlier."""
        deadline = self._started_at + self._setup.limits.wall_seconds
        started_at = self._process.trajectory.started_at
        if started_at is not None and self._setup.clock == "wall":
            deadline = min(deadline, started_at + self._job.horizon + GRACE_SECONDS)
        return deadline

    def _read_output(self) -> bool:
        """Read a part of the run's output; return false if there is none, or at its end."""
        try:
            chunk = os.read(self._process.output, 65_536)
        except BlockingIOError:
            return False
        self._output_end = (self._output_end + chunk)[-MAX_OUTPUT_BYTES:]
        return bool(chunk)

    def _has_exited(self) -> bool:
        options = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self._process.pid, options) is not None

    def _find_exceeded_limit(self) -> EndEvidence | None:
        """Return the limit or planned end that the run has exceeded; None if it may go on."""
        now, limits = time.monotonic(), self._setup.limits
        if now >= self._started_at + limits.wall_seconds:
            return EndEvidence(Cause.WALL_LIMIT, limits.wall_seconds)
        if now >= self._deadline():
            return EndEvidence(Cause.HORIZON)
        if now < self._measured_at + MEASURE_SECONDS:
            return None
        self._measured_at = now
        pids = [pid for pid in find_descendants(os.getpid()) if pid not in self._spared]
        if len(pids) > limits.processes:
            return EndEvidence(Cause.PROCESS_LIMIT, limits.processes)
        max_bytes = self._memory_limit + self._process.inherited_bytes
        # The exact measurement is slow, and only needed where pages are shared.
        if (
            measure_resident_bytes(pids) > max_bytes
            and measure_proportional_bytes(pids) > max_bytes
        ):
            return EndEvidence(Cause.MEMORY_LIMIT, self._memory_limit / 1e6)
        return self._find_exceeded_cpu_time(pids)

    def _find_exceeded_cpu_time(self, pids: list[int]) -> EndEvidence | None:
        """Return the CPU limit, or planned end in CPU time, that the run has exceeded, or None."""
        limit, by_cpu = self._setup.limits.cpu_seconds, self._setup.clock == "cpu"
        if limit is None and not by_cpu:
            return None
        used = measure_cpu_seconds(pids)
        if limit is not None and used > limit:
            return EndEvidence(Cause.CPU_LIMIT, limit)
        trajectory = self._process.trajectory
        if not by_cpu or trajectory.started_at is None:
            return None
        is_over = used - trajectory.started_cpu_seconds > self._job.horizon + GRACE_SECONDS
        return EndEvidence(Cause.HORIZON) if is_over else None

    def _elapsed(self, usage: Usage) -> float:
        """Return the run's time by the clock of the race; 0 if only the solver knows it."""
        started_at = self._process.trajectory.started_at
        if started_at is None:
            return 0.0
        if self._setup.clock == "wall":
            return time.monotonic() - started_at
        started = self._process.trajectory.started_cpu_seconds
        return usage.cpu_seconds - started if self._setup.clock == "cpu" else 0.0


def _add_last_lines(outcome: RunOutcome, output: str) -> str:
    """Return why a run failed or has no value, with the last lines of its output."""
    has_failed = outcome.run.status not in (Status.CUT, Status.FINISHED)
    lines = [line.strip()[:MAX_QUOTED_CHARACTERS] for line in output.splitlines() if line.strip()]
    if not ((has_failed or not np.size(outcome.run.time)) and outcome.why and lines):
        return outcome.why
    return f"{outcome.why}{QUOTES}{' | '.join(lines[-MAX_QUOTED_LINES:])}"
