"""Output of commands: text that is safe on a terminal, JSON, and errors that name options."""

import argparse
import re
import shlex
import sys
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any

from polarbear.errors import DataError

FACT_WIDTH = 14
"""The columns of the label before a fact."""


def escape_output(text: object) -> str:
    r"""Escape control characters for a terminal, because names of algorithms may hold some.

    >>> print(escape_output("a\x1b[2J"))
    a\x1b[2J
    """
    from polarbear._text import escape_lines  # here, because it loads numpy

    return escape_lines(text)


def format_json(plain: Mapping[str, Any], *, indent: int | None = 1) -> str:
    r"""Format plain data as JSON; infinite numbers, which JSON lacks, become null.

    >>> print(format_json({"pareto": ("a", "b"), "need": float("inf")}, indent=None))
    {"pareto": ["a", "b"], "need": null}
    """
    import json

    return json.dumps(_to_plain(plain), indent=indent, ensure_ascii=False, allow_nan=False)


def _to_plain(value: Any) -> Any:
    """Convert records, arrays and mappings to types that JSON has."""
    if hasattr(value, "tolist"):  # a test for numpy arrays that does not load numpy
        value = value.tolist()
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(_to_plain(key)): _to_plain(part) for key, part in value.items()}
    if hasattr(value, "_asdict"):
        return _to_plain(value._asdict())
    if hasattr(value, "__dataclass_fields__"):
        return {name: _to_plain(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, list | tuple | set | frozenset):
        return [_to_plain(part) for part in value]
    return value


def format_command(arguments: argparse.Namespace) -> str:
    """Return the command as it was typed, without passwords.

    >>> words = ["status", "postgresql://ann:secret@host/races#night"]
    >>> format_command(argparse.Namespace(command_line=words))
    "polarbear status 'postgresql://ann@host/races#night'"
    """
    return hide_passwords(shlex.join(["polarbear", *arguments.command_line]))


def hide_passwords(text: str) -> str:
    """Remove passwords from the URLs in a text."""
    return _PASSWORD.sub(r"\1", text)


def print_ribbon(ribbon: Any) -> None:
    """Print what to run if you stop here: in colour on a terminal, else in letters."""
    import os
    import shutil

    from polarbear.inference.ribbon_pictures import render_ribbon_text

    is_coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    width = min(shutil.get_terminal_size().columns - 20, 100) if is_coloured else 72
    print(f"\n{render_ribbon_text(ribbon, max(width, 30), is_coloured=is_coloured)}")


def fit_facts(facts: object) -> str:
    r"""Return labelled facts as text; on a terminal, long lines go on below their fact.

    >>> print(fit_facts("race\n  spent       9 runs"))
    race
      spent       9 runs
    """
    import shutil
    import textwrap

    lines = str(facts).split("\n")
    if not sys.stdout.isatty():
        return "\n".join(lines)
    wrapper = textwrap.TextWrapper(
        max(shutil.get_terminal_size().columns, 40),
        subsequent_indent=" " * FACT_WIDTH,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(wrapper.fill(line) for line in lines)


def print_conclusion(status: Any, source: str) -> None:
    """Print the ribbon of a race, if there is one, and the commands that say more about it.

    ``source`` is what the commands read: a store, or options such as ``--example``.
    """
    from polarbear._text import choose_precision, round_time

    if status.ribbon is not None:
        print_ribbon(status.ribbon)
    if not status.counts.rounds:
        return
    times, clock = status.setup.times, status.setup.clock
    budget = round_time(times[len(times) // 2], clock, 2)
    at = f"{budget:.0f}" if choose_precision(clock) == "whole" else f"{budget:g}"
    named = hide_passwords(source)
    print(f"\npolarbear report {named} --open", f"polarbear select {named} --at {at}", sep="\n")


def check_output_path(path: str) -> None:
    """Raise an error if a path cannot be written to, before its content is computed."""
    folder = Path(path).parent
    if not folder.is_dir():
        raise DataError(f"{path}: there is no folder {folder}")
    if Path(path).is_dir():
        raise DataError(f"{path} is a folder: name a file in it")


def print_error(message: object, arguments: argparse.Namespace | None = None) -> None:
    """Print a message on standard error, with parameters renamed to the command's options."""
    text = hide_passwords(use_option_names(str(message), arguments))
    print(f"polarbear: {escape_output(text)}", file=sys.stderr)


def use_option_names(message: str, arguments: argparse.Namespace | None) -> str:
    """Rewrite parameters in a message, such as ``certainty=2.0``, as options of the command.

    A message of the package advises in Python, often on several parameters. Those that the command
    has as options are rewritten; a call of ``pb.read`` becomes the command with what it lacks.

    >>> arguments = argparse.Namespace(direction=None, certainty=2.0, repeats=None, instance=None)
    >>> use_option_names("certainty=2.0: expected less", arguments)
    '--certainty 2.0: expected less'
    >>> use_option_names("pass direction='minimize' or direction='maximize'", arguments)
    'pass --direction minimize or --direction maximize'
    >>> use_option_names("pass repeats=True, or name it with instance=('...', '...')", arguments)
    'pass --repeats, or name it with --instance NAME --instance NAME'
    >>> arguments = argparse.Namespace(times=None, start=None, stop=None)
    >>> use_option_names("with times=pb.grid.from_runs(runs, start=10, stop=90)", arguments)
    'with --from 10, --to 90'
    >>> arguments = argparse.Namespace(names=None, columns=None)
    >>> message = "pass names='{instance}.csv', columns={'time': ['fe', 'n']}"
    >>> print(use_option_names(message, arguments))
    pass --names '{instance}.csv', --columns time=fe,n
    """
    options = set() if arguments is None else set(vars(arguments))

    def rewrite(text: str) -> str:
        return _PARAMETER.sub(
            lambda match: (
                _format_option(match["name"], match["value"])
                if match["name"] in options
                else match[0]
            ),
            text,
        )

    if "start" in options:
        message = _FROM_RUNS.sub(r"\1", message)
    call = _READ_CALL.search(message)
    if arguments is None or call is None or "command_line" not in options:
        return rewrite(message)
    given = getattr(arguments, "given_options", ())
    missing = [arg[0] for arg in _PARAMETER.finditer(call[1]) if arg["name"] not in given]
    command = " ".join([format_command(arguments), *map(rewrite, missing)])
    return rewrite(message[: call.start()]) + command


def get_option_name(parameter: str) -> str:
    """Return the option of the command line that stands for a Python parameter.

    >>> get_option_name("max_runs"), get_option_name("start")
    ('--max-runs', '--from')
    """
    name = {"start": "from", "stop": "to"}.get(parameter, parameter)
    return f"--{name.replace('_', '-')}"


def _format_option(parameter: str, value: str) -> str:
    """Format a parameter and its Python value as options of the command line.

    >>> _format_option("repeats", "False"), _format_option("instance", "('f', 'dim')")
    ('--no-repeats', '--instance f --instance dim')
    """
    option = get_option_name(parameter)
    if value in ("True", "False"):
        return option if value == "True" else f"--no-{option[2:]}"
    return " ".join(f"{option} {word}" for word in _to_shell_words(value))


def _to_shell_words(value: str) -> list[str]:
    """Convert a Python value to shell words, one for each use of the option."""
    if value.startswith("{"):
        pairs = ((key, _QUOTED.findall(names)) for key, names in _DICT_ITEM.findall(value))
        return [shlex.quote(f"{key}={','.join(names)}") for key, names in pairs]
    parts = _QUOTED.findall(value) or [value]
    return ["NAME" if part == "..." else _quote(part) for part in parts]


def _quote(word: str) -> str:
    """Quote a word for a shell if it has braces, stars, parentheses or spaces."""
    return shlex.quote(word) if word and not set(word).isdisjoint("{}*() ") else word


_FROM_RUNS = re.compile(r"times=pb\.grid\.from_runs\(runs, ([^()]*)\)")
_DICT_ITEM = re.compile(r"'([^']*)': (\[[^\]]*\])")
_PASSWORD = re.compile(r"(://[^:/@\s]*):[^@/\s]*(?=@)")
_QUOTED = re.compile(r"['\"]([^'\"]*)['\"]")
_READ_CALL = re.compile(r"\bpb\.read\((.*)\)$")
_PARAMETER = re.compile(
    r"\b(?P<name>[a-z_]+)="
    r"(?P<value>\{[^{}]*\}|\([^()]*\)|r?'[^']*'|r?\"[^\"]*\"|[\w.+-]*\w)"
)
