"""Commands about the store of a race: status, export, forget, merge, salvage."""

import argparse
from pathlib import PurePath

import polarbear
from polarbear.cli.answers import say
from polarbear.cli.inputs import refuse_race_file
from polarbear.cli.options import STORE, add_file, add_json, command
from polarbear.errors import DataError


def add(commands: argparse._SubParsersAction) -> None:
    """Add these commands."""
    _add_status(commands)
    _add_export(commands)
    merge = command(
        commands,
        "merge",
        "combine the runs of several stores in one store",
        "The races must have the same times, direction and clock. The target holds one race with "
        "all runs, which `polarbear race` can resume. The other stores are only read.",
        takes="STORE [STORE ...] TARGET",
        examples=("merge site-1.db site-2.db all.db",),
        run=_merge,
    )
    salvage = command(
        commands,
        "salvage",
        "repair a damaged store: copy every readable row to a new file",
        "Also converts a store of an earlier format. The old file is only read.",
        takes="STORE TARGET",
        examples=("salvage race.db repaired.db",),
        run=_salvage,
    )
    add_file(merge, "stores", nargs="+", metavar="store", help=STORE)
    add_file(merge, "target", help="a new store, or the store of a race, which is extended")
    add_file(salvage, "store", help="the damaged file")
    add_file(salvage, "target", help="the new file to write")
    add_file(
        salvage,
        "--like",
        metavar="STORE",
        help="a store of the same race, if the first event of the damaged one is lost",
    )
    for parser in (merge, salvage):
        add_json(parser)
    _add_forget(commands)


def _add_status(commands: argparse._SubParsersAction) -> None:
    status = command(
        commands,
        "status",
        "the status of a race: members, eliminated algorithms, open pairs, runs, failures",
        "Reads the store, also while the race runs. It counts every attempt: a run that was "
        "extended (the same run, made again for longer) or made again after a failure counts each "
        "time. `export` and the report have one run of these.",
        takes="STORE",
        examples=("status race.db", "status race.db --verbose"),
        run=_status,
    )
    add_file(status, "store", help=STORE)
    status.add_argument(
        "--verbose",
        action="store_true",
        help="also command lines, limits, and the machines and software that made the runs",
    )
    add_json(status)


def _add_export(commands: argparse._SubParsersAction) -> None:
    export = command(
        commands,
        "export",
        "write the runs of a race to a Parquet or CSV file",
        "`polarbear analyse` and other tools read the file. A run that was extended is one run.",
        takes="STORE TARGET",
        examples=("export race.db runs.parquet", "export race.db runs.csv"),
        run=_export,
    )
    add_file(export, "store", help=STORE)
    add_file(export, "target", help="a file that ends in .parquet, .pq or .csv")
    add_json(export)


def _add_forget(commands: argparse._SubParsersAction) -> None:
    forget = command(
        commands,
        "forget",
        "withdraw runs of a race: they stay in the store, and do not count any more",
        "What was decided by them is decided again: eliminated algorithms come back, and the next "
        "`polarbear race` makes other runs in their place.",
        takes="STORE",
        examples=(
            "forget race.db --algorithm CSA --why 'ran without its licence'",
            "forget race.db --instance f7",
            "forget race.db --since 1200 --status crashed",
        ),
        run=_forget,
    )
    add_file(forget, "store", help=STORE)
    forget.add_argument("--algorithm", metavar="NAME", help="runs of this algorithm")
    forget.add_argument(
        "--instance",
        metavar="NAME",
        help="runs on this instance; by itself, the race goes on without the instance",
    )
    forget.add_argument(
        "--since",
        type=int,
        metavar="EVENT",
        help="runs from the event with this number on, as `polarbear status` numbers them; "
        "a run that was extended since then is withdrawn as a whole",
    )
    forget.add_argument(
        "--status",
        choices=("cut", "finished", "out of time", "out of memory", "crashed", "killed"),
        help="runs that ended so",
    )
    forget.add_argument("--why", default="", metavar="TEXT", help="the reason, to be recorded")
    add_json(forget)


def _status(wanted: argparse.Namespace) -> int:
    refuse_race_file(wanted.store)
    with polarbear.open_store(wanted.store, read_only=True) as store:
        status = store.status()
        origins = store.origins() if wanted.verbose else None
    text = str(status) if origins is None else f"{status}\n{origins}"
    more = {} if origins is None else {"origins": origins.plain()}
    say(wanted, text, {"n_runs": status.n_runs, **vars(status), **more})
    return 0


def _export(wanted: argparse.Namespace) -> int:
    ending = PurePath(wanted.target).suffix.lower()
    if ending not in (".parquet", ".pq", ".csv"):
        raise DataError(
            f"{wanted.target}: the format is told by the ending, and {ending or 'none'!r} is none "
            "of .parquet, .pq (Parquet), .csv (CSV)"
        )
    refuse_race_file(wanted.store)
    with polarbear.open_store(wanted.store, read_only=True) as store:
        runs = store.runs()
    (runs.to_csv if ending == ".csv" else runs.to_parquet)(wanted.target)
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


def _forget(wanted: argparse.Namespace) -> int:
    from polarbear._text import format_count, format_list
    from polarbear.coordinator.run_race import now_as_text
    from polarbear.data.run import Status

    chosen = (wanted.algorithm, wanted.instance, wanted.since, wanted.status)
    if all(choice is None for choice in chosen):
        raise polarbear.DataError("which runs? --algorithm, --instance, --since or --status")
    refuse_race_file(wanted.store)
    with polarbear.open_store(wanted.store) as store:
        race = polarbear.Race.from_events(store.read(arrays=True), keep=False)
        pairs = None
        if wanted.since is not None or wanted.status is not None:
            status = None if wanted.status is None else Status(wanted.status)
            pairs = store.pairs(wanted.since or 0, status)
        before = {*race.pareto}
        runs = race.withdraw(
            wanted.algorithm, wanted.instance, pairs=pairs, why=wanted.why, at=now_as_text()
        )
        if not race.events:
            raise polarbear.DataError(f"{wanted.store} has no such runs that count")
        store.append(race.events)
    back = [name for name in race.pareto if name not in before]
    plain = {"withdrawn": runs, "back": back, "open": len(race.state.open)}
    text = (
        f"{format_count(runs, 'run')} withdrawn, kept in {wanted.store}\n"
        f"  back in the race  {format_list(back)}\n"
        f"  open again        {format_count(len(race.state.open), 'pair')}; `polarbear race` "
        "decides them"
    )
    say(wanted, text, plain)
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
    salvaged = polarbear.store.salvage(wanted.store, wanted.target, like=wanted.like)
    say(wanted, salvaged, {**salvaged._asdict(), "target": wanted.target})
    return 0
