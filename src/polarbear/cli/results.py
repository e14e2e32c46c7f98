"""The command ``read``: show what results hold and their format, and convert them."""

import argparse

import polarbear
from polarbear.cli.answers import print_answer
from polarbear.cli.inputs import detect_kind, get_source, load_runs
from polarbear.cli.options import (
    OUTPUT_HELP,
    RESULTS_HELP,
    Subcommand,
    add_data_options,
)
from polarbear.cli.output import pick
from polarbear.errors import DataError


def _add_read_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="TARGET", help=OUTPUT_HELP)
    parser.add_argument(
        "--as",
        dest="write_format",
        choices=("csv", "parquet", "ioh", "coco"),
        help="format of --output: by its ending (.csv, .parquet), or a new folder for ioh "
        "(IOHprofiler) and coco",
    )
    add_data_options(parser, f"{RESULTS_HELP}, or the store of a race", fits=False)


def _run_read(arguments: argparse.Namespace) -> int:
    source = get_source(arguments)
    if detect_kind(source) not in ("results", "store"):
        raise DataError(
            f"{source} has no runs: see `polarbear report` for a posterior and `polarbear select` "
            "for ratings"
        )
    if arguments.write_format and not arguments.output:
        raise DataError(
            f"--as {arguments.write_format} is the format of the file to write: pass --output FILE"
        )
    runs = load_runs(arguments)
    plain = pick(runs, "algorithms", "instances", "direction", "clock") | {"runs": len(runs)}
    text = str(runs)
    if arguments.output:
        polarbear.write(runs, arguments.output, format=arguments.write_format)
        plain["target"] = arguments.output
        text += f"\n  written to  {arguments.output}"
    print_answer(arguments, text, plain, runs=runs)
    return 0


COMMANDS = (
    Subcommand(
        "read",
        "what do these results hold, and how are they read?",
        "Reads results, or the runs of a race, and prints a summary, or writes them in another "
        "format; a run that was extended is one run. If results cannot be read, the message says "
        "which formats were tried, and what is missing.",
        positionals="SOURCE",
        examples=(
            "read results/ --direction minimize",
            "read race.db --output runs.parquet",
            "read results/ --output exported --as ioh",
        ),
        run=_run_read,
        add_options=_add_read_options,
    ),
)
