"""The command that tells shells what can be typed: completion."""

import argparse

from polarbear.cli.options import command
from polarbear.errors import require


def add(commands: argparse._SubParsersAction) -> None:
    """Add this command."""
    parser = command(
        commands,
        "completion",
        "let the shell complete commands, options and files",
        "Prints a script for the shell; put it where the shell looks for such scripts.",
        takes="SHELL",
        examples=(
            "completion bash > ~/.local/share/bash-completion/completions/polarbear",
            "completion zsh > ~/.zfunc/_polarbear",
        ),
        run=_completion,
    )
    parser.add_argument("shell", choices=("bash", "zsh", "tcsh"), help="which one you use")


def _completion(wanted: argparse.Namespace) -> int:
    print(require("shtab", extra="completion").complete(wanted.commands, wanted.shell))
    return 0
