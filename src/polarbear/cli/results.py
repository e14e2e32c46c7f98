"""The command ``read``: show what results hold and their format, and convert them."""

import argparse

import polarbear
from polarbear.cli.answers import print_answer
from polarbear.cli.inputs import detect_kind, get_reading_options, get_source, load_runs
from polarbear.cli.options import (
    OUTPUT_HELP,
    RESULTS_HELP,
    add_command,
    add_file_argument,
    add_json_option,
    add_reading_options,
    add_source_argument,
)
from polarbear.errors import DataError

EXIT_NOTHING_RECOGNISED = 1


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Add the command ``read`` to the parser."""
    parser = add_command(
        commands,
        "read",
        "what do these results hold, and how are they read?",
        "Reads results and prints a summary. --explain is a dry run that raises no error: it "
        "shows the format of each group of files, what was guessed, and what was left out.",
        positionals="SOURCE",
        examples=(
            "read results/ --explain",
            "read results/ --direction minimize --output runs.parquet",
            "read results/ --output exported --as ioh",
        ),
        run=_run_read,
    )
    add_source_argument(parser, RESULTS_HELP)
    parser.add_argument(
        "--explain",
        action="store_true",
        help="show formats, runs, guessed names, warnings, and the files left out",
    )
    add_file_argument(parser, "-o", "--output", metavar="TARGET", help=OUTPUT_HELP)
    parser.add_argument(
        "--as",
        dest="write_format",
        choices=("csv", "parquet", "ioh", "coco"),
        help="format of --output: by its ending (.csv, .parquet), or a new folder for ioh "
        "(IOHprofiler) and coco",
    )
    add_json_option(parser)
    add_reading_options(parser, with_times=False)


def _run_read(arguments: argparse.Namespace) -> int:
    source = get_source(arguments)
    if detect_kind(source) != "results":
        raise DataError(
            f"{source} is not a file of results: see `polarbear status` for the store of a race, "
            "`polarbear report` for a posterior and `polarbear select` for ratings"
        )
    if arguments.write_format and not arguments.output:
        raise DataError(
            f"--as {arguments.write_format} is the format of the file to write: pass --output FILE"
        )
    if arguments.explain and arguments.output:
        raise DataError("--explain is a dry run, which writes nothing: leave out --output")
    if arguments.explain:
        explanation = polarbear.readers.explain(source, **get_reading_options(arguments))
        print_answer(arguments, explanation, explanation.to_plain())
        return 0 if explanation.recognised else EXIT_NOTHING_RECOGNISED
    runs = load_runs(arguments)
    plain = {
        "runs": len(runs),
        "algorithms": runs.algorithms,
        "instances": runs.instances,
        "direction": runs.direction,
        "clock": runs.clock,
    }
    text = str(runs)
    if arguments.output:
        polarbear.write(runs, arguments.output, format=arguments.write_format)
        plain["target"] = arguments.output
        text += f"\n  written to  {arguments.output}"
    print_answer(arguments, text, plain, runs=runs)
    return 0
