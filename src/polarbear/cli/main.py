"""Entry point of the command line: parse arguments, run the command, return an exit code.

docs/reference/command-line.md explains the exit codes.
"""

import argparse
import os
import sys
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import polarbear
from polarbear.cli import analysis, publishing, races, recorded, results, serving, stores
from polarbear.cli.activity import activity
from polarbear.cli.output import print_error
from polarbear.errors import DataWarning, FitWarning, PolarBearError

SHOW_THEMSELVES = ("race", "worker", "gate", "serve")
"""Commands that have a display of their own, or none."""

EXIT_ERROR = 1
EXIT_USAGE = 2  # of argparse
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``polarbear`` with the given or the process's arguments; return the exit code."""
    command_line = sys.argv[1:] if argv is None else argv
    with activity:  # the first time, loading what a command needs takes seconds
        parser = make_parser(_find_command(command_line) or "")
    try:
        arguments = _parse_arguments(parser, command_line)
    except SystemExit as end:
        if (
            end.code == EXIT_USAGE and _find_command(command_line) == "gate"
        ):  # for a gate, 2 means "undecided"
            raise SystemExit(races.EXIT_GATE_ERROR) from None
        raise
    arguments.command_line = list(command_line)
    if arguments.version or "run" not in arguments:
        if arguments.version:
            _print_version(arguments.verbose)
        else:
            parser.print_help()
        return 0
    with warnings.catch_warnings():
        for category in (DataWarning, FitWarning):
            warnings.simplefilter("always", category)
        warnings.showwarning = lambda message, *_: print_error(("note: ", message), arguments)
        if arguments.command in SHOW_THEMSELVES:
            return _run_command(arguments)
        with activity:
            return _run_command(arguments)


def _parse_arguments(
    parser: argparse.ArgumentParser, command_line: Sequence[str]
) -> argparse.Namespace:
    """Parse arguments; unlike in argparse, the optional TARGET may also follow options."""
    commands = _get_commands(parser)
    word = _find_command(command_line)
    if word is not None and word not in commands:
        names = [name for name, own in commands.items() if own.get_default("command") == name]
        parser.error(f"there is no command {word!r}{_suggest(word, names)}")
    arguments, rest = parser.parse_known_args(command_line)
    if len(rest) == 1 and getattr(arguments, "target", "") is None and not rest[0].startswith("-"):
        arguments.target = rest.pop()
    if rest:
        options = commands[word]._option_string_actions if word else ()
        wrong = next((one.partition("=")[0] for one in rest if one.startswith("-")), "")
        parser.error(f"unrecognized arguments: {' '.join(rest)}{_suggest(wrong, options)}")
    return arguments


def _get_commands(parser: argparse.ArgumentParser) -> dict[str, Any]:
    """Return the parser of each command by its name."""
    kind = argparse._SubParsersAction
    return {**next(action for action in parser._actions if isinstance(action, kind)).choices}


def _suggest(word: str, known: Iterable[str]) -> str:
    """Return "; did you mean X?" if a known word is similar, else how to list them.

    >>> _suggest("analize", ["analyse", "select"]), _suggest("fly", ["analyse", "select"])
    ('; did you mean analyse?', '; --help lists them')
    """
    from difflib import get_close_matches

    similar = get_close_matches(word, [*known], n=1)
    return f"; did you mean {similar[0]}?" if similar else "; --help lists them"


def _find_command(command_line: Sequence[str]) -> str | None:
    return next((word for word in command_line if not word.startswith("-")), None)


def make_parser(command: str | None = None) -> argparse.ArgumentParser:
    """Make the parser of all commands, with the options of one command or of all."""
    parser = argparse.ArgumentParser(
        prog="polarbear",
        description="Which optimisation algorithm should I run when I do not know my budget?",
        epilog="Begin with: polarbear analyse --example. "
        "Each command has an example in its --help.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="store_true", help="print the version, and exit")
    parser.add_argument(
        "--verbose", action="store_true", help="with --version: also those of Python and libraries"
    )
    parser.set_defaults(commands=parser)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for group in (analysis, results, races, serving, stores, recorded, publishing):
        for one in group.COMMANDS:
            one.add_to(commands, with_options=command in (None, one.name, *one.aliases))
    return parser


def _print_version(verbose: bool) -> None:
    """Print the version of the package, and those of what it runs on if asked."""
    print(f"polarbear {polarbear.__version__}")
    if verbose:
        from polarbear.inference.versions import describe_installation

        print(describe_installation())


def _run_command(arguments: argparse.Namespace) -> int:
    """Run a command, and turn exceptions into messages and exit codes."""
    try:
        code = arguments.run(arguments)
        sys.stdout.flush()
    except PolarBearError as error:
        print_error(error, arguments)
        return EXIT_ERROR
    except BrokenPipeError:
        # The reader closed the pipe, as in `polarbear analyse | head`. Python would report an
        # error for the rest of the buffer.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_BROKEN_PIPE
    except OSError as error:
        print_error(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        return EXIT_ERROR
    except KeyboardInterrupt:
        print_error("interrupted")
        return EXIT_INTERRUPTED
    return code
