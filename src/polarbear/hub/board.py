"""``Board``: which worker has which job, and when a result counts. No clock, no files, no network.

A worker loses its jobs if it is silent for ``lease_seconds``. A result counts when enough workers
have reported the same one: one, or two if the job is audited. If reports differ, further workers
are asked until two agree, and the others are quarantined.
"""

import hmac
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from math import ceil
from typing import NamedTuple

from polarbear.racing.jobs import Job

FAILED_DIGEST = "failed"
"""The digest of all runs that failed. Machines differ in memory and speed, so a run may fail on
one of them: that is a fault of the machine or the solver, and not a false result."""

MAX_SCANNED = 400
"""The number of queued jobs that one request looks at."""

MAX_WAIT_SECONDS = 15.0
"""The longest time after which an idle worker should ask again, unless there are many."""

CENSUS_SECONDS = 0.5
"""How long a count of the workers is used; it costs time in proportion to their number."""


@dataclass(frozen=True)
class Policy:
    """The times, sizes and shares by which a hub deals with its workers.

    Attributes
    ----------
    heartbeat_seconds, lease_seconds
        How often workers report that they are alive, and after how long without a report their
        jobs are given to others.
    target_seconds
        The wall time that the jobs of one lease should take on that worker.
    max_jobs
        The largest number of jobs of one lease.
    hold_seconds
        The longest time that a worker may keep a job.
    audit_share
        The share of jobs that two workers make.
    probation
        The number of results of a new worker that another worker must confirm before its other
        results count at once.
    canaries
        The number of jobs with confirmed results that a new worker gets first.
    max_faults
        The number of runs that failed on one worker alone, after which it gets no more jobs.
    idle_requests
        The number of requests a second that idle workers together should make.
    full_load
        The number of workers beyond which heartbeats and leases become longer in proportion, so
        that the number of requests a second stays the same.
    """

    heartbeat_seconds: float = 30.0
    lease_seconds: float = 180.0
    target_seconds: float = 60.0
    max_jobs: int = 64
    hold_seconds: float = 86_400.0
    audit_share: float = 0.1
    probation: int = 3
    canaries: int = 2
    max_faults: int = 3
    idle_requests: float = 20.0
    full_load: int = 1500


@dataclass(slots=True)
class Member:
    """A worker that has joined: its contributor, what it may run, and the jobs that it has."""

    id: str
    contributor: str
    algorithms: frozenset[str] = frozenset()
    slots: int = 1
    is_trusted: bool = False
    is_quarantined: bool = False
    takes_timed: bool = True
    group: int = 0  # of machines with about the same speed
    n_agreed: int = 0
    n_faults: int = 0
    seen: float = 0.0
    worked: float = 0.0  # when it last joined, got a job or reported one
    lease_seconds: float = 0.0
    pace: float = 1.0
    jobs: dict[str, float] = field(default_factory=dict)  # changed by hold and drop of the board


@dataclass(slots=True)
class Task:
    """A job that is wanted: who has it, who has reported it, how many must agree."""

    id: str
    job: Job
    needed: int = 1
    leases: set[str] = field(default_factory=set)
    reports: dict[str, str] = field(default_factory=dict)
    accepted: str = ""  # the digest that counts already, if the run is only checked


class Settled(NamedTuple):
    """The conclusion from the reports of a job: the digest that counts, and who reported what."""

    digest: str
    agreeing: tuple[str, ...]
    false: tuple[str, ...]
    faulty: tuple[str, ...]


class Census(NamedTuple):
    """The number of workers that are not silent or quarantined, and of those without jobs."""

    n_active: int
    n_idle: int


class Board:
    """The open jobs and the workers of a hub.

    >>> board = Board(Policy(audit_share=0, probation=0), b"secret")
    >>> board.add_task("j1", Job("hill", "f1", 0, 10.0, 1, 2))
    >>> ann = board.join(Member("w1", "ann", frozenset({"hill"})), now=0.0)
    >>> [task.id for task in board.lease(ann, now=0.0, quota=9)]
    ['j1']
    >>> board.report("j1", "w1", "digest").agreeing
    ('w1',)
    """

    def __init__(self, policy: Policy, secret: bytes, *, repeatable: bool = True) -> None:
        self.policy = policy
        self.repeatable = repeatable
        self._secret = secret
        self.tasks: dict[str, Task] = {}
        self.members: dict[str, Member] = {}
        self._waiting: dict[str, None] = {}  # ids of tasks that need another lease
        self._urgent: dict[str, None] = {}
        self._seconds: dict[str, float] = {}  # by algorithm: mean seconds per unit of the horizon
        self.groups: dict[str, int] = {}  # by instance, if runs are timed: who makes all its runs
        self._held: Counter[str] = Counter()  # jobs by contributor
        self._census = Census(0, 0)
        self._census_ends = -1e300

    # Jobs

    def add_task(self, name: str, job: Job, *, reports: dict[str, str] | None = None) -> None:
        """Add an open job, with the reports that it has; those of quarantined workers are left out.

        A job that is there stays as it is.
        """
        if name not in self.tasks:
            task = Task(name, job, self._count_needed(name))
            self.tasks[name] = task
            for worker, digest in (reports or {}).items():
                if not self.is_quarantined(worker):
                    task.reports[worker] = digest
            if task.reports:  # it would be settled if these were enough
                task.needed = _count_votes_needed(task.reports)
            self._queue(task)

    def check_task(self, name: str, job: Job, accepted: str, reports: dict[str, str]) -> None:
        """Add a job whose result counts already, so that another worker confirms it."""
        if name not in self.tasks:
            needed = _count_votes_needed(reports)
            self.tasks[name] = Task(name, job, needed, reports=dict(reports), accepted=accepted)
            self._queue(self.tasks[name])

    def remove_task(self, name: str) -> None:
        """Remove a job, because it is settled or cancelled; its leases end."""
        task = self.tasks.pop(name, None)
        for worker in task.leases if task else ():
            self.drop(self.members[worker], name)
        self._waiting.pop(name, None)
        self._urgent.pop(name, None)

    @property
    def n_waiting(self) -> int:
        """The number of jobs that wait for a worker."""
        return len(self._waiting) + len(self._urgent)

    def _count_needed(self, name: str) -> int:
        """Return how many workers make a job; which jobs are audited follows from the secret."""
        if not self.repeatable:
            return 1
        drawn = hmac.digest(self._secret, b"audit" + name.encode(), "sha256")
        return 2 if int.from_bytes(drawn[:4], "big") < self.policy.audit_share * 2**32 else 1

    def _queue(self, task: Task) -> None:
        """Queue a job if it needs a further lease, and only then."""
        n_busy = len(task.leases.union(task.reports))
        queue = self._urgent if task.reports or task.accepted else self._waiting
        (self._waiting if queue is self._urgent else self._urgent).pop(task.id, None)
        if n_busy < task.needed:
            queue[task.id] = None
        else:
            queue.pop(task.id, None)

    # Workers

    def join(self, member: Member, now: float) -> Member:
        """Add a worker, or update what a known one may run."""
        known = self.members.setdefault(member.id, member)
        known.algorithms, known.slots = member.algorithms, member.slots
        known.group = member.group
        known.takes_timed, known.seen, known.worked = member.takes_timed, now, now
        self.tell_heartbeat(known, now)
        return known

    def tell_heartbeat(self, member: Member, now: float) -> float:
        """Return the seconds between heartbeats of a worker, which may be silent for six."""
        seconds = self.policy.heartbeat_seconds * self._stretch(now)
        member.lease_seconds = self.policy.lease_seconds * self._stretch(now)
        return seconds

    def _stretch(self, now: float) -> float:
        """Return by which factor heartbeats and leases are longer because of many workers."""
        return max(self.count_workers(now).n_active / self.policy.full_load, 1.0)

    def hold(self, member: Member, name: str, now: float) -> None:
        """Note that a worker has a job from now on."""
        self._held[member.contributor] += name not in member.jobs
        member.jobs[name] = member.worked = now

    def drop(self, member: Member, name: str) -> None:
        """Note that a worker does not have a job any more."""
        self._held[member.contributor] -= member.jobs.pop(name, None) is not None

    def count_held(self, contributor: str) -> int:
        """Return the number of jobs that all workers of a contributor have."""
        return self._held[contributor]

    def is_quarantined(self, worker: str) -> bool:
        """Return whether a worker is quarantined."""
        member = self.members.get(worker)
        return member is not None and member.is_quarantined

    def lease(self, member: Member, now: float, quota: int) -> list[Task]:
        """Give jobs to a worker, at most ``quota``, for about ``target_seconds`` of its time."""
        member.seen = now
        if member.is_quarantined or (not self.repeatable and not member.takes_timed):
            return []
        room = min(quota, self.policy.max_jobs, self._fair_share(now))
        budget = self.policy.target_seconds * self._stretch(now) * member.slots
        leased: list[Task] = []
        for task in self._list_candidates(member):
            seconds = self._expect_seconds(task.job, member)
            is_first = len(leased) < member.slots
            if len(leased) >= room or not (is_first or (seconds and seconds <= budget)):
                break
            budget -= seconds or 0.0
            task.leases.add(member.id)
            self.groups[task.job.instance] = member.group
            self.hold(member, task.id, now)
            leased.append(task)
        for task in leased:
            self._queue(task)
        return leased

    def renew(self, member: Member, held: set[str], now: float) -> list[str]:
        """Renew a worker's leases on the jobs that it holds; return those that it should drop.

        Open jobs without a lease, as after a restart of the server, are leased to it again. Jobs
        that it does not name, and was given long ago, are given to others.
        """
        member.seen = now
        oldest = now - self.tell_heartbeat(member, now)
        for name, since in list(member.jobs.items()):
            if name not in held and since < oldest:
                self.release(member, name)
        for name in held & self.tasks.keys() - member.jobs.keys():
            task = self.tasks[name]
            if len(task.leases.union(task.reports)) < task.needed:
                task.leases.add(member.id)
                self.hold(member, name, now)
                self._queue(task)
        return sorted(held - member.jobs.keys())

    def release(self, member: Member, name: str) -> None:
        """End a worker's lease on a job without a report."""
        self.drop(member, name)
        if task := self.tasks.get(name):
            task.leases.discard(member.id)
            self._queue(task)

    def expire(self, now: float) -> list[str]:
        """End the leases of silent workers, and leases that are too old; return their workers."""
        oldest = now - self.policy.hold_seconds
        expired: list[str] = []
        for member in self.members.values():
            if not member.jobs:
                continue
            is_silent = member.seen < now - member.lease_seconds
            names = [name for name, at in member.jobs.items() if is_silent or at < oldest]
            for name in names:
                self.release(member, name)
            if names:
                expired.append(member.id)
        return expired

    def count_workers(self, now: float) -> Census:
        """Return how many workers there are, as counted at most ``CENSUS_SECONDS`` ago."""
        if now >= self._census_ends:
            active = [
                one
                for one in self.members.values()
                if one.seen >= now - one.lease_seconds and not one.is_quarantined
            ]
            self._census = Census(len(active), sum(not one.jobs for one in active))
            self._census_ends = now + CENSUS_SECONDS
        return self._census

    def suggest_wait(self, now: float, worked: float) -> float:
        """Return after how many seconds a worker should ask again that last ``worked`` then.

        It is short at first, for the next jobs come when a round is decided, and becomes longer.
        """
        shortest = self.count_workers(now).n_idle / self.policy.idle_requests
        return min(max(shortest, min((now - worked) / 4, MAX_WAIT_SECONDS), 0.1), 300.0)

    def _fair_share(self, now: float) -> int:
        """Return the largest number of jobs for one lease, so that other workers get some too."""
        n_workers = self.count_workers(now).n_active
        return max(ceil(self.n_waiting / (2 * max(n_workers, 1))), 1)

    def _list_candidates(self, member: Member) -> Iterator[Task]:
        """Yield the jobs that a worker may be given, those under audit first."""
        is_only: bool | None = None
        names = [*islice(self._urgent, MAX_SCANNED), *islice(self._waiting, MAX_SCANNED)]
        for task in map(self.tasks.__getitem__, names[:MAX_SCANNED]):
            others = task.leases.union(task.reports)
            if task.job.algorithm not in member.algorithms or member.id in others:
                continue
            if not self._is_comparable(member, task.job):
                continue
            if any(self.members[one].contributor == member.contributor for one in others):
                # Audits go to another contributor, if there is one.
                is_only = self._is_only_contributor(member) if is_only is None else is_only
                if not is_only:
                    continue
            yield task

    def _is_comparable(self, member: Member, job: Job) -> bool:
        """Return whether a worker's machine may make a run of this instance.

        Timed runs are compared on each instance, so machines of one speed make all of them, unless
        all machines of that speed are gone.
        """
        group = self.groups.get(job.instance, member.group)
        return group == member.group or not any(
            one.group == group
            and one.takes_timed
            and not one.is_quarantined
            and one.seen >= member.seen - one.lease_seconds
            for one in self.members.values()
        )

    def _is_only_contributor(self, member: Member) -> bool:
        return not any(
            one.contributor != member.contributor
            and not one.is_quarantined
            and one.seen >= member.seen - one.lease_seconds
            for one in self.members.values()
        )

    def _has_other_worker(self, member: Member, job: Job) -> bool:
        """Return whether another worker could make a job now."""
        return any(
            one is not member
            and one.seen >= member.seen - one.lease_seconds
            and not one.is_quarantined
            and job.algorithm in one.algorithms
            for one in self.members.values()
        )

    # Results

    def report(self, name: str, worker: str, digest: str) -> Settled | None:
        """Add a worker's report of an open job; return the conclusion, None if it is not settled.

        The caller removes a settled job.
        """
        task = self.tasks[name]
        member = self.members[worker]
        self.drop(member, name)
        task.leases.discard(worker)
        task.reports.setdefault(worker, digest)
        is_new = member.n_agreed < self.policy.probation and not member.is_trusted
        is_doubtful = digest == FAILED_DIGEST and self._has_other_worker(member, task.job)
        if (self.repeatable and is_new) or is_doubtful:
            task.needed = max(task.needed, 2)
        return self.conclude(name)

    def conclude(self, name: str) -> Settled | None:
        """Return the conclusion from the reports of an open job; None if it needs more of them.

        The caller removes a settled job.
        """
        task = self.tasks[name]
        settled = self._settle(task)
        if settled is None:
            if len(set(task.reports.values())) > 1:
                task.needed = _count_votes_needed(task.reports)
            self._queue(task)
        return settled

    def _settle(self, task: Task) -> Settled | None:
        """Return the conclusion from the reports of a job; None if more are needed."""
        if not task.reports:
            return None
        votes = Counter(task.reports.values())
        trusted = [d for w, d in task.reports.items() if self.members[w].is_trusted]
        ranked = votes.most_common()
        digest = trusted[0] if trusted else ranked[0][0]
        if not trusted:
            if len(votes) == 1 and votes[digest] < task.needed:
                return None
            if len(votes) > 1 and (votes[digest] < 2 or ranked[1][1] == votes[digest]):
                return None
        others = [(w, d) for w, d in task.reports.items() if d != digest]
        # A failure is not called false: it may be the machine, or another machine's lack of memory.
        is_fault = [FAILED_DIGEST in (d, digest) for _, d in others]
        return Settled(
            digest,
            tuple(w for w, d in task.reports.items() if d == digest),
            tuple(w for (w, _), fault in zip(others, is_fault, strict=True) if not fault),
            tuple(w for (w, _), fault in zip(others, is_fault, strict=True) if fault),
        )

    def quarantine(self, worker: str) -> list[str]:
        """Quarantine a worker: its leases end, and its reports on open jobs are dropped.

        Returns the open jobs on which it had reported.
        """
        member = self.members[worker]
        member.is_quarantined = True
        for name in list(member.jobs):
            self.release(member, name)
        affected = [task for task in self.tasks.values() if worker in task.reports]
        for task in affected:
            del task.reports[worker]
            task.needed = max(self._count_needed(task.id), _count_votes_needed(task.reports))
            self._queue(task)
        return [task.id for task in affected]

    # Sizes

    def observe_seconds(self, member: Member, job: Job, seconds: float) -> None:
        """Learn how long a run of an algorithm takes, and how fast a worker is."""
        rate = seconds / max(job.horizon, 1e-9)
        if not 0 < rate < float("inf"):
            return
        mean = self._seconds.setdefault(job.algorithm, rate)
        member.pace = min(max(0.8 * member.pace + 0.2 * rate / mean, 0.01), 100.0)
        self._seconds[job.algorithm] = 0.98 * mean + 0.02 * rate

    def _expect_seconds(self, job: Job, member: Member) -> float | None:
        """Return the expected seconds of a job on a worker; None before the first run."""
        rate = self._seconds.get(job.algorithm)
        return None if rate is None else rate * job.horizon * member.pace


def _count_votes_needed(reports: dict[str, str]) -> int:
    """Return how many reports a job needs that has these: one more than it has if they differ."""
    return max(2, len(reports) + (len(set(reports.values())) > 1))
