"""What commands say: text for people, JSON for programs, and messages in words of the shell."""

import argparse
import re
import shlex
import sys
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any

from polarbear.errors import DataError


def shown(text: object) -> str:
    r"""Text without anything that a terminal would obey: names of algorithms may hold it.

    >>> print(shown("a\x1b[2J"))
    a\x1b[2J
    """
    from polarbear._text import escape_lines  # here, because it loads numpy

    return escape_lines(text)


def to_json(plain: Mapping[str, Any], *, indent: int | None = 1) -> str:
    r"""Names, numbers and lists as JSON, which has no infinities: these are null.

    >>> print(to_json({"pareto": ("a", "b"), "need": float("inf")}, indent=None))
    {"pareto": ["a", "b"], "need": null}
    """
    import json

    return json.dumps(_plain(plain), indent=indent, ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):  # numpy, which need not be loaded to ask
        value = value.tolist()
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(_plain(key)): _plain(part) for key, part in value.items()}
    if hasattr(value, "_asdict"):
        return _plain(value._asdict())
    if hasattr(value, "__dataclass_fields__"):
        return {name: _plain(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(part) for part in value]
    return value


def typed(wanted: argparse.Namespace) -> str:
    """The command as it was typed, without passwords: it is shown, and kept in reports.

    >>> wanted = argparse.Namespace(words=["status", "postgresql://ann:secret@host/races#night"])
    >>> typed(wanted)
    "polarbear status 'postgresql://ann@host/races#night'"
    """
    return without_password(shlex.join(["polarbear", *wanted.words]))


def without_password(text: str) -> str:
    """Text with URLs in it, as others may see it."""
    return _PASSWORD.sub(r"\1", text)


def check_target(path: str) -> None:
    """Refuse a file that cannot be written, before anything is computed for it."""
    folder = Path(path).parent
    if not folder.is_dir():
        raise DataError(f"{path}: there is no folder {folder}")
    if Path(path).is_dir():
        raise DataError(f"{path} is a folder: name a file in it")


def complain(message: object, wanted: argparse.Namespace | None = None) -> None:
    """Say on standard error what is wrong."""
    print(
        f"polarbear: {shown(without_password(in_options(str(message), wanted)))}", file=sys.stderr
    )


def in_options(message: str, wanted: argparse.Namespace | None) -> str:
    """A message about parameters, said of the options of a command.

    >>> wanted = argparse.Namespace(direction=None, alpha=2.0, repeats=None, instance=None)
    >>> in_options("alpha=2.0: expected less", wanted)
    '--alpha 2.0: expected less'
    >>> in_options("pass direction='minimize' or direction='maximize'", wanted)
    'pass --direction minimize or --direction maximize'
    >>> in_options("say repeats=True, or name it with instance=('...', '...')", wanted)
    'say --repeats, or name it with --instance NAME --instance NAME'
    >>> in_options("with times=pb.grid.log(1, 16, 30)", argparse.Namespace(times=None))
    'with --times 1,2,4,8,16'
    >>> wanted = argparse.Namespace(times=None, start=None)
    >>> in_options("start later with times=pb.grid.from_runs(runs, start=10)", wanted)
    'start later with --from 10'
    >>> wanted = argparse.Namespace(names=None, columns=None)
    >>> print(in_options("pass names='{instance}.csv', columns={'time': ['fe', 'n']}", wanted))
    pass --names '{instance}.csv', --columns time=fe,n
    """
    options = set(vars(wanted)) if wanted is not None else set()

    def option(found: re.Match[str]) -> str:
        name, value = option_name(found["name"]), found["value"]
        if found["name"] not in options:
            return found[0]
        if spaced := _SPACED.fullmatch(value):
            first, last = float(spaced[1]), float(spaced[2])
            times = [first * (last / first) ** (k / 4) for k in range(5)]
            value = ",".join(f"{time:.4g}" for time in times)
        if value.startswith("{"):
            named = {key: _QUOTED.findall(others) for key, others in _LISTED.findall(value)}
            pairs = (shlex.quote(f"{key}={','.join(others)}") for key, others in named.items())
            return " ".join(f"{name} {pair}" for pair in pairs)
        if value in ("True", "False"):
            return name if value == "True" else f"--no-{name[2:]}"
        parts = _QUOTED.findall(value) or [value]
        parts = ["NAME" if part == "..." else _quoted(part) for part in parts]
        return " ".join(f"{name} {part}" for part in parts)

    if "start" in options:
        message = _FROM_RUNS.sub(r"\1", message)
    call = _READ_CALL.search(message)
    if wanted is None or call is None or "words" not in options:
        return _PARAMETER.sub(option, message)
    # The command as it was typed, with the arguments of the call that it lacks.
    given = getattr(wanted, "given", ())
    more = [arg for arg in _PARAMETER.finditer(call[1]) if arg["name"] not in given]
    command = " ".join([typed(wanted), *map(option, more)])
    return _PARAMETER.sub(option, message[: call.start()]) + command


def option_name(parameter: str) -> str:
    """What a parameter is called on the command line.

    >>> option_name("max_runs"), option_name("start")
    ('--max-runs', '--from')
    """
    name = {"start": "from", "stop": "to"}.get(parameter, parameter)
    return f"--{name.replace('_', '-')}"


def _quoted(part: str) -> str:
    """A value as one types it in a shell."""
    return shlex.quote(part) if part and not set(part).isdisjoint("{}*() ") else part


_FROM_RUNS = re.compile(r"times=pb\.grid\.from_runs\(runs, ([^()]*)\)")
_LISTED = re.compile(r"'([^']*)': (\[[^\]]*\])")
_PASSWORD = re.compile(r"(://[^:/@\s]*):[^@/\s]*(?=@)")
_QUOTED = re.compile(r"['\"]([^'\"]*)['\"]")
_READ_CALL = re.compile(r"\bpb\.read\((.*)\)$")
_SPACED = re.compile(r"pb\.grid\.log\(([^,]+), ([^,]+), \d+\)")
_PARAMETER = re.compile(
    r"\b(?P<name>[a-z_]+)="
    r"(?P<value>\{[^{}]*\}|(?:pb\.grid\.log)?\([^()]*\)|r?'[^']*'|r?\"[^\"]*\"|[\w.+-]*\w)"
)
