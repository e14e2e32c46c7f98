"""``identify``: what the names of a race stand for, so that a resume can be compared with it.

A store has runs under names. A resume that means something else by a name would mix the runs of
two things. So the first call records fingerprints of instances and solvers, and the limits of
runs; later calls are compared with them.
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
from polarbear.running.solvers.setup import Setup

_SECRET = re.compile(
    r"-*(.*[-_])?(key|token|secret|password|passwd|pwd|credentials?|auth)([-_].*)?", re.IGNORECASE
)
_PASSWORD = re.compile(r"(://[^:/@\s]*:)[^@/\s]*(?=@)")

BUILD = ""
"""The name, which no instance has, of the function that makes instances."""


def identify(setup: Setup) -> Identified:
    """Fingerprints of all instances and solvers of a setup, and its limits.

    >>> def walk(job):
    ...     yield 1, 2.0
    >>> setup = Setup.of([walk], {"a": 1}, times=[1, 2], direction="minimize")
    >>> known = identify(setup)
    >>> list(known.instances), list(known.solvers["walk"]), known.limits["wall"]
    (['a'], ['content'], 86400.0)
    """
    solvers = {name: _solver(solver) for name, solver in setup.solvers.items()}
    return Identified(_instances(setup.instances), solvers, dict(vars(setup.limits)))


def new_parts(known: Identified, now: Identified) -> Identified | None:
    """What ``now`` says that ``known`` does not; None if there is nothing."""
    parts: dict[str, Any] = {}
    for name in ("instances", "solvers", "limits", "aliases"):
        before, own = getattr(known, name), getattr(now, name)
        changed = [k for k in own if k not in before or own[k] not in (before[k], "")]
        parts[name] = {key: own[key] for key in changed}
    return Identified(**parts) if any(parts.values()) else None


def differences(known: Identified, now: Identified) -> list[str]:
    """What a call means otherwise than the race does, each in a sentence.

    >>> old, new = Identified({"a": "1"}, {}, {"wall": 60}), Identified({"a": "2"}, {}, {"wall": 9})
    >>> differences(old, new)
    ["instance 'a' has another content", 'the limit wall was 60 and is 9']
    """
    said = [
        f"instance {name!r} has another content"
        if name != BUILD
        else "the function that makes instances has changed"
        for name, hashed in now.instances.items()
        if is_changed(known.instances.get(name, ""), hashed)
    ]
    for name, parts in now.solvers.items():
        before = known.solvers.get(name, {})
        if before and ("command" in before) != ("command" in parts):
            said.append(f"solver {name!r} was a {_kind(before)} and is a {_kind(parts)}")
            continue
        if before.get("command") != parts.get("command") and before:
            was, now_is = before["command"], parts["command"]
            said.append(f"the command line of solver {name!r} was {was!r} and is {now_is!r}")
        elif is_changed(before.get("content", ""), parts["content"]):
            what = (
                "its program, or a file among its arguments," if "command" in parts else "its code"
            )
            said.append(f"solver {name!r} has changed: {what} is another")
    said += [
        f"the limit {name} was {known.limits[name]} and is {value}"
        for name, value in now.limits.items()
        if name in known.limits and known.limits[name] != value
    ]
    return said


def check_distinct_files(now: Identified) -> None:
    """Refuse a file that is there under two names: its runs would count as two instances."""
    names: dict[str, str] = {}
    for name, hashed in now.instances.items():
        if is_file_content(hashed) and names.setdefault(hashed, name) != name:
            raise DataError(
                f"instances {names[hashed]!r} and {name!r} are files with the same content: they "
                "would count as two instances. Leave out one of them"
            )


def find_renamed(
    names: set[str], setup: Setup, known: Identified, now: Identified
) -> dict[str, str]:
    """Map new names of a call to the missing ``names`` of the race that are the same file.

    A file is recognised by its content. Stores of the first version have no contents: there by its
    path, which was the name, as it was typed then.
    """
    missing = names - now.instances.keys()
    fresh = {name: hashed for name, hashed in now.instances.items() if name not in names}
    by_content = {known.instances[name]: name for name in missing if known.instances.get(name)}
    renamed = {
        name: by_content[hashed]
        for name, hashed in fresh.items()
        if is_file_content(hashed) and hashed in by_content
    }
    given = setup.instances.given() or {}
    by_path = sorted(missing - known.instances.keys())
    for name in fresh.keys() - renamed.keys():
        same = [old for old in by_path if _is_same_path(old, name, given.get(name))]
        if len(same) == 1 and is_file_content(fresh[name]):
            renamed[name] = same[0]
    twice = {old for old in renamed.values() if list(renamed.values()).count(old) > 1}
    return {name: old for name, old in renamed.items() if old not in twice}


def _is_same_path(old: str, name: str, path: Any) -> bool:
    if not isinstance(path, str | os.PathLike):
        return False
    if Path(old).exists():
        return os.path.realpath(old) == os.path.realpath(path)
    parts, ending = PurePosixPath(old).parts, PurePosixPath(name).parts
    return parts[-len(ending) :] == ending


def _instances(instances: Instances) -> dict[str, str]:
    given = instances.given()
    if given is None:
        return {**dict.fromkeys(instances.names or (), ""), BUILD: fingerprint(instances.build)}
    return {name: _instance(value) for name, value in given.items()}


def _instance(value: Any) -> str:
    content = file_fingerprint(value) if isinstance(value, str | os.PathLike) else ""
    return content or fingerprint(value)


def _solver(solver: Any) -> dict[str, str]:
    if not isinstance(solver, Command):
        return {"content": fingerprint(solver)}
    words = [str(word) for word in solver.arguments]
    options = {
        field.name: getattr(solver, field.name)
        for field in dataclasses.fields(solver)
        if field.compare and field.init and field.name != "arguments"
        if getattr(solver, field.name) != field.default
    }
    here = solver.start_folder or "."
    program = words[0] if "/" in words[0] else shutil.which(words[0]) or words[0]
    paths = [Path(here, word) for word in (program, *words[1:])]
    contents = [content for path in paths if (content := file_fingerprint(path))]
    line = shlex.join(hide_secrets(words))
    said = ", ".join(f"{name}={value!r}" for name, value in sorted(options.items()))
    content = fingerprint([words, options, contents])
    return {"command": f"{line}  ({said})" if said else line, "content": content}


def hide_secrets(words: Sequence[str]) -> list[str]:
    """Arguments of a program as they may be stored: without the values of keys and passwords.

    >>> hide_secrets(["solve", "--api-key=abc", "--token", "abc", "--keep=1", "ftp://ann:abc@host"])
    ['solve', '--api-key=***', '--token', '***', '--keep=1', 'ftp://ann:***@host']
    """
    shown: list[str] = []
    for word in words:
        if shown and _SECRET.fullmatch(shown[-1]):
            shown.append("***")
        else:
            name, equals, _ = word.partition("=")
            hidden = f"{name}=***" if equals and _SECRET.fullmatch(name) else word
            shown.append(_PASSWORD.sub(r"\1***", hidden))
    return shown


def _kind(parts: Mapping[str, str]) -> str:
    return "program" if "command" in parts else "Python function"
