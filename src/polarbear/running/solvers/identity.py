"""``identify``: fingerprints of a race's instances and solvers, compared when the race resumes.

A store has runs under names. If a resume used a name for another instance or solver, the runs of
both would be mixed. So the first call records fingerprints of instances and solvers, and the limits
of runs; later calls are compared with them.
"""

import dataclasses
import os
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from polarbear.errors import DataError
from polarbear.racing.events import Identified
from polarbear.running.solvers.commands import Command
from polarbear.running.solvers.fingerprints import (
    file_fingerprint,
    fingerprint,
    is_changed,
    is_file_content,
)
from polarbear.running.solvers.instances import Instances
from polarbear.running.solvers.setup import STORED_LIMIT_NAMES, Setup

_SECRET_NAME = re.compile(
    r"-*(.*[-_])?(key|token|secret|password|passwd|pwd|credentials?|auth)([-_].*)?", re.IGNORECASE
)
_URL_PASSWORD = re.compile(r"(://[^:/@\s]*:)[^@/\s]*(?=@)")

BUILD_FUNCTION = ""
"""The key of the function that makes instances; no instance has an empty name."""

_STORED_OPTION_NAMES = {
    "ok_exit_codes": "exits",
    "include_stderr": "errors",
    "use_pty": "terminal",
}
"""Options of a command whose name in stores differs from that of the attribute."""


def identify(setup: Setup) -> Identified:
    """Return the fingerprints of all instances and solvers of a setup, and its limits.

    >>> def walk(job):
    ...     yield 1, 2.0
    >>> setup = Setup.of([walk], {"a": 1}, times=[1, 2], direction="minimize")
    >>> known = identify(setup)
    >>> list(known.instances), list(known.solvers["walk"]), known.limits["wall"]
    (['a'], ['content'], 86400.0)
    """
    solvers = {name: _fingerprint_solver(solver) for name, solver in setup.solvers.items()}
    instances = _fingerprint_instances(setup.instances)
    return Identified(instances, solvers, setup.limits.to_stored())


def select_new_parts(recorded: Identified, current: Identified) -> Identified | None:
    """Return the fingerprints in ``current`` that ``recorded`` lacks; None if it lacks none."""
    parts: dict[str, Any] = {}
    for name in ("instances", "solvers", "limits", "aliases"):
        before, now = getattr(recorded, name), getattr(current, name)
        changed = [k for k in now if k not in before or now[k] not in (before[k], "")]
        parts[name] = {key: now[key] for key in changed}
    return Identified(**parts) if any(parts.values()) else None


def describe_differences(recorded: Identified, current: Identified) -> list[str]:
    """Return a sentence for each difference between the call and the race in the store.

    >>> recorded = Identified({"a": "1"}, {}, {"wall": 60})
    >>> describe_differences(recorded, Identified({"a": "2"}, {}, {"wall": 9}))
    ["instance 'a' has another content", 'the limit wall_seconds was 60 and is 9']
    """
    sentences = [
        f"instance {name!r} has another content"
        if name != BUILD_FUNCTION
        else "the function that makes instances has changed"
        for name, hashed in current.instances.items()
        if is_changed(recorded.instances.get(name, ""), hashed)
    ]
    for name, parts in current.solvers.items():
        before = recorded.solvers.get(name, {})
        if before and ("command" in before) != ("command" in parts):
            kinds = f"was a {_describe_kind(before)} and is a {_describe_kind(parts)}"
            sentences.append(f"solver {name!r} {kinds}")
            continue
        if before.get("command") != parts.get("command") and before:
            lines = f"was {before['command']!r} and is {parts['command']!r}"
            sentences.append(f"the command line of solver {name!r} {lines}")
        elif is_changed(before.get("content", ""), parts["content"]):
            what = (
                "its program, or a file among its arguments," if "command" in parts else "its code"
            )
            sentences.append(f"solver {name!r} has changed: {what} is another")
    attributes = {stored: attribute for attribute, stored in STORED_LIMIT_NAMES.items()}
    sentences += [
        f"the limit {attributes.get(name, name)} was {recorded.limits[name]} and is {value}"
        for name, value in current.limits.items()
        if name in recorded.limits and recorded.limits[name] != value
    ]
    return sentences


def check_distinct_files(identity: Identified) -> None:
    """Raise an error if one file has two names, because it would count as two instances."""
    names: dict[str, str] = {}
    for name, hashed in identity.instances.items():
        if is_file_content(hashed) and names.setdefault(hashed, name) != name:
            raise DataError(
                f"instances {names[hashed]!r} and {name!r} are files with the same content: they "
                "would count as two instances. Leave out one of them"
            )


def find_renamed(
    names: set[str], setup: Setup, recorded: Identified, current: Identified
) -> dict[str, str]:
    """Return instances of the call that are files of the race under a new name: {new: old}.

    A file is recognised by its content. Stores of the first version have no contents: there it is
    recognised by its path, which was its name.
    """
    missing = names - current.instances.keys()
    new = {name: hashed for name, hashed in current.instances.items() if name not in names}
    by_content = {
        recorded.instances[name]: name for name in missing if recorded.instances.get(name)
    }
    renamed = {
        name: by_content[hashed]
        for name, hashed in new.items()
        if is_file_content(hashed) and hashed in by_content
    }
    given = setup.instances.given() or {}
    without_content = sorted(missing - recorded.instances.keys())
    for name in new.keys() - renamed.keys():
        matches = [old for old in without_content if _is_same_path(old, name, given.get(name))]
        if len(matches) == 1 and is_file_content(new[name]):
            renamed[name] = matches[0]
    ambiguous = {old for old in renamed.values() if list(renamed.values()).count(old) > 1}
    return {name: old for name, old in renamed.items() if old not in ambiguous}


def _is_same_path(old: str, name: str, path: Any) -> bool:
    """Return whether an old instance name is a file's path, or its end if the file was moved."""
    if not isinstance(path, str | os.PathLike):
        return False
    if Path(old).exists():
        return os.path.realpath(old) == os.path.realpath(path)
    parts, ending = PurePosixPath(old).parts, PurePosixPath(name).parts
    return parts[-len(ending) :] == ending


def _fingerprint_instances(instances: Instances) -> dict[str, str]:
    """Return the fingerprint of each instance, or of the function that makes instances."""
    given = instances.given()
    if given is None:
        unknown = instances.names or ()
        files = {name: file_fingerprint(name) for name in unknown}
        return {**files, BUILD_FUNCTION: fingerprint(instances.build)}
    return {name: _fingerprint_instance(value) for name, value in given.items()}


def _fingerprint_instance(value: Any) -> str:
    """Return the fingerprint of the file that an instance names, else of the object itself."""
    content = file_fingerprint(value) if isinstance(value, str | os.PathLike) else ""
    return content or fingerprint(value)


def _fingerprint_solver(solver: Any) -> dict[str, str]:
    """Return the fingerprint of a solver, and a program's command line without secrets."""
    if not isinstance(solver, Command):
        return {"content": fingerprint(solver)}
    words = [str(word) for word in solver.arguments]
    options = {
        _STORED_OPTION_NAMES.get(field.name, field.name): getattr(solver, field.name)
        for field in dataclasses.fields(solver)
        if field.compare and field.init and field.name != "arguments"
        if getattr(solver, field.name) != field.default
    }
    folder = solver.start_folder or "."
    program = words[0] if "/" in words[0] else shutil.which(words[0]) or words[0]
    named = [part for word in words[1:] for part in {word, word.partition("=")[2] or word}]
    paths = [Path(folder, word) for word in (program, *sorted(named))]
    contents = [content for path in paths if (content := file_fingerprint(path))]
    line = shlex.join(hide_secrets(words))
    shown_options = ", ".join(f"{name}={value!r}" for name, value in sorted(options.items()))
    content = fingerprint([words, options, contents])
    return {"command": f"{line}  ({shown_options})" if shown_options else line, "content": content}


def hide_secrets(words: Sequence[str]) -> list[str]:
    """Return a program's arguments with the values of keys and passwords replaced by ``***``.

    >>> hide_secrets(["solve", "--api-key=abc", "--token", "abc", "--keep=1", "ftp://ann:abc@host"])
    ['solve', '--api-key=***', '--token', '***', '--keep=1', 'ftp://ann:***@host']
    """
    shown: list[str] = []
    for word in words:
        if shown and _SECRET_NAME.fullmatch(shown[-1]):
            shown.append("***")
        else:
            name, equals, _ = word.partition("=")
            hidden = f"{name}=***" if equals and _SECRET_NAME.fullmatch(name) else word
            shown.append(_URL_PASSWORD.sub(r"\1***", hidden))
    return shown


def _describe_kind(parts: Mapping[str, str]) -> str:
    return "program" if "command" in parts else "Python function"
