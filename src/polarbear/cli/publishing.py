"""Commands for a paper: cite, supplement."""

import argparse
from pathlib import Path

import polarbear
from polarbear.cli.answers import print_answer
from polarbear.cli.inputs import detect_kind, load_race, refuse_race_file
from polarbear.cli.options import (
    STORE_HELP,
    Subcommand,
    add_certainty_option,
    add_json_option,
)
from polarbear.cli.output import check_output_path
from polarbear.errors import DataError

EXIT_NOT_VERIFIED = 1


def _add_cite_options(parser: argparse.ArgumentParser) -> None:
    help_ = "the store of a race, or a posterior that `analyse --save` wrote"
    parser.add_argument("source", nargs="?", help=help_)
    add_certainty_option(parser)
    add_json_option(parser)


def _add_supplement_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("store", nargs="?", help=STORE_HELP)
    parser.add_argument("target", nargs="?", help="the zip file to write")
    parser.add_argument("--verify", metavar="FILE", help="a supplement to verify")
    add_json_option(parser)


def _run_cite(arguments: argparse.Namespace) -> int:
    from polarbear.papers.citation import render_bibtex

    bibtex = render_bibtex()
    source, certainty = arguments.source, arguments.certainty
    if source is None:
        print_answer(arguments, bibtex, {"bibtex": bibtex})
        return 0
    refuse_race_file(source)
    kind = detect_kind(source)
    if kind == "posterior":
        posterior = polarbear.Posterior.load(source)
        methods = polarbear.papers.describe_methods(posterior, certainty)
        table = polarbear.papers.to_latex(posterior, certainty=certainty)
    elif kind != "store" and Path(source).exists():
        raise DataError(
            f"{source} is neither a store nor a posterior: save a posterior with `polarbear "
            f"analyse {source} --save posterior.zip`, then `polarbear cite posterior.zip`"
        )
    elif certainty is not None:
        raise DataError("--certainty is for a posterior; a race has its own: leave it out")
    else:
        race = load_race(source)
        methods, table = polarbear.papers.describe_methods(race), polarbear.papers.to_latex(race)
    plain = {"methods": methods, "table": table, "bibtex": bibtex}
    print_answer(arguments, f"{methods}\n\n{table}\n{bibtex}", plain)
    return 0


def _run_supplement(arguments: argparse.Namespace) -> int:
    from polarbear.reporting.supplement import verify_supplement, write_supplement

    if arguments.verify is not None:
        if arguments.store is not None:
            raise DataError(f"--verify takes one file: leave out {arguments.store}")
        check = verify_supplement(arguments.verify)
        print_answer(arguments, check, {"verified": check.is_verified, **vars(check)})
        return 0 if check.is_verified else EXIT_NOT_VERIFIED
    if arguments.store is None or arguments.target is None:
        raise DataError("pass a store and the zip file to write, or --verify and a file")
    refuse_race_file(arguments.store)
    check_output_path(arguments.target)
    with polarbear.open_store(arguments.store, read_only=True) as store:
        events = list(store.read(arrays=True))
    path = write_supplement(events, arguments.target)
    size = path.stat().st_size
    text = (
        f"{path}: {len(events):,} events, {size / 1e6:,.1f} MB\n"
        f"  verify it with: polarbear supplement --verify {path}"
    )
    print_answer(arguments, text, {"target": str(path), "events": len(events), "bytes": size})
    return 0


COMMANDS = (
    Subcommand(
        "cite",
        "what a paper needs: BibTeX, and of an analysis the methods paragraph and a table",
        "Without a source it prints the BibTeX entries of the method and of this software. With "
        "one it also prints a paragraph with the numbers of the analysis, and a LaTeX table.",
        positionals="[SOURCE]",
        examples=("cite", "cite race.db", "cite posterior.zip --certainty 0.95"),
        run=_run_cite,
        add_options=_add_cite_options,
    ),
    Subcommand(
        "supplement",
        "write a race to one zip file that others can verify, or verify one",
        "The file has the runs, requests and decisions, question, model and versions, the report, "
        "and texts for a paper. --verify makes all decisions again from the runs and compares; it "
        "ends with code 1 if something differs, and says where. The same store gives the same "
        "bytes.",
        positionals="STORE TARGET | --verify FILE",
        examples=("supplement race.db supplement.zip", "supplement --verify supplement.zip"),
        run=_run_supplement,
        add_options=_add_supplement_options,
    ),
)
