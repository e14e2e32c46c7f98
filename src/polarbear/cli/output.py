"""Output of commands: text that is safe on a terminal, JSON, and errors that name options."""

import argparse
import re
import shlex
import sys
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any

from polarbear.cli.activity import activity
from polarbear.errors import Argument, DataError, ReadCall, Text, render_text

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


def pick(record: object, *names: str) -> dict[str, Any]:
    """Return some attributes of a record by their names, for JSON."""
    return {name: getattr(record, name) for name in names}


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


def print_error(message: Text, arguments: argparse.Namespace | None = None) -> None:
    """Print a message on standard error, with parameters as options of the command."""
    text = hide_passwords(render_text(message, lambda part: write_option(part, arguments)))
    activity.clear()
    print(f"polarbear: {escape_output(text)}", file=sys.stderr)


def write_option(part: Argument | ReadCall, arguments: argparse.Namespace | None = None) -> str:
    """Write a parameter as an option of the command if it has one, and else as Python does.

    A call of ``read`` becomes the command with the options that it lacks.

    >>> arguments = argparse.Namespace(instance=None, repeats=None, start=None, columns=None)
    >>> write_option(Argument("instance", ("f", "dim")), arguments)
    '--instance f --instance dim'
    >>> write_option(Argument("repeats", False), arguments)
    '--no-repeats'
    >>> write_option(Argument("start", 10.0, "times=grid.from_runs(runs, {})"), arguments)
    '--from 10'
    >>> write_option(Argument("columns", {"time": ["fe", "n"]}), arguments)
    '--columns time=fe,n'
    >>> write_option(Argument("level", 2), arguments)
    'level=2'
    """
    if arguments is None or (isinstance(part, Argument) and part.name not in arguments):
        return str(part)
    if isinstance(part, ReadCall):
        given = {name for name, value in vars(arguments).items() if value is not None}
        missing = [write_option(one, arguments) for one in part.missing if one.name not in given]
        return " ".join([format_command(arguments), *missing])
    option = get_option_name(part.name)
    if isinstance(part.value, bool):
        return option if part.value else f"--no-{option[2:]}"
    return " ".join(f"{option} {word}" for word in _list_words(part.value))


def get_option_name(parameter: str) -> str:
    """Return the option of the command line that stands for a Python parameter.

    >>> get_option_name("max_runs"), get_option_name("start")
    ('--max-runs', '--from')
    """
    others = {"start": "from", "stop": "to", "weights": "weight"}
    name = others.get(parameter, parameter)
    return f"--{name.replace('_', '-')}"


def _list_words(value: Any) -> list[str]:
    """Return a value as shell words, one for each use of the option."""
    if isinstance(value, Mapping):
        return [_quote(f"{key}={','.join(_list_words(part))}") for key, part in value.items()]
    if isinstance(value, list | tuple):
        return [word for part in value for word in _list_words(part)]
    if isinstance(value, float):
        return [f"{value:.12g}"]
    return ["NAME" if value == "..." else _quote(str(value))]


def _quote(word: str) -> str:
    """Quote a word for a shell if it has braces, stars, parentheses or spaces."""
    return shlex.quote(word) if not set(word).isdisjoint("{}*() ") else word


_PASSWORD = re.compile(r"(://[^:/@\s]*):[^@/\s]*(?=@)")
