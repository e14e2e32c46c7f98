"""``Race``: ask what to run, tell what was found. No clock, no files, no processes.

A race is a function of its events. Its state is changed by ``state.apply`` alone, and what it asks
and decides follows from the state: the same events give the same race, on every machine, whenever
it was interrupted.

1. ``ask`` gives the runs that are wanted and were not told yet. To ask twice is to ask once.
2. When all of them are in, the next ``ask`` tries failed ones again, decides, and plans a round.
3. Runs are sorted before they are looked at, and seeds follow from names: neither the order of
   ``tell`` nor who ran what matters.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from numbers import Integral, Real
from typing import Self

from numpy.typing import ArrayLike

from polarbear._text import format_count
from polarbear.data import grid
from polarbear.data.names import check_name, check_names, natural_sort_key, suggest_name, to_name
from polarbear.data.rankings import Rankings
from polarbear.data.run import Direction, Run, Status, normalise_run, sign_of
from polarbear.data.runs import Runs
from polarbear.errors import DataError, FitWarning, warn
from polarbear.inference.algorithm_status import AlgorithmStatus
from polarbear.inference.fit import connected_groups
from polarbear.inference.posterior import Posterior
from polarbear.racing.deciding import assess_candidates, decide
from polarbear.racing.events import (
    Added,
    Asked,
    Assessed,
    Decided,
    Eliminated,
    Ended,
    Event,
    Extended,
    Failed,
    Forecast,
    Hosted,
    Identified,
    Imported,
    Offered,
    Removed,
    Started,
    Told,
    Withdrawn,
    fitting_in,
)
from polarbear.racing.failures import describe_failures
from polarbear.racing.fitting import fit_posterior, screening_fit
from polarbear.racing.incremental_rankings import IncrementalRankings
from polarbear.racing.jobs import Job, key_of
from polarbear.racing.model import Fit, FitOptions, Model
from polarbear.racing.notes import withdrawal
from polarbear.racing.planning import plan, plan_retries
from polarbear.racing.rules import Rules, check_rules
from polarbear.racing.state import DecisionInput, Spent, State, apply, begin, runs_in
from polarbear.racing.status import RaceStatus, as_card, statuses_in


class Race:
    """A race of algorithms until it is settled who belongs to the anytime Pareto set.

    Parameters
    ----------
    algorithms
        The names of those who race; :meth:`add` adds more at any time.
    times
        The times at which one asks who is ahead.
    direction
        Whether small ("minimize") or large ("maximize") values are good.
    instances
        The names of the instances, drawn from without replacement. By default instances are
        numbered "1", "2", ... without end, and made from ``job.instance_seed``.
    rules
        How sure to be, how much to spend.
    seed
        The same seed gives the same race.
    clock
        What time counts: "evaluations", "seconds", ...
    fit
        Options of ``polarbear.fit``, such as ``{"prior": "GP", "evidence": "rankings"}``; they
        are recorded, and hold for whatever is made of the events. Or a function of rankings and a
        seed, which is recorded by its name alone.

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
    sad is dominated by lucky (P > 0.999)
    >>> Race.from_events(race.events).pareto
    ('lucky',)
    """

    def __init__(
        self,
        algorithms: Iterable[str],
        times: ArrayLike,
        *,
        direction: Direction,
        instances: Iterable[str] | None = None,
        rules: Rules | None = None,
        seed: int = 0,
        clock: str = "time",
        fit: FitOptions = None,
    ) -> None:
        sign_of(direction)
        if not isinstance(seed, Integral):
            raise DataError(f"seed={seed!r}: expected a whole number")
        rules = Rules() if rules is None else check_rules(rules)
        at = tuple(grid.check_times(times).tolist())
        model = Model.of(fit)
        rules = rules.resolve_preference(at, clock)
        started = Started(int(seed), at, direction, clock, instances is None, rules, model)
        self._begin(started, fit)
        if instances is not None:
            self.offer(instances)
        names = check_names(algorithms, "algorithms")
        for name in sorted(names, key=natural_sort_key):
            self.add(name)

    @classmethod
    def from_events(
        cls, events: Iterable[Event], *, fit: FitOptions = None, keep: bool = True
    ) -> Self:
        """The race that these events are, as it was when the last of them happened.

        ``fit``: in place of the one that the race was started with, which holds by default.
        ``keep=False``: they are in some store, and need not be kept in memory.
        """
        race: Self | None = None
        for race, _ in cls._replayed(events, fit):
            if not keep:
                race.forget()
        if race is None:
            raise DataError("a race without events is none: the first one is that it started")
        return race

    @classmethod
    def after_each_round(cls, events: Iterable[Event], *, fit: FitOptions = None) -> Iterator[Self]:
        """The race that these events are, as it stood after each of its decisions.

        It is one race that goes on: ask it what you want to know before you take the next.

        >>> import numpy as np, polarbear as pb
        >>> runs = pb.simulation.simulate_runs(np.array([[2.0, 0.0, -2.0]] * 3), 40)
        >>> stages = Race.after_each_round(pb.replay(runs).events)
        >>> [len(race.pareto) for race in stages][-1]
        1
        """
        return (race for race, event in cls._replayed(events, fit) if isinstance(event, Decided))

    # Running

    def ask(self, now: float | None = None) -> tuple[Job, ...]:
        """The runs that are wanted and not told yet; none if the race is at its end.

        When all of a round are in, this is where the race decides and plans the next one. ``now``:
        the time, for rules with a deadline. :attr:`ended` says why nothing is asked for.
        """
        deadline = self.rules.deadline
        if deadline is not None and now is None:
            raise DataError("these rules have a deadline: ask(now) needs the time")
        if not isinstance(deadline, Real | None):
            raise DataError(
                f"deadline={deadline!r}: a Race has no clock, so expected a number to compare now "
                "with; Rules.resolve_deadline(time.time()) makes one of it"
            )
        baseline = self.rules.baseline
        if baseline is not None and baseline not in self._state.racing:
            names = list(self._state.racing)
            raise DataError(
                f"baseline={baseline!r} is not in the race; {suggest_name(baseline, names)}"
            )
        while True:
            state = self._state
            if deadline is not None and now is not None and now >= deadline:
                return self._end("deadline")
            if state.news and not state.pending_rounds:
                self._conclude()
                continue
            # Planned right after a decision, before the next one: whatever was told by then.
            planned = plan(state) if len(state.pending_rounds) <= state.rules.overlap else None
            if isinstance(planned, Asked):
                self._record(planned)
            elif state.pending_rounds and state.complete:
                self._conclude()
            elif state.wanted:
                return tuple(state.wanted.values())
            elif state.screened:
                self._conclude(screening=False)  # the last decision of a race has all draws
            else:
                return self._end(planned or "resolved")

    def tell(self, run: Run, *, why: str = "", output: str = "") -> None:
        """Take a run that was asked for. Order does not matter.

        A run that failed is told as well, with its status and what it had found; ``why`` it
        failed and the end of its ``output`` are kept with it. A run told twice counts once, and
        the first one stays.
        """
        run = normalise_run(run)
        key = key_of(run)
        if key not in self._state.ever_requested:
            raise DataError(
                f"the race did not ask for repetition {run.repetition} of {run.algorithm!r} on "
                f"instance {run.instance!r}; load(runs) takes earlier runs"
            )
        if key not in self._state.told:
            self._record(Told(run))
            if why and run.status not in (Status.CUT, Status.FINISHED):
                self._record(Failed.of(run, why, output))

    # Changing who takes part

    def add(
        self, algorithm: str, *, max_runs: int | None = None, max_time: float | None = None
    ) -> None:
        """Let an algorithm join, or come back after it was eliminated or removed.

        A newcomer first runs on instances that others have run on. ``max_runs``, ``max_time``: the
        runs, and the time of all of them, that may be spent on it; it stays undecided if that does
        not settle its pairs.

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
            raise DataError("an algorithm needs a name")
        if name in self._state.racing:
            raise DataError(f"{name!r} is racing already")
        self._record(Added(name, max_runs, max_time))

    def remove(self, algorithm: str, why: str = "") -> None:
        """Let an algorithm leave. Its runs are kept, and count again if it comes back.

        >>> race = Race(["a", "b"], [1], direction="minimize")
        >>> race.add("c")
        >>> race.remove("a", "no licence")
        >>> race.pareto
        ('b', 'c')
        """
        name = self._known(algorithm)
        if name in self._state.removed:
            raise DataError(f"{name!r} was removed already")
        self._record(Removed(name, why))

    def offer(self, instances: Iterable[str]) -> None:
        """Add instances to be drawn from.

        >>> race = Race(["a", "b"], [1], direction="minimize", instances=["x"])
        >>> race.offer(["y", "z"])
        >>> sorted({job.instance for job in race.ask()})
        ['x', 'y', 'z']
        """
        if self._state.endless:
            raise DataError("the instances of this race are numbered, and do not come to an end")
        names = check_names(instances, "instances")
        if not {*names} <= self._state.instances:
            self._record(Offered(names))

    def record(self, note: Identified | Hosted | Failed) -> None:
        """Record what names stand for, which process made runs, or why one found nothing.

        No decision depends on it.

        >>> race = Race(["a", "b"], [1], direction="minimize")
        >>> race.record(Identified())
        >>> race.events[-1] == Identified()
        True
        """
        self._record(note)

    def load(self, runs: Runs) -> None:
        """Take earlier runs of algorithms that are in the race.

        They cost nothing, and their instances count as run on.
        """
        if not isinstance(runs, Runs) or runs.direction != self._state.direction:
            raise DataError(f"load takes Runs that {self._state.direction}, like the race")
        for name in runs.algorithms:
            self._known(name)
        for run in map(normalise_run, runs):
            if key_of(run) not in self._state.told:
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
        """Withdraw runs: they stay on record and do not count any more. Returns how many.

        All runs so far of an algorithm, on an instance, or of an algorithm on an instance; or of
        ``pairs`` (algorithm, instance). What was decided is decided again: eliminated algorithms
        come back and pairs are open. An instance by itself is not run on again, unless it is
        offered again. ``at``: when that is, as text.

        >>> race = Race(["a", "b"], [1], direction="minimize", instances=["x", "y"])
        >>> for job in race.ask():
        ...     race.tell(job.run([1], [len(job.algorithm + job.instance)]))
        >>> race.withdraw("a", why="it ran with another licence"), race.n_runs
        (2, 2)
        """
        name = None if algorithm is None else self._known(algorithm)
        before = self.n_runs
        event = withdrawal(self._state, name, instance, pairs, why, at)
        if event is not None:
            self._posterior = None
            self._record(event)
        return before - self.n_runs

    def extend(self, rules: Rules) -> None:
        """Go on under other rules: surer, longer, closer.

        If the rules differ in more than limits, all pairs are looked at again, and whoever was
        eliminated with less certainty than is now asked for comes back.

        >>> race = Race(["a", "b"], [1], direction="minimize", rules=Rules(max_runs=0))
        >>> race.extend(Rules(max_runs=100))
        >>> len(race.ask())
        16
        """
        state = self._state
        self._record(Extended(check_rules(rules).resolve_preference(state.times, state.clock)))

    # Asking how it stands

    @property
    def events(self) -> list[Event]:
        """Everything that happened, in order; to be read, not changed."""
        return self._events

    def forget(self) -> None:
        """Drop the events so far from memory: whoever calls this has stored them.

        The race goes on as before, but :attr:`events` and :attr:`runs` begin here.

        >>> race = Race(["a", "b"], [1], direction="minimize")
        >>> race.forget()
        >>> race.events, race.pareto
        ([], ('a', 'b'))
        """
        self._events.clear()

    @property
    def state(self) -> State:
        """Where it stands, in full; to be read, not changed."""
        return self._state

    @property
    def status(self) -> RaceStatus:
        """Where the race stands, as a record that can be printed, and written as JSON."""
        return RaceStatus.of(self._assessed())

    @property
    def times(self) -> tuple[float, ...]:
        """The times at which the race asks who is ahead."""
        return self._state.times

    @property
    def fit(self) -> Fit:
        """How it makes a posterior."""
        return self._fit

    @property
    def rules(self) -> Rules:
        """The rules that hold now."""
        return self._state.rules

    @property
    def pareto(self) -> tuple[str, ...]:
        """Who is still racing: all but those that are dominated. Valid at any time."""
        return self._state.present()

    @property
    def chosen(self) -> tuple[str, ...]:
        """The algorithms that a race with a preference chooses, as it stands; else none."""
        names = self._state.present()
        return tuple(name for name in names if name in self._state.chosen)

    @property
    def eliminated(self) -> dict[str, Eliminated]:
        """Who was eliminated, by whom and how surely, in order."""
        return dict(self._state.eliminated)

    @property
    def removed(self) -> frozenset[str]:
        """Who has left."""
        return frozenset(self._state.removed)

    @property
    def resolved(self) -> bool:
        """Whether the relation of every pair is known, as far as the rules ask for it."""
        return self._state.resolved

    @property
    def ended(self) -> str | None:
        """Why the race asks for nothing more; None while it does.

        "resolved", "no instances left", "max_runs", "max_time", "deadline", or "limits of
        candidates" if only algorithms are undecided that reached limits of their own.
        """
        return self._state.ended

    @property
    def failures(self) -> dict[str, str]:
        """Why runs failed, hung or found nothing, by algorithm: reasons with numbers of runs."""
        state = self._state
        return describe_failures(state.reasons, state.n_runs, state.eliminated)

    @property
    def outlook(self) -> Forecast | None:
        """How many more instances and runs it will take, with an interval, if that can be told."""
        return self._state.outlook

    @property
    def rounds(self) -> int:
        """How often the race has decided."""
        return self._state.round

    @property
    def spent(self) -> Spent:
        """How many runs were asked for, and how long they took together."""
        return self._state.spent

    @property
    def n_runs(self) -> int:
        """The number of runs made; one that was extended or made again counts each time."""
        return self._state.n_runs.total()

    @property
    def runs(self) -> Runs:
        """All runs; one that was extended is one run, as long as it was watched."""
        return runs_in(self._events, self._state)

    @property
    def posterior(self) -> Posterior | None:
        """What the last decision rests on: ratings of those who were racing then."""
        if self._posterior is None and self._state.basis is not None:
            rankings = self._rankings(self._state.basis)
            state = self._state
            self._posterior = fit_posterior(self._fit, rankings, state.seed, state.round - 1)
        return self._posterior

    def verdict(self, algorithm: str) -> AlgorithmStatus:
        """Return the status of an algorithm: member, equivalent, dominated, undecided, removed.

        It is that of the last decision, as :meth:`Posterior.statuses` of its posterior has it.
        """
        name = self._known(algorithm)
        return next(one for one in self.statuses() if one.algorithm == name)

    def statuses(self) -> list[AlgorithmStatus]:
        """Return the status of every algorithm: candidates, then eliminated, then removed ones."""
        return statuses_in(self._assessed())

    def __str__(self) -> str:
        return str(RaceStatus.of(self._state))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return as_card(str(self), self.statuses())

    # Inside

    def _begin(self, started: Started, fit: FitOptions) -> None:
        self._state: State = begin(started)
        self._events: list[Event] = [started]
        model = Model.of(fit) if fit is not None else started.model or Model()
        self._fit: Fit = fit if callable(fit) and model.function else model.make_fit()
        self._posterior: Posterior | None = None
        self._evidence = IncrementalRankings(
            started.times, started.direction, started.clock, model.ranking()
        )

    @classmethod
    def _replayed(cls, events: Iterable[Event], fit: FitOptions) -> Iterator[tuple[Self, Event]]:
        race: Self | None = None
        for event in events:
            if race is not None:
                race._posterior = None
                with fitting_in(event):
                    race._record(event)
            elif isinstance(event, Started):
                race = cls.__new__(cls)
                race._begin(event, fit)
            else:
                raise DataError("the first event of a race is that it started")
            yield race, event

    def _record(self, event: Event) -> None:
        if isinstance(event, Told | Imported):
            self._evidence.add(event.run, self._state.round_of(key_of(event.run)))
        elif isinstance(event, Withdrawn):
            self._evidence.withdraw(event.pairs)
        apply(self._state, event)
        self._events.append(event)

    def _assessed(self) -> State:
        """The state with statuses, which decisions of version 1 do not have."""
        state = self._state
        basis = None if state.assessed or state.news else state.basis
        if basis is None or basis.algorithms != state.rated():
            return state
        posterior, rankings = self.posterior, self._rankings(basis)
        trusted = posterior is not None and posterior.diagnostics.trusted
        if rankings is None or not trusted:
            return state
        statuses, _ = assess_candidates(state, posterior, rankings)
        return replace(state, assessed={one.algorithm: Assessed.of(one) for one in statuses})

    def _end(self, why: str) -> tuple[Job, ...]:
        if self._state.ended != why:
            self._record(Ended(why))
        return ()

    def _conclude(self, *, screening: bool = True) -> None:
        """All runs are in: try failed ones again, or decide; by a fit with few draws if it may."""
        state = self._state
        retry = plan_retries(state)
        if retry is not None:
            self._record(retry)
            return
        now, most = state.current, state.rules.max_failures
        failing = state.failing()
        for name in state.present() if most is not None else ():
            if most is not None and failing[name] > most:
                self._record(Removed(name, f"{format_count(failing[name], 'run')} failed"))
        if state.pending_rounds and state.current != now:
            return  # it was the round of those who left: the next one is decided when it is in
        rankings = self._rankings(DecisionInput(state.current, state.rated()))
        fits = state.rules.baseline is None  # a comparison with a baseline needs no posterior
        glance = screening_fit(self._fit, rankings, state) if screening and fits else None
        # The posterior of a race has all draws: those of a screening fit are not kept.
        self._posterior = None
        if fits and glance is None:
            self._posterior = fit_posterior(self._fit, rankings, state.seed, state.round)
        decided = decide(state, glance or self._posterior, rankings)
        decided = replace(decided, screening=glance is not None)
        if decided.problems:
            problems, without = "; ".join(decided.problems), "decides nothing"
            if state.rules.error_control != "per_look":
                without = "has no forecast"
            warn(f"round {state.round + 1} {without}, for {problems}", FitWarning)
        self._record(decided)

    def _rankings(self, basis: DecisionInput) -> Rankings | None:
        """Rankings that count, of the largest group of algorithms that they compare.

        The others wait as those do that have not run: the prior alone would compare them.
        """
        used = self._state.used
        rankings = self._evidence.rankings(basis.round, basis.algorithms, self._counts, used)
        if rankings is None:
            return None
        largest, *others = connected_groups(rankings)
        return rankings.among(largest) if others else rankings

    def _counts(self, run: Run) -> Run | None:
        """A run as it counts: what was asked for is the first repetition, tried again or not.

        An extension has the number of the run that it extends.
        """
        key, state = key_of(run), self._state
        if key in state.superseded:
            return None
        first = key._replace(repetition=state.extends.get(key, key.repetition))
        return run._replace(repetition=0 if first in state.ever_requested else first.repetition)

    def _known(self, algorithm: str) -> str:
        name, state = to_name(algorithm), self._state
        names = [*state.racing, *state.eliminated, *state.removed]
        if name not in names:
            raise DataError(
                f"no algorithm named {name!r} in this race; {suggest_name(name, names)}"
            )
        return name
