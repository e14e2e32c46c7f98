"""``HubService``: the operations of the worker protocol, without HTTP.

Each operation changes the board in memory, and returns an answer with the statements that make the
change durable. The caller commits these before it sends the answer. So an acknowledged result is
on the disk, and a board that was lost is made again from the file.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from secrets import token_hex
from statistics import median
from typing import Any, NamedTuple

from polarbear._text import escape_text
from polarbear.data.run import Status
from polarbear.errors import DataError
from polarbear.hub.board import Board, Member, Policy, Settled, Task
from polarbear.hub.hub_file import HubFile, Statement, StoredJob, make_log_entry
from polarbear.hub.protocol import (
    VERSION,
    Refused,
    Report,
    digest_run,
    is_signed,
    make_outcome,
    parse_held,
    parse_join,
    parse_reports,
    parse_submission,
    parse_worker,
    sign_lease,
)
from polarbear.hub.tokens import Contributor
from polarbear.racing.jobs import Job
from polarbear.running.solvers.fingerprints import is_changed
from polarbear.running.workers.outcomes import to_plain

REFRESH_SECONDS = 0.2
"""How often the file is read for new jobs, and silent workers lose theirs."""

MAX_NOISE = 0.1
"""The relative spread of the calibration runs of a machine that may make timed runs."""

MAX_SPEED_DIFFERENCE = 0.25
"""The relative difference of the speeds of machines in one group, for timed runs."""

MAX_QUARANTINED = 2
"""A contributor with this number of quarantined workers is suspended."""

_REVOKE = (
    (
        "UPDATE jobs SET agreed = agreed - 1 WHERE state IN ('accepted', 'done') AND id IN ("
        "SELECT job FROM reports AS own WHERE worker = :worker AND digest = "
        "(SELECT digest FROM reports WHERE job = own.job AND worker = "
        "(SELECT source FROM jobs WHERE id = own.job)))"
    ),
    "UPDATE meta SET value = value + 1 WHERE key = 'change'",
    (
        "INSERT OR IGNORE INTO revoked SELECT id, :why FROM jobs WHERE "
        "state IN ('accepted', 'done') AND agreed < 1"
    ),
    (
        "UPDATE jobs SET state = CASE state WHEN 'done' THEN 'revoked' ELSE 'open' END, "
        "source = '', change = (SELECT value FROM meta WHERE key = 'change') "
        "WHERE state IN ('accepted', 'done') AND agreed < 1"
    ),
    (
        "DELETE FROM reports WHERE worker = :worker AND job IN "
        "(SELECT id FROM jobs WHERE state = 'open')"
    ),
    "DELETE FROM checks WHERE job IN (SELECT id FROM jobs WHERE state = 'revoked')",
    "UPDATE workers SET state = 'quarantined' WHERE id = :worker",
)
"""Withdraw what rests on a worker's reports alone: results that are stored are revoked, others are
made again. ``agreed`` counts the workers in good standing that reported the accepted result."""


class Answer(NamedTuple):
    """The answer to a request, and the statements to commit before it is sent."""

    content: dict[str, Any]
    statements: list[Statement]


class HubService:
    """The state of a hub, and the operations of its workers."""

    def __init__(
        self, path: str | Path, policy: Policy | None = None, *, is_over: Callable[[], bool] = bool
    ) -> None:
        self.hub = HubFile(path)
        self._policy = policy or Policy()
        self._is_over = is_over
        self._secret = bytes.fromhex(self.hub.get("secret"))
        self.counts = {"results": 0, "late": 0, "known": 0, "refused": 0, "quarantined": 0}
        self.load()

    def load(self) -> None:
        """Make the board again from the file, as after a start or a failed commit."""
        options = json.loads(self.hub.get("options") or "{}")
        self.policy = replace(self._policy, **options)
        self.race = json.loads(self.hub.get("race") or "{}")
        repeatable = self.hub.get("repeatable") == "1"
        self.board = Board(self.policy, self._secret, repeatable=repeatable)
        self._change = -1
        self._next_refresh = 0.0
        sql = "SELECT id, contributor, state, agreed, about FROM workers"
        roles = dict(self.hub.read("SELECT name, role FROM contributors"))
        for name, contributor, state, agreed, plain in self.hub.read(sql):
            about = json.loads(plain)
            self.board.members[name] = Member(
                name,
                contributor,
                frozenset(about.get("algorithms", ())),
                is_trusted=roles.get(contributor) == "audit",
                is_quarantined=state == "quarantined",
                takes_timed=not about.get("note"),
                group=about.get("group", 0),
                n_agreed=agreed,
                seen=-1e300,
                lease_seconds=self.policy.lease_seconds,
            )
        if not repeatable:
            sql = "SELECT DISTINCT instance, source FROM jobs WHERE source != ''"
            for instance, worker in self.hub.read(sql):
                self.board.groups[instance] = self.board.members[worker].group

    def refresh(self, now: float) -> list[Statement]:
        """Read new and cancelled jobs from the file, and end the leases of silent workers.

        Returns statements to commit, of checks that the reports at hand settle.
        """
        if now < self._next_refresh:
            return []
        self._next_refresh = now + REFRESH_SECONDS
        race = json.loads(self.hub.get("race") or "{}")
        if not self.race and race:
            self.load()
        self.race = race  # a newcomer may have joined
        self.board.expire(now)
        change = int(self.hub.get("change"))
        if change == self._change:
            return self._load_checks(now)
        condition = "change > ? AND change <= ?"
        condition += "" if self._change >= 0 else " AND state = 'open'"
        sql = f"SELECT job, worker, digest FROM reports JOIN jobs ON id = job WHERE {condition}"  # noqa: S608
        reports: defaultdict[str, dict[str, str]] = defaultdict(dict)
        for name, worker, digest in self.hub.read(sql, self._change, change):
            reports[name][worker] = digest
        sql = f"SELECT id, body, state FROM jobs WHERE {condition} ORDER BY change, rowid"  # noqa: S608
        for name, body, state in self.hub.read(sql, self._change, change):
            if state != "open":
                self.board.remove_task(name)
            elif name not in self.board.tasks:
                self.board.add_task(name, Job(**json.loads(body)), reports=reports.get(name))
        self._change = change
        return self._load_checks(now)

    def _load_checks(self, now: float) -> list[Statement]:
        """Add the jobs whose accepted results the coordinator wants to be confirmed."""
        statements: list[Statement] = []
        names = [row[0] for row in self.hub.read("SELECT job FROM checks")]
        for stored in self.hub.find_jobs([n for n in names if n not in self.board.tasks][:500]):
            if stored.state not in ("accepted", "done"):
                statements.append(("DELETE FROM checks WHERE job = ?", (stored.id,)))
                continue
            reports = self._reports(stored.id)
            accepted = self._find_accepted(stored)
            self.board.check_task(stored.id, Job(**stored.body), accepted, reports)
            self._conclude(stored.id, statements, now)
        return statements

    def _find_accepted(self, stored: StoredJob) -> str:
        """Return the digest of the accepted result of a job."""
        sql = "SELECT digest FROM reports WHERE job = ? AND worker = ?"
        rows = self.hub.read(sql, stored.id, stored.source)
        return rows[0][0] if rows else ""

    def _conclude(self, name: str, statements: list[Statement], now: float) -> None:
        """Settle a job if its reports allow that."""
        task = self.board.tasks.get(name)
        settled = self.board.conclude(name) if task else None
        if task and settled:
            self._settle(task, settled, statements, now)

    def _reports(self, name: str) -> dict[str, str]:
        """Return the digests that workers in good standing have reported for a job."""
        rows = self.hub.read("SELECT worker, digest FROM reports WHERE job = ?", name)
        return {w: digest for w, digest in rows if not self.board.is_quarantined(w)}

    # Operations

    def status(self, _contributor: Contributor, _body: Mapping[str, Any], now: float) -> Answer:
        """Describe the race, and how many jobs and workers there are."""
        content = {
            "race": self.race,
            "newcomers": self.hub.find_newcomers("allowed"),
            "waiting": self.board.n_waiting,
            "open": len(self.board.tasks),
            "workers": self.board.count_workers(now).n_active,
            "ended": self._is_over(),
        }
        return Answer(content, [])

    def join(self, contributor: Contributor, body: Mapping[str, Any], now: float) -> Answer:
        """Register a worker, with the solvers that its owner allows it to run."""
        request = parse_join(body)
        if contributor.role == "administer":
            raise Refused(403, "role", "this token administers: use one that contributes")
        digests: Mapping[str, str] = self.race.get("solvers", {})
        allowed = {
            name: digest
            for name, digest in request.algorithms.items()
            if name in digests and not is_changed(digests[name], digest)
        }
        known = self.board.members.get(request.worker)
        if known is not None and known.contributor != contributor.name:
            raise Refused(403, "worker", "this worker belongs to another contributor")
        worker = known.id if known else token_hex(16)
        group, why = self._judge_speed(request.calibration)
        member = Member(worker, contributor.name, frozenset(allowed), request.slots)
        member.is_trusted = contributor.role == "audit"
        member.takes_timed, member.group = not why, group
        member = self.board.join(member, now)
        self._check_standing(member)
        about = request.about | {"algorithms": sorted(allowed), "seconds": request.calibration}
        about |= {"group": group, "note": why}
        row = (worker, contributor.name, json.dumps(about), "active", member.n_agreed, now)
        sql = "INSERT INTO workers VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET "
        content = {
            "protocol": VERSION,
            "worker": worker,
            "algorithms": sorted(allowed),
            "refused": sorted(request.algorithms.keys() - allowed.keys()),
            "heartbeat_seconds": self.board.tell_heartbeat(member, now),
            "lease_seconds": member.lease_seconds,
            "note": why,
        }
        statements: list[Statement] = [(f"{sql} about = excluded.about", row)]
        statements.append(make_log_entry(contributor.name, "join", worker, at=now))
        return Answer(content, statements)

    def lease(self, contributor: Contributor, body: Mapping[str, Any], now: float) -> Answer:
        """Give jobs to a worker; without jobs, tell it when to ask again."""
        member = self._find_member(contributor, body)
        tasks = self._choose_canaries(member, now)
        if not tasks:
            room = contributor.quota - self.board.count_held(contributor.name)
            tasks = self.board.lease(member, now, room)
        jobs = [self._describe_job(task, member) for task in tasks]
        wait = 0 if jobs else self.suggest_wait(now, member.worked)
        return Answer({"jobs": jobs, "wait": wait, "ended": self._is_over()}, [])

    def heartbeat(self, contributor: Contributor, body: Mapping[str, Any], now: float) -> Answer:
        """Renew a worker's leases; answer which of its jobs are not wanted any more."""
        member = self._find_member(contributor, body)
        held = {name for name, lease in parse_held(body) if self._is_signed(member.id, name, lease)}
        drop = self.board.renew(member, held, now)
        seconds = self.board.tell_heartbeat(member, now)
        return Answer({"drop": drop, "heartbeat_seconds": seconds}, [])

    def results(self, contributor: Contributor, body: Mapping[str, Any], now: float) -> Answer:
        """Take the results of jobs: each once, however often and however late it comes."""
        member = self._find_member(contributor, body)
        member.seen = member.worked = now
        statements: list[Statement] = []
        answers: dict[str, str] = {}
        for report in parse_reports(body):
            if member.is_quarantined:
                break
            answers[report.job] = self._take_report(member, report, now, statements)
        return Answer({"results": answers}, statements)

    def fail(self, contributor: Contributor, body: Mapping[str, Any], now: float) -> Answer:
        """Take the report that a worker could not make a run: it counts as killed if others fail.

        The body is that of ``results``, and of each result only id, lease and why are used.
        """
        items = [
            {"id": one.job, "lease": one.lease, "why": one.plain.get("why", "")}
            | {"time": [], "value": [], "until": 0.0, "status": str(Status.KILLED)}
            for one in parse_reports(body)
        ]
        return self.results(contributor, {**body, "results": items}, now)

    def leave(self, contributor: Contributor, body: Mapping[str, Any], now: float) -> Answer:
        """Give back all jobs of a worker that ends."""
        member = self._find_member(contributor, body)
        for name in list(member.jobs):
            self.board.release(member, name)
        member.seen = -1e300
        return Answer({}, [make_log_entry(contributor.name, "leave", member.id, at=now)])

    def submit(self, contributor: Contributor, body: Mapping[str, Any], now: float) -> Answer:
        """Let an algorithm join the race that the operator has allowed by its digest.

        Its code is in the operator's race file already: the request has a name and a digest.
        """
        name, digest = parse_submission(body)
        if contributor.role != "submit":
            raise Refused(403, "role", "this needs a token that submits")
        if self.hub.find_newcomers("submitted").get(name) == digest:
            return Answer({}, [])
        if self.hub.find_newcomers("allowed").get(name) != digest:
            raise Refused(403, "algorithm", "the operator has not allowed this name and digest")
        sql = "UPDATE newcomers SET state = 'submitted' WHERE name = ? AND digest = ?"
        entry = make_log_entry(contributor.name, "submit", f"{name} {digest}", at=now)
        return Answer({}, [(sql, (name, digest)), entry])

    # Parts of operations

    def suggest_wait(self, now: float, worked: float = -1e300) -> float:
        """Return after how many seconds an idle worker should ask again."""
        return 300.0 if self._is_over() else round(self.board.suggest_wait(now, worked), 1)

    def _judge_speed(self, seconds: tuple[float, ...]) -> tuple[int, str]:
        """Return the group of machines of about this speed, and why it may make no timed runs."""
        if self.board.repeatable or self.race.get("clock") not in ("wall", "cpu"):
            return 0, ""
        if len(seconds) < 3 or not median(seconds):
            return 0, "no calibration: this race is timed, so the worker gets no jobs"
        noise = (max(seconds) - min(seconds)) / median(seconds)
        if noise > MAX_NOISE:
            return 0, f"calibration runs differ by {noise:.0%}: this machine is too noisy"
        speeds = json.loads(self.hub.get("speeds") or "[]")
        for group, speed in enumerate(speeds):
            if abs(median(seconds) / speed - 1) <= MAX_SPEED_DIFFERENCE:
                return group, ""
        self.hub.set("speeds", json.dumps([*speeds, median(seconds)]))
        return len(speeds), ""

    def _find_member(self, contributor: Contributor, body: Mapping[str, Any]) -> Member:
        member = self.board.members.get(parse_worker(body))
        if member is None or member.contributor != contributor.name:
            raise Refused(403, "worker", "this worker has not joined: join first")
        self._check_standing(member)
        return member

    def _check_standing(self, member: Member) -> None:
        if member.is_quarantined:
            raise Refused(
                403, "quarantined", "results of this worker were false or failed: ask the operator"
            )

    def _is_signed(self, worker: str, job: str, lease: str) -> bool:
        return is_signed(self._secret, worker, job, lease)

    def _describe_job(self, task: Task, member: Member) -> dict[str, Any]:
        digest = self.race.get("solvers", {}).get(task.job.algorithm, "")
        lease = sign_lease(self._secret, member.id, task.id)
        return {"id": task.id, "lease": lease, "digest": digest} | task.job._asdict()

    def _choose_canaries(self, member: Member, now: float) -> list[Task]:
        """Return jobs with confirmed results for a new worker, which cannot tell them from others.

        They are given once. If one of them comes back with another result, the worker is
        quarantined before any of its results counts.
        """
        is_new = member.n_agreed == 0 and not member.jobs and not member.is_trusted
        if not (is_new and self.board.repeatable):
            return []
        sql = (  # ids are hashes, so the first ones after a random text are a random choice
            "SELECT id, body FROM jobs WHERE id >= ? AND state = 'done' AND agreed > 1 AND NOT "
            "EXISTS (SELECT 1 FROM reports WHERE job = jobs.id AND worker = ?) ORDER BY id LIMIT 20"
        )
        rows = self.hub.read(sql, token_hex(4), member.id) or self.hub.read(sql, "", member.id)
        tasks = [Task(row[0], Job(**json.loads(row[1]))) for row in rows]
        tasks = [task for task in tasks if task.job.algorithm in member.algorithms]
        chosen = tasks[: self.policy.canaries]
        member.seen = now
        for task in chosen:
            self.board.hold(member, task.id, now)
        return chosen

    def _take_report(
        self, member: Member, report: Report, now: float, statements: list[Statement]
    ) -> str:
        """Take one result; return "accepted", "known", "unwanted" or why it is refused."""
        if not self._is_signed(member.id, report.job, report.lease):
            return self._refuse("this job was not given to this worker")
        if report.job not in self.board.tasks:
            self._next_refresh = 0.0
            statements += self.refresh(now)
        task = self.board.tasks.get(report.job)
        stored = None if task else next(iter(self.hub.find_jobs([report.job])), None)
        if task is None and (stored is None or stored.state in ("cancelled", "revoked")):
            self.board.drop(member, report.job)
            return "unwanted"
        job = task.job if task else Job(**stored.body)  # type: ignore[union-attr]
        try:
            outcome = make_outcome(job, report.plain)
        except DataError as error:
            self._count_fault(member, f"invalid result: {error}", statements, now)
            self.board.release(member, report.job)
            return self._refuse(escape_text(str(error)))
        if task is not None and member.id in task.reports:
            self.counts["known"] += 1
            return "known"
        digest = digest_run(outcome.run)
        row = (report.job, member.id, digest, json.dumps(to_plain(outcome)), now)
        statements.append(("INSERT OR IGNORE INTO reports VALUES (?, ?, ?, ?, ?)", row))
        if task is None:
            return self._take_late(member, stored, digest, statements, now)  # type: ignore[arg-type]
        self.counts["results"] += 1
        self.board.observe_seconds(member, job, outcome.seconds)
        settled = self.board.report(report.job, member.id, digest)
        if settled is not None:
            self._settle(task, settled, statements, now)
        return "accepted"

    def _refuse(self, why: str) -> str:
        self.counts["refused"] += 1
        return f"refused: {why}"

    def _take_late(
        self,
        member: Member,
        stored: StoredJob,
        digest: str,
        statements: list[Statement],
        now: float,
    ) -> str:
        """Compare a result with the accepted one of its job: a canary, or a result that is late."""
        self.counts["late"] += 1
        self.board.drop(member, stored.id)
        reports = self._reports(stored.id)
        if member.id in reports:
            return "known"
        accepted = self._find_accepted(stored)
        if not accepted or not self.board.repeatable:
            return "accepted"  # it is being committed, or times differ between machines
        if digest == accepted:
            sql = "UPDATE jobs SET agreed = agreed + 1 WHERE id = ?"
            statements.append((sql, (stored.id,)))
            self._credit([member.id], statements)
        elif stored.agreed > 1:
            self._quarantine(member.id, "a confirmed result differs", statements, now)
        else:
            statements.append(("INSERT OR IGNORE INTO checks VALUES (?)", (stored.id,)))
            reports[member.id] = digest
            self.board.check_task(stored.id, Job(**stored.body), accepted, reports)
            self._conclude(stored.id, statements, now)
        return "accepted"

    def _settle(
        self, task: Task, settled: Settled, statements: list[Statement], now: float
    ) -> None:
        """Record the conclusion from the reports of a job."""
        self.board.remove_task(task.id)
        members = self.board.members
        is_trusted = any(members[worker].is_trusted for worker in settled.agreeing)
        n_agreed = max(len(settled.agreeing), 2 * is_trusted)
        if not task.accepted:
            sql = (
                "UPDATE jobs SET state = 'accepted', source = ?, agreed = ? WHERE id = ? AND "
                "state = 'open'"
            )
            statements.append((sql, (settled.agreeing[0], n_agreed, task.id)))
        elif task.accepted == settled.digest:
            sql = "UPDATE jobs SET agreed = ? WHERE id = ?"
            statements.append((sql, (n_agreed, task.id)))
        statements.append(("DELETE FROM checks WHERE job = ?", (task.id,)))
        if n_agreed > 1 and self.board.repeatable:
            self._credit(settled.agreeing, statements)
        for worker in settled.false:
            why = f"its result of {task.job.algorithm} on {task.job.instance} differs"
            self._quarantine(worker, why, statements, now)
        for worker in settled.faulty:
            self._count_fault(members[worker], "a run failed here alone", statements, now)

    def _credit(self, workers: Any, statements: list[Statement]) -> None:
        for worker in workers:
            self.board.members[worker].n_agreed += 1
            sql = "UPDATE workers SET agreed = agreed + 1 WHERE id = ?"
            statements.append((sql, (worker,)))

    def _count_fault(
        self, member: Member, why: str, statements: list[Statement], now: float
    ) -> None:
        """Count a failure of a machine; after several it gets no more jobs, and keeps its results.

        Its results stay: they are not false.
        """
        member.n_faults += 1
        if member.n_faults > self.policy.max_faults and not member.is_quarantined:
            self.board.quarantine(member.id)
            self.counts["quarantined"] += 1
            sql = "UPDATE workers SET state = 'quarantined' WHERE id = ?"
            statements.append((sql, (member.id,)))
            entry = f"{member.id}: {member.n_faults} faults, {why}"
            statements.append(make_log_entry("server", "quarantine", entry, at=now))

    def _quarantine(self, worker: str, why: str, statements: list[Statement], now: float) -> None:
        """Quarantine a worker, and withdraw the results that rest on its reports alone."""
        member = self.board.members[worker]
        if member.is_quarantined:
            return
        self.counts["quarantined"] += 1
        affected = self.board.quarantine(worker)
        values: Any = {"worker": worker, "why": f"worker {worker[:8]} quarantined: {why}"}
        statements += [(sql, values) for sql in _REVOKE]
        entry = f"{worker} of {member.contributor}: {why}"
        statements.append(make_log_entry("server", "quarantine", entry, at=now))
        own = [m for m in self.board.members.values() if m.contributor == member.contributor]
        if sum(one.is_quarantined for one in own) >= MAX_QUARANTINED:
            sql = "UPDATE contributors SET state = 'suspended' WHERE name = ?"
            statements.append((sql, (member.contributor,)))
            statements.append(make_log_entry("server", "suspend", member.contributor, at=now))
        for name in affected:
            self._conclude(name, statements, now)
