"""Commands about the store of a race: status, export, merge, salvage."""

import argparse

import polarbear
from polarbear.cli.answers import say
from polarbear.cli.options import STORE, add_file, add_json, command


def add(commands: argparse._SubParsersAction) -> None:
    """Add these commands."""
    status = command(
        commands,
        "status",
        "where does a race stand?",
        "Reads the store, also while the race runs.",
        takes="STORE",
        examples=("status race.db",),
        run=_status,
    )
    export = command(
        commands,
        "export",
        "the runs of a race as a Parquet file",
        "Other tools read it, and so does `polarbear analyse`.",
        takes="STORE TARGET",
        examples=("export race.db runs.parquet",),
        run=_export,
    )
    merge = command(
        commands,
        "merge",
        "the runs of races at several sites in one store",
        "They become earlier runs of one race, which goes on like any other.",
        takes="STORE [STORE ...] TARGET",
        examples=("merge site-1.db site-2.db all.db",),
        run=_merge,
    )
    salvage = command(
        commands,
        "salvage",
        "copy what is sound in a damaged store, or one of an earlier format",
        "The damaged file is only read.",
        takes="STORE TARGET",
        examples=("salvage race.db repaired.db",),
        run=_salvage,
    )
    for parser in (status, export):
        add_file(parser, "store", help=STORE)
    add_file(export, "target", help="a Parquet file")
    add_file(merge, "stores", nargs="+", metavar="store", help=STORE)
    add_file(merge, "target", help="a new store, or that of a race")
    add_file(salvage, "store", help="the file")
    add_file(salvage, "target", help="a new file")
    for parser in (status, export, merge, salvage):
        add_json(parser)


def _status(wanted: argparse.Namespace) -> int:
    with polarbear.open_store(wanted.store, read_only=True) as store:
        found = store.status()
    say(wanted, found, {"n_runs": found.n_runs, **vars(found)})
    return 0


def _export(wanted: argparse.Namespace) -> int:
    with polarbear.open_store(wanted.store, read_only=True) as store:
        runs = store.runs()
    runs.to_parquet(wanted.target)
    plain = {
        "target": wanted.target,
        "runs": len(runs),
        "algorithms": runs.algorithms,
        "instances": len(runs.instances),
        "direction": runs.direction,
        "clock": runs.clock,
    }
    say(wanted, f"{runs}\n  written to  {wanted.target}", plain, runs=runs)
    return 0


def _merge(wanted: argparse.Namespace) -> int:
    merged = polarbear.store.merge(wanted.stores, wanted.target)
    keys = [remark.refused.run for remark in merged.conflicts]
    lines = [
        f"repetition {k.repetition} of {k.algorithm!r} on instance {k.instance!r}" for k in keys
    ]
    conflicts = [{n: getattr(k, n) for n in ("algorithm", "instance", "repetition")} for k in keys]
    plain = {**merged._asdict(), "target": wanted.target, "conflicts": conflicts}
    say(wanted, "\n".join([str(merged), *lines]), plain)
    return 0


def _salvage(wanted: argparse.Namespace) -> int:
    found = polarbear.store.salvage(wanted.store, wanted.target)
    say(wanted, found, {**found._asdict(), "target": wanted.target})
    return 0
