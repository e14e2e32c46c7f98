"""``PathPattern``: the algorithm, instance and repetition of a file, by the parts of its path.

``names="{algorithm}/{instance}_s{repetition}.csv"`` gives the meaning of the parts of a path. Each
field is a column with one value for the whole file. Readers of logs and of tables use this.
"""

import re
from collections.abc import Sequence
from re import Pattern

from polarbear._text import format_list
from polarbear.data.missing_columns import REPETITION_COLUMNS
from polarbear.errors import Argument, DataError, warn
from polarbear.readers.source import RefusedIncomplete, Source, split_packing

MAX_PATH_CHARACTERS = 1_000
"""Longer paths match no pattern, since matching time grows faster than their length."""

_FIELD = re.compile(r"\{([^{}/]*)\}|(\*)")
_ENDING = re.compile(r"\.[a-z]\w{0,9}", re.IGNORECASE)
_REPETITION = re.compile(
    r"(?P<rest>.*?)(?P<mark>(?:^|[-_.=]+)(?:s|seed|r|run|rep|repetition|trial)?[-_=]?)(?P<number>[0-9]+)",
    re.IGNORECASE,
)
_SEPARATORS = ("__", "_", "-", ".")


class PathPattern:
    """A pattern of file paths: a template such as {algorithm}/{instance}, or a regular expression.

    A template fits the end of a path, part by part. ``*`` stands for any text without a slash.
    ``{repetition}`` and ``{seed}`` stand for whole numbers.

    >>> pattern = PathPattern("runs/{algorithm}/{instance}_s{repetition}.csv")
    >>> pattern.fields("/home/ann/runs/CMA/f_s1_s3.csv", "CMA/f_s1_s3.csv")
    {'algorithm': 'CMA', 'instance': 'f_s1', 'repetition': '3'}
    """

    def __init__(self, names: str):
        if not isinstance(names, str):
            raise DataError("expected a pattern such as '{algorithm}/*.csv'", names=names)
        self.names = names
        self._is_regex = "(?P<" in names
        if self._is_regex:
            self._patterns = (_compile_regex(names),)
        else:
            plain = names.replace("\\", "/").removeprefix("./")
            self._depth = plain.count("/") + 1
            self._patterns = (_compile_template(plain, ""), _compile_template(plain, "?"))

    def fields(self, path: str, name: str) -> dict[str, str] | None:
        """Return the text that each {field} matches in a path; None if the pattern does not fit."""
        if len(name) > MAX_PATH_CHARACTERS:
            return None
        if self._is_regex:
            match = self._patterns[0].search(name)
            return None if match is None else {k: v for k, v in match.groupdict().items() if v}
        tail = "/".join(path.split("/")[-self._depth :])
        greedy, lazy = (pattern.fullmatch(tail) for pattern in self._patterns)
        if greedy is None or lazy is None:
            return None
        if greedy.groupdict() != lazy.groupdict():
            ways = " or ".join(_format_fields(way.groupdict()) for way in (lazy, greedy))
            raise DataError(
                f"{name}: names={self.names!r} fits in more than one way: {ways}; pass a regular "
                "expression, names=r'(?P<algorithm>...)(?P<instance>...)'"
            )
        return greedy.groupdict()


def parse_paths(source: Source, files: Sequence[str], names: str) -> dict[str, dict[str, str]]:
    """Return what each {field} of the pattern matches in file paths; warn about other files."""
    pattern = PathPattern(names)
    fitting = {name: pattern.fields(source.path(name), name) for name in files}
    named = {name: fields for name, fields in fitting.items() if fields is not None}
    others = [name for name in files if name not in named]
    if not named:
        raise RefusedIncomplete(
            ("no file fits ", Argument("names", names), f": the first is {source.path(others[0])}")
        )
    for name in others:
        source.skip(name)
    if others:
        warn(
            f"{source.label}: {len(others):,} of {len(files):,} files do not fit ",
            Argument("names", names),
            f" and were left out: {format_list(others, 4)}",
        )
    return named


def propose_pattern(files: Sequence[str], wanted: Sequence[str]) -> str | None:
    """Propose a path pattern with the ``wanted`` {fields} for all files; None if no pattern fits.

    The algorithm is guessed to be the first part that differs between files.

    >>> files = ["CMA/f1_s1.csv", "CMA/f2_s1.csv", "DE/f1_s1.csv"]
    >>> propose_pattern(files, ["algorithm", "instance"])
    '{algorithm}/{instance}_s{repetition}.csv'
    """
    if len(files) < 2 or len({name.count("/") for name in files}) > 1:
        return None
    for with_repetition in (True, False):
        parts = [
            _PathPart(list(layer)) for layer in zip(*(f.split("/") for f in files), strict=True)
        ]
        parts[-1].take_ending()
        if with_repetition and not any(part.take_repetition() for part in reversed(parts)):
            continue
        for slots in ([part for part in parts if len(set(part.texts)) > 1], parts):
            template = _fill_template(parts, slots, wanted)
            if template and _is_unambiguous(template, files):
                return template
    return None


class _PathPart:
    """The folder names, or the file names, of all paths at one depth."""

    def __init__(self, texts: list[str]):
        self.texts = texts
        self.suffix = ""  # what follows the fields: the repetition and the ending

    def take_ending(self) -> None:
        """Remove the file ending from all names if they share one, such as .csv."""
        endings = {name[find_ending(name) :] for name in self.texts}
        if len(endings) == 1:
            self.suffix = endings.pop()
            self.texts = [name.removesuffix(self.suffix) for name in self.texts]

    def take_repetition(self) -> bool:
        """Split a repetition number such as _s3 off the end of all names, if all have one."""
        matches = [_REPETITION.fullmatch(name) for name in self.texts]
        marks = {match["mark"] if match else None for match in matches}
        if len(marks) > 1 or None in marks:
            return False
        self.suffix = f"{marks.pop()}{{repetition}}{self.suffix}"
        self.texts = [match["rest"] if match else "" for match in matches]
        return True

    def separator(self) -> str | None:
        """Return the character that splits every name in two parts; ``None`` if there is none."""
        for separator in _SEPARATORS:
            if all(
                sum(map(bool, name.split(separator))) == 2 == name.count(separator) + 1
                for name in self.texts
            ):
                return separator
        return None


def _fill_template(
    parts: Sequence[_PathPart], slots: Sequence[_PathPart], wanted: Sequence[str]
) -> str | None:
    """Make a path template with a wanted {field} for each part that varies; None if impossible."""
    fields = [f"{{{field}}}" for field in wanted]
    if slots and len(slots) == len(wanted) - 1 and (separator := slots[-1].separator()):
        fields[-2:] = [separator.join(fields[-2:])]
    if len(slots) != len(fields):
        return None
    filled = {id(part): field for part, field in zip(slots, fields, strict=True)}
    return "/".join(filled.get(id(part), part.texts[0]) + part.suffix for part in parts)


def find_ending(name: str) -> int:
    """Return the index at which the ending of a file name starts."""
    stem, _ = split_packing(name)
    dot = stem.rfind(".")
    return dot if dot > 0 and _ENDING.fullmatch(stem[dot:]) else len(stem)


def _is_unambiguous(template: str, files: Sequence[str]) -> bool:
    """Return whether a template fits each file in one way, and gives all files distinct names."""
    pattern = PathPattern(template)
    try:
        fields = [pattern.fields(name, name) for name in files]
    except DataError:
        return False
    return None not in fields and len({str(each) for each in fields}) == len(files)


def _compile_regex(names: str) -> Pattern[str]:
    try:
        return re.compile(names)
    except re.error as error:
        raise DataError(f"{error}", names=names) from None


def _compile_template(names: str, laziness: str) -> Pattern[str]:
    """Compile a template to a regular expression; with ``laziness`` "?" fields match least."""
    text, at, seen = "", 0, set[str]()
    for match in _FIELD.finditer(names):
        field = match[1]
        text += re.escape(names[at : match.start()])
        at = match.end()
        if match[2]:
            text += f"[^/]*{laziness}"
            continue
        if not field.isidentifier() or field in seen:
            raise DataError(
                "each field is one word in braces, and occurs once: "
                "'{algorithm}/{instance}_s{repetition}.csv'",
                names=names,
            )
        seen.add(field)
        kind = "[0-9]" if field in REPETITION_COLUMNS else "[^/]"
        text += f"(?P<{field}>{kind}+{laziness})"
    if not seen:
        raise DataError(
            f"names={names!r} has no field: write '{{algorithm}}/{{instance}}.csv', "
            "or a regular expression with groups (?P<algorithm>...)"
        )
    return re.compile(text + re.escape(names[at:]) + r"(?:\.(?:gz|bz2))?")


def _format_fields(fields: dict[str, str]) -> str:
    return ", ".join(f"{name} {value!r}" for name, value in fields.items())
