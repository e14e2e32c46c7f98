"""The command line: what it takes, which file answers, and how it ends.

What the exit codes mean is said in docs/reference/command-line.md.
"""

import argparse
import os
import sys
import warnings
from collections.abc import Sequence

import polarbear
from polarbear.cli import analysis, races, recorded, serving, shells, stores
from polarbear.cli.output import complain
from polarbear.errors import DataWarning, FitWarning, PolarBearError

WRONG = 1
INTERRUPTED = 130
NOBODY_LISTENS = 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``polarbear`` with these arguments, by default those of the process."""
    asked = parser()
    words = sys.argv[1:] if arguments is None else arguments
    wanted = _parse(asked, words)
    wanted.words = list(words)
    if "run" not in wanted:
        asked.print_help()
        return 0
    with warnings.catch_warnings():
        for category in (DataWarning, FitWarning):
            warnings.simplefilter("always", category)
        warnings.showwarning = lambda message, *_: complain(f"note: {message}", wanted)
        return _answered(wanted)


def _parse(asked: argparse.ArgumentParser, words: Sequence[str]) -> argparse.Namespace:
    """Parse arguments; an optional TARGET may also follow options, where argparse expects none."""
    wanted, rest = asked.parse_known_args(words)
    if len(rest) == 1 and getattr(wanted, "target", "") is None and not rest[0].startswith("-"):
        wanted.target = rest.pop()
    if rest:
        asked.error(f"unrecognized arguments: {' '.join(rest)}")
    return wanted


def parser() -> argparse.ArgumentParser:
    """All commands."""
    made = argparse.ArgumentParser(
        prog="polarbear",
        description="Which optimisation algorithm should I run when I do not know my budget?",
        epilog="Begin with: polarbear analyse --example. "
        "Each command has an example in its --help.",
        allow_abbrev=False,
    )
    made.add_argument("--version", action="version", version=f"polarbear {polarbear.__version__}")
    made.set_defaults(commands=made)
    commands = made.add_subparsers(title="commands", metavar="COMMAND")
    for group in (analysis, races, serving, stores, recorded, shells):
        group.add(commands)
    return made


def _answered(wanted: argparse.Namespace) -> int:
    try:
        code = wanted.run(wanted)
        sys.stdout.flush()
    except PolarBearError as error:
        complain(error, wanted)
        return WRONG
    except BrokenPipeError:
        # Whoever reads has seen enough, as in `polarbear analyse | head`. Python would complain
        # about what is left in the buffer.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NOBODY_LISTENS
    except OSError as error:
        complain(f"{error.filename}: {error.strerror}" if error.filename else error, wanted)
        return WRONG
    except KeyboardInterrupt:
        complain("interrupted")
        return INTERRUPTED
    return code
