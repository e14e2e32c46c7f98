"""The events of a race, as immutable records and as lines of JSON.

The events determine the race completely. They are of four kinds: its definition (``Started``,
``Extended``, ``Identified``), its algorithms and instances (``Offered``, ``Added``, ``Removed``),
its runs (``Told``, ``Imported``, ``Continued``, ``Superseded``, ``Hosted``, ``Withdrawn``,
``Failed``) and its decisions (``Asked``, ``Decided``, ``Ended``).

Each line has the version of its format.

- A new kind of event is a subclass of ``Event`` here, and a case in ``state.apply``.
- A new field of an event has a default, which lines without the field get.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from polarbear.data.run import Direction, Run, Status
from polarbear.errors import DataError
from polarbear.racing.budget import Budget
from polarbear.racing.codec import from_plain, to_plain
from polarbear.racing.decisions import Decision
from polarbear.racing.jobs import QUOTES, Job, RunId, key_of
from polarbear.racing.model import Model
from polarbear.racing.questions.question import Question

VERSION = 1

MAX_REASON = 2000
"""The number of characters stored of the reason of a failure, and of the output of a run."""


class Event:
    """A fact of a race, from which its state follows; each kind is a record below."""


@dataclass(frozen=True)
class Started(Event):
    """Event: the race starts, with its times, seed, question, budget and model.

    ``endless``: instances are numbered without end. ``continues``: a run that is extended
    continues, as in a replay, and costs what is added; else it is repeated from its start.
    """

    seed: int
    times: tuple[float, ...]
    direction: Direction
    clock: str
    endless: bool
    question: Question
    budget: Budget
    model: Model
    continues: bool = False


@dataclass(frozen=True)
class Extended(Event):
    """Event: the question or the budget of the race changes from now on."""

    question: Question
    budget: Budget


@dataclass(frozen=True)
class Identified(Event):
    """Event: the fingerprints of instances and solvers, and the limits of their runs.

    The event has only what is new since the last one of its kind. ``aliases`` maps new names of
    instances to their names in the race. ``changes``: accepted differences, in words.
    ``accepts_changes``: other fingerprints under the same names are accepted once.
    """

    instances: Mapping[str, str] = field(default_factory=dict)
    solvers: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    limits: Mapping[str, Any] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    changes: tuple[str, ...] = ()
    accepts_changes: bool = False

    def updated(self, later: "Identified") -> "Identified":
        """Return this event merged with a later one, whose fingerprints replace earlier ones."""
        return Identified(
            {**self.instances, **later.instances},
            {**self.solvers, **later.solvers},
            {**self.limits, **later.limits},
            {**self.aliases, **later.aliases},
            accepts_changes=later.accepts_changes,
        )


@dataclass(frozen=True)
class Offered(Event):
    """Event: instances become available to the race."""

    instances: tuple[str, ...]


@dataclass(frozen=True)
class Added(Event):
    """Event: an algorithm joins or returns, with limits on the number and the time of its runs.

    With ``trial``, its first run is made alone.
    """

    algorithm: str
    max_runs: int | None = None
    max_time: float | None = None
    trial: bool = False


@dataclass(frozen=True)
class Removed(Event):
    """Event: an algorithm is removed, and its runs affect no decision until it returns."""

    algorithm: str
    why: str


@dataclass(frozen=True)
class Asked(Event):
    """Event: the race requests runs, which belong to a round."""

    jobs: tuple[Job, ...]
    round: int


@dataclass(frozen=True)
class Told(Event):
    """Event: a run that the race requested has arrived."""

    run: Run


@dataclass(frozen=True)
class Imported(Event):
    """Event: a run has arrived that the race did not request, such as an earlier one."""

    run: Run


@dataclass(frozen=True)
class Continued(Event):
    """Event: the run imported next extends an earlier repetition of the same algorithm.

    A job has this fact in its field ``extends``. The event is for runs whose job is in another
    store, or lost.
    """

    key: RunId
    extends: int


@dataclass(frozen=True)
class Superseded(Event):
    """Event: a run is no longer used in decisions, because repetition ``by`` replaces it.

    For requested jobs the race derives this itself. The event is for runs whose job is lost.
    """

    key: RunId
    by: int


@dataclass(frozen=True)
class Hosted(Event):
    """Event: which worker process made these runs.

    ``details`` are its host, versions and platform, in the first event with this number.
    """

    worker: int
    runs: tuple[RunId, ...]
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Withdrawn(Event):
    """Event: the runs so far of some pairs (algorithm, instance) are no longer used in decisions.

    They stay stored, and all decisions are made again without them. ``at`` is the date of the
    withdrawal, as text. ``instances`` are excluded from further runs until offered again.
    """

    pairs: tuple[tuple[str, str], ...]
    why: str = ""
    at: str = ""
    instances: tuple[str, ...] = ()


@dataclass(frozen=True)
class Failed(Event):
    """Event: why a run failed or ended before its planned end, with the end of its output."""

    key: RunId
    status: Status
    why: str
    output: str = ""

    @property
    def reason(self) -> str:
        """Why the run failed, without the lines of output that ``why`` quotes."""
        return self.why.split(QUOTES)[0]

    @classmethod
    def of(cls, run: Run, why: str, output: str = "") -> "Failed":
        """Return the event for a failed run; of long texts it keeps only the end."""
        return cls(key_of(run), run.status, _end_of(why), _end_of(output))


@dataclass(frozen=True)
class Ended(Event):
    """Event: the race requests no further runs, as all pairs are decided or a limit is reached."""

    why: str


@dataclass(frozen=True)
class Decided(Event):
    """Event: the decision after a round, from the runs of this round and of those before it."""

    round: int
    decision: Decision


Report = Told | Failed | Hosted | Identified
"""Events with facts about runs; they do not reopen a race that has ended."""

NO_INSTANCES = "no instances left"
"""The reason for which a race ends when all of its instances are used."""

KINDS: Mapping[str, type[Event]] = {kind.__name__.lower(): kind for kind in Event.__subclasses__()}


@contextmanager
def explain_misfit(event: Event) -> Iterator[None]:
    """Raise a DataError with an explanation if an event contradicts the events before it."""
    try:
        yield
    except DataError:
        raise
    except UNREADABLE as error:
        raise DataError(
            f"an event {type(event).__name__.lower()!r} does not fit those before it ({error!r}): "
            "these are not the events of a race, or some are missing"
        ) from None


def to_json(event: Event) -> str:
    """Return an event as one line of JSON.

    >>> to_json(Added("CMA-ES"))
    '{"event": "added", "version": 1, "algorithm": "CMA-ES", "max_runs": null, "max_time": null,
    "trial": false}'
    """
    kind = type(event).__name__.lower()
    return json.dumps({"event": kind, "version": VERSION, **to_plain(event)}, allow_nan=False)


def from_json(line: str) -> Event:
    """Read an event from a line that :func:`to_json` wrote.

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
                f"{VERSION}: use a newer PolarBear"
            )
        return from_plain(KINDS[plain.pop("event")], plain)
    except DataError:
        raise
    except UNREADABLE as error:
        raise DataError(f"this line is not an event of a race ({error!r}): {line[:80]}") from None


UNREADABLE = (
    *(KeyError, TypeError, ValueError, AttributeError, IndexError),
    *(OverflowError, RecursionError, MemoryError),
)
"""The exceptions that malformed lines and events can cause."""


def _end_of(text: str) -> str:
    return text if len(text) <= MAX_REASON else f"... {text[-MAX_REASON:]}"
