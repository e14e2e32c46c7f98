"""``Instances``: the names of instances, and a function that makes each in the process of its run.

An instance is the object that a solver gets as ``job.instance``: a file name, a number, a function,
any object. Large or unpicklable instances are made in the process of the run::

    Instances(["f1", "f2"], build=lambda name: ioh.get_problem(int(name[1:]), 1, 5))

Names determine seeds and which runs are compared, so they must not depend on the current folder.
Text, numbers and paths are named as they are written. ``Instances.from_files`` names files relative
to a folder; TOML files use it.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from polarbear.data.names import check_name, to_name
from polarbear.errors import DataError
from polarbear.racing.jobs import Job


@dataclass(frozen=True)
class Instances:
    """Named instances, each of which is made in the process of a run when the run starts.

    Attributes
    ----------
    names
        The names; None if instances are drawn at random, without end.
    build
        A function that makes an instance from its name or, without names, a numpy generator.

    Examples
    --------
    >>> Instances.of({"small": [1, 2], "large": [3, 4, 5]}).names
    ('small', 'large')
    >>> Instances.of(["a.cnf", "b.cnf"]).names
    ('a.cnf', 'b.cnf')
    >>> Instances.of(lambda rng: rng.random(3)).names is None
    True
    """

    names: tuple[str, ...] | None
    build: Callable[[Any], Any]

    def __post_init__(self) -> None:
        if not callable(self.build):
            raise DataError("expected a function that makes an instance", build=self.build)
        if self.names is None:
            return
        if isinstance(self.names, str):
            raise DataError("expected a list of names", names=self.names)
        names = tuple(check_name(to_name(name)) for name in self.names)
        object.__setattr__(self, "names", names)
        _check_distinct(names)
        if not names or "" in names:
            raise DataError(
                "the list of instances is empty: pass at least one"
                if not names
                else "the name of an instance must not be empty"
            )

    @classmethod
    def of(cls, instances: Any) -> "Instances":
        """Make instances from a mapping, a sequence, or a function of a random generator."""
        if isinstance(instances, Instances):
            return instances
        if isinstance(instances, str | bytes):
            raise DataError("expected a list, or a mapping from names", instances=instances)
        if isinstance(instances, Mapping):
            named = {to_name(name): instance for name, instance in instances.items()}
        elif isinstance(instances, Iterable):
            named = _name_instances(list(instances))
        elif callable(instances):
            return cls(None, instances)
        else:
            raise DataError(
                "expected a list, a mapping from names, Instances(names, "
                "build), or a function of a random generator",
                instances=instances,
            )
        return cls(tuple(named), _Lookup(named))

    @classmethod
    def from_files(
        cls, files: str | Iterable[str | PathLike[str]], folder: str | PathLike[str] = "."
    ) -> "Instances":
        """Make instances from files, named relative to a folder; solvers get absolute paths.

        Parameters
        ----------
        files
            A pattern such as ``"instances/*.cnf"``, or a list of files. An absolute path in the
            list is named as it is written.
        folder
            The folder of the files, to which names are relative. With
            ``folder=Path(__file__).parent`` they do not depend on the current folder.

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Path(folder, "b.cnf").touch()
        ...     Path(folder, "a.cnf").touch()
        ...     Instances.from_files("*.cnf", folder).names
        ('a.cnf', 'b.cnf')
        """
        root = Path(folder).absolute()
        if isinstance(files, str):
            try:
                matches = [path for path in root.glob(files) if path.is_file()]
            except (ValueError, NotImplementedError) as error:
                raise DataError(
                    f"files = {files!r}: the pattern of file names is invalid, {error}"
                ) from None
            names = sorted(path.relative_to(root).as_posix() for path in matches)
            if not names:
                raise DataError(f"files = {files!r}: there is no such file in {root}")
        else:
            names = [Path(os.path.normpath(name)).as_posix() for name in files]
            absent = next((name for name in names if not (root / name).is_file()), None)
            if absent is not None:
                raise DataError(f"files: there is no file {absent!r} in {root}")
        _check_distinct(names)
        return cls(tuple(names), _Lookup({name: str(root / name) for name in names}))

    def make(self, job: Job) -> Any:
        """Make the instance that a job names.

        >>> from polarbear.racing.jobs import RunId, job
        >>> Instances(["2", "3"], int).make(job(0, RunId("a", "3", 0), horizon=1))
        3
        """
        if self.names is None:
            return self.build(np.random.default_rng(job.instance_seed))
        return self.build(job.instance)

    def given(self) -> Mapping[str, Any] | None:
        """Return the instances by name if passed as objects; None if a function makes them.

        >>> Instances.of({"small": 1}).given(), Instances(["1"], int).given()
        ({'small': 1}, None)
        """
        return self.build.named if isinstance(self.build, _Lookup) else None

    def rename(self, names: Mapping[str, str]) -> "Instances":
        """Return the instances with some of them renamed, by a mapping of names.

        >>> Instances.of({"a": 1, "b": 2}).rename({"a": "c"}).names
        ('c', 'b')
        """
        given = self.given()
        if given is None:
            return self
        return Instances.of({names.get(name, name): given[name] for name in given})


@dataclass(frozen=True)
class _Lookup:
    """A ``build`` function that looks up given instances by name."""

    named: Mapping[str, Any]

    def __call__(self, name: str) -> Any:
        return self.named[name]


def _name_instances(instances: Sequence[Any]) -> dict[str, Any]:
    """Name text, numbers and paths by how they are written; number other objects."""
    names = [
        to_name(fspath(item) if isinstance(item, PathLike) else item)
        if isinstance(item, str | int | float | PathLike)
        else str(k)
        for k, item in enumerate(instances, start=1)
    ]
    _check_distinct(names)
    return dict(zip(names, instances, strict=True))


def _check_distinct(names: Sequence[str]) -> None:
    """Raise an error if two instances have the same name."""
    if len(set(names)) < len(names):
        duplicate = next(name for name in names if names.count(name) > 1)
        raise DataError(f"two instances are named {duplicate!r}: give each a name of its own")
