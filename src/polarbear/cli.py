"""The command line."""

import argparse
from collections.abc import Sequence

import polarbear


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``polarbear`` with these arguments, by default those of the process."""
    parser = argparse.ArgumentParser(
        prog="polarbear",
        description="Which optimisation algorithm should I run when I do not know my budget?",
    )
    parser.add_argument("--version", action="version", version=f"polarbear {polarbear.__version__}")
    parser.parse_args(arguments)
    parser.print_help()
    return 0
