"""The command line: what it takes, and which file answers."""

import argparse
import sys
from collections.abc import Sequence

import polarbear
from polarbear.cli import data, races, stores


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``polarbear`` with these arguments, by default those of the process."""
    parser = argparse.ArgumentParser(
        prog="polarbear",
        description="Which optimisation algorithm should I run when I do not know my budget?",
    )
    parser.add_argument("--version", action="version", version=f"polarbear {polarbear.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for group in (data, races, stores):
        group.add(commands)
    wanted = parser.parse_args(arguments)
    if "run" not in wanted:
        parser.print_help()
        return 0
    try:
        return wanted.run(wanted)
    except polarbear.PolarBearError as error:
        print(f"polarbear: {error}", file=sys.stderr)
        return 1
