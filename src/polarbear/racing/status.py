"""``RaceStatus``: the status of a race, with one rendering to text and one to JSON.

Races, results, replays, stores, the terminal, the command line and the report all show this record.
A store writes it with each decision, so that reading it takes one row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from math import inf, isfinite
from typing import Any, Self

from polarbear._text import (
    escape_lines,
    escape_text,
    format_count,
    format_duration,
    format_list,
    format_unit,
    render_card,
)
from polarbear.data.names import natural_sort_key
from polarbear.data.run import Direction, Status
from polarbear.inference.verdicts import Verdict, describe_shortage
from polarbear.racing.budget import Budget
from polarbear.racing.decisions import Forecast, pair
from polarbear.racing.events import NO_INSTANCES
from polarbear.racing.failures import describe_failures
from polarbear.racing.ledger import Spent
from polarbear.racing.questions.question import Question
from polarbear.racing.questions.stored import question_from_plain, question_to_plain
from polarbear.racing.state import State

STATUS_NUMBERS = [
    "prob_in_pareto",
    "prob_dominated",
    "epsilon",
    "since",
    "until",
    "instances",
    "certainty",
]
"""The fields of an algorithm's status that are numbers or None."""

MAX_STATUS_LINES = 20
"""The largest number of algorithms whose status is in the text of a store."""


@dataclass(frozen=True)
class StoreFacts:
    """Facts about a store and its runs, which complete the status of its race.

    Attributes
    ----------
    name
        The file, or the URL without user and password.
    run_statuses
        The number of runs of each algorithm by run status, without withdrawn runs.
    n_conflicts
        The number of refused runs: the same run is stored with another outcome.
    n_events, last_event
        The number of events, and the kind of the last one.
    epoch, holder
        How often the store was opened for writing, and the process that did so last.
    n_bytes
        The size of the store.
    """

    name: str
    run_statuses: Mapping[str, Mapping[Status, int]]
    n_conflicts: int
    n_events: int
    last_event: str
    epoch: int
    holder: str
    n_bytes: int


@dataclass(frozen=True)
class RaceStatus:
    """The status of a race: that of each algorithm, the runs and time spent, and the forecast.

    Attributes
    ----------
    statuses
        The status of every algorithm: candidates, then eliminated, then removed ones.
    direction, clock, n_times
        Whether small or large values are good, the unit of time, and the number of times.
    model, question, budget
        The model of the posteriors, as text, and the present question and limits.
    chosen
        With a preference, the algorithms that are chosen at this stage.
    resolved
        Whether the relation of every pair is known, as far as the question asks for it.
    n_rounds, n_open_pairs
        The number of decisions, and of pairs whose relation is not known at all times.
    n_instances, n_unused_instances
        The number of used instances, and of unused ones; None if instances are numbered without
        end.
    runs, wanted
        By algorithm, the number of runs made, and of requested runs that have not arrived.
    n_withdrawn
        The number of withdrawn runs, which stay recorded but do not count.
    spent, requested
        The number and the total time of the runs made, and of all runs that were requested.
    forecast, n_since_decision
        The forecast of the last decision, None if it has none, and the number of runs that arrived
        for later rounds.
    failed, failures
        By algorithm, the number of runs that failed or reached a limit, and why.
    ended
        Why the race requests no further runs; None while it does.
    news
        The changes since the previous status, as sentences.
    store
        Facts about the store that this status was read from; else None.

    Examples
    --------
    >>> from polarbear import Race
    >>> race = Race(["a", "b"], [1, 2], direction="minimize")
    >>> race.status.pareto, race.status.n_runs
    (('a', 'b'), 0)
    >>> print(race.status.statuses[0])
    a is undecided: not settled with b
    >>> race.status.describe_spent(), race.status.describe_forecast()
    ('0 runs, 0', '')
    >>> print(race.status)
    race of 2 algorithms after 0 rounds, 1 pair open
      racing      a, b
      eliminated  none
      error       a given member of the Pareto set is ever eliminated with probability at most 0.05
      spent       0 runs, 0
    """

    statuses: tuple[Verdict, ...]
    direction: Direction
    clock: str
    n_times: int
    model: str
    question: Question
    budget: Budget
    chosen: tuple[str, ...]
    resolved: bool
    n_rounds: int
    n_open_pairs: int
    n_instances: int
    n_unused_instances: int | None
    runs: Mapping[str, int]
    wanted: Mapping[str, int]
    n_withdrawn: int
    spent: Spent
    requested: Spent
    forecast: Forecast | None
    n_since_decision: int
    failed: Mapping[str, int]
    failures: Mapping[str, str]
    ended: str | None = None
    news: tuple[str, ...] = ()
    store: StoreFacts | None = None

    @classmethod
    def of(cls, state: State, news: Sequence[str] = ()) -> Self:
        """Return the status of a race from its state."""
        pending = (run for round_ in state.pending_rounds.values() for run in round_.values())
        return cls(
            statuses=tuple(list_statuses(state)),
            direction=state.direction,
            clock=state.clock,
            n_times=len(state.times),
            model=str(state.model),
            question=state.question,
            budget=state.budget,
            chosen=tuple(name for name in state.present() if name in state.chosen),
            resolved=state.resolved,
            n_rounds=state.n_rounds,
            n_open_pairs=len(state.open),
            n_instances=len(state.order),
            n_unused_instances=state.left,
            runs={name: number for name, number in state.n_runs.items() if number},
            wanted=dict(Counter(key.algorithm for key in state.wanted)),
            n_withdrawn=len(state.withdrawn),
            spent=state.spent,
            requested=state.requested,
            forecast=state.forecast,
            n_since_decision=sum(run.status is not None for run in pending),
            failed=dict(Counter(key.algorithm for key in state.failed)),
            failures=describe_failures(state.reasons, state.n_runs, state.eliminated),
            ended=state.ended,
            news=tuple(news),
        )

    @property
    def pareto(self) -> tuple[str, ...]:
        """The candidates: algorithms that are neither dominated nor removed."""
        return tuple(status.algorithm for status in self.statuses if status.is_candidate)

    @property
    def eliminated(self) -> tuple[str, ...]:
        """The dominated algorithms, in the order in which they were eliminated."""
        return tuple(status.algorithm for status in self.statuses if status.status == "dominated")

    @property
    def removed(self) -> tuple[str, ...]:
        """The algorithms that were removed from the race."""
        return tuple(status.algorithm for status in self.statuses if status.status == "removed")

    @property
    def n_runs(self) -> int:
        """The number of runs made, where each extension and each repetition counts."""
        return sum(self.runs.values())

    @property
    def n_wanted(self) -> int:
        """The number of requested runs that have not arrived yet."""
        return sum(self.wanted.values())

    # Text

    def __str__(self) -> str:
        n, n_racing = len(self.statuses), len(self.pareto)
        verb = "remain" if self.ended else "still race"
        remaining = "" if n == n_racing else f"{n_racing:,} of {n:,} {verb}, "
        pairs, rounds = (
            format_count(self.n_open_pairs, "pair"),
            format_count(self.n_rounds, "round"),
        )
        progress = "resolved" if self.resolved else f"{remaining}{pairs} open"
        head = f"race of {format_count(n, 'algorithm')} after {rounds}, {progress}"
        facts = [*self._list_facts(), *(_list_store_facts(self, self.store) if self.store else ())]
        lines = [head, *(f"  {label:<11} {fact}" for label, fact in facts)]
        return "\n".join([*lines, *(_render_run_table(self.store) if self.store else ())])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return render_status_card(str(self), self.statuses)

    def _list_facts(self) -> Iterator[tuple[str, str]]:
        """Yield facts about the race as a whole, as pairs of label and text."""
        yield "remaining" if self.ended else "racing", format_list(self.pareto)
        if self.chosen:  # for a known budget: no algorithm is eliminated
            yield "chosen", format_list(self.chosen)
        else:
            yield "eliminated", format_list(self.eliminated)
        if self.removed:
            yield "removed", format_list(self.removed)
        yield "error", self.question.describe()
        yield "spent", self.describe_spent()
        if self.n_withdrawn:
            yield "withdrawn", f"{format_count(self.n_withdrawn, 'run')}, which are not counted"
        if self.describe_forecast():
            yield "to go", self.describe_forecast()
        if self.ended:
            advice = "; with more of them the race goes on" if self.ended == NO_INSTANCES else ""
            yield "ended", f"{escape_text(self.ended)}{advice}"
        for name in dict.fromkeys([*self.failed, *self.failures]):
            number = format_count(self.failed.get(name, 0), "run")
            why = f": {escape_lines(self.failures[name])}" if name in self.failures else ""
            yield "failed", f"{number} of {escape_text(name)}{why}"

    def describe_spent(self) -> str:
        """Return as text the runs made, the runs requested if more, and the time spent."""
        is_more = self.spent.runs < self.requested.runs
        requested = f" of {self.requested.runs:,} requested" if is_more else ""
        time = format_duration(self.spent.time, self.clock)
        return f"{format_count(self.spent.runs, 'run')}{requested}, {time}"

    def describe_forecast(self) -> str:
        """Return the forecast as text, and whether the instances suffice; "" without a forecast."""
        if not self.n_open_pairs or self.forecast is None:
            return ""
        needed = max(1.0, self.forecast.instances[1])
        return f"{self.forecast}{describe_shortage(needed, self.n_unused_instances)}"

    # JSON

    def to_dict(self) -> dict[str, Any]:
        """Return the status as a dictionary for JSON, in which None stands for infinite numbers.

        >>> from polarbear import Race
        >>> status = Race(["a", "b"], [1, 2], direction="minimize").status
        >>> RaceStatus.from_dict(status.to_dict()) == status
        True
        """
        stored = tuple(field.name for field in fields(self))
        derived = ("pareto", "eliminated", "removed", "n_runs", "n_wanted")
        return _to_plain({name: getattr(self, name) for name in stored + derived})

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Return the status from what :meth:`to_dict` returned, without facts about a store."""
        forecast, unused = plain["forecast"], plain["n_unused_instances"]
        return cls(
            statuses=tuple(map(_status_from_plain, plain["statuses"])),
            direction="maximize" if plain["direction"] == "maximize" else "minimize",
            question=question_from_plain(plain["question"]),
            budget=Budget.from_plain(plain["budget"]),
            chosen=tuple(map(str, plain["chosen"])),
            resolved=bool(plain["resolved"]),
            n_unused_instances=None if unused is None else int(unused),
            spent=_spent_from_plain(plain["spent"]),
            requested=_spent_from_plain(plain["requested"]),
            forecast=None if forecast is None else _forecast_from_plain(forecast),
            ended=None if plain["ended"] is None else str(plain["ended"]),
            news=tuple(map(str, plain["news"])),
            clock=str(plain["clock"]),
            model=str(plain["model"]),
            runs=_counts_from_plain(plain["runs"]),
            wanted=_counts_from_plain(plain["wanted"]),
            n_times=int(plain["n_times"]),
            n_rounds=int(plain["n_rounds"]),
            n_open_pairs=int(plain["n_open_pairs"]),
            n_instances=int(plain["n_instances"]),
            n_withdrawn=int(plain["n_withdrawn"]),
            n_since_decision=int(plain["n_since_decision"]),
            failed=_counts_from_plain(plain["failed"]),
            failures={str(name): str(why) for name, why in plain["failures"].items()},
        )


def _to_plain(value: Any) -> Any:
    """Convert records to dictionaries, tuples to lists, and infinite numbers to None."""
    if isinstance(value, Question):
        return _to_plain(question_to_plain(value))
    if isinstance(value, Budget):
        return value.plain()
    if isinstance(value, StoreFacts):
        return {field.name: _to_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Verdict | Spent | Forecast):
        return _to_plain(value._asdict())
    if isinstance(value, Mapping):
        return {str(key): _to_plain(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return [_to_plain(part) for part in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def _status_from_plain(plain: Mapping[str, Any]) -> Verdict:
    """Return an algorithm's status from its dictionary; raise an error if that is invalid."""
    status = Verdict(**plain)
    numbers = {
        name: None if getattr(status, name) is None else float(getattr(status, name))
        for name in STATUS_NUMBERS
    }
    return status._replace(
        algorithm=str(status.algorithm),
        open={str(name): float(time) for name, time in status.open.items()},
        decisive=tuple(map(str, status.decisive)),
        **numbers,
    )


def _spent_from_plain(plain: Mapping[str, Any]) -> Spent:
    return Spent(int(plain["runs"]), float(plain["time"]))


def _counts_from_plain(plain: Mapping[str, Any]) -> dict[str, int]:
    """Return a mapping from names to whole numbers; raise an error if it is invalid."""
    return {str(name): int(number) for name, number in plain.items()}


def _forecast_from_plain(plain: Mapping[str, Any]) -> Forecast:
    """Return a forecast from its dictionary, in which None stands for infinity."""

    def quantiles(values: Sequence[float | None]) -> tuple[float, float, float]:
        low, middle, high = (inf if value is None else float(value) for value in values)
        return low, middle, high

    return Forecast(quantiles(plain["instances"]), quantiles(plain["runs"]))


def _list_store_facts(status: RaceStatus, store: StoreFacts) -> Iterator[tuple[str, str]]:
    """Yield facts about a store and each algorithm in it, as pairs of label and text."""
    unit = f" of {format_unit(status.clock)}" if format_unit(status.clock) else ""
    times = f"{status.direction} at {format_count(status.n_times, 'time')}{unit}"
    yield "store", f"{escape_text(store.name)}: {format_count(status.n_runs, 'run')} made, {times}"
    yield "model", escape_text(status.model)
    for one in status.statuses[:MAX_STATUS_LINES] if status.n_rounds else ():
        yield f"{escape_text(one.algorithm)}:", one.brief()
    pairs, runs = format_count(status.n_open_pairs, "pair"), format_count(status.n_wanted, "run")
    yield "open", f"{pairs}, {runs} wanted"
    yield "last event", f"{store.n_events:,}: {store.last_event}"
    yield "last writer", f"{store.holder} (epoch {store.epoch})"
    yield "size", f"{store.n_bytes / 1e6:,.1f} MB"
    if store.n_conflicts:
        yield (
            "remarks",
            f"{format_count(store.n_conflicts, 'run')} came twice with different outcomes",
        )


def _render_run_table(store: StoreFacts) -> list[str]:
    """Return the lines of a table with the number of runs by algorithm and run status."""
    present = {status for counts in store.run_statuses.values() for status in counts}
    columns = [status for status in Status if status in present]
    if not columns:
        return []
    width = max(len("runs"), *(len(escape_text(name)) for name in store.run_statuses))
    rows = [f"  {'runs':{width}}" + "".join(f"  {status:>13}" for status in columns)]
    for name, counts in store.run_statuses.items():
        numbers = "".join(f"  {counts.get(status, 0):>13,}" for status in columns)
        rows.append(f"  {escape_text(name):{width}}{numbers}")
    return rows


def render_status_card(text: str, statuses: Sequence[Verdict]) -> str:
    """Return the HTML with which a notebook displays a race."""
    rows = [[one.algorithm, one.status, f"{one}."] for one in statuses]
    return render_card(text, ["algorithm", "status", "verdict"], rows)


def list_statuses(state: State) -> list[Verdict]:
    """Return the status of every algorithm: candidates, then eliminated, then removed ones."""
    rivals = state.rivals()
    removed = sorted(state.removed, key=natural_sort_key)
    names = (*state.present(), *state.eliminated, *removed)
    return [_make_status(state, name, rivals.get(name, {})) for name in names]


def _make_status(state: State, name: str, rivals: Mapping[str, int]) -> Verdict:
    """Return an algorithm's status at the last decision.

    ``rivals`` are those of its open pairs, with the open times as bits.
    """
    if name in state.removed:
        return Verdict(name, "removed", why=state.removed[name])
    if name in state.eliminated:
        _, rival, probability, decisive = state.eliminated[name]
        status = Verdict(name, "dominated", rival=rival, prob_dominated=probability)
        return status._replace(decisive=decisive)
    assessed = state.assessed.get(name)
    if assessed is None:
        alone = not rivals and len(state.racing) == 1
        kind = state.question.alone if alone else "undecided"
        status = Verdict(name, kind, clock=state.clock)
    else:
        _, kind, prob_in_pareto, rival, since, until = assessed
        when = {"since": since, "until": until, "clock": state.clock}
        question = state.question
        epsilon = getattr(question, "epsilon", None) if kind == "equivalent" else None
        required = None if question.posterior_for == "decision" else question.certainty
        status = Verdict(name, kind, prob_in_pareto, rival, epsilon=epsilon, **when)
        status = status._replace(certainty=required)
    if state.obstacle is not None:
        return status._replace(why=state.obstacle)
    return _add_forecast(state, status, rivals) if rivals else status


def _add_forecast(
    state: State, status: Verdict, rivals: Mapping[str, int]
) -> Verdict:
    """Return a status with undecided rivals, and the instances and time needed to decide these."""
    last_open_time = {
        rival: state.times[rivals[rival].bit_length() - 1]
        for rival in sorted(rivals, key=natural_sort_key)
    }
    status = status._replace(open=last_open_time, left=state.left)
    if state.has_reached_limit(status.algorithm):
        status = status._replace(why="its limit of runs is reached")
    needs = [state.need.get(pair(status.algorithm, rival), inf) for rival in last_open_time]
    instances = max(needs, default=inf)
    if instances == inf:
        return status
    # The algorithm runs until the last open time of all its pairs, each rival until that of its
    # own pair.
    time = instances * max(last_open_time.values())
    time += sum(need * until for need, until in zip(needs, last_open_time.values(), strict=True))
    return status._replace(instances=instances, time=time)
