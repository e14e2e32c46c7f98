"""The command ``completion``, which prints completion scripts for shells."""

import argparse

from polarbear.cli.options import add_command
from polarbear.errors import require


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Add the command ``completion`` to the parser."""
    parser = add_command(
        commands,
        "completion",
        "let the shell complete commands, options and files",
        "Prints a script for the shell; save it where the shell looks for completions.",
        positionals="SHELL",
        examples=(
            "completion bash > ~/.local/share/bash-completion/completions/polarbear",
            "completion zsh > ~/.zfunc/_polarbear",
        ),
        run=_run_completion,
    )
    parser.add_argument("shell", choices=("bash", "zsh", "tcsh"), help="the shell")


def _run_completion(arguments: argparse.Namespace) -> int:
    print(require("shtab", extra="completion").complete(arguments.commands, arguments.shell))
    return 0
