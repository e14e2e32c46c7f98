"""Commands that run solvers: check, plan, race, worker, gate."""

import argparse
import os
import shlex
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polarbear.cli.answers import collect_provenance, print_answer
from polarbear.cli.options import (
    INSTANCES_HELP,
    PATTERN_HELP,
    Subcommand,
    add_certainty_option,
    add_direction_option,
    add_json_option,
    add_parameters,
    add_question_fields,
    add_seed_option,
    add_workers_option,
)
from polarbear.cli.output import (
    check_output_path,
    escape_output,
    fit_facts,
    format_command,
    format_json,
    hide_passwords,
    pick,
    print_conclusion,
    print_error,
)
from polarbear.errors import DataError
from polarbear.racing.budget import Budget
from polarbear.racing.deadlines import parse_deadline

if TYPE_CHECKING:
    from polarbear.coordinator.run_race import Watch
    from polarbear.running.solvers.configuration import Configuration
    from polarbear.running.solvers.instances import Instances


STORE_HELP = "where to save the race, in place of `store` in a file: the same command resumes it"


def _add_race_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="a TOML file with solvers, instances, times and a question")
    add_workers_option(parser, "one for each core")
    parser.add_argument("--store", help=STORE_HELP)
    add_parameters(parser, [Budget], ["deadline"])
    parser.add_argument(
        "--dask", metavar="ADDRESS", help="run on the Dask cluster with this scheduler"
    )
    parser.add_argument(
        "--spool",
        metavar="FOLDER",
        help="leave the runs to `polarbear worker` processes that share this folder",
    )
    parser.add_argument(
        "--accept-changes",
        action="store_true",
        help="resume although instances, solvers or limits changed; the change is recorded",
    )
    parser.add_argument("--quiet", action="store_true", help="print nothing before the end")
    add_json_option(parser, "a line of JSON for each event, and the answer")


def _run_race(arguments: argparse.Namespace) -> int:
    from polarbear.running.solvers.configuration import load

    places = {"--workers": arguments.workers, "--dask": arguments.dask, "--spool": arguments.spool}
    chosen = [name for name, value in places.items() if value is not None]
    if len(chosen) > 1:
        raise DataError(f"{' and '.join(chosen)} cannot be combined: choose one place to run")
    race = load(arguments.file)
    store = arguments.store or race.store
    if store is None:
        raise DataError(
            f"results would not be saved: set `store` in {arguments.file} or pass --store"
        )
    arguments.store = store
    if arguments.deadline is not None:
        moment = parse_deadline(arguments.deadline, time.time())
        race = replace(race, budget=replace(race.budget, deadline=moment))
    try:
        with _end_on_signal(signal.SIGTERM):
            _race_and_print(arguments, race, store)
    except KeyboardInterrupt as ended:
        again = format_command(arguments)
        print_error(f"interrupted: all finished runs are in {store}. To resume: {again}")
        return 143 if isinstance(ended, _Terminated) else 130
    return 0


def _race_and_print(arguments: argparse.Namespace, race: "Configuration", store: str) -> None:
    from polarbear.coordinator.resume import ChangedSetupError
    from polarbear.coordinator.run_race import run_race
    from polarbear.store.opening import open_store

    with _choose_view(arguments, store) as watch:
        run = partial(
            run_race,
            race.setup,
            race.question,
            race.budget,
            store=store,
            executor=_choose_executor(arguments),
            seed=race.seed,
            progress=watch,
        )
        try:
            result = run()
        except ChangedSetupError:  # a store that is refused for another reason stays as it is
            if not arguments.accept_changes:
                raise
            with open_store(store) as opened:
                opened.accept_changes()
            result = run()
    with result:
        if not arguments.json:
            print(escape_output(fit_facts(result)))
            print_conclusion(result.status, shlex.quote(store))
        else:
            plain = result.status.to_dict() | {"store": {"name": hide_passwords(store)}}
            plain["provenance"] = collect_provenance(arguments, posterior=result.posterior)
            print(format_json(plain, indent=None), flush=True)


@contextmanager
def _choose_view(arguments: argparse.Namespace, store: str) -> "Iterator[bool | Watch]":
    """Yield how the race is shown: not at all, as JSON lines, as text lines, or as a screen."""
    from polarbear.live.json_lines import make_line_writer

    if arguments.quiet:
        yield False
    elif arguments.json:
        yield make_line_writer(lambda line: print(line, flush=True))
    elif not _is_drawable():
        yield True
    else:
        from polarbear.live.terminal import Screen

        named = hide_passwords(store)
        hint = f"Ctrl-C stops; the same command resumes. In a browser: polarbear serve {named}"
        with Screen(Path(arguments.file).name, hint) as screen:
            yield screen


def _is_drawable() -> bool:
    """Return whether the terminal can move its cursor, and rich is installed to draw on it."""
    from importlib.util import find_spec

    has_cursor = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    return has_cursor and find_spec("rich") is not None


class _Terminated(KeyboardInterrupt):
    """Raised when the process receives SIGTERM, as batch systems send at the time limit."""


@contextmanager
def _end_on_signal(number: int) -> Iterator[None]:
    """Raise ``_Terminated`` if a signal arrives during the ``with`` statement."""

    def end(*_: object) -> None:
        raise _Terminated

    before = signal.signal(number, end)
    try:
        yield
    finally:
        signal.signal(number, before)


def _choose_executor(arguments: argparse.Namespace) -> object:
    if arguments.dask is not None:
        from polarbear.errors import require

        return require("distributed", extra="dask").Client(arguments.dask)
    if arguments.spool is not None:
        from polarbear.running.backends.shared_folder import SharedFolder

        return SharedFolder(arguments.spool)
    return arguments.workers


GATE_EXAMPLE = (
    "gate --old './v1 {instance}' --new './v2 {instance}' --pattern '(?P<value>.*)' "
    "--direction minimize --budgets 1,10,60 instances/"
)
REPETITION_MARK = " #"
"""Text before the repetition number in the name of a repeated instance."""

EXIT_GATE_ERROR = 3
"""Exit code of a gate that could not run: 0, 1 and 2 are its answers."""


def _add_gate_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("instances", nargs="+", help="files, or folders of files")
    add = parser.add_argument
    for name in ("old", "new"):
        add(
            f"--{name}",
            required=True,
            metavar="COMMAND",
            help=f"command line of the {name} program",
        )
    add("--pattern", metavar="REGEX", required=True, help=PATTERN_HELP)
    add_direction_option(parser, required=True)
    add("--budgets", required=True, help="the times at which the two are compared: 1,10,60")
    add_question_fields(parser, ["margin"])
    add_certainty_option(parser)
    add(
        "--reuse",
        type=int,
        default=1,
        metavar="N",
        help="use each instance up to N times, with other seeds (1)",
    )
    add("--max-runs", type=int, help="make at most this many runs; the answer may be undecided")
    parser.add_argument("--store", help=STORE_HELP)
    parser.add_argument("--markdown", metavar="FILE", help="write a summary for a pull request")
    add_seed_option(parser)
    add_workers_option(parser, "one for each core")
    add("--quiet", action="store_true", help="print nothing before the end")
    add_json_option(parser)


def _run_gate(arguments: argparse.Namespace) -> int:
    from polarbear.coordinator.gate import NEW, OLD, race_versions
    from polarbear.errors import PolarBearError
    from polarbear.racing.questions.no_worse import NoWorse
    from polarbear.running.solvers.commands import Command

    try:
        if arguments.markdown:
            check_output_path(arguments.markdown)
        answer = race_versions(
            {
                OLD: Command(arguments.old, pattern=arguments.pattern),
                NEW: Command(arguments.new, pattern=arguments.pattern),
            },
            _list_instances(arguments.instances, arguments.reuse),
            [float(time) for time in arguments.budgets.split(",")],
            direction=arguments.direction,
            question=NoWorse(
                OLD,
                margin=0.1 if arguments.margin is None else arguments.margin,
                certainty=0.95 if arguments.certainty is None else arguments.certainty,
            ),
            budget=Budget(runs=arguments.max_runs),
            store=arguments.store,
            executor=arguments.workers,
            seed=arguments.seed or 0,
            progress=False if arguments.quiet or arguments.json else None,
        )
        if arguments.markdown:
            Path(arguments.markdown).write_text(answer.markdown(), "utf-8")
    except (PolarBearError, ValueError, OSError) as error:
        print_error(error, arguments)
        return EXIT_GATE_ERROR
    print_answer(arguments, answer, answer.to_dict())
    return answer.exit_code


def _list_instances(paths_given: list[str], repetitions: int) -> "dict[str, str] | Instances":
    """Return the paths of instances by name; repetitions get a number in their name."""
    from polarbear.running.solvers.instances import Instances

    paths: list[Path] = []
    for path_given in map(Path, paths_given):
        if not path_given.exists():
            raise DataError(f"{path_given}: there is no such file or folder")
        files = (
            sorted(path for path in path_given.rglob("*") if path.is_file())
            if path_given.is_dir()
            else [path_given]
        )
        paths += files
    if not paths:
        raise DataError(f"{', '.join(paths_given)}: there are no files in the folder")
    if repetitions <= 1:
        return {str(path): str(path) for path in paths}
    names = [f"{path}{REPETITION_MARK}{k}" for k in range(1, repetitions + 1) for path in paths]
    return Instances(tuple(names), _get_path)


def _get_path(name: str) -> str:
    """Return the path of an instance from its name, without the number of the repetition."""
    return name.rpartition(REPETITION_MARK)[0]


def _add_check_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="a TOML file with solvers, instances, times and a question")
    parser.add_argument(
        "--seconds", type=float, default=2.0, metavar="S", help="how long each solver may run (2)"
    )
    add_json_option(parser)


def _run_check(arguments: argparse.Namespace) -> int:
    from polarbear.running.backends.checking import check_setup
    from polarbear.running.solvers.configuration import load
    from polarbear.running.workers.outcomes import RunOutcome

    race = load(arguments.file)
    checks = check_setup(race.setup, seconds=arguments.seconds, seed=race.seed)
    plain = {
        "solvers": {
            name: pick(made.run, "status", "until") | {"seconds": made.seconds}
            for name, made in checks.outcomes.items()
            if isinstance(made, RunOutcome)
        },
        **pick(race.setup, "direction", "clock", "times"),
        "problems": checks.problems,
    }
    print_answer(arguments, checks, plain)
    return 1 if checks.problems else 0


def _add_plan_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", help="the TOML file of a race")
    add = parser.add_argument
    add("--instances", type=int, metavar="N", help=INSTANCES_HELP)
    add("--algorithms", type=int, metavar="N", help="plan for N algorithms")
    add_certainty_option(parser)
    add_json_option(parser)


def _run_plan(arguments: argparse.Namespace) -> int:
    from polarbear.racing.questions.pareto_set import ParetoSet
    from polarbear.running.solvers.configuration import load
    from polarbear.simulation.power import plan

    given: dict[str, Any] = {"question": ParetoSet()}
    if arguments.file is not None:
        race = load(arguments.file)
        given = {
            "instances": race.setup.instances.names,
            "algorithms": list(race.setup.solvers),
            "times": race.setup.times,
            "question": race.question,
            "budget": race.budget,
            "clock": race.setup.clock,
        }
    if arguments.certainty is not None:
        given["question"] = replace(given["question"], certainty=arguments.certainty)
    for name in ("instances", "algorithms"):
        number = getattr(arguments, name)
        if number is not None:
            given[name] = number
        elif name not in given:
            raise DataError(f"{name} are missing: pass a race file, or --{name} N")
    planned = plan(**given)
    plain = pick(planned, "luck_lasts", "luck_is_new")
    counts = pick(planned, "algorithms", "instances", "used", "times")
    certainty = planned.question.certainty
    print_answer(arguments, fit_facts(planned), {**counts, "certainty": certainty, **plain})
    return 0


def _add_worker_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", help="folder of `polarbear race --spool`")
    parser.add_argument(
        "--solvers",
        required=True,
        metavar="FILE",
        help="race.toml, or a Python file or module that has `solvers` and `instances`",
    )
    parser.add_argument(
        "--idle",
        type=float,
        default=600.0,
        metavar="S",
        help="end after this many seconds without a run to make (600)",
    )
    parser.add_argument("--most", type=int, metavar="N", help="end after this many runs")


def _run_worker(arguments: argparse.Namespace) -> int:
    from polarbear.running.backends.folder_worker import run_folder_jobs

    def say(line: str) -> None:
        print(line, flush=True)

    # Batch systems send SIGTERM at the time limit: end in good order.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))

    made = run_folder_jobs(
        arguments.folder,
        arguments.solvers,
        idle_seconds=arguments.idle,
        max_runs=arguments.most,
        report=say,
    )
    print(f"{made} runs made")
    return 0


COMMANDS = (
    Subcommand(
        "race",
        "race solvers until the Pareto set is certain",
        "Results are kept in a store; the same command resumes the race.",
        positionals="FILE",
        examples=("race race.toml", "race race.toml --workers 4 --json > race.log"),
        run=_run_race,
        add_options=_add_race_options,
    ),
    Subcommand(
        "gate",
        "test that a new version of a program is no worse than the old one, at any budget",
        "Exit code 0: pass. 1: fail. 2: undecided. 3: it could not run.",
        positionals="--old COMMAND --new COMMAND --budgets T,T,... INSTANCE ...",
        examples=(GATE_EXAMPLE,),
        run=_run_gate,
        add_options=_add_gate_options,
    ),
    Subcommand(
        "check",
        "run each solver of a race once, for a few seconds",
        "Prints how each output was understood and which values it had, before the race is run.",
        positionals="FILE",
        examples=("check race.toml --seconds 5",),
        run=_run_check,
        add_options=_add_check_options,
    ),
    Subcommand(
        "plan",
        "what can a race prove, before it is run?",
        "Simulates duels and decides them by the rule of the race. Nothing is run.",
        positionals="[FILE]",
        examples=("plan race.toml", "plan --instances 12 --algorithms 3"),
        run=_run_plan,
        add_options=_add_plan_options,
    ),
    Subcommand(
        "worker",
        "make runs for a race that has --spool FOLDER",
        "One run at a time, in a process of its own. It runs only the solvers of FILE.",
        positionals="--solvers FILE FOLDER",
        examples=(
            "worker /scratch/race --solvers race.toml",
            "worker /scratch/race --solvers solvers.py --most 100",
        ),
        run=_run_worker,
        add_options=_add_worker_options,
    ),
)
