"""``Setup``: what is the same for all runs of a race, and ``Limits``: what a run may use."""

import pickle
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from importlib import import_module
from inspect import signature
from numbers import Real
from typing import Any, NamedTuple

from numpy.typing import ArrayLike

from polarbear.data import grid
from polarbear.data.names import check_name, to_name
from polarbear.data.run import Direction, sign_of
from polarbear.errors import SolverError, warn
from polarbear.running.solvers.commands import Command
from polarbear.running.solvers.instances import Instances
from polarbear.running.solvers.job import CLOCKS, Clock

Solver = Callable[..., Any]

HEAVY = 1_000_000
"""Bytes beyond which it is a bad idea to send instances along with every job."""


@dataclass(frozen=True)
class Limits:
    """What a single run may use before it is ended.

    Attributes
    ----------
    wall
        Seconds from start to end, whatever the clock of the race is. A day, unless said otherwise.
    cpu
        CPU seconds, all its processes together.
    memory
        Bytes of resident memory, all its processes together; by default nine tenths of the machine,
        in equal shares for all that run at once. It is looked at twenty times a second.
    address_space
        Bytes of address space of each process, which the system itself refuses to exceed. For
        programs that reserve more than they use (Java, Go, JAX) this is the wrong limit.
    processes
        How many processes it may have at once.
    threads
        How many threads numerical libraries may start.

    Examples
    --------
    >>> Limits(wall=60, memory=2 * 10**9).processes
    256
    >>> Limits(wall=-1)
    Traceback (most recent call last):
    polarbear.errors.SolverError: limits: wall=-1, expected a number above 0
    """

    wall: float = 86_400.0
    cpu: float | None = None
    memory: int | None = None
    address_space: int | None = None
    processes: int = 256
    threads: int = 1

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            none = value is None and name in ("cpu", "memory", "address_space")
            if not none and not (isinstance(value, Real) and float(value) > 0):
                raise SolverError(f"limits: {name}={value!r}, expected a number above 0")


@dataclass(frozen=True)
class Setup:
    """Solvers and instances by name, the times, the clock and the limits.

    Examples
    --------
    >>> def walk(job):
    ...     yield 1, job.rng.random()
    >>> setup = Setup.of([walk], ["a", "b"], times=[10, 100], direction="minimize")
    >>> list(setup.solvers), setup.instances.names, setup.clock
    (['walk'], ('a', 'b'), 'evaluations')
    """

    solvers: Mapping[str, Solver]
    instances: Instances
    times: tuple[float, ...]
    direction: Direction
    clock: Clock
    limits: Limits = field(default_factory=Limits)
    aliases: Mapping[str, str] = field(default_factory=dict)  # names in code: names in the race

    def renamed(self, names: Mapping[str, str]) -> "Setup":
        """The same setup with instances under the names that they have in the race."""
        if not names:
            return self
        aliases = {**self.aliases, **names}
        return replace(self, instances=self.instances.renamed(names), aliases=aliases)

    @classmethod
    def of(
        cls,
        solvers: Mapping[str, Solver] | Iterable[Solver],
        instances: Any,
        *,
        times: ArrayLike,
        direction: Direction,
        clock: Clock | None = None,
        limits: Limits | None = None,
    ) -> "Setup":
        """What a user passes, understood and checked.

        The clock is that of the commands if all solvers are commands, and "evaluations" if none is.
        """
        sign_of(direction)
        named = _named(solvers)
        at = tuple(grid.check_times(times).tolist())
        clock = _clock(named) if clock is None else clock
        if clock not in CLOCKS:
            raise SolverError(f"clock={clock!r}: expected one of {', '.join(CLOCKS)}")
        for name, solver in named.items():
            _check_takes_a_job(name, solver)
            if isinstance(solver, Command) and solver.clock != clock and solver.clock != "wall":
                raise SolverError(
                    f"solver {name!r} has the clock {solver.clock!r}, but the race has {clock!r}"
                )
        if clock == "evaluations":
            silent = [n for n, s in named.items() if isinstance(s, Command) and s.clock == "wall"]
            if silent:
                raise SolverError(
                    f"the race counts evaluations, but {silent[0]!r} is a program whose pattern "
                    "has no group 'time': give it one, or set the clock of the race to 'wall'"
                )
        return cls(named, Instances.of(instances), at, direction, clock, limits or Limits())


class Packed(NamedTuple):
    """A setup as bytes, and what tells it from others."""

    key: str
    content: bytes


def pack(setup: Setup) -> Packed:
    """A setup to be sent to other processes of this user.

    Functions of a script or a notebook go by value if cloudpickle is installed. These bytes are
    for live processes only: nothing of it is ever stored.
    """
    try:
        content: bytes = import_module("cloudpickle").dumps(setup)
    except ModuleNotFoundError:
        content = _plainly(setup)
    except Exception as error:
        raise SolverError(_unsendable(error)) from None
    if len(content) > HEAVY:
        warn(
            f"solvers and instances take {len(content) / 1e6:,.1f} MB, sent with every job: "
            "Instances(names, build) makes instances where they are needed"
        )
    return Packed(blake2b(content, digest_size=16).hexdigest(), content)


def unpack(packed: Packed) -> Setup:
    """Back from :func:`pack`."""
    return pickle.loads(packed.content)  # noqa: S301 (from our own coordinator, never from a file)


def _plainly(setup: Setup) -> bytes:
    try:
        content = pickle.dumps(setup)
    except Exception as error:
        raise SolverError(_unsendable(error) + ", or pip install cloudpickle") from None
    if b"__main__" in content:
        raise SolverError(
            "a solver or an instance is defined in the script itself, where other processes do "
            "not find it: move it to a module, or pip install cloudpickle"
        )
    return content


def _unsendable(error: Exception) -> str:
    return (
        f"solvers and instances cannot be sent to other processes ({error}): make what cannot be "
        "sent where it is needed, by Instances(names, build) and inside of solvers"
    )


def _check_takes_a_job(name: str, solver: Solver) -> None:
    try:
        signature(solver).bind(None)
    except TypeError:
        raise SolverError(
            f"solver {name!r} cannot be called with a job alone: a solver is a function such as "
            "def solver(job): ..., which finds its instance in job.instance"
        ) from None
    except ValueError:  # what is not written in Python may not tell
        return


MAPPING = "pass a mapping from names to functions of a job"


def _name(solver: Any) -> str:
    """The name of a function that has one of its own."""
    if not callable(solver):
        raise SolverError(f"{solver!r} among the solvers: expected a function of a job")
    name = getattr(solver, "__name__", "")
    if name in ("", "<lambda>"):
        raise SolverError(f"{solver!r} has no name of its own: {MAPPING}")
    return name


def _named(solvers: Any) -> dict[str, Solver]:
    if isinstance(solvers, Mapping):
        named = {check_name(to_name(name)): solver for name, solver in solvers.items()}
    elif isinstance(solvers, Iterable) and not isinstance(solvers, str | bytes):
        listed = list(solvers)
        named = {_name(solver): solver for solver in listed}
        if len(named) < len(listed):
            names = [_name(solver) for solver in listed]
            twice = next(name for name in names if names.count(name) > 1)
            raise SolverError(f"two solvers are named {twice!r}: {MAPPING}")
    else:
        raise SolverError(f"solvers={solvers!r}: expected a list of functions; or {MAPPING}")
    if not named or "" in named:
        raise SolverError("there are no solvers" if not named else "a solver has no name")
    for name, solver in named.items():
        if not callable(solver):
            raise SolverError(f"solver {name!r} is {solver!r}: expected a function of a job")
    return named


def _clock(solvers: Mapping[str, Solver]) -> Clock:
    clocks: set[Clock | None] = {
        s.clock if isinstance(s, Command) else "evaluations" for s in solvers.values()
    }
    if len(clocks) > 1:
        raise SolverError(
            "what do times count? Set the clock of the race to one of " + ", ".join(CLOCKS)
        )
    return clocks.pop() or "evaluations"
