"""Where a race stands, and the one function that changes it.

1. A name is racing, eliminated or removed, and nothing else.
2. A pair of racing algorithms is *open* at the times at which its relation is not known. It closes
   time by time and stays closed, until one of the two comes back or the rules change.
3. What is *wanted* are the runs asked for that are still out. Nothing is decided before all are in,
   so nothing depends on the order in which they come.
4. The first run told with a key counts; there is no second one.
5. Whatever was asked for counts as spent: until its horizon, and once told, as long as it took.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from polarbear.data.names import natural
from polarbear.data.run import Direction, Run, Status
from polarbear.racing.events import (
    Added,
    Asked,
    Decided,
    Eliminated,
    Event,
    Extended,
    Imported,
    Offered,
    Open,
    Removed,
    Started,
    Told,
)
from polarbear.racing.jobs import Job, Key, derived
from polarbear.racing.rules import Rules

FAILED = frozenset({Status.CRASHED, Status.KILLED, Status.OUT_OF_MEMORY})
"""How a run ends that failed; one that was out of time did what it could."""

Pair = tuple[str, str]


class Spent(NamedTuple):
    """How many runs, and how long they took together."""

    runs: int
    time: float


class Basis(NamedTuple):
    """What a decision rests on: the first so many runs, as far as they are of these algorithms."""

    runs: int
    algorithms: tuple[str, ...]


@dataclass
class State:
    """Everything that the next step of a race depends on."""

    seed: int
    times: tuple[float, ...]
    direction: Direction
    clock: str
    endless: bool
    rules: Rules
    batch: int

    racing: set[str] = field(default_factory=set)
    eliminated: dict[str, Eliminated] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    open: dict[Pair, int] = field(default_factory=dict)  # bit t: not known at time t

    pool: dict[str, None] = field(default_factory=dict)  # instances to come, in their order
    used: dict[str, int] = field(default_factory=dict)  # instances that were run on: which it was
    order: list[str] = field(default_factory=list)  # the same, in order of use
    known: dict[str, dict[str, float]] = field(default_factory=dict)  # instance, who, until when
    cursor: Counter[str] = field(default_factory=Counter)  # so many of `order` are behind it

    runs: list[Run] = field(default_factory=list)
    told: set[Key] = field(default_factory=set)
    wanted: dict[Key, Job] = field(default_factory=dict)
    promised: dict[Key, float] = field(default_factory=dict)  # asked for, and how long it takes
    failed: dict[Key, float] = field(default_factory=dict)  # in this round, and their horizons
    failures: Counter[str] = field(default_factory=Counter)  # runs that failed for good
    superseded: set[Key] = field(default_factory=set)  # failed, and asked for again

    spent_time: float = 0.0
    round: int = 0
    news: bool = False  # there is something that no decision has taken into account
    basis: Basis | None = None

    @property
    def spent(self) -> Spent:
        """What the runs asked for have cost."""
        return Spent(len(self.promised), self.spent_time)

    @property
    def certainty(self) -> float:
        """How sure to be at a look now."""
        n = len(self.racing) + len(self.eliminated) + len(self.removed)
        return self.rules.certainty(n, len(self.order))

    def present(self) -> tuple[str, ...]:
        """Who is racing, in canonical order."""
        return tuple(sorted(self.racing, key=natural))

    def rivals(self) -> dict[str, dict[str, int]]:
        """Of each algorithm with an open pair, in canonical order: with whom, at which times."""
        found: dict[str, dict[str, int]] = {}
        for (a, b), times in self.open.items():
            found.setdefault(a, {})[b] = times
            found.setdefault(b, {})[a] = times
        return {name: found[name] for name in self.present() if name in found}


def begin(event: Started) -> State:
    """The state of a race that begins."""
    return State(
        event.seed,
        event.times,
        event.direction,
        event.clock,
        event.endless,
        event.rules,
        event.rules.batch[0],
    )


def apply(state: State, event: Event) -> None:
    """Change the state by an event: there is no other way to change it."""
    match event:
        case Started():
            raise ValueError("a race starts once")
        case Extended(rules):
            _extend(state, rules)
        case Offered(instances):
            fresh = {*state.pool, *instances} - state.used.keys()
            # By a number that only depends on the name: the same draw however they are offered.
            drawn = sorted(fresh, key=lambda name: (derived(state.seed, ["draw", name]), name))
            state.pool = dict.fromkeys(drawn)
        case Added(algorithm):
            _enter(state, algorithm)
            state.failures[algorithm] = 0
            state.batch = state.rules.batch[0]
        case Removed(algorithm):
            _leave(state, algorithm)
            state.eliminated.pop(algorithm, None)
            state.removed.add(algorithm)
        case Asked(jobs):
            for job in jobs:
                _ask(state, job)
            state.failed.clear()
            state.news = True
        case Told(run):
            _receive(state, run)
            key = key_of(run)
            state.wanted.pop(key, None)
            if run.status in FAILED:
                state.failed[key] = state.promised[key]
                state.failures[run.algorithm] += 1
            state.spent_time += run.until - state.promised[key]
            state.promised[key] = run.until
        case Imported(run):
            _receive(state, run)
            state.wanted.pop(key_of(run), None)
            state.news = True
        case Decided():
            _decide(state, event)


def pair(a: str, b: str) -> Pair:
    """Two names in canonical order."""
    return (a, b) if natural(a) < natural(b) else (b, a)


def key_of(run: Run) -> Key:
    """What tells a run from others."""
    return Key(run.algorithm, run.instance, run.repetition)


def _enter(state: State, algorithm: str) -> None:
    everything = (1 << len(state.times)) - 1
    for rival in state.racing:
        state.open[pair(algorithm, rival)] = everything
    came_back = state.eliminated.pop(algorithm, None) or algorithm in state.removed
    state.removed.discard(algorithm)
    state.racing.add(algorithm)
    state.cursor[algorithm] = 0
    # Whoever comes back is judged by what it has shown already before it runs again.
    state.news |= bool(came_back)


def _leave(state: State, algorithm: str) -> None:
    state.racing.discard(algorithm)
    state.open = {names: times for names, times in state.open.items() if algorithm not in names}
    gone = [key for key in state.wanted if key.algorithm == algorithm]
    for key in gone:
        del state.wanted[key]


def _extend(state: State, rules: Rules) -> None:
    """Ask all questions again that the new rules may answer otherwise."""
    same = rules.questions == state.rules.questions
    state.rules = rules
    state.batch = rules.batch[0]
    if same:
        return
    for name, found in list(state.eliminated.items()):
        if found.probability < state.certainty:
            _enter(state, name)
    everything = (1 << len(state.times)) - 1
    names = state.present()
    state.open = {(a, b): everything for k, a in enumerate(names) for b in names[k + 1 :]}
    state.news = bool(state.runs)


def _ask(state: State, job: Job) -> None:
    _use(state, job.instance)
    key = job.key
    before = key._replace(repetition=job.repetition - 1)
    if before in state.told and before not in state.superseded:
        state.superseded.add(before)
        state.known[job.instance].pop(job.algorithm, None)
        state.failures[job.algorithm] -= 1
    state.wanted[key] = job
    longest = max(job.horizon, state.promised.get(key, 0.0))
    state.spent_time += longest - state.promised.get(key, 0.0)
    state.promised[key] = longest
    behind = state.used[job.instance] + 1
    state.cursor[job.algorithm] = max(state.cursor[job.algorithm], behind)


def _receive(state: State, run: Run) -> None:
    _use(state, run.instance)
    state.runs.append(run)
    state.told.add(key_of(run))
    until = run.until if run.status == Status.CUT else float("inf")
    known = state.known[run.instance]
    known[run.algorithm] = max(until, known.get(run.algorithm, 0.0))


def _use(state: State, instance: str) -> None:
    if instance not in state.used:
        state.pool.pop(instance, None)
        state.used[instance] = len(state.order)
        state.order.append(instance)
        state.known[instance] = {}


def _decide(state: State, event: Decided) -> None:
    state.basis = Basis(len(state.runs), state.present())
    for found in event.eliminated:
        _leave(state, found.algorithm)
        state.eliminated[found.algorithm] = found
    state.open = {(first, second): times for first, second, times in map(Open._make, event.open)}
    state.batch = event.batch
    state.round += 1
    state.failed.clear()
    state.news = False
