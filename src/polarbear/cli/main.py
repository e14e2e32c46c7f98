"""Entry point of the command line: parse arguments, run the command, return an exit code.

docs/reference/command-line.md explains the exit codes.
"""

import argparse
import os
import sys
import warnings
from collections.abc import Sequence

import polarbear
from polarbear.cli import analysis, publishing, races, recorded, results, serving, stores
from polarbear.cli.output import print_error
from polarbear.errors import DataWarning, FitWarning, PolarBearError

EXIT_ERROR = 1
EXIT_USAGE = 2  # of argparse
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``polarbear`` with the given or the process's arguments; return the exit code."""
    parser = make_parser()
    command_line = sys.argv[1:] if argv is None else argv
    try:
        arguments = _parse_arguments(parser, command_line)
    except SystemExit as end:
        command = next((word for word in command_line if not word.startswith("-")), "")
        if end.code == EXIT_USAGE and command == "gate":  # for a gate, 2 means "undecided"
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
        warnings.showwarning = lambda message, *_: print_error(f"note: {message}", arguments)
        return _run_command(arguments)


def _parse_arguments(
    parser: argparse.ArgumentParser, command_line: Sequence[str]
) -> argparse.Namespace:
    """Parse arguments; unlike in argparse, the optional TARGET may also follow options."""
    arguments, rest = parser.parse_known_args(command_line)
    if len(rest) == 1 and getattr(arguments, "target", "") is None and not rest[0].startswith("-"):
        arguments.target = rest.pop()
    if rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    return arguments


def make_parser() -> argparse.ArgumentParser:
    """Make the parser of all commands."""
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
        group.add_commands(commands)
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
        print_error(f"{error.filename}: {error.strerror}" if error.filename else error, arguments)
        return EXIT_ERROR
    except KeyboardInterrupt:
        print_error("interrupted")
        return EXIT_INTERRUPTED
    return code
