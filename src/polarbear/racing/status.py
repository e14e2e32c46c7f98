"""``RaceStatus``: where a race stands, with one rendering to text and one to JSON.

Races, results, replays, stores, the terminal, the command line and the report all show this record.
A store keeps it beside the last decision, so that reading it takes one row.
"""

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
from polarbear.inference.algorithm_status import AlgorithmStatus, describe_shortage
from polarbear.racing.events import NO_INSTANCES, Forecast
from polarbear.racing.failures import describe_failures
from polarbear.racing.rules import Rules
from polarbear.racing.state import Spent, State, pair

MAX_STATUS_LINES = 20
"""The number of algorithms whose status is in the text of a store: there may be hundreds."""


@dataclass(frozen=True)
class StoreFacts:
    """What a store knows about itself and its runs, beside the status of its race.

    Attributes
    ----------
    name
        The file, or the URL without user and password.
    run_statuses
        The number of runs of each algorithm by how they ended, without withdrawn runs.
    n_conflicts
        The number of runs that were refused because the same run is there with another outcome.
    n_events, last_event
        The number of events, and the kind of the last one.
    epoch, holder
        How often the store was opened for writing, and by which process last.
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
    """Where a race stands: the status of each algorithm, what was spent, what is left.

    Attributes
    ----------
    statuses
        The status of every algorithm: candidates, then eliminated, then removed ones.
    direction, clock, n_times
        Whether small or large values are good, what time counts, and the number of times.
    model, rules
        How the race makes posteriors, in words, and the rules that hold.
    chosen
        With a preference, the algorithms that would be run as it stands.
    resolved
        Whether the relation of every pair is known, as far as the rules ask for it.
    n_rounds, n_open_pairs
        The number of decisions, and of pairs whose relation is not known at all times.
    n_instances, n_unused_instances
        The number of instances that were run on, and of those that are left to be drawn; None if
        instances do not come to an end.
    runs, wanted
        Of each algorithm, the number of runs made, and of runs asked for that are not in yet.
    n_withdrawn
        The number of runs that were withdrawn: they are on record and do not count.
    spent, n_answered
        What the runs asked for cost, and how many of them are in.
    forecast, n_since_decision
        How much was left at the last decision, if that can be told, and the number of runs of the
        rounds after it that are in.
    failures
        Why runs of each algorithm failed.
    ended
        Why the race asks for nothing more; None while it does.
    news
        What has happened since the status before this one, in words.
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
      error       a member of the Pareto set is ever eliminated with probability at most 0.05
      spent       0 runs, 0
    """

    statuses: tuple[AlgorithmStatus, ...]
    direction: Direction
    clock: str
    n_times: int
    model: str
    rules: Rules
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
    n_answered: int
    forecast: Forecast | None
    n_since_decision: int
    failures: Mapping[str, str]
    ended: str | None = None
    news: tuple[str, ...] = ()
    store: StoreFacts | None = None

    @classmethod
    def of(cls, state: State, news: Sequence[str] = ()) -> Self:
        """Return the status of a race in this state."""
        pending = (run for round_ in state.pending_rounds.values() for run in round_.values())
        return cls(
            statuses=tuple(statuses_in(state)),
            direction=state.direction,
            clock=state.clock,
            n_times=len(state.times),
            model=str(state.model),
            rules=state.rules,
            chosen=tuple(name for name in state.present() if name in state.chosen),
            resolved=state.resolved,
            n_rounds=state.round,
            n_open_pairs=len(state.open),
            n_instances=len(state.order),
            n_unused_instances=state.left,
            runs={name: number for name, number in state.n_runs.items() if number},
            wanted=dict(Counter(key.algorithm for key in state.wanted)),
            n_withdrawn=len(state.withdrawn),
            spent=state.spent,
            n_answered=state.n_answered,
            forecast=state.outlook,
            n_since_decision=sum(run.status is not None for run in pending),
            failures=describe_failures(state.reasons, state.n_runs, state.eliminated),
            ended=state.ended,
            news=tuple(news),
        )

    @property
    def pareto(self) -> tuple[str, ...]:
        """The candidates: algorithms that are neither dominated nor removed."""
        return tuple(one.algorithm for one in self.statuses if one.is_candidate)

    @property
    def eliminated(self) -> tuple[str, ...]:
        """The dominated algorithms, in the order in which they were eliminated."""
        return tuple(one.algorithm for one in self.statuses if one.status == "dominated")

    @property
    def removed(self) -> tuple[str, ...]:
        """The algorithms that left the race."""
        return tuple(one.algorithm for one in self.statuses if one.status == "removed")

    @property
    def n_runs(self) -> int:
        """The number of runs made; one that was extended or made again counts each time."""
        return sum(self.runs.values())

    @property
    def n_wanted(self) -> int:
        """The number of runs that were asked for and are not in yet."""
        return sum(self.wanted.values())

    # Text

    def __str__(self) -> str:
        n, racing = len(self.statuses), len(self.pareto)
        some = "" if n == racing else f"{racing:,} of {n:,} still race, "
        pairs, rounds = (
            format_count(self.n_open_pairs, "pair"),
            format_count(self.n_rounds, "round"),
        )
        left = "resolved" if self.resolved else f"{some}{pairs} open"
        head = f"race of {format_count(n, 'algorithm')} after {rounds}, {left}"
        facts = [*self._facts(), *(_store_facts(self, self.store) if self.store else ())]
        lines = [head, *(f"  {label:<11} {fact}" for label, fact in facts)]
        return "\n".join([*lines, *(_run_table(self.store) if self.store else ())])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return as_card(str(self), self.statuses)

    def _facts(self) -> Iterator[tuple[str, str]]:
        """Yield what is said of the race as a whole, as labels and texts."""
        yield "racing", format_list(self.pareto)
        if self.chosen:  # for a known budget: no algorithm is eliminated
            yield "chosen", format_list(self.chosen)
        else:
            yield "eliminated", format_list(self.eliminated)
        if self.removed:
            yield "removed", format_list(self.removed)
        yield "error", self.rules.error_bound
        yield "spent", self.describe_spent()
        if self.n_withdrawn:
            yield "withdrawn", f"{format_count(self.n_withdrawn, 'run')}, which are not counted"
        if self.describe_forecast():
            yield "to go", self.describe_forecast()
        if self.ended:
            more = "; with more of them the race goes on" if self.ended == NO_INSTANCES else ""
            yield "ended", f"{escape_text(self.ended)}{more}"
        for name, why in self.failures.items():
            yield "failed", f"{escape_text(name)}: {escape_lines(why)}"

    def describe_spent(self) -> str:
        """Return the number of runs made, of those asked for if these are more, and their time."""
        more = f" of {self.spent.runs:,} asked for" if self.n_answered < self.spent.runs else ""
        time = format_duration(self.spent.time, self.clock)
        return f"{format_count(self.n_answered, 'run')}{more}, {time}"

    def describe_forecast(self) -> str:
        """Return how much is left, and whether the instances suffice; "" if that is unknown."""
        if not self.n_open_pairs or self.forecast is None:
            return ""
        wanted = max(1.0, self.forecast.instances[1])
        return f"{self.forecast}{describe_shortage(wanted, self.n_unused_instances)}"

    # JSON

    def to_dict(self) -> dict[str, Any]:
        """Return the status as names, numbers and lists for JSON; infinite numbers are None.

        >>> from polarbear import Race
        >>> status = Race(["a", "b"], [1, 2], direction="minimize").status
        >>> RaceStatus.from_dict(status.to_dict()) == status
        True
        """
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        derived = ("pareto", "eliminated", "removed", "n_runs", "n_wanted")
        return _plain({**plain, **{name: getattr(self, name) for name in derived}})

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Return the status that :meth:`to_dict` made this of, without facts about a store."""
        forecast, unused = plain["forecast"], plain["n_unused_instances"]
        return cls(
            statuses=tuple(map(_status_from, plain["statuses"])),
            direction="maximize" if plain["direction"] == "maximize" else "minimize",
            rules=Rules.from_plain(plain["rules"]),
            chosen=tuple(map(str, plain["chosen"])),
            resolved=bool(plain["resolved"]),
            n_unused_instances=None if unused is None else int(unused),
            spent=Spent(int(plain["spent"]["runs"]), float(plain["spent"]["time"])),
            forecast=None if forecast is None else _forecast_from(forecast),
            ended=None if plain["ended"] is None else str(plain["ended"]),
            news=tuple(map(str, plain["news"])),
            clock=str(plain["clock"]),
            model=str(plain["model"]),
            runs=_numbers_from(plain["runs"]),
            wanted=_numbers_from(plain["wanted"]),
            n_times=int(plain["n_times"]),
            n_rounds=int(plain["n_rounds"]),
            n_open_pairs=int(plain["n_open_pairs"]),
            n_instances=int(plain["n_instances"]),
            n_answered=int(plain["n_answered"]),
            n_withdrawn=int(plain["n_withdrawn"]),
            n_since_decision=int(plain["n_since_decision"]),
            failures={str(name): str(why) for name, why in plain["failures"].items()},
        )


def _plain(value: Any) -> Any:
    """Return records as dictionaries, tuples as lists, and infinite numbers as None."""
    if isinstance(value, Rules):
        return value.plain()
    if isinstance(value, StoreFacts):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, AlgorithmStatus | Spent | Forecast):
        return _plain(value._asdict())
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def _status_from(plain: Mapping[str, Any]) -> AlgorithmStatus:
    """Return the status of an algorithm from its dictionary; an error if it cannot be one."""
    status = AlgorithmStatus(**plain)
    numbers = {
        name: None if getattr(status, name) is None else float(getattr(status, name))
        for name in ("prob_in_pareto", "prob_dominated", "epsilon", "since", "until", "instances")
    }
    return status._replace(
        algorithm=str(status.algorithm),
        open={str(name): float(time) for name, time in status.open.items()},
        decisive=tuple(map(str, status.decisive)),
        **numbers,
    )


def _numbers_from(plain: Mapping[str, Any]) -> dict[str, int]:
    return {str(name): int(number) for name, number in plain.items()}


def _forecast_from(plain: Mapping[str, Any]) -> Forecast:
    def quantiles(values: Sequence[float | None]) -> tuple[float, float, float]:
        low, middle, high = (inf if value is None else float(value) for value in values)
        return low, middle, high

    return Forecast(quantiles(plain["instances"]), quantiles(plain["runs"]))


def _store_facts(status: RaceStatus, store: StoreFacts) -> Iterator[tuple[str, str]]:
    """Yield what is said of a store and of each algorithm in it, as labels and texts."""
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


def _run_table(store: StoreFacts) -> list[str]:
    """Return the lines of a table: the runs of each algorithm by how they ended."""
    present = {status for own in store.run_statuses.values() for status in own}
    columns = [status for status in Status if status in present]
    if not columns:
        return []
    width = max(len("runs"), *(len(escape_text(name)) for name in store.run_statuses))
    rows = [f"  {'runs':{width}}" + "".join(f"  {status:>13}" for status in columns)]
    for name, own in store.run_statuses.items():
        numbers = "".join(f"  {own.get(status, 0):>13,}" for status in columns)
        rows.append(f"  {escape_text(name):{width}}{numbers}")
    return rows


def as_card(text: str, statuses: Sequence[AlgorithmStatus]) -> str:
    """Return what a notebook shows of a race, as HTML."""
    rows = [[one.algorithm, one.status, f"{one}."] for one in statuses]
    return render_card(text, ["algorithm", "status", "verdict"], rows)


def statuses_in(state: State) -> list[AlgorithmStatus]:
    """Return the status of every algorithm: candidates, then eliminated, then removed ones."""
    rivals = state.rivals()
    removed = sorted(state.removed, key=natural_sort_key)
    names = (*state.present(), *state.eliminated, *removed)
    return [_status_in(state, name, rivals.get(name, {})) for name in names]


def _status_in(state: State, name: str, rivals: Mapping[str, int]) -> AlgorithmStatus:
    """Return the status of an algorithm at the last decision; ``rivals`` of its open pairs."""
    if name in state.removed:
        return AlgorithmStatus(name, "removed", why=state.removed[name])
    if name in state.eliminated:
        _, rival, probability, decisive = state.eliminated[name]
        status = AlgorithmStatus(name, "dominated", rival=rival, prob_dominated=probability)
        return status._replace(decisive=decisive)
    assessed = state.assessed.get(name)
    if assessed is None:
        alone = not rivals and len(state.racing) == 1
        status = AlgorithmStatus(name, "member" if alone else "undecided", clock=state.clock)
    else:
        _, kind, prob_in_pareto, rival, since, until = assessed
        when = {"since": since, "until": until, "clock": state.clock}
        epsilon = state.rules.epsilon if kind == "equivalent" else None
        status = AlgorithmStatus(name, kind, prob_in_pareto, rival, epsilon=epsilon, **when)
    return _with_forecast(state, status, rivals) if rivals else status


def _with_forecast(
    state: State, status: AlgorithmStatus, rivals: Mapping[str, int]
) -> AlgorithmStatus:
    """Add the rivals with which a pair is open, and what it would take to settle them."""
    last = {
        rival: state.times[rivals[rival].bit_length() - 1]
        for rival in sorted(rivals, key=natural_sort_key)
    }
    status = status._replace(open=last, left=state.left)
    limit, spent = state.limits.get(status.algorithm), state.spent_on.get(status.algorithm)
    if (
        limit is not None
        and spent is not None
        and not limit.allows(Spent(spent.runs + 1, spent.time))
    ):
        status = status._replace(why="its limit of runs is reached")
    needs = [state.need.get(pair(status.algorithm, rival), inf) for rival in last]
    instances = max(needs, default=inf)
    if instances == inf:
        return status
    # It runs as long as any rival needs it, and each rival as long as that pair does.
    time = instances * max(last.values())
    time += sum(need * until for need, until in zip(needs, last.values(), strict=True))
    return status._replace(instances=instances, time=time)
