"""``Race``: ``ask`` returns the runs to make, ``tell`` takes their results; no clock, no I/O.

A race is a function of its events. Only ``state.apply`` changes its state, and its requests and
decisions follow from the state. So the same events give the same race on every machine, whether or
not it was interrupted.

1. ``ask`` returns the requested runs that have not arrived. Asking twice gives the same answer.
2. When all runs of a round have arrived, the next ``ask`` requests failed ones again, decides, and
   plans a round.
3. Runs are sorted before they are ranked, and seeds are derived from names. So neither the order
   of ``tell`` nor the machine of a run has an effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Self

from numpy.typing import ArrayLike

from polarbear._text import format_count
from polarbear.data import grid
from polarbear.data.names import check_name, check_names, natural_sort_key, suggest_name, to_name
from polarbear.data.rankings import Rankings
from polarbear.data.run import Direction, Run, Status, normalise_run, sign_of
from polarbear.data.runs import Runs, check_best_so_far
from polarbear.errors import DataError, FitWarning, warn
from polarbear.inference.fit import connected_groups
from polarbear.inference.fit import fit as default_fit
from polarbear.inference.posterior import Posterior
from polarbear.inference.verdicts import Verdict
from polarbear.racing.budget import Budget
from polarbear.racing.decisions import Decision
from polarbear.racing.events import (
    Added,
    Asked,
    Decided,
    Ended,
    Event,
    Extended,
    Failed,
    Hosted,
    Identified,
    Imported,
    Offered,
    Removed,
    Started,
    Told,
    Withdrawn,
    explain_misfit,
)
from polarbear.racing.incremental_rankings import IncrementalRankings
from polarbear.racing.jobs import Job, key_of
from polarbear.racing.ledger import Spent
from polarbear.racing.model import Fit, fit_posterior
from polarbear.racing.planning import plan, plan_retries
from polarbear.racing.progress import DecisionInput
from polarbear.racing.questions.pareto_set import check_question
from polarbear.racing.questions.question import Question
from polarbear.racing.questions.stored import check_storable, recognise
from polarbear.racing.snapshot import StoredRuns, encode_snapshot
from polarbear.racing.state import State, apply, start_state
from polarbear.racing.status import RaceStatus, list_verdicts, render_race


class Race:
    """A race of algorithms, which ends when the anytime Pareto set is settled.

    Parameters
    ----------
    algorithms
        The names of the algorithms; :meth:`add` adds more at any time.
    times
        The times at which the algorithms are compared.
    direction
        Whether small ("minimize") or large ("maximize") values are good.
    instances
        The names of the instances, drawn from without replacement. By default instances are
        numbered "1", "2", ... without end, and made from ``job.instance_seed``.
    question
        What the race is to find out, and the model of its posteriors: by default
        :class:`ParetoSet`.
    budget
        The limits of runs and time.
    seed
        The same seed gives the same race.
    clock
        The unit of time: "evaluations", "seconds", ...

    Examples
    --------
    >>> import random
    >>> race = Race(["fair", "lucky", "sad"], [1, 2], direction="maximize")
    >>> skill = {"fair": 0.0, "lucky": 1.0, "sad": -2.0}
    >>> while jobs := race.ask():
    ...     for job in jobs:
    ...         luck = random.Random(job.seed).random()
    ...         race.tell(job.run([1, 2], [luck + skill[job.algorithm]] * 2))
    >>> race.pareto
    ('lucky',)
    >>> print(race.verdict("sad"))
    sad is replaceable by lucky (> 99 %)
    >>> Race.from_events(race.events).pareto
    ('lucky',)
    """

    _continues = False  # a run that is extended is repeated from its start
    _now: Callable[[], str] = str  # a race has no clock, but one that makes its runs has

    def __init__(
        self,
        algorithms: Iterable[str],
        times: ArrayLike,
        *,
        direction: Direction,
        instances: Iterable[str] | None = None,
        question: Question | None = None,
        budget: Budget | None = None,
        seed: int = 0,
        clock: str = "time",
    ) -> None:
        sign_of(direction)
        if not isinstance(seed, Integral):
            raise DataError("expected a whole number", seed=seed)
        at = tuple(grid.check_times(times).tolist())
        question = check_question(question)
        started = Started(
            seed=int(seed),
            times=at,
            direction=direction,
            clock=clock,
            endless=instances is None,
            question=check_storable(question.at(at, clock)),
            budget=check_budget(budget),
            model=question.model,
            continues=self._continues,
        )
        self._begin(started)
        if instances is not None:
            self.offer(instances)
        names = check_names(algorithms, "algorithms")
        for name in sorted(names, key=natural_sort_key):
            Race.add(self, name)  # not that of a subclass, which may need more than a name

    @classmethod
    def from_events(
        cls,
        events: Iterable[Event],
        *,
        question: Question | None = None,
        stored: StoredRuns | None = None,
    ) -> Self:
        """Restore a race from its events, in the state after the last of them.

        ``question``: one of your own, or with a function that makes posteriors; events have only
        their names. ``stored``: the events are not kept, as they are in a store, and their runs
        lack trajectories, which it loads. With a snapshot, the events are the first one and those
        after the snapshot.
        """
        race: Self | None = None
        for race, _ in cls._restore(events, stored, question):
            if stored is not None:
                race.forget()
        if race is None:
            raise DataError("got no events: expected those of a race, the first of type Started")
        return race

    @classmethod
    def after_each_round(
        cls, events: Iterable[Event], *, question: Question | None = None
    ) -> Iterator[Self]:
        """Restore a race from its events, and yield the race after each decision.

        It is one race that changes: read from it what you need before you take the next one.

        >>> import numpy as np, polarbear as pb
        >>> runs = pb.simulation.simulate_runs(np.array([[2.0, 0.0, -2.0]] * 3), 40)
        >>> stages = Race.after_each_round(pb.replay(runs).events)
        >>> [len(race.pareto) for race in stages][-1]
        1
        """
        restored = cls._restore(events, question=question)
        return (race for race, event in restored if isinstance(event, Decided))

    # Running

    def ask(self, now: float | None = None) -> tuple[Job, ...]:
        """Return the requested runs that have not arrived yet; none if the race has ended.

        When all runs of a round have arrived, this call decides and plans the next round. ``now``
        is the time, for a budget with a deadline. :attr:`ended` says why no runs are requested.
        """
        deadline = self.state.setup.budget.deadline
        if deadline is not None and now is None:
            raise DataError("the budget has a deadline: pass the present time, ask(now=...)")
        if not isinstance(deadline, Real | None):
            raise DataError(
                "a Race has no clock, so expected a number in the unit of "
                "ask(now=...); Budget.resolve_deadline(time.time()) returns one with such a number",
                deadline=deadline,
            )
        while True:
            state = self._state
            if (why := state.obstacle) is not None:
                if not state.members.removed:
                    raise DataError(why)
                return self._end(why)
            if deadline is not None and now is not None and now >= deadline:
                return self._end("deadline")
            if state.progress.has_news and not state.progress.pending:
                self._retry_or_decide()
                continue
            # Plan right after a decision, so that the plan does not depend on later arrivals.
            planned = (
                plan(state) if len(state.progress.pending) <= state.setup.budget.overlap else None
            )
            if isinstance(planned, Asked):
                self._record(planned)
            elif state.progress.pending and state.progress.complete:
                self._retry_or_decide()
            elif state.progress.wanted:
                return tuple(state.progress.wanted.values())
            else:
                return self._end(planned or "resolved")

    def tell(self, run: Run, *, why: str = "", output: str = "") -> None:
        """Add a requested run that was made; the order in which runs arrive has no effect.

        A failed run is passed as well, with its status and the values it had reached. ``why`` it
        failed and the end of its ``output`` are recorded. If the same run is passed twice, the
        first one counts. A run without a status was cut if it reached its horizon, and finished
        by itself otherwise.
        """
        run = normalise_run(run)
        key = key_of(run)
        if run.status == Status.UNSTATED:
            pending = (runs.get(key) for runs in self._state.progress.pending.values())
            horizon = next((one.horizon for one in pending if one), self.times[-1])
            run = run._replace(status=Status.CUT if run.until >= horizon else Status.FINISHED)
        if key not in self._state.ledger.ever_requested:
            raise DataError(
                f"the race did not ask for repetition {run.repetition} of {run.algorithm!r} on "
                f"instance {run.instance!r}; load(runs) takes earlier runs"
            )
        if key not in self._state.ledger.arrived:
            self._record(Told(run))
            if why and run.status not in (Status.CUT, Status.FINISHED):
                self._record(Failed.of(run, why, output))

    # Changing algorithms, instances, runs and the question

    def add(
        self,
        algorithm: str,
        *,
        max_runs: int | None = None,
        max_time: float | None = None,
        trial: bool = False,
    ) -> None:
        """Add an algorithm, or readmit one that was eliminated or removed.

        A new algorithm first runs on instances that were used before. ``max_runs`` and
        ``max_time`` limit the number and the total time of its runs; it stays undecided if these
        do not settle its pairs. With ``trial`` it makes one run alone before all others.

        >>> race = Race(["a", "b"], [1], direction="minimize")
        >>> race.add("c", max_runs=3)
        >>> sum(job.algorithm == "c" for job in race.ask())
        3
        """
        for limit, value in (("max_runs", max_runs), ("max_time", max_time)):
            if value is not None and (not isinstance(value, Real) or float(value) < 0):
                raise DataError(f"{limit}={value!r}: expected a number of at least 0, or None")
        name = check_name(to_name(algorithm))
        if not name:
            raise DataError("the name of an algorithm must not be empty")
        if name in self._state.members.racing:
            raise DataError(f"{name!r} is racing already, so it cannot be added")
        self._record(Added(name, max_runs, max_time, trial))

    def remove(self, algorithm: str, why: str = "") -> None:
        """Remove an algorithm; its runs stay recorded, and are used again if it is added again.

        >>> race = Race(["a", "b"], [1], direction="minimize")
        >>> race.add("c")
        >>> race.remove("a", "no licence")
        >>> race.pareto
        ('b', 'c')
        """
        name = self._find_algorithm(algorithm)
        if name in self._state.members.removed:
            raise DataError(f"{name!r} is not racing: it was removed already")
        self._record(Removed(name, why))
        self._save()

    def offer(self, instances: Iterable[str]) -> None:
        """Add instances to those from which the race draws.

        >>> race = Race(["a", "b"], [1], direction="minimize", instances=["x"])
        >>> race.offer(["y", "z"])
        >>> sorted({job.instance for job in race.ask()})
        ['x', 'y', 'z']
        """
        if self._state.setup.endless:
            raise DataError("this race has endless instances, so it takes no list of instances")
        names = check_names(instances, "instances")
        if not {*names} <= self._state.pool.names:
            self._record(Offered(names))

    def record(self, note: Identified | Hosted | Failed) -> None:
        """Record an event that affects no decision: a fingerprint, a worker process, or a failure.

        >>> race = Race(["a", "b"], [1], direction="minimize")
        >>> race.record(Identified())
        >>> race.events[-1] == Identified()
        True
        """
        self._record(note)

    def load(self, runs: Runs) -> None:
        """Import earlier runs of algorithms that take part in the race.

        They cost nothing, and their instances count as used.
        """
        direction, clock = self._state.setup.direction, self._state.setup.clock
        if not isinstance(runs, Runs) or runs.direction != direction:
            raise DataError(f"expected Runs with direction={direction!r}, which the race has")
        if runs.levels is not None or len({runs.clock, clock, "time"}) > 2:
            raise DataError(f"expected Runs with one value and clock={clock!r}, which the race has")
        check_best_so_far(runs, "a race")
        for name in runs.algorithms:
            self._find_algorithm(name)
        for run in map(normalise_run, runs):
            if run.status == Status.UNSTATED:
                run = run._replace(status=Status.FINISHED)
            if key_of(run) not in self._state.ledger.arrived:
                self._record(Imported(run))

    def withdraw(
        self,
        algorithm: str | None = None,
        instance: str | None = None,
        *,
        pairs: Iterable[tuple[str, str]] | None = None,
        why: str = "",
        at: str = "",
    ) -> int:
        """Withdraw runs, which stay recorded but are not used in decisions; return their number.

        These are all runs so far of an algorithm, on an instance, of an algorithm on an instance,
        or of ``pairs`` (algorithm, instance). All decisions are made again: eliminated algorithms
        return and pairs are open. An instance that is given alone is not used again until it is
        offered again. ``at`` is the date, as text.

        >>> race = Race(["a", "b"], [1], direction="minimize", instances=["x", "y"])
        >>> for job in race.ask():
        ...     race.tell(job.run([1], [len(job.algorithm + job.instance)]))
        >>> race.withdraw("a", why="it ran with another licence"), race.n_runs
        (2, 2)
        """
        if algorithm is None and instance is None and pairs is None:
            raise DataError(
                "the runs to withdraw are not given: pass algorithm=, instance= or pairs="
            )
        name = None if algorithm is None else self._find_algorithm(algorithm)
        pool, ledger, n_before = self._state.pool, self._state.ledger, self.n_runs
        if instance is not None and instance not in {*pool.unused, *pool.used}:
            suggestion = suggest_name(instance, sorted(pool.names, key=natural_sort_key))
            raise DataError(f"no instance named {instance!r} in this race; {suggestion}")
        selected = None if pairs is None else set(pairs)
        withdrawn = {
            (key.algorithm, key.instance)
            for key in ledger.arrived - ledger.withdrawn
            if name in (None, key.algorithm)
            and instance in (None, key.instance)
            and (selected is None or key[:2] in selected)
        }
        is_alone = instance is not None and name is None and selected is None
        dropped = (instance,) if is_alone and instance and instance not in pool.dropped else ()
        if withdrawn or dropped:
            self._posterior = None
            self._record(Withdrawn(tuple(sorted(withdrawn)), why, at or self._now(), dropped))
            self._save()
        return n_before - self.n_runs

    def extend(self, question: Question | None = None, budget: Budget | None = None) -> None:
        """Continue the race with another question or budget; what is not given stays.

        With another question, such as a higher certainty, all pairs are open again, and algorithms
        that were eliminated with less certainty than is now required return.

        >>> race = Race(["a", "b"], [1], direction="minimize", budget=Budget(runs=0))
        >>> race.extend(budget=Budget(runs=100))
        >>> len(race.ask())
        16
        """
        state = self._state
        asked = state.setup.question if question is None else check_question(question)
        if question is not None and asked.fit is not None:
            differences = state.setup.model.describe_differences(asked.model)
            if differences:
                raise DataError(f"the model of a race stays: it is {differences}; pass no fit=")
        limits = state.setup.budget if budget is None else check_budget(budget)
        asked = check_storable(asked.at(state.setup.times, state.setup.clock))
        self._record(Extended(asked, limits))
        self._save()

    # Reading the race

    @property
    def events(self) -> list[Event]:
        """The events of the race so far, in order; read only."""
        return self._events

    def in_memory(self) -> Race:
        """Return this race with all of its events in memory, for those who read them often.

        >>> race = Race(["a", "b"], [1], direction="minimize")
        >>> race.in_memory().events == race.events
        True
        """
        return self

    def forget(self) -> None:
        """Remove the events so far from memory, for callers that have stored them.

        The race continues as before, but :attr:`events` and :attr:`runs` begin here.

        >>> race = Race(["a", "b"], [1], direction="minimize")
        >>> race.forget()
        >>> race.events, race.pareto
        ([], ('a', 'b'))
        """
        self._events.clear()

    def snapshot(self) -> bytes:
        """Return the state and the rankings as bytes, from which a store resumes the race."""
        return encode_snapshot(self._state, self._ranked_runs)

    @property
    def state(self) -> State:
        """The full state of the race; read only."""
        return self._state

    @property
    def status(self) -> RaceStatus:
        """The status of the race, as a record that can be printed or written as JSON."""
        return RaceStatus.of(self._state)

    @property
    def times(self) -> tuple[float, ...]:
        """The times at which the race compares the algorithms."""
        return self._state.setup.times

    @property
    def fit(self) -> Fit:
        """The function with which the race makes a posterior of rankings."""
        return self._fit

    @property
    def question(self) -> Question:
        """What the race is to find out."""
        return self._state.setup.question

    @property
    def budget(self) -> Budget:
        """The limits that are in force now."""
        return self._state.setup.budget

    @property
    def pareto(self) -> tuple[str, ...]:
        """The racing algorithms: neither eliminated nor removed."""
        return self._state.members.present()

    @property
    def eliminated(self) -> dict[str, Verdict]:
        """The verdicts about eliminated algorithms, in order: by which rival, how certainly."""
        return dict(self._state.members.eliminated)

    @property
    def ended(self) -> str | None:
        """The reason why the race requests no further runs; None while it does.

        "resolved", "no instances left", "budget of runs spent", "budget of time spent", "deadline",
        "limits of candidates" if all undecided algorithms have reached limits of their own, or
        "baseline removed, so nothing is compared".
        """
        return self._state.progress.ended

    @property
    def failures(self) -> dict[str, str]:
        """The reasons why runs of each algorithm failed, with numbers of runs and instances."""
        return dict(self.status.runs.why)

    @property
    def rounds(self) -> int:
        """The number of rounds that were decided."""
        return self._state.progress.n_rounds

    @property
    def spent(self) -> Spent:
        """The number of requested runs that were made, and their total time."""
        return self._state.ledger.spent

    @property
    def n_runs(self) -> int:
        """The number of runs made, where each extension and each repetition counts."""
        return self._state.ledger.n_runs.total()

    @property
    def runs(self) -> Runs:
        """The runs that decisions use; a run and its extensions are one run."""
        setup, ledger = self._state.setup, self._state.ledger
        told = (event.run for event in self._events if isinstance(event, Told | Imported))
        runs = ledger.counted(told)
        return Runs.from_records(runs, direction=setup.direction, clock=setup.clock)

    @property
    def posterior(self) -> Posterior | None:
        """The posterior of the last decision; None if it was made without one."""
        state = self._state
        if self._posterior is None and state.progress.decision_input is not None:
            rankings = self._rank_runs(state.progress.decision_input)
            self._posterior = fit_posterior(
                self._fit, rankings, state.setup.seed, state.progress.n_rounds - 1
            )
        return self._posterior

    def verdict(self, algorithm: str) -> Verdict:
        """Return the verdict about an algorithm: Pareto member, equivalent, dominated, undecided...

        It is that of the last decision, as :meth:`Posterior.verdicts` of its posterior has it.
        """
        name = self._find_algorithm(algorithm)
        return next(one for one in self.verdicts() if one.algorithm == name)

    def verdicts(self) -> list[Verdict]:
        """Return the verdict about each algorithm: candidates, then eliminated and removed ones."""
        return list_verdicts(self._state)

    def __str__(self) -> str:
        return str(self.status.with_best(self.posterior))

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return render_race(str(self), self.status.with_best(self.posterior).ribbon)

    def _begin(self, started: Started) -> None:
        self._state: State = start_state(started)
        self._events: list[Event] = [started]
        fit, stored = started.question.fit, started.model
        model = stored if fit is None else started.question.model
        self._fit: Fit = fit if callable(fit) and model.function else model.make_fit()
        ranked = stored if model.function else model  # a function is given rankings
        self._posterior: Posterior | None = None
        self._ranked_runs = IncrementalRankings(
            started.times, started.direction, started.clock, ranked.rank_options()
        )

    @classmethod
    def _restore(
        cls,
        events: Iterable[Event],
        stored: StoredRuns | None = None,
        question: Question | None = None,
    ) -> Iterator[tuple[Self, Event]]:
        """Restore a race from its events; yield it with each event, after applying that event."""
        race: Self | None = None
        for event in events:
            if isinstance(event, Started):
                question = question and question.at(event.times, event.clock)
            if isinstance(event, (Started, Extended)):  # a union would be made each time
                event = replace(event, question=recognise(event.question, question))
            if race is not None:
                race._posterior = None
                with explain_misfit(event):
                    race._record(event, in_store=stored is not None)
            elif isinstance(event, Started):
                race = cls.__new__(cls)
                race._begin(event)
                if stored is not None:
                    race._state = stored.restore(event, race._ranked_runs)
                    setup = race._state.setup
                    asked = recognise(setup.question, question)
                    race._state.setup = replace(setup, question=asked)
            else:
                raise DataError("expected an event of type Started as the first event of a race")
            yield race, event

    def _record(self, event: Event, *, in_store: bool = False) -> None:
        """Apply an event to the state, and append it to the list of events."""
        if isinstance(event, (Told, Imported)):
            key = key_of(event.run)
            round_ = self._state.progress.round_of(key)
            self._ranked_runs.add(key, None if in_store else event.run, round_)
        elif isinstance(event, Withdrawn):
            self._ranked_runs.withdraw(event.pairs)
        apply(self._state, event)
        self._events.append(event)

    def _save(self) -> None:
        """Store the new events, in a race that has a store."""

    def _find_algorithm(self, algorithm: str) -> str:
        """Return an algorithm's name; raise an error if it is not in this race."""
        name, members = to_name(algorithm), self._state.members
        names = [*members.racing, *members.eliminated, *members.removed]
        if name not in names:
            raise DataError(
                f"no algorithm named {name!r} in this race; {suggest_name(name, names)}"
            )
        return name

    def _end(self, why: str) -> tuple[Job, ...]:
        if self._state.progress.ended != why:
            self._record(Ended(why))
        return ()

    def _retry_or_decide(self) -> None:
        """Request failed runs again or, if there are none, decide the round."""
        state = self._state
        retry = plan_retries(state)
        if retry is not None:
            self._record(retry)
            return
        current = state.progress.current
        n_failed = state.find_failing()
        for name in filter(n_failed.__contains__, state.members.present()):
            self._record(Removed(name, f"{format_count(n_failed[name], 'run')} failed"))
        if state.progress.pending and state.progress.current != current:
            return  # removals cancelled the round; the next one is decided when complete
        rankings = self._rank_runs(DecisionInput(state.progress.current, state.rated()))
        fit, question, posterior = self._fit, state.setup.question, None
        seed, number = state.setup.seed, state.progress.n_rounds
        if question.n_draws is not None and fit is default_fit:
            fit = partial(default_fit, draws=question.n_draws)
        if question.posterior_for != "nothing":
            posterior = fit_posterior(fit, rankings, seed, number)
        decision = _decide(state, posterior, rankings)
        if fit is not self._fit and not decision.open:  # what ends a race needs all draws
            posterior = fit_posterior(self._fit, rankings, seed, number + 1)
            decision = _decide(state, posterior, rankings)
        self._posterior = posterior if fit is self._fit else None  # fitted when it is asked for
        orphans = state.members.find_orphans(decision)
        if orphans and question.hands_over:
            names = (*state.rated(), *orphans)
            rankings = self._rank_runs(DecisionInput(state.progress.current, names))
            decision = _decide(state, posterior, rankings)
        if decision.problems:
            problems = "; ".join(decision.problems)
            number = state.progress.n_rounds + 1
            warn(f"round {number} decides nothing, for {problems}", category=FitWarning)
        self._record(Decided(state.progress.current, decision))

    def _rank_runs(self, decision_input: DecisionInput) -> Rankings | None:
        """Return the rankings of the runs that a decision uses; None if it uses no runs.

        They have the largest group of algorithms that is connected by common instances. The
        comparison with other groups would rest on the prior alone, so these are left out like
        algorithms without runs.
        """
        round_, names = decision_input
        state = self._state
        rankings = self._ranked_runs.rankings(round_, names, state.ledger, state.pool)
        if rankings is None:
            return None
        largest, *others = connected_groups(rankings)
        return rankings.among(largest) if others else rankings


def _decide(state: State, posterior: Posterior | None, rankings: Rankings | None) -> Decision:
    """Return the decision of a round; a posterior that is not trusted is not used."""
    view = state.view()
    if rankings is None:
        return replace(view.unchanged(), batch=view.budget.next_batch(view.batch, 0, 0))
    problems = () if posterior is None else posterior.diagnostics.problems
    decision = state.setup.question.decide(view, rankings, None if problems else posterior)
    verdicts = tuple(_shorten(one) for one in decision.verdicts)
    return replace(decision, verdicts=verdicts, problems=problems or decision.problems)


def _shorten(verdict: Verdict) -> Verdict:
    """Return a verdict without what the state of a race knows, as its event stores it."""
    prob = None if verdict.probability is None else round(verdict.probability, 6)
    return verdict._replace(probability=prob, unsettled=None)


def check_budget(budget: object) -> Budget:
    """Return the budget, by default without limits; raise an error if it is none."""
    if budget is None:
        return Budget()
    if not isinstance(budget, Budget):
        raise DataError("expected Budget(...)", budget=budget)
    return budget
