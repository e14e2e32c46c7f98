"""``Judge``: the verdicts of one race about candidates that a designer proposes one by one.

Threads and processes may share the folder of a judge. The one that takes its lock runs the rounds
of the race for all candidates that wait; the others wait for their judgement, or for the lock. A
holder gives the lock back after a decision, when all runs of the round have arrived, so that no run
is lost. If its process is killed, the system releases the lock, and the next one resumes.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

from numpy.typing import ArrayLike

from polarbear.coordinator.resume import begin_or_resume
from polarbear.data.names import natural_sort_key
from polarbear.data.run import Direction
from polarbear.data.runs import Runs
from polarbear.design.candidates import (
    RACE,
    REFERENCE,
    Candidate,
    CandidateFolder,
    CandidateSolver,
    name_candidate,
)
from polarbear.design.fitness import (
    Fitness,
    measure_class_win_rates,
    measure_fitness,
    measure_win_rates,
)
from polarbear.design.judged_race import JudgedRace
from polarbear.design.judgement import REJECTED, Cost, Failures, Judgement, Rival
from polarbear.errors import DataError, SolverError
from polarbear.inference.verdicts import Kind, Verdict
from polarbear.racing.budget import Budget
from polarbear.racing.events import Added, Failed, Told
from polarbear.racing.questions.paper_pareto_set import PaperParetoSet
from polarbear.racing.questions.pareto_set import ParetoSet, check_question
from polarbear.racing.questions.question import Question
from polarbear.racing.race import check_budget
from polarbear.racing.status import RaceStatus
from polarbear.running.solvers.instances import Instances
from polarbear.running.solvers.job import Clock
from polarbear.running.solvers.setup import Limits, Setup, Solver
from polarbear.store.opening import open_store

WAIT_SECONDS = 0.05
"""The time after which a waiting evaluator looks for its judgement again."""

_FOLDER = re.compile(r"\([^()\n]*[/\\](?=[^()/\\\n]+, line \d)")  # before the name of a file

BUDGET = Budget(runs=200)
"""The default limits of a candidate."""

MAX_FAILURES = 3
"""How many runs of a candidate may fail, unless its budget says it."""


class Judge:
    """A judge of candidates in a design loop: one race in a folder, which every candidate joins.

    ``judge(candidate)`` returns a :class:`Judgement`. The candidate runs in processes of its own on
    instances of the race until its status is settled or its limits are reached. It is judged
    once: a copy gets the same judgement without a run.

    Parameters
    ----------
    folder
        Where race, candidates and judgements are kept. The same call resumes, and several threads
        and processes may judge in one folder at the same time.
    make_solver
        A function that makes a solver (:func:`polarbear.race`) from a candidate. It is called in
        the process of each run, so it may execute the text of the candidate (:func:`load_code`).
    instances, times, direction, executor, clock, seed
        As in :func:`polarbear.race`.
    reference
        The candidate against which fitness is measured, such as the algorithm in use.
    question
        What the race is to find out: by default :class:`ParetoSet`. With ``NoWorse("reference")`` a
        candidate is only compared with the reference.
    budget
        What a single candidate may use: the number and total time of its runs, and how many of
        them may fail. By default 200 runs, of which 3 may fail.
    limits
        What a single run may use. Of the environment variables it sees by default those that
        programs need, such as PATH, and none that may be secret.

    Examples
    --------
    >>> import tempfile
    >>> def make_solver(step):
    ...     def walk(job):
    ...         x = best = 9.0
    ...         for evaluations in range(1, 31):
    ...             trial = x + float(step) * job.rng.normal()
    ...             if abs(trial - job.instance) < best:
    ...                 x, best = trial, abs(trial - job.instance)
    ...                 yield evaluations, best
    ...     return walk
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     judge = Judge(folder, make_solver, lambda rng: rng.normal(), [3, 30], reference="0.3",
    ...                   direction="minimize", budget=Budget(runs=8), executor=1,
    ...                   question=ParetoSet(certainty=0.7))
    ...     bad, good, copy = judge("0.0001"), judge("3", label="large steps"), judge(" 3 ")
    ...     names = [judge.candidate(name) for name in judge.members()]
    >>> bad.verdict.kind, bad.verdict.rival, bad.fitness < 0.5 < good.fitness, copy == good
    ('dominated', 'reference', True, True)
    >>> names
    ['3', '0.3']
    """

    def __init__(
        self,
        folder: str | PathLike[str],
        make_solver: Callable[[Any], Solver],
        instances: Any,
        times: ArrayLike,
        *,
        reference: Candidate,
        direction: Direction,
        question: Question | None = None,
        budget: Budget = BUDGET,
        executor: Any = None,
        clock: Clock | None = None,
        limits: Limits | None = None,
        seed: int = 0,
    ) -> None:
        if not callable(make_solver):
            raise SolverError(
                "expected a function that makes a solver from a candidate", make_solver=make_solver
            )
        limits = Limits() if limits is None else limits
        if limits.environment is None:
            limits = replace(limits, environment=())
        self._make_solver, self._reference = make_solver, reference
        self._question = check_question(question)
        self._budget = check_budget(budget).resolve_deadline(time.time())
        if self._budget.failures is None:
            self._budget = replace(self._budget, failures=MAX_FAILURES)
        self._executor, self._seed = executor, seed
        self._setup = Setup.of(
            {REFERENCE: self._make_candidate_solver(reference, seed)},
            instances,
            times=times,
            direction=direction,
            clock=clock,
            limits=limits,
        )
        self._latest: dict[str, tuple[int, JudgedRace]] = {}  # after this many events
        self._folder = CandidateFolder(folder)
        self._folder.keep(reference, name=REFERENCE)

    def __call__(self, candidate: Candidate, *, label: str = "") -> Judgement:
        """Judge a candidate; other judgements mention it by ``label``.

        A copy gets the judgement of the first one with its own label, if it has one.
        """
        name = self._name(candidate)
        if name == REFERENCE:
            return replace(self._judge_reference(), label=label)
        self._folder.keep(candidate, label)
        while (judgement := self._folder.judgement(name)) is None:
            self._folder.request(name)
            lock = self._folder.lock()
            if lock is None:
                time.sleep(WAIT_SECONDS)
                continue
            try:
                self._run_until_judged(name)
            finally:
                lock.release()
        first = Judgement.from_dict(judgement)
        return replace(first, label=label or first.label)

    def candidate(self, name: str) -> Candidate:
        """Return the candidate with the given name, as it was passed to the judge."""
        return self._folder.candidate(name)

    def judgements(self) -> list[Judgement]:
        """Return all judgements so far, in the order in which they were made.

        They are those of their time: a member may have been dominated since (:meth:`status`).
        """
        return [Judgement.from_dict(plain) for plain in self._folder.judgements()]

    def members(self) -> tuple[str, ...]:
        """Return the names of all candidates that are not rejected by now.

        These are neither dominated nor removed, nor, by such a question, failed or not chosen.
        """
        status = self.status()
        if status is None:
            return (REFERENCE,)
        return tuple(one.algorithm for one in status.verdicts if one.kind not in REJECTED)

    def status(self) -> RaceStatus | None:
        """Return the race's status, also while the race runs; None before the first candidate."""
        path = self._folder.find_race(RACE)
        if not path.exists():
            return None
        with open_store(path, read_only=True) as store:
            return store.status() if store.n_events else None

    def compare_on_holdout(
        self,
        instances: Any = None,
        names: Sequence[str] | None = None,
        *,
        max_runs: int | None = None,
    ) -> list[Judgement]:
        """Compare candidates on instances that the designer has not seen, best fitness first.

        ``instances`` are not needed if a function makes those of the race: it makes others. The
        candidates are by default the members of the race. The comparison is a race of its own in
        the same folder, with the same question; ``max_runs`` limits the runs of each candidate. Do
        not pass its results to the designer.
        """
        holdout = self._check_holdout(instances)
        names = [name for name in (self.members() if names is None else names) if name != REFERENCE]
        if not names:
            return []
        max_runs = self._budget.runs if max_runs is None else max_runs
        while (lock := self._folder.lock()) is None:
            time.sleep(WAIT_SECONDS)
        try:
            with self._open("holdout.db", holdout, self._seed + 1) as result:
                result.admit(names, max_runs, None)
                result.resume()
                result.check_reference()
                judgements = self._make_judgements(result, names, max_runs)
        finally:
            lock.release()
        return sorted(judgements, key=lambda judgement: -judgement.fitness)

    def win_rates_by_class(self, name: str, classify: Callable[[str], str]) -> dict[str, float]:
        """Return the share of instances on which a candidate was ahead of the reference, by class.

        ``classify`` returns the class of an instance from its name. The rates are over all times.
        """
        with open_store(self._folder.find_race(RACE), read_only=True) as store:
            runs = store.runs()
        times, model = self._setup.times, self._question.model
        return dict(measure_class_win_rates(runs, times, name, REFERENCE, classify, model))

    # Inside

    def _name(self, candidate: Candidate) -> str:
        name = name_candidate(candidate)
        return REFERENCE if name == name_candidate(self._reference) else name

    def _check_holdout(self, holdout: Any) -> Instances:
        """Return the hold-out instances; raise an error if some are instances of the race."""
        if holdout is None:
            if self._setup.instances.names is None:
                return self._setup.instances
            raise DataError(
                "pass instances that are not in the race: compare_on_holdout(instances)"
            )
        other = Instances.of(holdout)
        common = {*(other.names or ())} & {*(self._setup.instances.names or ())}
        if common:
            raise DataError(f"{min(common)!r} is an instance of the race: leave it out")
        return other

    def _make_candidate_solver(self, candidate: Candidate, seed: int) -> CandidateSolver:
        return CandidateSolver(candidate, self._make_solver, seed)

    def _judge_reference(self) -> Judgement:
        times = self._setup.times
        half = (0.5,) * len(times)
        verdict = Verdict(REFERENCE, "baseline", clock=self._setup.clock)
        return Judgement(verdict, 0.5, times=times, win_rates=half, prob_ahead=half)

    def _run_until_judged(self, name: str) -> None:
        """Run the race until a candidate is judged; judge other waiting candidates as well."""
        if self._folder.judgement(name) is not None:
            return  # another holder has judged it before this call got the lock
        with self._open(RACE, self._setup.instances, self._seed) as result:
            while self._folder.judgement(name) is None:
                waiting = self._folder.requests()
                result.admit(waiting, self._budget.runs, self._budget.time)
                result.watch(name, self._folder.requests)
                result.resume()
                result.check_reference()
                settled = [each for each in waiting if result.is_settled([each])]
                for judgement in self._make_judgements(result, settled, self._budget.runs):
                    plain = judgement.to_dict(show_instances=True)
                    self._folder.add_judgement(judgement.name, plain)
            self._latest[RACE] = result.n_events, result

    def _open(self, file: str, instances: Instances, seed: int) -> JudgedRace:
        """Open the race in the judge's folder, with the candidates that were added to it before.

        It is taken from memory if no other process has changed the store since.
        """

        def make(name: str) -> CandidateSolver:
            return self._make_candidate_solver(self._folder.candidate(name), seed)

        store = open_store(self._folder.find_race(file))
        try:
            n_events, race = self._latest.pop(file, (None, None))
            if race is not None and n_events == store.n_events:
                return race.attach(race.setup, store, self._executor, None).judge_with(
                    make, race.told
                )
            names = [event.algorithm for event in store.of_kind(Added)] or [REFERENCE]
            setup = self._setup.with_solvers(
                {name: make(name) for name in dict.fromkeys(names)}, instances
            )
            told = [event.run for event in store.read(arrays=True) if isinstance(event, Told)]
            budget = replace(self._budget, runs=None, time=None)  # these are of a candidate
            race, setup = begin_or_resume(JudgedRace, setup, self._question, budget, seed, store)
            return race.attach(setup, store, self._executor, None).judge_with(make, told)
        except BaseException:
            store.close()
            raise

    def _make_judgements(
        self, result: JudgedRace, names: Sequence[str], max_runs: int | None
    ) -> list[Judgement]:
        """Return the judgements of candidates by the decisions of a race so far."""
        if not names:
            return []
        runs, copies = result.runs, result.copies
        originals = [copies.get(name, name) for name in names]
        measured = measure_fitness(runs, self._setup.times, originals, REFERENCE, result)
        failures = result.read_failures(names)
        return [
            self._make_judgement(
                result, runs, name, measured.get(original), failures[name], max_runs
            )
            for name, original in zip(names, originals, strict=True)
        ]

    def _make_judgement(
        self,
        result: JudgedRace,
        runs: Runs,
        name: str,
        fitness: Fitness | None,
        failures: Sequence[Failed],
        max_runs: int | None,
    ) -> Judgement:
        """Return the judgement of one candidate."""
        times, copy_of = self._setup.times, result.copies.get(name)
        model = result.state.setup.model
        verdict = result.verdict(name)._replace(clock=self._setup.clock)
        if copy_of:
            kind = self._get_copy_kind(result.verdict(copy_of).kind)
            verdict = Verdict(name, kind, rival=copy_of, clock=self._setup.clock)
        rival = verdict.rival
        own = runs.filter(algorithms=[name]) if name in runs.algorithms else None
        failed_on = {event.key.instance for event in failures}
        return Judgement(
            verdict,
            0.0 if verdict.kind == "removed" else fitness.overall if fitness else 0.5,
            times=times,
            win_rates=measure_win_rates(runs, times, name, REFERENCE, model),
            prob_ahead=fitness.at_times if fitness else (0.5,) * len(times),
            label=self._folder.label(name),
            rival=None
            if rival is None
            else Rival(
                self._folder.label(rival),
                measure_win_rates(runs, times, name, rival, model),
                self._folder.candidate(rival),
            ),
            copy_of=copy_of,
            cost=Cost(
                result.state.ledger.n_runs[name],
                0.0 if own is None else float(own.until.sum()),
                0 if own is None else len(own.instances),
                max_runs,
            ),
            failures=Failures(
                len({event.key for event in failures}),
                _pick_reason(failures),
                _pick_traceback(failures),
                tuple(sorted(failed_on, key=natural_sort_key)),
            ),
        )

    def _get_copy_kind(self, original: Kind) -> Kind:
        """Return the verdict about a copy, which is accepted exactly if the original is."""
        if original == "baseline":
            return "passed"
        is_about_set = isinstance(self._question, ParetoSet | PaperParetoSet)
        return "equivalent" if is_about_set and original not in REJECTED else original


def _pick_reason(failures: Sequence[Failed]) -> str:
    """Return the most frequent reason why runs failed, without folders; "" if no run failed."""
    reasons = [event.reason for event in failures]
    return _FOLDER.sub("(", max(reasons, key=reasons.count, default=""))


def _pick_traceback(failures: Sequence[Failed]) -> str:
    """Return the last traceback in the output of failed runs; "" if there is none."""
    for event in reversed(failures):
        _, mark, rest = event.output.rpartition("Traceback (most recent call last):")
        if mark:
            return f"{mark}{rest}".rstrip()
    return ""
