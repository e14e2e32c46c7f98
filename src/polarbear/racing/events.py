"""The events of a race, as immutable records and as lines of JSON.

The events determine the race completely. They are of four kinds: its definition (``Started``,
``Extended``, ``Identified``), its algorithms and instances (``Offered``, ``Added``, ``Removed``),
its runs (``Told``, ``Imported``, ``Continued``, ``Superseded``, ``Hosted``, ``Withdrawn``,
``Failed``) and its decisions (``Asked``, ``Decided``, ``Ended``).

Each line has the version of its format. Files of every version stay readable.

- A new kind of event is a class here, in ``Event``, and a case in ``state.apply``.
- A new field of an event has a default, which lines without the field get. ``_READ`` says how to
  read a field that is neither a number nor text.
- To change what a field means, raise ``VERSION`` and add a step to ``UPGRADES``.
"""

import json
from collections.abc import Callable, Mapping, Sequence
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
"""The largest repetition number that is accepted; no race requests a run as often."""

MAX_REASON = 2000
"""The number of characters stored of the reason of a failure, and of the output of a run."""


class Eliminated(NamedTuple):
    """An elimination: one algorithm is dominated ``by`` another, with a posterior probability.

    The probability is None if the race had no trusted posterior and decided by e-values alone.
    ``decisive`` is the smallest set of instances without which there is no elimination.
    """

    algorithm: str
    by: str
    probability: float | None
    decisive: tuple[str, ...] = ()


class Open(NamedTuple):
    """An undecided pair: two algorithms whose relation is uncertain at some times.

    Bit t of ``times`` is set if it is unknown at time t. ``need`` is the expected number of
    further instances, infinite if there is no forecast.
    """

    first: str
    second: str
    times: int
    need: float = inf


class Assessed(NamedTuple):
    """The status of a candidate as a decision stores it: a part of its ``AlgorithmStatus``."""

    algorithm: str
    status: Kind
    prob_in_pareto: float | None
    rival: str | None = None
    since: float | None = None
    until: float | None = None

    @classmethod
    def of(cls, status: AlgorithmStatus) -> Self:
        """Return the fields of an algorithm's status that the event of a decision stores."""
        prob = None if status.prob_in_pareto is None else round(status.prob_in_pareto, 6)
        rival, since, until = status.rival, status.since, status.until
        return cls(status.algorithm, status.status, prob, rival, since, until)


class Forecast(NamedTuple):
    """The instances and runs that a race still needs: 10 %, 50 % and 90 % quantiles.

    >>> print(Forecast((0.2, 3, 9), (0.4, 6, 18)))
    about 3 more instances (1 to 9), 6 runs (1 to 18)
    """

    instances: tuple[float, float, float]
    runs: tuple[float, float, float]

    def __str__(self) -> str:
        # An open pair needs at least one more instance, however close to certain it is.
        (low, instances, high), (fewest, runs, most) = (
            [max(1.0, quantile) for quantile in part] for part in self
        )
        return (
            f"about {_format_number(instances)} more instance{_plural_s(instances)} "
            f"({_format_number(low)} to {_format_number(high)}), {_format_number(runs)} "
            f"run{_plural_s(runs)} ({_format_number(fewest)} to {_format_number(most)})"
        )


@dataclass(frozen=True)
class Started:
    """Event: the race starts, with its times, seed, rules and model.

    ``endless``: instances are numbered without end. ``model`` is None in stores that are older
    than the recording of models. ``continues``: a run that is extended continues, as in a replay,
    and costs what is added; else it is repeated from its start.
    """

    seed: int
    times: tuple[float, ...]
    direction: Direction
    clock: str
    endless: bool
    rules: Rules
    model: Model | None = None
    continues: bool = False


@dataclass(frozen=True)
class Extended:
    """Event: the rules of the race change from now on."""

    rules: Rules


@dataclass(frozen=True)
class Identified:
    """Event: the fingerprints of instances and solvers, and the limits of their runs.

    The event has only what is new since the last one of its kind. ``aliases`` maps new names of
    instances to their names in the race. ``changes``: accepted differences, in words.
    """

    instances: Mapping[str, str] = field(default_factory=dict)
    solvers: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    limits: Mapping[str, Any] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    changes: tuple[str, ...] = ()

    def updated(self, later: "Identified") -> "Identified":
        """Return this event merged with a later one, whose fingerprints replace earlier ones."""
        return Identified(
            {**self.instances, **later.instances},
            {**self.solvers, **later.solvers},
            {**self.limits, **later.limits},
            {**self.aliases, **later.aliases},
        )


@dataclass(frozen=True)
class Offered:
    """Event: instances become available to the race."""

    instances: tuple[str, ...]


@dataclass(frozen=True)
class Added:
    """Event: an algorithm joins or returns, with limits on the number and the time of its runs.

    With ``trial``, its first run is made alone.
    """

    algorithm: str
    max_runs: int | None = None
    max_time: float | None = None
    trial: bool = False


@dataclass(frozen=True)
class Removed:
    """Event: an algorithm is removed, and its runs affect no decision until it returns."""

    algorithm: str
    why: str


@dataclass(frozen=True)
class Asked:
    """Event: the race requests runs, which belong to a round."""

    jobs: tuple[Job, ...]
    round: int


@dataclass(frozen=True)
class Told:
    """Event: a run that the race requested has arrived."""

    run: Run


@dataclass(frozen=True)
class Imported:
    """Event: a run has arrived that the race did not request, such as an earlier one."""

    run: Run


@dataclass(frozen=True)
class Continued:
    """Event: the run imported next extends an earlier repetition of the same algorithm.

    A job has this fact in its field ``extends``. The event is for runs whose job is in another
    store, or lost.
    """

    key: RunId
    extends: int


@dataclass(frozen=True)
class Superseded:
    """Event: a run is no longer used in decisions, because repetition ``by`` replaces it.

    For requested jobs the race derives this itself. The event is for runs whose job is lost.
    """

    key: RunId
    by: int


@dataclass(frozen=True)
class Hosted:
    """Event: which worker process made these runs.

    ``details`` are its host, versions and platform, in the first event with this number.
    """

    worker: int
    runs: tuple[RunId, ...]
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Withdrawn:
    """Event: the runs so far of some pairs (algorithm, instance) are no longer used in decisions.

    They stay stored, and all decisions are made again without them. ``at`` is the date of the
    withdrawal, as text. ``instances`` are excluded from further runs until offered again.
    """

    pairs: tuple[tuple[str, str], ...]
    why: str = ""
    at: str = ""
    instances: tuple[str, ...] = ()


@dataclass(frozen=True)
class Failed:
    """Event: why a run failed or ended before its planned end, with the end of its output."""

    key: RunId
    status: Status
    why: str
    output: str = ""

    @classmethod
    def of(cls, run: Run, why: str, output: str = "") -> "Failed":
        """Return the event for a failed run; of long texts it keeps only the end."""
        key = RunId(run.algorithm, run.instance, run.repetition)
        return cls(key, run.status, _end_of(why), _end_of(output))


@dataclass(frozen=True)
class Ended:
    """Event: the race requests no further runs, as all pairs are decided or a limit is reached."""

    why: str


@dataclass(frozen=True)
class Decided:
    """Event: the decision after a round: eliminations, undecided pairs and the next batch size.

    It uses the runs of this round and of those before it.

    ``horizons``: the algorithms to run next, and until when. ``outlook``: the forecast, if there
    is one. ``problems``: why the posterior is not trusted; then e-values alone decide, and with
    error control per look nothing is decided. ``given_up``: no run on the instances left is
    expected to settle a pair. ``assessed``: the status of each candidate. ``screening``: the
    posterior has few draws or no importance weights, and eliminates no algorithm. ``chosen``: with
    a preference, the algorithms that are chosen at this stage.
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
"""Events with facts about runs; they do not reopen a race that has ended."""

NO_INSTANCES = "no instances left"
"""The reason for which a race ends when all of its instances are used."""

BASELINE_REMOVED = "baseline removed, so nothing is compared"
"""The reason for which a race against a baseline ends when the baseline was removed."""

KINDS: Mapping[str, type[Event]] = {kind.__name__.lower(): kind for kind in get_args(Event)}


class explain_misfit:  # noqa: N801 (it is used as a function)
    """Raise a DataError with an explanation if an event contradicts the events before it."""

    def __init__(self, event: Event) -> None:
        self._event = event

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, UNREADABLE) and not isinstance(error, DataError):
            kind = type(self._event).__name__.lower()
            raise DataError(
                f"an event {kind!r} does not fit those before it ({error!r}): these are not the "
                "events of a race, or some are missing"
            ) from None


def to_json(event: Event) -> str:
    """Return an event as one line of JSON.

    >>> to_json(Added("CMA-ES"))
    '{"event": "added", "version": 2, "algorithm": "CMA-ES", "max_runs": null, "max_time": null,
    "trial": false}'
    """
    kind = type(event).__name__.lower()
    plain = {field.name: _plain(getattr(event, field.name)) for field in fields(event)}
    return json.dumps({"event": kind, "version": VERSION, **plain}, allow_nan=False)


def from_json(line: str, *, seed: int | None = None) -> Event:
    """Read an event from a line that :func:`to_json` wrote, in this or an earlier version.

    ``seed`` is the seed of the race. Lines of version 1 need it if they request a run again.

    >>> from_json('{"event": "added", "version": 1, "algorithm": "CMA-ES"}')
    Added(algorithm='CMA-ES', max_runs=None, max_time=None, trial=False)
    >>> from_json('{"event": "added", "version": 99, "algorithm": "CMA-ES"}')
    Traceback (most recent call last):
    polarbear.errors.DataError: this event has version 99, but this program reads ...
    """
    try:
        plain = json.loads(line)
        version = plain.pop("version")
        if version > VERSION:
            raise DataError(
                f"this event has version {version}, but this program reads versions up to "
                f"{VERSION}: "
                "use a newer PolarBear"
            )
        for old in range(version, VERSION):
            plain = UPGRADES[old](plain, seed)
        kind = KINDS[plain.pop("event")]
        return kind(**{name: _READ.get(name, _same)(value) for name, value in plain.items()})
    except UNREADABLE as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"this line is not an event of a race ({error!r}): {line[:80]}") from None


UNREADABLE = (
    *(KeyError, TypeError, ValueError, AttributeError, IndexError),
    *(OverflowError, RecursionError, MemoryError),
)
"""The exceptions that malformed lines and events can cause."""


def _name_extended(plain: dict[str, Any], seed: int | None) -> dict[str, Any]:
    """Upgrade an event from version 1 to 2, where jobs name the repetition that they extend.

    In version 1 an extension is recognised by its seed, which is that of the extended run.
    """
    if plain["event"] != "asked":
        return plain

    def extends(algorithm: str, instance: str, repetition: int, *rest: Any) -> int | None:
        _check_repetition(repetition)
        if repetition and seed is None:
            raise DataError(
                "this event has version 1 and requests a run again: to read it, pass the seed of "
                "the race as seed=..."
            )
        names = (["run", algorithm, instance, k] for k in range(repetition))
        same = (k for k, name in enumerate(names) if derive_seed(seed or 0, name) == rest[1])
        return next(same, None)

    return {**plain, "jobs": [[*row, extends(*row)] for row in plain["jobs"]]}


UPGRADES: dict[int, Callable[[dict[str, Any], int | None], dict[str, Any]]] = {1: _name_extended}
"""By version: the function that upgrades the fields of an event, given the seed of the race."""


def _plain(value: Any) -> Any:
    """Convert a field of an event to lists, numbers and text, for JSON."""
    if isinstance(value, Rules | Model):
        return value.plain()
    if isinstance(value, Run):
        return run_to_plain(value)
    if isinstance(value, Open):
        # A number with one bit per time is too large for other readers of JSON.
        return [value.first, value.second, f"{value.times:x}", _plain(value.need)]
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    # JSON has no infinities.
    return str(value) if isinstance(value, float) and not isfinite(value) else value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text in an event, got {value!r}")
    return value


def _job(row: Any) -> Job:
    """Make a job from its stored fields; raise an error if they are invalid."""
    job = Job(*row)
    _check_repetition(job.repetition)
    if not (isinstance(job.algorithm, str) and isinstance(job.instance, str)):
        raise TypeError(f"the names of a job must be text, got {job!r}")
    return job._replace(horizon=float(job.horizon))


def _eliminated(
    algorithm: str, by: str, probability: float | None, decisive: Sequence[str] = ()
) -> Eliminated:
    return Eliminated(algorithm, by, probability, tuple(map(_text, decisive)))


def _check_repetition(number: Any) -> None:
    if not isinstance(number, int) or not 0 <= number <= MAX_REPETITION:
        raise ValueError(
            f"a repetition must be a whole number from 0 to {MAX_REPETITION}, got {number!r}"
        )


def _floats(values: Any) -> tuple[float, ...]:
    return tuple(np.asarray(values, dtype=np.float64).ravel().tolist())


def _three(values: Any) -> tuple[float, float, float]:
    low, mid, high = map(float, values)
    return low, mid, high


def _end_of(text: str) -> str:
    return text if len(text) <= MAX_REASON else f"... {text[-MAX_REASON:]}"


def _same(value: Any) -> Any:
    return value


def _format_number(number: float) -> str:
    return f"{number:,.0f}" if isfinite(number) else "endlessly many"


def _plural_s(number: float) -> str:
    return "" if _format_number(number) == "1" else "s"


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
