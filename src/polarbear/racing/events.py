"""What happens in a race, as records that are never changed, and as lines of JSON.

A race is the sequence of its events: whoever has them has the race. They come in four kinds: what
the race is (``Started``, ``Extended``, ``Identified``), who takes part (``Offered``, ``Added``,
``Removed``), what was found (``Told``, ``Imported``, ``Continued``, ``Superseded``,
``Hosted``, ``Withdrawn``, ``Failed``) and what the race made of it (``Asked``, ``Decided``,
``Ended``).

Each line says its version. Files of every version stay readable.

- A new kind of event is a class here, in ``Event``, and a case in ``state.apply``.
- A new field of an event has a default, which lines without the field get. ``_READ`` says how to
  read a field that is neither a number nor text.
- To change what a field means, raise ``VERSION`` and add a step to ``UPGRADES``.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from math import inf, isfinite
from typing import Any, NamedTuple, Self, get_args

import numpy as np

from polarbear.data.run import Direction, Run, Status, run_from_plain, run_to_plain
from polarbear.errors import DataError
from polarbear.inference.algorithm_status import AlgorithmStatus, Kind
from polarbear.racing.jobs import Job, RunId, derive_seed
from polarbear.racing.model import Model
from polarbear.racing.rules import Rules

VERSION = 2

MAX_REPETITION = 1_000_000
"""No race asks for a run as often as this."""

MAX_REASON = 2000
"""Characters that are kept of why a run failed, and of what it printed."""


class Eliminated(NamedTuple):
    """An algorithm is dominated ``by`` another one, with this posterior probability.

    It is None if the race had no posterior that can be trusted, and decided by e-values.
    """

    algorithm: str
    by: str
    probability: float | None
    decisive: tuple[str, ...] = ()  # the fewest instances without which it would not be


class Open(NamedTuple):
    """Two algorithms whose relation is not known at all times; bit t of ``times`` is time t.

    ``need``: how many more instances it will probably take, as far as that can be told.
    """

    first: str
    second: str
    times: int
    need: float = inf


class Assessed(NamedTuple):
    """The status of a candidate at a decision, as ``AlgorithmStatus`` has it."""

    algorithm: str
    status: Kind
    prob_in_pareto: float | None
    rival: str | None = None
    since: float | None = None
    until: float | None = None

    @classmethod
    def of(cls, status: AlgorithmStatus) -> Self:
        """Return what a decision keeps of a status."""
        prob = None if status.prob_in_pareto is None else round(status.prob_in_pareto, 6)
        when = status.rival, status.since, status.until
        return cls(status.algorithm, status.status, prob, *when)


class Forecast(NamedTuple):
    """How much is left of a race: a tenth, a half and nine tenths of what may come need less.

    >>> print(Forecast((0.2, 3, 9), (0.4, 6, 18)))
    about 3 more instances (1 to 9), 6 runs (1 to 18)
    """

    instances: tuple[float, float, float]
    runs: tuple[float, float, float]

    def __str__(self) -> str:
        # What is open takes at least one more, however close to certain it is.
        (low, instances, high), (least, runs, most) = ([max(1.0, k) for k in part] for part in self)
        return (
            f"about {_many(instances)} more instance{_s(instances)} "
            f"({_many(low)} to {_many(high)}), "
            f"{_many(runs)} run{_s(runs)} ({_many(least)} to {_many(most)})"
        )


@dataclass(frozen=True)
class Started:
    """A race begins. ``endless``: instances are numbered, and there is always one more.

    ``model`` is None in stores that were made before models were recorded.
    """

    seed: int
    times: tuple[float, ...]
    direction: Direction
    clock: str
    endless: bool
    rules: Rules
    model: Model | None = None


@dataclass(frozen=True)
class Extended:
    """From now on these rules hold."""

    rules: Rules


@dataclass(frozen=True)
class Identified:
    """What names stand for: fingerprints of instances and solvers, and the limits of runs.

    Only what is new since the last such event. ``aliases``: new names of instances, and the names
    that they have in the race. ``changes``: differences that were accepted, in words.
    """

    instances: Mapping[str, str] = field(default_factory=dict)
    solvers: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    limits: Mapping[str, Any] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    changes: tuple[str, ...] = ()

    def updated(self, later: "Identified") -> "Identified":
        """What is known after a later event: it replaces what was said before."""
        return Identified(
            {**self.instances, **later.instances},
            {**self.solvers, **later.solvers},
            {**self.limits, **later.limits},
            {**self.aliases, **later.aliases},
        )


@dataclass(frozen=True)
class Offered:
    """There are these instances."""

    instances: tuple[str, ...]


@dataclass(frozen=True)
class Added:
    """An algorithm joins, or comes back; no more than this is spent on its runs."""

    algorithm: str
    max_runs: int | None = None
    max_time: float | None = None


@dataclass(frozen=True)
class Removed:
    """An algorithm leaves; its runs do not count while it is away."""

    algorithm: str
    why: str


@dataclass(frozen=True)
class Asked:
    """These runs are wanted, of which the race decides in this round."""

    jobs: tuple[Job, ...]
    round: int


@dataclass(frozen=True)
class Told:
    """A run that was asked for."""

    run: Run


@dataclass(frozen=True)
class Imported:
    """A run that was there before anybody asked."""

    run: Run


@dataclass(frozen=True)
class Continued:
    """A run, imported next, extends a repetition of the same algorithm on the same instance.

    Jobs say so themselves; this is for runs whose job is in another store, or lost.
    """

    key: RunId
    extends: int


@dataclass(frozen=True)
class Superseded:
    """A run that does not count, because repetition ``by`` was run in its place.

    The race knows this of jobs that it asks for; this is for runs whose job is lost.
    """

    key: RunId
    by: int


@dataclass(frozen=True)
class Hosted:
    """Runs, and the number of the worker process that made them.

    ``details``: its host, versions and platform, where the number is used for the first time.
    """

    worker: int
    runs: tuple[RunId, ...]
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Withdrawn:
    """The runs so far of these pairs (algorithm, instance) do not count any more.

    They stay on record. What was decided by them is decided again. ``at``: when that was said, for
    people. ``instances``: those that are not to be run on again, unless they are offered again.
    """

    pairs: tuple[tuple[str, str], ...]
    why: str = ""
    at: str = ""
    instances: tuple[str, ...] = ()


@dataclass(frozen=True)
class Failed:
    """Why a run failed, or was ended before its horizon, and the last that it printed."""

    key: RunId
    status: Status
    why: str
    output: str = ""

    @classmethod
    def of(cls, run: Run, why: str, output: str = "") -> "Failed":
        """The same of a run, with the ends of texts that are long."""
        key = RunId(run.algorithm, run.instance, run.repetition)
        return cls(key, run.status, _end_of(why), _end_of(output))


@dataclass(frozen=True)
class Ended:
    """The race asks for nothing more: "resolved", or what it ran out of."""

    why: str


@dataclass(frozen=True)
class Decided:
    """What the runs of a round and of those before it show.

    Who is out, which pairs stay open, how large the next batch is.
    ``horizons``: who runs next and until when. ``outlook``: how much is left, if that can be told.
    ``problems``: why the posterior cannot be trusted; then e-values alone decide, and with error
    control per look nothing does. ``given_up``: no run
    that the instances allow is expected to settle anything. ``assessed``: the status of each
    candidate. ``screening``: the posterior has few draws, and eliminates no algorithm.
    ``chosen``: with a preference, the algorithms that would be run as it stands.
    """

    round: int
    eliminated: tuple[Eliminated, ...]
    open: tuple[Open, ...]
    batch: int
    horizons: tuple[tuple[str, float], ...] = ()
    outlook: Forecast | None = None
    problems: tuple[str, ...] = ()
    given_up: bool = False
    assessed: tuple[Assessed, ...] = ()
    screening: bool = False
    chosen: tuple[str, ...] = ()


Event = (
    Started
    | Extended
    | Identified
    | Offered
    | Added
    | Removed
    | Asked
    | Told
    | Imported
    | Continued
    | Superseded
    | Hosted
    | Withdrawn
    | Failed
    | Decided
    | Ended
)

Report = Told | Failed | Hosted | Identified
"""Events that bring facts about runs: with them alone a race stands as it did before."""

NO_INSTANCES = "no instances left"
"""Why a race ends that has run on all of its instances."""

KINDS: Mapping[str, type[Event]] = {kind.__name__.lower(): kind for kind in get_args(Event)}


@contextmanager
def fitting_in(event: Event) -> Iterator[None]:
    """Say in one error that an event does not fit those before it, whatever that leads to."""
    try:
        yield
    except _UNREADABLE as error:
        if isinstance(error, DataError):
            raise
        kind = type(event).__name__.lower()
        raise DataError(
            f"an event {kind!r} does not fit those before it ({error!r}): these are not the events "
            "of a race, or some are missing"
        ) from None


def to_json(event: Event) -> str:
    """An event as one line.

    >>> to_json(Added("CMA-ES"))
    '{"event": "added", "version": 2, "algorithm": "CMA-ES", "max_runs": null, "max_time": null}'
    """
    kind = type(event).__name__.lower()
    plain = {field.name: _plain(getattr(event, field.name)) for field in fields(event)}
    return json.dumps({"event": kind, "version": VERSION, **plain}, allow_nan=False)


def from_json(line: str, *, seed: int | None = None) -> Event:
    """The event of a line that :func:`to_json` wrote, in this version or an earlier one.

    ``seed``: of the race. Lines of version 1 need it if they ask for runs a second time.

    >>> from_json('{"event": "added", "version": 1, "algorithm": "CMA-ES"}')
    Added(algorithm='CMA-ES', max_runs=None, max_time=None)
    >>> from_json('{"event": "added", "version": 99, "algorithm": "CMA-ES"}')
    Traceback (most recent call last):
    polarbear.errors.DataError: an event of version 99, but this program knows versions up to 2...
    """
    try:
        plain = json.loads(line)
        version = plain.pop("version")
        if version > VERSION:
            raise DataError(
                f"an event of version {version}, but this program knows versions up to {VERSION}: "
                "read it with a newer one"
            )
        for old in range(version, VERSION):
            plain = UPGRADES[old](plain, seed)
        kind = KINDS[plain.pop("event")]
        return kind(**{name: _READ.get(name, _same)(value) for name, value in plain.items()})
    except _UNREADABLE as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"this line is not an event of a race ({error!r}): {line[:80]}") from None


_UNREADABLE = (
    *(KeyError, TypeError, ValueError, AttributeError, IndexError),
    *(OverflowError, RecursionError, MemoryError),
)
"""What lines and events of strangers may lead to."""


def _name_extended(plain: dict[str, Any], seed: int | None) -> dict[str, Any]:
    """Version 1 to 2: jobs say which repetition they extend.

    Before, an extension was known by its seed, which is the one of the run that it extends.
    """
    if plain["event"] != "asked":
        return plain

    def extends(algorithm: str, instance: str, repetition: int, *rest: Any) -> int | None:
        _check_repetition(repetition)
        if repetition and seed is None:
            raise DataError(
                "an event of version 1 asks for a run a second time, which only the seed of the "
                "race can explain: pass it as seed=..."
            )
        names = (["run", algorithm, instance, k] for k in range(repetition))
        same = (k for k, name in enumerate(names) if derive_seed(seed or 0, name) == rest[1])
        return next(same, None)

    return {**plain, "jobs": [[*row, extends(*row)] for row in plain["jobs"]]}


UPGRADES: dict[int, Callable[[dict[str, Any], int | None], dict[str, Any]]] = {1: _name_extended}
"""From the fields of an event of a version, and the race's seed, to those of the next version."""


def _plain(value: Any) -> Any:
    """Lists, numbers and text of an event's field."""
    if isinstance(value, Rules | Model):
        return value.plain()
    if isinstance(value, Run):
        return run_to_plain(value)
    if isinstance(value, Open):
        # A number of as many bits as there are times is too large for other readers of JSON.
        return [value.first, value.second, f"{value.times:x}", _plain(value.need)]
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    # JSON has no infinities.
    return str(value) if isinstance(value, float) and not isfinite(value) else value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _job(row: Any) -> Job:
    """A job of plain fields; an error for what no race asks for."""
    job = Job(*row)
    _check_repetition(job.repetition)
    if not (isinstance(job.algorithm, str) and isinstance(job.instance, str)):
        raise TypeError(job)
    return job._replace(horizon=float(job.horizon))


def _eliminated(
    algorithm: str, by: str, probability: float | None, decisive: Sequence[str] = ()
) -> Eliminated:
    return Eliminated(algorithm, by, probability, tuple(map(_text, decisive)))


def _check_repetition(number: Any) -> None:
    if not isinstance(number, int) or not 0 <= number <= MAX_REPETITION:
        raise ValueError(f"repetition {number!r}")


def _floats(values: Any) -> tuple[float, ...]:
    return tuple(np.asarray(values, dtype=np.float64).ravel().tolist())


def _three(values: Any) -> tuple[float, float, float]:
    low, mid, high = map(float, values)
    return low, mid, high


def _end_of(text: str) -> str:
    return text if len(text) <= MAX_REASON else f"... {text[-MAX_REASON:]}"


def _same(value: Any) -> Any:
    return value


def _many(number: float) -> str:
    return f"{number:,.0f}" if isfinite(number) else "endlessly many"


def _s(number: float) -> str:
    return "" if _many(number) == "1" else "s"


_READ: Mapping[str, Callable[[Any], Any]] = {
    "algorithm": _text,
    "why": _text,
    "rules": Rules.from_plain,
    "model": lambda plain: plain and Model.from_plain(plain),
    "times": _floats,
    "instances": lambda given: given if isinstance(given, dict) else tuple(map(_text, given)),
    "changes": tuple,
    "runs": lambda rows: tuple(RunId(*row) for row in rows),
    "pairs": lambda rows: tuple((algorithm, instance) for algorithm, instance in rows),
    "problems": tuple,
    "chosen": lambda names: tuple(map(_text, names)),
    "jobs": lambda rows: tuple(map(_job, rows)),
    "key": lambda row: RunId(*row),
    "status": Status,
    "run": run_from_plain,
    "eliminated": lambda rows: tuple(_eliminated(*row) for row in rows),
    "open": lambda rows: tuple(Open(a, b, int(times, 16), float(n)) for a, b, times, n in rows),
    "assessed": lambda rows: tuple(Assessed(*row) for row in rows),
    "horizons": lambda rows: tuple((name, float(until)) for name, until in rows),
    "outlook": lambda rows: rows and Forecast(*map(_three, rows)),
}
