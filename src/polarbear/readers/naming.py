"""``RunNaming``: the algorithm, instance and repetition of runs, found in the same way everywhere.

A name is taken from the first of these that has it: the pattern of ``names=``; a file name
``algorithm__instance__repetition``; what the file itself states; folder and file name; the name of
the program that wrote the file.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from polarbear._text import escape_text
from polarbear.data.missing_columns import REPETITION_COLUMNS
from polarbear.errors import Argument, DataError, Text, warn
from polarbear.readers.paths import find_ending, parse_paths, propose_pattern
from polarbear.readers.source import Source, prefix_errors

_MARKED_REPETITION = re.compile(
    r"(s|seed|r|run|rep|repetition|trial)[-_=]?\{repetition\}", re.IGNORECASE
)
_FILE_NAME, _FOLDER, _CONTENT = "the file name", "the folder", "the content of the file"
_PROGRAM, _ORDER = "the program that wrote the file", "the order in the file"

Origins = dict[str, str]
"""Where each part of a name comes from, by part: algorithm, instance or repetition."""


class RunName(NamedTuple):
    """The algorithm, instance and repetition of a run.

    >>> RunName("CSA", "sphere")
    RunName(algorithm='CSA', instance='sphere', repetition=0)
    """

    algorithm: str
    instance: str
    repetition: int = 0


@dataclass(frozen=True)
class StatedName:
    """The parts of a run's name that a file states; ``None`` for each part that it does not state.

    ``solver`` is the program that wrote the file, which is the algorithm if nothing else is known.

    >>> StatedName(instance="p0033", solver="SCIP").algorithm is None
    True
    """

    algorithm: str | None = None
    instance: str | None = None
    repetition: int | None = None
    solver: str | None = None


class RunNaming:
    """The rule by which the runs of a source are named.

    Parameters
    ----------
    source, files
        The source, and those of its files that hold runs.
    names
        A pattern as in ``read(names=...)``. ``files`` are then those that fit it.

    Examples
    --------
    >>> source = Source("logs", {"fast/p1.log": bytes, "SCIP__p1__3.log": bytes}, {})
    >>> naming = RunNaming(source, source.files)
    >>> for name in naming.name_runs([(file, StatedName(solver="SCIP")) for file in naming.files]):
    ...     print(name)
    RunName(algorithm='SCIP', instance='p1', repetition=3)
    RunName(algorithm='fast', instance='p1', repetition=0)
    """

    def __init__(self, source: Source, files: Sequence[str], names: str | None = None):
        self._source = source
        self._fields = None if names is None else parse_paths(source, files, names)
        self.files = list(files if self._fields is None else self._fields)

    def name_runs(self, stated: Sequence[tuple[str, StatedName]]) -> list[RunName]:
        """Name runs, given the file of each run and the names that the file states.

        Runs of one file that have the same name are counted as repetitions. If two files state
        the same names, instances and repetitions are taken from the file names instead.
        """
        if self._fields is not None:
            return [name for name, _ in self._name_all(stated)]
        named = self._name_all(stated)
        if not _are_distinct(named):
            unstated = [
                (file, StatedName(says.algorithm, solver=says.solver)) for file, says in stated
            ]
            by_file = self._name_all(unstated)
            named = by_file if _are_distinct(by_file) else named
        files = [file for file, _ in stated]
        _warn_if_repetitions_missed(files, named)
        return [name for name, _ in named]

    def rename_run(self, file: str, name: RunName) -> RunName:
        """Return the name that a file gives a run, with the parts that ``names=`` sets replaced."""
        if self._fields is None:
            return name
        stated = StatedName(name.algorithm, name.instance, name.repetition)
        return _name_by_fields(self._fields[file], stated)

    def _name_all(self, stated: Sequence[tuple[str, StatedName]]) -> list[tuple[RunName, Origins]]:
        named = list[tuple[RunName, Origins]]()
        seen: Counter[tuple[str, RunName]] = Counter()
        for file, says in stated:
            with prefix_errors(file):
                if self._fields is None:
                    name, origins = _name_by_file(file, says)
                else:
                    name, origins = _name_by_fields(self._fields[file], says), {}
            if number := seen[file, name]:
                origins = {**origins, "repetition": _ORDER}
            seen[file, name] += 1
            named.append((name._replace(repetition=name.repetition + number), origins))
        return named


def _are_distinct(named: Sequence[tuple[RunName, Origins]]) -> bool:
    return len({name for name, _ in named}) == len(named)


def _name_by_fields(fields: Mapping[str, str], says: StatedName) -> RunName:
    """Name a run by the parts of its path that ``names=`` marks, else by what its file states."""
    algorithm = fields.get("algorithm") or says.algorithm or says.solver
    instance = fields.get("instance") or says.instance
    if not algorithm or not instance:
        raise DataError(
            "names= gives no algorithm or no instance: write '{algorithm}' and '{instance}' in it"
        )
    number = next((fields[name] for name in REPETITION_COLUMNS if name in fields), None)
    return RunName(
        algorithm, instance, (says.repetition or 0) if number is None else _parse_repetition(number)
    )


def _name_by_file(file: str, says: StatedName) -> tuple[RunName, Origins]:
    """Name a run by its path and its file's content; also return the source of each part."""
    *folders, name = file.split("/")
    stem = name[: find_ending(name)]
    explicit: list[str | None] = [*stem.split("__")]
    if len(explicit) == 1:
        explicit = []
    elif len(explicit) == 2 and stem.split("__")[1].isdecimal():
        explicit = [None, *explicit]
    elif len(explicit) > 3 or not all(explicit):
        raise DataError(*_describe_rule(name))
    algorithm, instance, repetition = (*explicit, None, None, None)[:3]
    candidates = {
        "algorithm": [
            (algorithm, _FILE_NAME),
            (says.algorithm, _CONTENT),
            (folders[-1] if folders else None, _FOLDER),
            (says.solver, _PROGRAM),
        ],
        "instance": [(instance, _FILE_NAME), (says.instance, _CONTENT), (stem, _FILE_NAME)],
        "repetition": [
            (repetition, _FILE_NAME),
            (None if says.repetition is None else str(says.repetition), _CONTENT),
        ],
    }
    name_of, origin_of = dict[str, str](), Origins()
    for part, texts in candidates.items():
        if chosen := next(((text, origin) for text, origin in texts if text), None):
            name_of[part], origin_of[part] = chosen
    if not {"algorithm", "instance"} <= name_of.keys():
        raise DataError(*_describe_rule(name))
    number = _parse_repetition(name_of.get("repetition", "0"))
    return RunName(name_of["algorithm"], name_of["instance"], number), origin_of


def _describe_rule(name: str) -> tuple[Text, ...]:
    ending = escape_text(name[find_ending(name) :])
    why = "the name does not tell algorithm and instance: "
    names = f"call it algorithm/instance{ending} or algorithm__instance{ending}, or pass "
    return (why, names, Argument("names", f"{{algorithm}}_{{instance}}{ending}"))


def _parse_repetition(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", text):
        raise DataError(
            f"repetition {text!r} in the path is not a whole number: mark it with names="
        )
    return int(text)


def _warn_if_repetitions_missed(
    files: Sequence[str], named: Sequence[tuple[RunName, Origins]]
) -> None:
    """Warn if repetition numbers in paths seem to have been read as parts of instance names."""
    if any("repetition" in origins or origins["instance"] != _FILE_NAME for _, origins in named):
        return
    pattern = propose_pattern(files, ["algorithm", "instance"]) or ""
    if _MARKED_REPETITION.search(pattern):
        warn(
            f"{files[0]} was taken as instance {named[0][0].instance!r}; if the files are "
            "repetitions on instances, pass ",
            Argument("names", pattern),
        )
