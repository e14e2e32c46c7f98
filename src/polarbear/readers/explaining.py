"""``Explanation``: the formats and runs that a dry run recognises, also in a mixed folder."""

import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from posixpath import dirname
from typing import Any

from polarbear._text import escape_text, format_count, format_list
from polarbear.data.runs import Runs
from polarbear.errors import PolarBearError
from polarbear.readers.source import Refused, RefusedIncomplete, Source

NO_FORMAT = "no format reads such a file"
"""The reason for files that no reader opened."""

MAX_SPLIT_FILES = 2_000
"""A folder with more unreadable files is not tried file by file, to bound the time."""

FormatRow = tuple[str, str, Callable[[Source], Runs]]
"""The name and the description of a format, and its reader with all options given."""


@dataclass(frozen=True)
class RecognisedFiles:
    """Files of one format, with their runs, the guesses made and the warnings given.

    ``kinds`` counts files by kind, such as the solver that wrote a log. ``guesses`` has the runs
    whose names came from one origin, such as "algorithm from the folder".
    """

    format: str
    what: str
    files: tuple[str, ...]
    runs: Runs
    kinds: Mapping[str, int] = field(default_factory=dict)
    guesses: Mapping[str, Sequence[str]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"{self.format}: {self.what}", *str(self.runs).split("\n")]
        if self.kinds:
            kinds = [f"{kind} ({number:,})" for kind, number in self.kinds.items()]
            lines.append(f"  written by  {format_list(kinds)}")
        lines.append(f"  files       {format_list(self.files, 4)}")
        for origin, examples in self.guesses.items():
            n_runs = format_count(len(examples), "run")
            lines.append(f"  guessed     {origin} ({n_runs}): {examples[0]}")
        lines += [f"  note        {escape_text(warning)}" for warning in self.warnings]
        return "\n  ".join(lines)


@dataclass(frozen=True)
class Explanation:
    """The result of a dry run: files by format, and files that were left out, with reasons.

    >>> print(Explanation("results", (), {"notes.md": "no format reads such a file"}))
    results: 0 of 1 file recognised, 0 runs
    <BLANKLINE>
    left out: 1 file
      notes.md: no format reads such a file
    """

    label: str
    recognised: tuple[RecognisedFiles, ...]
    left_out: Mapping[str, str]

    def __str__(self) -> str:
        n_files = sum(len(part.files) for part in self.recognised)
        n_runs = sum(len(part.runs) for part in self.recognised)
        total = format_count(n_files + len(self.left_out), "file")
        runs = format_count(n_runs, "run")
        lines = [f"{escape_text(self.label)}: {n_files:,} of {total} recognised, {runs}"]
        lines += [f"\n{part}" for part in self.recognised]
        if self.left_out:
            lines.append(f"\nleft out: {format_count(len(self.left_out), 'file')}")
        for reason in dict.fromkeys(self.left_out.values()):
            files = [file for file, why in self.left_out.items() if why == reason]
            lines.append(f"  {format_list(files, 4)}: {_shorten(reason)}")
        return "\n".join(lines)

    def to_plain(self) -> dict[str, Any]:
        """Return the explanation as names, numbers and lists, for JSON."""
        return {
            "recognised": [
                {
                    "format": part.format,
                    "what": part.what,
                    "kinds": dict(part.kinds),
                    "files": part.files,
                    "runs": len(part.runs),
                    "algorithms": part.runs.algorithms,
                    "instances": part.runs.instances,
                    "direction": part.runs.direction,
                    "clock": part.runs.clock,
                    "guesses": dict(part.guesses),
                    "warnings": part.warnings,
                }
                for part in self.recognised
            ],
            "left_out": dict(self.left_out),
        }


def explain_source(source: Source, formats: Sequence[FormatRow]) -> Explanation:
    """Read each file of a source with the first format that accepts it; explain the outcome.

    All files are tried together at first. Those that no reader takes are tried folder by folder,
    and then one by one, so that a file of another format or a damaged one hides no other.
    """
    parts: list[RecognisedFiles] = []
    reasons: dict[str, str] = {}
    read: set[str] = set()
    groups = [(list(source.files), list(formats))]
    for files, rows in groups:
        files = [name for name in files if name not in read]  # a file may be read by reference
        found, opened = _read_group(source, files, rows, reasons)
        parts += found
        read.update(file for part in found for file in part.files)
        rest = [name for name in files if name not in read]
        if len(files) > 1 and opened:
            groups += [(group, opened) for group in _split_files(files, rest)]
    left_out = {name: reasons.get(name, NO_FORMAT) for name in source.files if name not in read}
    return Explanation(source.label, tuple(_merge_parts(parts)), left_out)


def _split_files(files: Sequence[str], rest: Sequence[str]) -> list[list[str]]:
    """Group unread files by folder; return single files if all files are in the same folder."""
    folders: dict[str, list[str]] = {}
    for name in rest:
        folders.setdefault(dirname(name), []).append(name)
    if len({dirname(name) for name in files}) > 1:
        return list(folders.values())
    return [[name] for name in rest[:MAX_SPLIT_FILES]]


def _read_group(
    source: Source, files: Sequence[str], rows: Sequence[FormatRow], reasons: dict[str, str]
) -> tuple[list[RecognisedFiles], list[FormatRow]]:
    """Read files with each format in turn; return what was read, and formats that refused files.

    Reasons of refusals are added to ``reasons``.
    """
    recognised, opened = list[RecognisedFiles](), list[FormatRow]()
    refusals: dict[str, list[Exception]] = {}
    part = source.select(files)
    for name, what, reader in rows:
        part.used, part.skipped, part.guesses, part.kinds = set(), {}, {}, {}
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                runs = reader(part)
        except (Refused, PolarBearError) as why:
            if part.used:
                opened.append((name, what, reader))
            for file in part.used:
                refusals.setdefault(file, []).append(why)
            for file, reason in part.skipped.items():
                refusals.setdefault(file, []).append(Refused(reason))
            continue
        reasons.update(part.skipped)
        used = tuple(file for file in source.files if file in part.used)
        kinds = Counter(part.kinds[file] for file in used if file in part.kinds)
        notes = tuple(str(one.message) for one in caught)
        recognised.append(RecognisedFiles(name, what, used, runs, kinds, part.guesses, notes))
        part = source.select(file for file in part.files if file not in used)
    for file, whys in refusals.items():
        reasons[file] = str(min(whys, key=_order_refusal)).removeprefix(f"{file}: ")
    return recognised, opened


def _order_refusal(why: Exception) -> int:
    """Return a sort key for reasons of refusal: 0 for a faulty file of the right format."""
    return 2 - isinstance(why, RefusedIncomplete) - 2 * isinstance(why, PolarBearError)


def _merge_parts(parts: Sequence[RecognisedFiles]) -> list[RecognisedFiles]:
    """Merge files of the same format, direction and clock, unless two hold the same run."""
    alike: dict[tuple[str, str, str], list[RecognisedFiles]] = {}
    for part in parts:
        alike.setdefault((part.format, part.runs.direction, part.runs.clock), []).append(part)
    merged: list[RecognisedFiles] = []
    for group in alike.values():
        try:
            merged.append(_merge(group))
        except PolarBearError:
            merged += group
    return merged


def _merge(parts: Sequence[RecognisedFiles]) -> RecognisedFiles:
    kinds, guesses = Counter[str](), dict[str, list[str]]()
    for part in parts:
        kinds.update(part.kinds)
        for origin, examples in part.guesses.items():
            guesses.setdefault(origin, []).extend(examples)
    return RecognisedFiles(
        parts[0].format,
        parts[0].what,
        tuple(file for part in parts for file in part.files),
        Runs.concat(part.runs for part in parts),
        kinds,
        guesses,
        tuple(dict.fromkeys(note for part in parts for note in part.warnings)),
    )


def _shorten(reason: str) -> str:
    """Return the first line of a message, with at most 300 characters."""
    line = escape_text(reason.split("\n", 1)[0])
    return line if len(line) <= 300 else f"{line[:297]}..."
