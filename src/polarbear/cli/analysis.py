"""Commands that answer the question: analyse, select, report."""

import argparse
from pathlib import Path
from typing import Any

import polarbear
from polarbear.cli.answers import say
from polarbear.cli.inputs import fitted, kind_of, race_of, rated, source_of
from polarbear.cli.options import (
    RESULTS,
    a_probability,
    a_time,
    add_alpha,
    add_between,
    add_file,
    add_fit,
    add_json,
    add_reading,
    add_seed,
    add_source,
    check_clock,
    command,
)
from polarbear.cli.output import check_target, typed
from polarbear.errors import DataError

NOT_MET = 3
"""Exit code of ``select --sure`` where the choice is not as probably the best as was asked for."""


REPORT = "report.html"
"""The page that ``report`` writes where none is named."""


def add(commands: argparse._SubParsersAction) -> None:
    """Add these commands."""
    _add_analyse(commands)
    _add_select(commands)
    _add_report(commands)


def _add_analyse(commands: argparse._SubParsersAction) -> None:
    parser = command(
        commands,
        "analyse",
        "which algorithms are worth running, and when?",
        "Reads results, rates the algorithms over time, and says which of them belong to the "
        "anytime Pareto set: those that no other beats at every time.",
        takes="SOURCE",
        examples=(
            "analyse --example --report report.html --open",
            "analyse results/ --direction minimize --clock evaluations",
        ),
        aliases=("analyze",),
        run=_analyse,
    )
    add_source(parser, f"{RESULTS}, a posterior, or a store")
    add_alpha(parser)
    add_fit(parser)
    add_seed(parser)
    add_file(parser, "--report", metavar="FILE", help="write a report as a web page (.html)")
    _add_showing(parser)
    add_file(
        parser,
        "--save",
        metavar="FILE",
        help="write the posterior, for `select` and `report`; to FILE.json only the ratings",
    )
    add_json(parser)
    add_reading(parser)


def _add_showing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--title", help="title of the report")
    parser.add_argument("--open", action="store_true", help="show the report in a browser")


def _analyse(wanted: argparse.Namespace) -> int:
    from polarbear.inference.posterior import check_alpha

    if wanted.open and wanted.report is None:
        raise DataError("--open shows the report: say where to write it with --report FILE")
    check_alpha(wanted.alpha)
    for path in filter(None, (wanted.report, wanted.save)):
        check_target(path)
    runs, posterior = fitted(wanted)
    verdict = posterior.verdict(wanted.alpha)
    if wanted.save:
        _save(posterior, wanted.save)
    if wanted.report:
        _write(posterior, wanted.report, wanted, wanted.alpha)
    said = [str(posterior if runs is None else runs), "", verdict, "", _table(posterior)]
    for name, path in (("report", wanted.report), ("saved", wanted.save)):
        said += ["", f"{name}: {path}"] if path else []
    plain = {
        "algorithms": posterior.algorithms,
        "clock": posterior.clock,
        "times": posterior.times,
        "instances": posterior.instances,
        "alpha": wanted.alpha,
        "pareto": posterior.pareto(wanted.alpha),
        "in_pareto": posterior.in_pareto(),
        "mistaken": posterior.mistaken(wanted.alpha),
        "verdict": verdict.splitlines(),
        "best": dict(zip(posterior.algorithms, posterior.best().T, strict=True)),
        "pairs": posterior.pairs(wanted.alpha),
        "trusted": posterior.diagnostics.trusted,
        "problems": posterior.diagnostics.problems,
        "report": wanted.report,
        "saved": wanted.save,
    }
    say(wanted, "\n".join(said), plain, posterior=posterior, runs=runs)
    return 0


def _table(posterior: "polarbear.Posterior") -> str:
    """How likely each belongs to the set, and is the best at a few times."""
    from polarbear._text import format_time, format_unit

    times, best, free = posterior.times, posterior.best(), posterior.in_pareto()
    at = sorted({round(k * (len(times) - 1) / 4) for k in range(5)})
    head = ["", "P(in the set)", *(format_time(times[k], posterior.clock) for k in at)]
    rows = [
        [name, _share(free[name]), *(_share(best[k, code]) for k in at)]
        for code, name in enumerate(posterior.algorithms)
    ]
    rows.sort(key=lambda row: -free[row[0]])
    wide = [max(len(row[k]) for row in [head, *rows]) for k in range(len(head))]
    unit = f" ({format_unit(posterior.clock)})" if format_unit(posterior.clock) else ""
    above = f"{'':{wide[0] + wide[1] + 4}}P(best) at time{unit}"
    lines = [
        f"{row[0]:<{wide[0]}}  "
        + "  ".join(f"{cell:>{w}}" for cell, w in zip(row[1:], wide[1:], strict=True))
        for row in [head, *rows]
    ]
    return "\n".join([above, *lines])


def _share(value: float) -> str:
    return f"{value:.2f}" if 0.005 <= value < 0.995 else ("0" if value < 0.5 else "1")


def _save(posterior: "polarbear.Posterior", path: str) -> None:
    if path.endswith(".json"):
        polarbear.Ratings.of(posterior).save(path)
    else:
        posterior.save(path)


def _write(thing: Any, path: str, wanted: argparse.Namespace, alpha: float | None = None) -> None:
    polarbear.report(
        thing, path, alpha=alpha, title=wanted.title, provenance={"command": typed(wanted)}
    )
    if wanted.open:
        import webbrowser

        webbrowser.open(Path(path).resolve().as_uri())


def _add_select(commands: argparse._SubParsersAction) -> None:
    parser = command(
        commands,
        "select",
        "which algorithm should I run, given what I know about my budget?",
        "Say when you will stop; otherwise every unit of time counts the same. Times are numbers "
        "in the clock of the data; if that counts seconds, 200ms, 90m, 2h and 1d are times too.",
        takes="SOURCE",
        examples=(
            "select --example --between 3000 10000",
            "select race.db --around 1h --sure 0.95",
            "select ratings.json --at 500 --size 2 --no-repeats",
        ),
        run=_select,
    )
    add_source(parser, f"{RESULTS}, a posterior, ratings, or the store of a race")
    _add_when(parser)
    parser.add_argument(
        "--risk",
        default="expected",
        metavar="RISK",
        help="by what to choose, as ratings are uncertain: 'expected' value, probability of "
        "being 'best', or a low quantile of the value such as 0.05, which prefers algorithms whose "
        "rating is well known (expected). It does not bound the probability of a wrong choice: "
        "--sure does",
    )
    parser.add_argument(
        "--sure",
        type=a_probability,
        metavar="P",
        help="how probable it must be that the choice is the best, such as 0.95 or 95%%: says "
        f"whether this is met, and ends with exit code {NOT_MET} if not",
    )
    parser.add_argument(
        "--size",
        type=int,
        default=1,
        metavar="N",
        help="how many runs there will be in parallel, the best of which counts (1)",
    )
    parser.add_argument(
        "--repeats",
        action=argparse.BooleanOptionalAction,
        help="whether --size may take an algorithm twice: right if its runs differ, as with seeds",
    )
    parser.add_argument(
        "--among", action="append", metavar="ALGORITHM", help="choose among these; may be repeated"
    )
    add_fit(parser)
    add_seed(parser)
    add_json(parser)
    add_reading(parser)


def _add_when(parser: argparse.ArgumentParser) -> None:
    when = parser.add_argument_group("when you will stop, one of").add_mutually_exclusive_group()
    add_between(when)
    when.add_argument("--at", type=a_time, metavar="T", help="at this time")
    when.add_argument(
        "--around",
        type=a_time,
        metavar="T",
        help="at about this time: log-normal, with 95 %% between half and twice of it",
    )
    when.add_argument("--final", action="store_true", help="at the last time of the data")
    parser.add_argument(
        "--scale",
        choices=("linear", "log"),
        default=None,
        help="of time, for --between: on log, 10 to 100 counts as much as 100 to 1000 (linear)",
    )


def _select(wanted: argparse.Namespace) -> int:
    ratings = rated(wanted)
    check_clock(ratings.clock, *(wanted.between or ()), wanted.at, wanted.around)
    selection = polarbear.select(
        ratings,
        _preference(wanted),
        risk=_risk(wanted.risk),
        sure=wanted.sure,
        size=wanted.size,
        among=wanted.among,
        repeats=wanted.repeats,
    )
    plain = {
        "algorithms": selection.algorithms,
        "preference": selection.preference,
        "clock": ratings.clock,
        "range": {"asked": selection.asked, "used": selection.used},
        "risk": selection.risk,
        "sure": selection.sure,
        "met": selection.met,
        "choices": selection.choices,
        "exact": selection.exact,
        "limit": selection.limit,
    }
    say(wanted, selection, plain, posterior=ratings)
    return NOT_MET if selection.met is False else 0


def _preference(wanted: argparse.Namespace) -> Any:
    from polarbear.selection import preferences

    if wanted.scale is not None and (wanted.at is not None or wanted.around is not None):
        raise DataError("--scale is for --between: the other preferences have a time of their own")
    scale = wanted.scale or "linear"
    if wanted.between is not None:
        low, high = wanted.between
        if not low <= high:
            raise DataError(f"--between {low:g} {high:g}: the range is empty; swap its ends")
        return preferences.between(low, high, scale=scale)
    if wanted.at is not None:
        return preferences.at(wanted.at)
    if wanted.around is not None:
        return _around(wanted.around)
    return preferences.final() if wanted.final else preferences.between(scale=scale)


def _around(time: float) -> Any:
    """Log-normal around a time, by quantiles: no distribution needs to be loaded for it."""
    import math
    from dataclasses import replace
    from statistics import NormalDist

    from polarbear.selection import preferences

    if not (math.isfinite(time) and time > 0):
        raise DataError(f"--around {time:g}: expected a time above 0")
    normal = NormalDist(math.log(time), math.log(2) / 1.96)
    stops = [math.exp(normal.inv_cdf((k + 0.5) / 200)) for k in range(200)]
    return replace(preferences.distribution(stops), says=f"around {time:,g}, within a factor of 2")


def _risk(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def _add_report(commands: argparse._SubParsersAction) -> None:
    parser = command(
        commands,
        "report",
        "everything about results or a race in one web page",
        "The page is one file that needs no network: the verdict, pictures to explore, "
        "and how it was made.",
        takes="SOURCE [TARGET]",
        examples=(
            "report race.db --open",
            "report results/ night.html --direction minimize",
        ),
        run=_report,
    )
    add_file(
        parser, "source", help="the store of a race, a posterior, or results (a file or a folder)"
    )
    add_file(
        parser,
        "target",
        nargs="?",
        help=f"the page to write ({REPORT} in this folder, if there is none yet)",
    )
    add_file(parser, "-o", "--output", metavar="FILE", help="the same as TARGET")
    _add_showing(parser)
    parser.add_argument(
        "--alpha",
        type=a_probability,
        help="how probable a statement must be to be made (0.99, or as in the race)",
    )
    add_fit(parser)
    add_seed(parser)
    add_json(parser, "what was written as JSON")
    add_reading(parser)


def _target(wanted: argparse.Namespace) -> str:
    """The page to write: the one that was named, or one that is not there yet."""
    named = [path for path in (wanted.target, wanted.output) if path is not None]
    if len(named) > 1:
        raise DataError(f"two pages to write, {named[0]} and {named[1]}: name one")
    if named:
        return named[0]
    if Path(REPORT).exists():
        raise DataError(f"{REPORT} is there already: name it, or another file, with -o FILE")
    return REPORT


def _report(wanted: argparse.Namespace) -> int:
    target = _target(wanted)
    check_target(target)
    source = source_of(wanted)
    thing = race_of(source) if kind_of(source) == "store" else fitted(wanted)[1]
    _write(thing, target, wanted, wanted.alpha)
    size = Path(target).stat().st_size
    posterior = thing if isinstance(thing, polarbear.Posterior) else thing.posterior
    plain = {"report": target, "bytes": size}
    say(wanted, f"{target}: {size / 1e3:,.0f} kB", plain, posterior=posterior)
    return 0
