"""Commands about the store of a race: status, forget, merge, backup, repair."""

import argparse
import shlex

import polarbear
from polarbear.cli.answers import print_answer
from polarbear.cli.inputs import refuse_race_file
from polarbear.cli.options import STORE_HELP, Subcommand, add_json_option, parse_whole
from polarbear.cli.output import fit_facts, pick, print_conclusion


def _add_status_options(status: argparse.ArgumentParser) -> None:
    status.add_argument("store", help=STORE_HELP)
    status.add_argument(
        "--verbose",
        action="store_true",
        help="also command lines, limits, and the machines and software that made the runs",
    )
    add_json_option(status)


def _add_merge_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("stores", nargs="+", metavar="store", help=STORE_HELP)
    parser.add_argument("target", help="a new store, or the store of a race, which is extended")
    add_json_option(parser)


def _add_backup_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("store", help=STORE_HELP)
    parser.add_argument("target", help="a new store, or an earlier backup")
    add_json_option(parser)


def _add_repair_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("store", help="the damaged file")
    parser.add_argument("target", help="the new file to write")
    parser.add_argument(
        "--like",
        metavar="STORE",
        help="a store of the same race, if the first event of the damaged one is lost",
    )
    add_json_option(parser)


def _add_forget_options(forget: argparse.ArgumentParser) -> None:
    forget.add_argument("store", help=STORE_HELP)
    forget.add_argument("--algorithm", metavar="NAME", help="runs of this algorithm")
    forget.add_argument(
        "--instance",
        metavar="NAME",
        help="runs on this instance; without other options, the race continues without it",
    )
    forget.add_argument(
        "--since",
        type=parse_whole,
        metavar="EVENT",
        help="runs from the event with this number on, as `polarbear status` numbers them; "
        "a run that was extended since then is withdrawn as a whole",
    )
    forget.add_argument(
        "--status",
        choices=("cut", "finished", "out of time", "out of memory", "crashed", "killed"),
        help="runs with this status",
    )
    forget.add_argument("--why", default="", metavar="TEXT", help="the reason, to be recorded")
    add_json_option(forget)


def _run_status(arguments: argparse.Namespace) -> int:
    refuse_race_file(arguments.store)
    with polarbear.open_store(arguments.store, read_only=True) as store:
        status = store.status()
        origins = store.origins() if arguments.verbose else None
    text = str(status) if origins is None else f"{status}\n{origins}"
    more = {} if origins is None else {"origins": origins.plain()}
    print_answer(arguments, fit_facts(text), {**status.to_dict(), **more})
    if not arguments.json:
        print_conclusion(status, shlex.quote(arguments.store))
    return 0


def _run_forget(arguments: argparse.Namespace) -> int:
    from polarbear._text import format_count, format_list
    from polarbear.coordinator.run_race import format_now
    from polarbear.data.run import Status
    from polarbear.store.restoring import restore_race

    criteria = (arguments.algorithm, arguments.instance, arguments.since, arguments.status)
    if all(choice is None for choice in criteria):
        raise polarbear.DataError(
            "no runs were chosen: pass --algorithm, --instance, --since or --status"
        )
    refuse_race_file(arguments.store)
    with polarbear.open_store(arguments.store) as store:
        race = restore_race(store)
        pairs = None
        if arguments.since is not None or arguments.status is not None:
            status = None if arguments.status is None else Status(arguments.status)
            pairs = store.pairs(arguments.since or 0, status)
        before = {*race.pareto}
        runs = race.withdraw(
            arguments.algorithm,
            arguments.instance,
            pairs=pairs,
            why=arguments.why,
            at=format_now(),
        )
        if not race.events:
            raise polarbear.DataError(
                f"{arguments.store} has no such runs, or all of them were withdrawn before"
            )
        store.append(race.events, status=race.status)
    readmitted = [name for name in race.pareto if name not in before]
    plain = {"withdrawn": runs, "back": readmitted, "open": len(race.state.pairs.open)}
    text = (
        f"{format_count(runs, 'run')} withdrawn, kept in {arguments.store}\n"
        f"  back in the race  {format_list(readmitted)}\n"
        f"  open again        {format_count(len(race.state.pairs.open), 'pair')}; "
        "`polarbear race` decides them"
    )
    print_answer(arguments, text, plain)
    return 0


def _run_merge(arguments: argparse.Namespace) -> int:
    merged = polarbear.store.merge(arguments.stores, arguments.target)
    run_ids = [conflict.refused.run for conflict in merged.conflicts]
    lines = [
        f"repetition {run_id.repetition} of {run_id.algorithm!r} on instance {run_id.instance!r}"
        for run_id in run_ids
    ]
    conflicts = [pick(run_id, "algorithm", "instance", "repetition") for run_id in run_ids]
    plain = {**merged._asdict(), "target": arguments.target, "conflicts": conflicts}
    print_answer(arguments, "\n".join([str(merged), *lines]), plain)
    return 0


def _run_backup(arguments: argparse.Namespace) -> int:
    summary = polarbear.store.backup_store(arguments.store, arguments.target)
    print_answer(arguments, summary, {**summary._asdict(), "target": arguments.target})
    return 0


def _run_repair(arguments: argparse.Namespace) -> int:
    summary = polarbear.store.repair_store(arguments.store, arguments.target, like=arguments.like)
    print_answer(arguments, summary, {**summary._asdict(), "target": arguments.target})
    return 0


COMMANDS = (
    Subcommand(
        "status",
        "the status of a race: members, eliminated algorithms, open pairs, runs, failures",
        "Reads the store, also while the race runs. It counts every attempt: a run that was "
        "extended (the same run, made again for longer) or made again after a failure counts each "
        "time. `read --output` and the report have one run of these.",
        positionals="STORE",
        examples=("status race.db", "status race.db --verbose"),
        run=_run_status,
        add_options=_add_status_options,
    ),
    Subcommand(
        "merge",
        "combine the runs of several stores in one store",
        "The races must have the same times, direction and clock. The target holds one race with "
        "all runs, which `polarbear race` can resume. The other stores are only read.",
        positionals="STORE [STORE ...] TARGET",
        examples=("merge site-1.db site-2.db all.db",),
        run=_run_merge,
        add_options=_add_merge_options,
    ),
    Subcommand(
        "backup",
        "copy a store, also while the race runs; again: copy what is new",
        "Each of the two is a file or a PostgreSQL database, so the way back is the same command. "
        "The target is new, or an earlier backup of the same store. Every row is verified.",
        positionals="STORE TARGET",
        examples=("backup race.db /backups/race.db",),
        run=_run_backup,
        add_options=_add_backup_options,
    ),
    Subcommand(
        "repair",
        "repair a damaged store: copy every readable row to a new file",
        "The old file is only read.",
        positionals="STORE TARGET",
        examples=("repair race.db repaired.db",),
        run=_run_repair,
        add_options=_add_repair_options,
    ),
    Subcommand(
        "forget",
        "withdraw runs of a race: they stay in the store, and do not count any more",
        "Decisions that used them are made again: eliminated algorithms come back, and the next "
        "`polarbear race` makes other runs in their place.",
        positionals="STORE",
        examples=(
            "forget race.db --algorithm CSA --why 'ran without its licence'",
            "forget race.db --instance f7",
            "forget race.db --since 1200 --status crashed",
        ),
        run=_run_forget,
        add_options=_add_forget_options,
    ),
)
