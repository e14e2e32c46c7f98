"""``Judge``: the verdicts of one race about candidates that a designer proposes one by one.

Threads and processes may share the folder of a judge. The one that takes its lock runs the rounds
of the race for all candidates that wait; the others wait for their judgement, or for the lock. A
holder gives the lock back after a decision, when all runs of the round have arrived, so that no run
is lost. If its process is killed, the system releases the lock, and the next one resumes.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

from numpy.typing import ArrayLike

from polarbear.coordinator.candidates import (
    RACE,
    REFERENCE,
    Candidate,
    CandidateFolder,
    CandidateSolver,
    name_candidate,
)
from polarbear.coordinator.fitness import (
    Fitness,
    measure_class_win_rates,
    measure_fitness,
    measure_win_rates,
)
from polarbear.coordinator.judged_race import JudgedRace
from polarbear.coordinator.judgement import REJECTED, Judgement
from polarbear.coordinator.resume import begin_or_resume
from polarbear.data.names import natural_sort_key
from polarbear.data.run import Direction, Run
from polarbear.data.runs import Runs
from polarbear.errors import DataError, SolverError
from polarbear.inference.verdicts import Verdict, Kind
from polarbear.racing.budget import Budget
from polarbear.racing.events import Added, Failed, Told
from polarbear.racing.model import FitOptions
from polarbear.racing.questions.paper_pareto_set import PaperParetoSet
from polarbear.racing.questions.pareto_set import ParetoSet
from polarbear.racing.questions.question import Question
from polarbear.racing.race import Race, check_question
from polarbear.racing.status import RaceStatus
from polarbear.running.solvers.instances import Instances
from polarbear.running.solvers.job import Clock
from polarbear.running.solvers.setup import Limits, Setup, Solver
from polarbear.store.log import Store
from polarbear.store.opening import open_store

WAIT_SECONDS = 0.05
"""The time after which a waiting evaluator looks for its judgement again."""

MAX_RUNS = 200
"""The default limit of runs of a candidate."""

_FOLDER = re.compile(r"\([^()\n]*[/\\](?=[^()/\\\n]+, line \d)")  # before the name of a file

BUDGET = Budget(failures=3)


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
    instances, times, direction, executor, clock, limits, seed, fit
        As in :func:`polarbear.race`.
    reference
        The candidate against which fitness is measured, such as the algorithm in use.
    max_runs, max_time
        The number and the total time of runs that a single candidate may use.
    question
        What the race is to find out: by default :class:`ParetoSet`. With ``NoWorse("reference")`` a
        candidate is only compared with the reference.
    holdout
        Instances that are used by :meth:`compare_on_holdout` alone. A function of a random
        generator, if ``instances`` is one, makes other instances without being passed here.
    environment
        Names of further environment variables that candidates see, or patterns such as
        ``"SLURM_*"``; ``["*"]`` passes all. By default they see those that programs need, such as
        PATH, and none that may be secret.
    classify
        A function from the name of an instance to that of its class, for judgements by class.
    accept_changes
        Whether to resume although ``make_solver``, ``environment``, instances or limits have
        changed.

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
    ...                   direction="minimize", max_runs=8, executor=1,
    ...                   question=ParetoSet(certainty=0.7))
    ...     bad, good, copy = judge("0.0001"), judge("3", label="large steps"), judge(" 3 ")
    ...     names = [judge.candidate(name) for name in judge.members()]
    >>> bad.status, bad.rival, bad.fitness < 0.5 < good.fitness, copy == good
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
        max_runs: int | None = MAX_RUNS,
        max_time: float | None = None,
        question: Question | None = None,
        executor: Any = None,
        clock: Clock | None = None,
        limits: Limits | None = None,
        holdout: Any = None,
        environment: Collection[str] = (),
        classify: Callable[[str], str] | None = None,
        seed: int = 0,
        fit: FitOptions = None,
        accept_changes: bool = False,
    ) -> None:
        if not callable(make_solver):
            raise SolverError(
                f"make_solver={make_solver!r}: expected a function that makes a solver from a "
                "candidate"
            )
        if isinstance(environment, str):
            raise SolverError(f"environment={environment!r}: expected a list, [{environment!r}]")
        self._make_solver, self._reference = make_solver, reference
        self._environment = tuple(environment)
        self._max_runs, self._max_time = max_runs, max_time
        self._question = check_question(question)
        self._executor, self._classify, self._seed, self._fit = executor, classify, seed, fit
        self._accept_changes = accept_changes
        self._setup = Setup.of(
            {REFERENCE: self._make_candidate_solver(reference, seed)},
            instances,
            times=times,
            direction=direction,
            clock=clock,
            limits=limits,
        )
        self._holdout = self._check_holdout(holdout)
        self._latest: dict[str, tuple[int, Race, Setup, list[Run]]] = {}  # after this many events
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
        return tuple(one.algorithm for one in status.statuses if one.status not in REJECTED)

    def status(self) -> RaceStatus | None:
        """Return the race's status, also while the race runs; None before the first candidate."""
        path = self._folder.find_race(RACE)
        if not path.exists():
            return None
        with open_store(path, read_only=True) as store:
            return store.status() if store.n_events else None

    def compare_on_holdout(
        self, names: Sequence[str] | None = None, *, max_runs: int | None = None
    ) -> list[Judgement]:
        """Compare candidates on instances that the designer has not seen, best fitness first.

        By default these are the members of the race. The comparison is a race of its own in the
        same folder, with the same question; ``max_runs`` limits the runs of each candidate. Do not
        pass its results to the designer.
        """
        if self._holdout is None:
            raise DataError(
                "there are no hold-out instances: pass instances that are not in the race, as "
                "holdout=... to Judge"
            )
        names = [name for name in (self.members() if names is None else names) if name != REFERENCE]
        if not names:
            return []
        max_runs = self._max_runs if max_runs is None else max_runs
        while (lock := self._folder.lock()) is None:
            time.sleep(WAIT_SECONDS)
        try:
            with self._open("holdout.db", self._holdout, self._seed + 1) as result:
                result.admit(names, max_runs, None)
                result.resume()
                result.check_reference()
                judgements = self._make_judgements(result, names, max_runs)
        finally:
            lock.release()
        return sorted(judgements, key=lambda judgement: -judgement.fitness)

    # Inside

    def _name(self, candidate: Candidate) -> str:
        name = name_candidate(candidate)
        return REFERENCE if name == name_candidate(self._reference) else name

    def _check_holdout(self, holdout: Any) -> Instances | None:
        """Return the hold-out instances; raise an error if some are instances of the race."""
        if holdout is None:
            return self._setup.instances if self._setup.instances.names is None else None
        other = Instances.of(holdout)
        common = {*(other.names or ())} & {*(self._setup.instances.names or ())}
        if common:
            raise DataError(
                f"holdout has {min(common)!r}, which is an instance of the race: leave it out"
            )
        return other

    def _make_candidate_solver(self, candidate: Candidate, seed: int) -> CandidateSolver:
        return CandidateSolver(candidate, self._make_solver, seed, self._environment)

    def _judge_reference(self) -> Judgement:
        times = self._setup.times
        half = (0.5,) * len(times)
        return Judgement(
            REFERENCE, "baseline", None, 0.5, times, half, half, clock=self._setup.clock
        )

    def _run_until_judged(self, name: str) -> None:
        """Run the race until a candidate is judged; judge other waiting candidates as well."""
        if self._folder.judgement(name) is not None:
            return  # another holder has judged it before this call got the lock
        with self._open(RACE, self._setup.instances, self._seed) as result:
            while self._folder.judgement(name) is None:
                waiting = self._folder.requests()
                result.admit(waiting, self._max_runs, self._max_time)
                result.watch(name, self._folder.requests)
                result.resume()
                result.check_reference()
                settled = [each for each in waiting if result.is_settled([each])]
                for judgement in self._make_judgements(result, settled, self._max_runs):
                    plain = judgement.to_dict(show_instances=True)
                    self._folder.add_judgement(judgement.name, plain)
            if not result.race.events:  # all of them are stored
                self._latest[RACE] = result.n_events, result.race, result.setup, result.told

    def _open(self, file: str, instances: Instances, seed: int) -> JudgedRace:
        """Open the race in the judge's folder, with the candidates that were added to it before."""

        def make(name: str) -> CandidateSolver:
            return self._make_candidate_solver(self._folder.candidate(name), seed)

        store = open_store(self._folder.find_race(file))
        try:
            race, setup, told = self._restore(file, instances, seed, store, make)
            return JudgedRace(race, setup, store, self._executor, make, told)
        except BaseException:
            store.close()
            raise

    def _restore(
        self,
        file: str,
        instances: Instances,
        seed: int,
        store: Store,
        make: Callable[[str], CandidateSolver],
    ) -> tuple[Race, Setup, list[Run]]:
        """Return a race and its runs, from memory if no other process has changed the store."""
        latest = self._latest.pop(file, None)
        if latest is not None and latest[0] == store.n_events:
            return latest[1:]
        names = [event.algorithm for event in store.of_kind(Added)] or [REFERENCE]
        setup = Setup.of(
            {name: make(name) for name in dict.fromkeys(names)},
            instances,
            times=self._setup.times,
            direction=self._setup.direction,
            clock=self._setup.clock,
            limits=self._setup.limits,
        )
        told = [event.run for event in store.read(arrays=True) if isinstance(event, Told)]
        race, setup = begin_or_resume(
            setup, self._question, BUDGET, seed, self._fit, store, self._accept_changes
        )
        return race, setup, told

    def _make_judgements(
        self, result: JudgedRace, names: Sequence[str], max_runs: int | None
    ) -> list[Judgement]:
        """Return the judgements of candidates by the decisions of a race so far."""
        if not names:
            return []
        runs, copies = result.runs, result.copies
        originals = [copies.get(name, name) for name in names]
        measured = measure_fitness(runs, self._setup.times, originals, REFERENCE, result.race)
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
        status = result.verdict(name)
        rival = copy_of or status.rival
        own = runs.filter(algorithms=[name]) if name in runs.algorithms else None
        kind = self._get_copy_status(result.verdict(copy_of)) if copy_of else status.status
        return Judgement(
            name,
            kind,
            None if copy_of else _get_probability(status),
            0.0 if kind == "removed" else fitness.overall if fitness else 0.5,
            times=times,
            win_rates=measure_win_rates(runs, times, name, REFERENCE),
            prob_ahead=fitness.at_times if fitness else (0.5,) * len(times),
            clock=self._setup.clock,
            label=self._folder.label(name),
            rival=rival,
            rival_label=self._folder.label(rival) if rival else "",
            rival_win_rates=measure_win_rates(runs, times, name, rival) if rival else (),
            rival_candidate=self._folder.candidate(rival) if rival else None,
            class_win_rates=()
            if self._classify is None
            else measure_class_win_rates(runs, times, name, REFERENCE, self._classify),
            copy_of=copy_of,
            runs=result.race.state.n_runs[name],
            time=0.0 if own is None else float(own.until.sum()),
            instances=len(own.instances) if own is not None else 0,
            max_runs=max_runs,
            n_failed=len({event.key for event in failures}),
            failure=_pick_reason(failures),
            traceback=_pick_traceback(failures),
            failed_on=tuple(
                sorted({event.key.instance for event in failures}, key=natural_sort_key)
            ),
        )

    def _get_copy_status(self, original: Verdict) -> Kind:
        """Return the status of a copy, which is accepted exactly if the original is."""
        if original.status == "baseline":
            return "passed"
        is_about_set = isinstance(self._question, ParetoSet | PaperParetoSet)
        is_equivalent = is_about_set and original.status not in REJECTED
        return "equivalent" if is_equivalent else original.status


def _get_probability(status: Verdict) -> float | None:
    """Return the probability that an algorithm belongs to the Pareto set; None if unknown."""
    if status.prob_in_pareto is not None:
        return status.prob_in_pareto
    return None if status.prob_dominated is None else 1 - status.prob_dominated


def _pick_reason(failures: Sequence[Failed]) -> str:
    """Return the most frequent reason why runs failed, without folders; "" if no run failed."""
    reasons = [event.why.split("; it printed last:")[0] for event in failures]
    return _FOLDER.sub("(", max(reasons, key=reasons.count, default=""))


def _pick_traceback(failures: Sequence[Failed]) -> str:
    """Return the last traceback in the output of failed runs; "" if there is none."""
    for event in reversed(failures):
        _, mark, rest = event.output.rpartition("Traceback (most recent call last):")
        if mark:
            return f"{mark}{rest}".rstrip()
    return ""
