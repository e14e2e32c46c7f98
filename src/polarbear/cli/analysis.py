"""Commands that analyse results: analyse, select, report."""

import argparse
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polarbear
from polarbear.cli.activity import activity
from polarbear.cli.answers import format_choice, print_answer
from polarbear.cli.inputs import (
    detect_kind,
    get_question,
    get_source,
    load_posterior,
    load_race,
    load_ratings,
    load_runs,
    require_runs,
)
from polarbear.cli.options import (
    OUTPUT_HELP,
    RESULTS_HELP,
    Subcommand,
    add_between_option,
    add_certainty_option,
    add_data_options,
    add_fit_options,
    add_json_option,
    add_parameters,
    add_question_options,
    add_reading_options,
    add_seed_option,
    check_clock,
    pair_parser,
    parse_number_or_text,
    parse_time,
    pick_given,
)
from polarbear.cli.output import (
    check_output_path,
    escape_output,
    format_command,
    pick,
    print_ribbon,
)
from polarbear.errors import DataError

if TYPE_CHECKING:
    from polarbear.data.losses import Losses
    from polarbear.inference.findings import Findings
    from polarbear.selection.board import Board

EXIT_NOT_MET = 3
"""Exit code of ``select --sure`` if the choice is the best with a smaller probability."""

SELECT_OPTIONS = ("risk", "sure", "size", "repeats", "among")
"""Options of ``polarbear.select`` that are options of the command."""

DEFAULT_REPORT = "report.html"
"""The file that ``report`` writes if none is named."""


def _add_analyse_options(parser: argparse.ArgumentParser) -> None:
    add_question_options(parser)
    add_certainty_option(parser)
    parser.add_argument("--report", metavar="FILE", help="write a report as a web page (.html)")
    _add_losses_option(parser)
    parser.add_argument(
        "--ranks",
        action="store_true",
        help="also say which adjacent ranks cannot be separated, at the last budget, as boards "
        "show it, and over all budgets",
    )
    _add_page_options(parser)
    parser.add_argument(
        "--save",
        metavar="FILE",
        help="write the posterior, for `select` and `report`; to FILE.json only the ratings",
    )
    add_data_options(parser, f"{RESULTS_HELP}, a posterior, or a store")


def _add_losses_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--losses",
        choices=("difference", "ratio", "gap"),
        help="also show how much is lost against the best value of each instance, counted from "
        "the runs without the rank model",
    )


def _count_losses(
    arguments: argparse.Namespace,
    times: Any,
    runs: "polarbear.Runs | None" = None,
    among: Sequence[str] | None = None,
) -> "Losses | None":
    """Return the losses at the first, the middle and the last time, if they are wanted.

    They are counted from ``runs``, which are read from the source if they are None.
    """
    if arguments.losses is None:
        return None
    require_runs(arguments, "--losses")
    if arguments.targets is not None:
        raise DataError("--losses is about values at times: leave out --targets")
    shown = sorted({float(times[round(k * (len(times) - 1) / 2)]) for k in range(3)})
    runs = load_runs(arguments) if runs is None else runs
    return polarbear.selection.losses(runs, shown, measure=arguments.losses, among=among)


def _add_page_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--title", help="title of the report")
    parser.add_argument(
        "--colour",
        action="append",
        type=pair_parser(str, "CSA=#0033d3"),
        metavar="NAME=COLOUR",
        help="the colour of an algorithm in the report, such as CSA=#0033d3; may be repeated",
    )
    parser.add_argument("--open", action="store_true", help="show the report in a browser")


def _run_analyse(arguments: argparse.Namespace) -> int:
    from polarbear.inference.pairs import tabulate_pairs

    if arguments.open and arguments.report is None:
        raise DataError("--open needs a report to show: pass --report FILE as well")
    asked = get_question(arguments)
    for path in filter(None, (arguments.report, arguments.save)):
        check_output_path(path)
    runs, posterior = load_posterior(arguments)
    activity.says("comparing the algorithms")
    verdict = asked.read_posterior(posterior)
    losses = _count_losses(arguments, posterior.times, runs)
    boards = _audit_ranks(arguments, runs) if arguments.ranks else []
    if arguments.save:
        _save_posterior(posterior, arguments.save)
    if arguments.report:
        _write_report(posterior, arguments.report, arguments, losses, runs, asked)
    lines = [
        str(posterior if runs is None else runs),
        "",
        _format_findings(verdict),
        "",
        _format_table(posterior, verdict),
    ]
    lines += ["", str(losses)] if losses else []
    for board in boards:
        lines += ["", str(board)]
    for name, path in (("report", arguments.report), ("saved", arguments.save)):
        lines += ["", f"{name}: {path}"] if path else []
    plain = {
        **pick(posterior, "algorithms", "clock", "times", "instances"),
        "certainty": asked.certainty,
        "pareto": [one.algorithm for one in verdict.verdicts if one.is_candidate],
        "in_pareto": dict(zip(verdict.algorithms, verdict.worth, strict=True)),
        **pick(verdict, "mistaken", "cautions"),
        "runs": {one.algorithm: one.counts for one in posterior.ends},
        "verdict": str(verdict).splitlines(),
        "best": dict(zip(posterior.algorithms, posterior.prob_best().T, strict=True)),
        **({"pairs": tabulate_pairs(posterior, asked.certainty)} if arguments.json else {}),
        **pick(posterior.diagnostics, "trusted", "problems"),
        **({"losses": losses.columns()} if losses else {}),
        **({"ranks": [board.to_plain() for board in boards]} if boards else {}),
        "report": arguments.report,
        "saved": arguments.save,
    }
    choice = "" if arguments.json else format_choice(posterior)
    print_answer(arguments, "\n".join(lines), plain, posterior=posterior, runs=runs)
    if not arguments.json:
        print_ribbon(polarbear.plots.ribbon_data(posterior))
        print(f"\n{escape_output(choice)}")
    return 0


def _audit_ranks(arguments: argparse.Namespace, runs: "polarbear.Runs | None") -> list["Board"]:
    """Return the ranks at the last budget, and over all budgets."""
    require_runs(arguments, "--ranks")
    runs = load_runs(arguments) if runs is None else runs
    any_budget = polarbear.preferences.between(scale="log")
    return [
        polarbear.selection.audit(runs, budget, **pick_given(arguments, ("certainty", "seed")))
        for budget in (None, any_budget)
    ]


MAX_SENTENCES = 12
"""The most algorithms of which each has a sentence; of more, the table says what they say."""


def _format_findings(verdict: "Findings") -> str:
    """Return the verdict: a sentence on each algorithm or, of many, the summary alone."""
    from polarbear.inference.findings import summarise

    if len(verdict.algorithms) <= MAX_SENTENCES:
        return str(verdict)
    return "\n".join([*verdict.cautions, summarise(verdict)])


def _format_table(posterior: "polarbear.Posterior", verdict: "Findings") -> str:
    """Return a table of P(worth running) of each algorithm, and P(best) at a few times."""
    from polarbear._text import escape_text, format_share, format_time, format_unit
    from polarbear.inference.findings import word_of

    times, best = posterior.times, posterior.prob_best()
    worth = dict(zip(verdict.algorithms, verdict.worth.tolist(), strict=True))
    shown = sorted({round(k * (len(times) - 1) / 4) for k in range(5)})
    kinds = {one.algorithm: word_of(one) for one in verdict.verdicts}
    names = sorted(posterior.algorithms, key=lambda name: -worth[name])
    column = {name: code for code, name in enumerate(posterior.algorithms)}
    head = ["", "", "worth running", *(format_time(times[k], posterior.clock) for k in shown)]
    rows = [
        [
            escape_text(name),
            kinds[name],
            format_share(worth[name]),
            *(format_share(best[k, column[name]]) for k in shown),
        ]
        for name in names
    ]
    widths = [max(len(row[k]) for row in [head, *rows]) for k in range(len(head))]
    unit = f" ({format_unit(posterior.clock)})" if format_unit(posterior.clock) else ""
    above = f"{'':{sum(widths[:3]) + 6}}P(best) at time{unit}"
    lines = [
        "  ".join(
            f"{cell:<{width}}" if k < 2 else f"{cell:>{width}}"
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in [head, *rows]
    ]
    return "\n".join([above, *lines])


def _save_posterior(posterior: "polarbear.Posterior", path: str) -> None:
    if path.endswith(".json"):
        polarbear.selection.Ratings.of(posterior).save(path)
    else:
        posterior.save(path)


def _write_report(
    subject: Any,
    path: str,
    arguments: argparse.Namespace,
    losses: "Losses | None",
    runs: "polarbear.Runs | None",
    question: Any = None,
) -> None:
    activity.says(f"writing {path}")
    more_time = None
    with suppress(DataError):  # of runs that share too few instances or times, nothing is said
        more_time = None if runs is None else polarbear.selection.value_of_time(runs)
    polarbear.plots.set_colours(dict(arguments.colour or ()))
    try:
        polarbear.report(
            subject,
            path,
            question=question,
            certainty=arguments.certainty,
            title=arguments.title,
            provenance={"command": format_command(arguments)},
            losses=losses,
            more_time=more_time,
        )
    finally:
        polarbear.plots.set_colours(None)
    if arguments.open:
        import webbrowser

        webbrowser.open(Path(path).resolve().as_uri())


def _add_select_options(parser: argparse.ArgumentParser) -> None:
    from polarbear.selection.decision import select
    from polarbear.selection.schedules import schedule

    _add_stopping_options(parser)
    _add_losses_option(parser)
    add_parameters(parser, [select], SELECT_OPTIONS)
    parser.add_argument(
        "--schedule",
        type=int,
        metavar="STEPS",
        help="look for at most so many algorithms to run one after the other within the budget",
    )
    add_parameters(parser, [schedule], ["score"])
    parser.add_argument(
        "--features",
        action="append",
        type=pair_parser(parse_number_or_text, "variables=2000"),
        metavar="NAME=VALUE",
        help="a feature, or the class, of your instance, if SOURCE is a file of "
        "InstanceRatings.save; may be repeated",
    )
    add_data_options(parser, f"{RESULTS_HELP}, a posterior, ratings, or the store of a race")


def _add_stopping_options(parser: argparse.ArgumentParser) -> None:
    when = parser.add_argument_group("when you will stop, one of").add_mutually_exclusive_group()
    add_between_option(when)
    when.add_argument("--at", type=parse_time, metavar="T", help="at this time")
    when.add_argument(
        "--around",
        type=parse_time,
        metavar="T",
        help="at about this time: log-normal, with 95 %% between half and twice of it",
    )
    when.add_argument("--final", action="store_true", help="at the last time of the data")
    parser.add_argument(
        "--scale",
        choices=("linear", "log"),
        default=None,
        help="scale of time: on log, 10 to 100 counts as much as 100 to 1000 (with --between "
        "linear, else that of figures)",
    )


def _run_schedule(arguments: argparse.Namespace) -> int:
    require_runs(arguments, "--schedule")
    runs = load_runs(arguments)
    check_clock(runs.clock, *(arguments.between or ()), arguments.at, arguments.around)
    budget = arguments.at if arguments.at is not None else _make_preference(arguments)
    if arguments.final:
        budget = float(runs.until.max())
    found = polarbear.selection.schedule(
        runs if arguments.among is None else runs.filter(algorithms=arguments.among),
        budget,
        steps=arguments.schedule,
        score=arguments.score or "wins",
        seed=arguments.seed or 0,
    )
    print_answer(arguments, found, {**found.to_plain(), "worth_it": found.is_worth_it}, runs=runs)
    return 0


def _run_select(arguments: argparse.Namespace) -> int:
    if arguments.schedule is not None:
        return _run_schedule(arguments)
    ratings = load_ratings(arguments)
    activity.says("choosing")
    check_clock(ratings.clock, *(arguments.between or ()), arguments.at, arguments.around)
    selection = polarbear.select(
        ratings,
        _make_preference(arguments),
        **pick_given(arguments, SELECT_OPTIONS),
    )
    low, high = selection.used
    times = [low, *(time for time in ratings.times if low < time < high), high]
    # The choice comes first; what it is worth shows only beside the losses of all others.
    ordered = [name for choice in selection.choices for name in choice.algorithms]
    candidates = list(dict.fromkeys([*ordered, *(arguments.among or ratings.algorithms)]))
    losses = _count_losses(arguments, times, among=candidates)
    plain = {
        **pick(selection, "algorithms", "cautions", "preference"),
        "clock": ratings.clock,
        "range": pick(selection, "asked", "used"),
        **pick(selection, "risk", "sure", "met", "choices", "exact", "limit"),
        **({"losses": losses.columns()} if losses else {}),
    }
    text = f"{selection}\n\n{losses}" if losses else selection
    print_answer(arguments, text, plain, posterior=ratings)
    return EXIT_NOT_MET if selection.met is False else 0


def _make_preference(arguments: argparse.Namespace) -> Any:
    from polarbear.selection import preferences

    if arguments.scale is not None and (arguments.at is not None or arguments.around is not None):
        raise DataError("--scale applies only to --between: leave it out")
    scale = arguments.scale or "linear"
    if arguments.between is not None:
        low, high = arguments.between
        if not low <= high:
            raise DataError(f"--between {low:g} {high:g}: the range is empty; swap its ends")
        return preferences.between(low, high, scale=scale)
    if arguments.at is not None:
        return preferences.at(arguments.at)
    if arguments.around is not None:
        return _make_log_normal(arguments.around)
    if arguments.final:
        return preferences.final()
    return preferences.between(scale=scale) if arguments.scale else None


def _make_log_normal(time: float) -> Any:
    """Make a preference for a log-normal stopping time with the given median, without scipy."""
    import math
    from dataclasses import replace
    from statistics import NormalDist

    from polarbear.selection import preferences

    if not (math.isfinite(time) and time > 0):
        raise DataError(f"--around {time:g}: expected a finite time above 0")
    normal = NormalDist(math.log(time), math.log(2) / 1.96)
    stops = [math.exp(normal.inv_cdf((k + 0.5) / 200)) for k in range(200)]
    return replace(preferences.distribution(stops), says=f"around {time:,g}, within a factor of 2")


def _add_report_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source", help="the store of a race, a posterior, or results (a file or a folder)"
    )
    parser.add_argument(
        "target",
        nargs="?",
        help=f"the file to write ({DEFAULT_REPORT} in this folder, if it does not exist)",
    )
    parser.add_argument("-o", "--output", metavar="TARGET", help=OUTPUT_HELP)
    _add_losses_option(parser)
    _add_page_options(parser)
    add_certainty_option(parser, "0.95, or as in the race")
    add_fit_options(parser)
    add_seed_option(parser)
    add_json_option(parser, "what was written as JSON")
    add_reading_options(parser)


def _choose_report_path(arguments: argparse.Namespace) -> str:
    """Return the path of the report: the named one, or the default unless that file exists."""
    named = [path for path in (arguments.target, arguments.output) if path is not None]
    if len(named) > 1:
        raise DataError(f"two files to write are given, {named[0]} and {named[1]}: name only one")
    if named:
        return named[0]
    if Path(DEFAULT_REPORT).exists():
        raise DataError(
            f"{DEFAULT_REPORT} exists already: to overwrite it pass -o {DEFAULT_REPORT}, or "
            "name another file"
        )
    return DEFAULT_REPORT


def _run_report(arguments: argparse.Namespace) -> int:
    target = _choose_report_path(arguments)
    check_output_path(target)
    source = get_source(arguments)
    runs, subject = (
        (None, load_race(source)) if detect_kind(source) == "store" else load_posterior(arguments)
    )
    losses = _count_losses(arguments, subject.times, runs)
    _write_report(subject, target, arguments, losses, runs)
    size = Path(target).stat().st_size
    posterior = subject if isinstance(subject, polarbear.Posterior) else subject.posterior
    plain = {"report": target, "bytes": size}
    print_answer(arguments, f"{target}: {size / 1e3:,.0f} kB", plain, posterior=posterior)
    return 0


COMMANDS = (
    Subcommand(
        "analyse",
        "which algorithms are worth running, and when?",
        "Reads results, rates the algorithms over time, and prints which of them are worth "
        "running: those that no other algorithm replaces. Who replaces another one is better on "
        "average over all times, and on no tenth of the time axis worse by more than a margin.",
        positionals="SOURCE",
        examples=(
            "analyse --example --report report.html --open",
            "analyse results/ --direction minimize --clock evaluations",
        ),
        aliases=("analyze",),
        run=_run_analyse,
        add_options=_add_analyse_options,
    ),
    Subcommand(
        "select",
        "which algorithm should I run, given what I know about my budget?",
        "Say when you will stop; otherwise every budget counts the same. Times are numbers "
        "in the clock of the data; if that counts seconds, 200ms, 90m, 2h and 1d are times too. "
        f"If the probability of --sure is not reached, the exit code is {EXIT_NOT_MET}.",
        positionals="SOURCE",
        examples=(
            "select --example --between 3000 10000",
            "select race.db --around 1h --sure 0.95",
            "select ratings.json --at 500 --size 2 --no-repeats",
            "select results/ --direction minimize --at 60 --schedule 2 --score solved",
            "select selector.npz --at 60 --features variables=2000 --features density=0.1",
        ),
        run=_run_select,
        add_options=_add_select_options,
    ),
    Subcommand(
        "report",
        "everything about results or a race in one web page",
        "The page is one file that needs no network: the verdict, interactive figures, "
        "and the provenance.",
        positionals="SOURCE [TARGET]",
        examples=(
            "report race.db --open",
            "report results/ night.html --direction minimize",
        ),
        run=_run_report,
        add_options=_add_report_options,
    ),
)
