"""``Setup``: what all runs of a race share; ``Limits``: the resources that one run may use."""

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
from polarbear.errors import DataError, SolverError, warn
from polarbear.running.solvers.commands import Command
from polarbear.running.solvers.instances import Instances
from polarbear.running.solvers.job import CLOCKS, Clock

Solver = Callable[..., Any]

LARGE_SETUP_BYTES = 1_000_000
"""Size of a pickled setup beyond which a warning is given: it is sent to every worker."""

MAPPING_ADVICE = "pass a mapping from names to functions of a job"


@dataclass(frozen=True)
class Limits:
    """The resources that a single run may use before it is ended.

    Attributes
    ----------
    wall_seconds
        Seconds from start to end, by any clock of the race; by default a day.
    cpu_seconds
        CPU seconds of all its processes together.
    memory
        Bytes of resident memory of all its processes together. By default nine tenths of the
        memory of the machine, in equal shares for all simultaneous runs of the local processes;
        other workers do not know of each other. Measured 20 times a second.
    address_space
        Bytes of address space of each process, enforced by the system itself. This is the wrong
        limit for programs that reserve more than they use (Java, Go, JAX).
    processes
        The number of processes at once.
    threads
        The number of threads that numerical libraries may start.
    environment
        Environment variables that it sees besides those that programs need, such as PATH: names or
        patterns such as ``"SLURM_*"``. None passes all; in a :class:`Judge` none that may be
        secret.

    Examples
    --------
    >>> Limits(wall_seconds=60, memory=2 * 10**9).processes
    256
    >>> Limits(wall_seconds=-1)
    Traceback (most recent call last):
    polarbear.errors.DataError: wall_seconds=-1: expected a number above 0
    """

    wall_seconds: float = 86_400.0
    cpu_seconds: float | None = None
    memory: int | None = None
    address_space: int | None = None
    processes: int = 256
    threads: int = 1
    environment: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        given = self.environment
        if given is not None:
            if not isinstance(given, list | tuple) or not all(isinstance(k, str) for k in given):
                example = [given] if isinstance(given, str) else ["SLURM_*"]
                raise DataError(f"expected a list, {example}", environment=given)
            object.__setattr__(self, "environment", tuple(given))
        for name, value in vars(self).items():
            if name == "environment":
                continue
            is_unlimited = value is None and name in ("cpu_seconds", "memory", "address_space")
            if not is_unlimited and not (isinstance(value, Real) and float(value) > 0):
                raise DataError("expected a number above 0", **{name: value})

    def to_stored(self) -> dict[str, Any]:
        """Return the limits as a dictionary, with the key names of stores and shared folders.

        >>> Limits(wall_seconds=60).to_stored()["wall"]
        60
        """
        stored = {STORED_LIMIT_NAMES.get(name, name): value for name, value in vars(self).items()}
        names = None if self.environment is None else list(self.environment)
        return {**stored, "environment": names}  # as JSON has it

    @classmethod
    def from_stored(cls, stored: Mapping[str, Any]) -> "Limits":
        """Make limits from a dictionary that :meth:`to_stored` returned.

        >>> Limits.from_stored({"wall": 60}).wall_seconds
        60
        """
        names = {stored_name: name for name, stored_name in STORED_LIMIT_NAMES.items()}
        return cls(**{names.get(name, name): value for name, value in stored.items()})


STORED_LIMIT_NAMES = {"wall_seconds": "wall", "cpu_seconds": "cpu"}
"""Limits whose name in stores and shared folders differs from that of the attribute."""


@dataclass(frozen=True)
class Setup:
    """The solvers and instances of a race by name, with its times, clock and limits.

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

    def rename_instances(self, names: Mapping[str, str]) -> "Setup":
        """Return this setup with instances renamed to the names that the race uses."""
        if not names:
            return self
        aliases = {**self.aliases, **names}
        return replace(self, instances=self.instances.rename(names), aliases=aliases)

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
        """Make a setup from the arguments of :func:`polarbear.race`, and check them.

        The clock is that of the commands if all solvers are commands, and "evaluations" if none is.
        """
        sign_of(direction)
        named = _name_solvers(solvers)
        grid_times = tuple(grid.check_times(times).tolist())
        clock = _infer_clock(named) if clock is None else clock
        if clock not in CLOCKS:
            raise DataError(f"expected one of {', '.join(CLOCKS)}", clock=clock)
        for name, solver in named.items():
            _check_signature(name, solver)
            if isinstance(solver, Command) and solver.clock != clock and solver.clock != "wall":
                raise SolverError(
                    f"solver {name!r} has the clock {solver.clock!r}, but the race has {clock!r}: "
                    "use one clock"
                )
        if clock == "evaluations":
            untimed = [n for n, s in named.items() if isinstance(s, Command) and s.clock == "wall"]
            if untimed:
                raise SolverError(
                    f"the race counts evaluations, but {untimed[0]!r} is a program whose pattern "
                    "has no group 'time': give it one, or set the clock of the race to 'wall'"
                )
        if clock == "wall" and limits is not None and limits.wall_seconds == grid_times[-1]:
            warn(
                f"wall_seconds={limits.wall_seconds:g} is the last time: a limit also counts the "
                "start of a run, so that runs which go on until then fail; use a longer one"
            )
        made = Instances.of(instances)
        return cls(
            solvers=named,
            instances=made,
            times=grid_times,
            direction=direction,
            clock=clock,
            limits=limits or Limits(),
        )

    def with_solvers(
        self, solvers: Mapping[str, Solver], instances: Instances | None = None
    ) -> "Setup":
        """Return this setup with other solvers, and perhaps other instances, checked as such.

        >>> setup = Setup.of({"a": print}, ["x"], times=[1], direction="minimize")
        >>> list(setup.with_solvers({"a": print, "b": print}).solvers)
        ['a', 'b']
        """
        other = Setup.of(
            solvers,
            self.instances if instances is None else instances,
            times=self.times,
            direction=self.direction,
            clock=self.clock,
            limits=self.limits,
        )
        return replace(other, aliases=self.aliases)


class PackedSetup(NamedTuple):
    """A pickled setup, with a hash of its bytes as key."""

    key: str
    content: bytes


def pack(setup: Setup) -> PackedSetup:
    """Pickle a setup, to send it to other processes of the same user.

    Functions of a script or a notebook are pickled by value if cloudpickle is installed. The bytes
    are for live processes only and are never stored.
    """
    try:
        content: bytes = import_module("cloudpickle").dumps(setup)
    except ModuleNotFoundError:
        content = _pickle_plainly(setup)
    except Exception as error:
        raise SolverError(_describe_unpicklable(error)) from None
    if len(content) > LARGE_SETUP_BYTES:
        warn(
            f"solvers and instances take {len(content) / 1e6:,.1f} MB, sent with every job: "
            "Instances(names, build) makes instances where they are needed"
        )
    return PackedSetup(blake2b(content, digest_size=16).hexdigest(), content)


def unpack(packed: PackedSetup) -> Setup:
    """Return the setup from what :func:`pack` returned."""
    return pickle.loads(packed.content)  # noqa: S301 (from our own coordinator, never from a file)


def _pickle_plainly(setup: Setup) -> bytes:
    """Pickle a setup without cloudpickle; raise an error for functions of the main script."""
    try:
        content = pickle.dumps(setup)
    except Exception as error:
        raise SolverError(_describe_unpicklable(error) + ", or pip install cloudpickle") from None
    if b"__main__" in content:
        raise SolverError(
            "a solver or an instance is defined in the script itself, where other processes "
            "cannot import it: move it to a module, or pip install cloudpickle"
        )
    return content


def _describe_unpicklable(error: Exception) -> str:
    return (
        f"solvers and instances cannot be sent to other processes ({error}): make what cannot be "
        "sent where it is needed, by Instances(names, build) and inside of solvers"
    )


def _check_signature(name: str, solver: Solver) -> None:
    """Raise an error unless a solver can be called with a job as its only argument."""
    try:
        signature(solver).bind(None)
    except TypeError:
        raise SolverError(
            f"solver {name!r} cannot be called with a job alone: a solver is a function such as "
            "def solver(job): ..., which finds its instance in job.instance"
        ) from None
    except ValueError:  # functions that are not written in Python may have no signature
        return


def _get_name(solver: Any) -> str:
    """Return the name of a function; raise an error for a lambda."""
    if not callable(solver):
        raise SolverError(f"{solver!r} is not a solver: expected a function that takes a job")
    name = getattr(solver, "__name__", "")
    if name in ("", "<lambda>"):
        raise SolverError(f"the solver {solver!r} has no name: {MAPPING_ADVICE}")
    return name


def _name_solvers(solvers: Any) -> dict[str, Solver]:
    """Return the solvers by name: the names given, or those of the functions."""
    if isinstance(solvers, Mapping):
        named = {check_name(to_name(name)): solver for name, solver in solvers.items()}
    elif isinstance(solvers, Iterable) and not isinstance(solvers, str | bytes):
        listed = list(solvers)
        named = {_get_name(solver): solver for solver in listed}
        if len(named) < len(listed):
            names = [_get_name(solver) for solver in listed]
            duplicate = next(name for name in names if names.count(name) > 1)
            raise SolverError(f"two solvers are named {duplicate!r}: {MAPPING_ADVICE}")
    else:
        raise SolverError(f"expected a list of functions; or {MAPPING_ADVICE}", solvers=solvers)
    if not named or "" in named:
        raise SolverError(
            "the list of solvers is empty: pass at least one"
            if not named
            else "the name of a solver must not be empty"
        )
    for name, solver in named.items():
        if not callable(solver):
            raise SolverError(
                f"solver {name!r} is {solver!r}: expected a function that takes a job"
            )
    return named


def _infer_clock(solvers: Mapping[str, Solver]) -> Clock:
    """Return the clock that all solvers share; raise an error if they have several."""
    clocks: set[Clock | None] = {
        s.clock if isinstance(s, Command) else "evaluations" for s in solvers.values()
    }
    if len(clocks) > 1:
        raise SolverError(
            "the solvers use different clocks: set the clock of the race to one of "
            + ", ".join(CLOCKS)
        )
    return clocks.pop() or "evaluations"
