"""Commands about the store of a race: status, export, merge, salvage."""

import argparse

import polarbear


def add(commands: argparse._SubParsersAction) -> None:
    """Add these commands."""
    where = "the store of a race: a file, or a postgresql:// URL; it may be in use"
    status = commands.add_parser("status", help="where does a race stand?")
    status.add_argument("store", help=where)
    status.set_defaults(run=_status)
    export = commands.add_parser("export", help="the runs of a race as a Parquet file")
    export.add_argument("store", help=where)
    export.add_argument("target", help="a Parquet file")
    export.set_defaults(run=_export)
    merge = commands.add_parser("merge", help="the runs of races at several sites in one store")
    merge.add_argument("sources", nargs="+", metavar="store", help=where)
    merge.add_argument("target", help="a new store, or that of a race")
    merge.set_defaults(run=_merge)
    salvage = commands.add_parser(
        "salvage", help="copy what is sound in a damaged store, or one of an earlier format"
    )
    salvage.add_argument("damaged", help="the file, which is only read")
    salvage.add_argument("repaired", help="a new file")
    salvage.set_defaults(run=_salvage)


def _status(wanted: argparse.Namespace) -> int:
    with polarbear.open_store(wanted.store, read_only=True) as store:
        print(store.status())
    return 0


def _export(wanted: argparse.Namespace) -> int:
    with polarbear.open_store(wanted.store, read_only=True) as store:
        runs = store.runs()
    runs.to_parquet(wanted.target)
    print(runs)
    return 0


def _merge(wanted: argparse.Namespace) -> int:
    merged = polarbear.store.merge(wanted.sources, wanted.target)
    print(merged)
    for remark in merged.conflicts:
        run = remark.refused.run
        print(f"repetition {run.repetition} of {run.algorithm!r} on instance {run.instance!r}")
    return 0


def _salvage(wanted: argparse.Namespace) -> int:
    print(polarbear.store.salvage(wanted.damaged, wanted.repaired))
    return 0
