"""Load the data that a command is given: results, a posterior, ratings or the store of a race."""

import argparse
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import polarbear
from polarbear.cli.activity import activity
from polarbear.cli.options import (
    FIT_OPTIONS,
    READING_OPTIONS,
    TIME_OPTIONS,
    check_clock,
    pick_given,
)
from polarbear.cli.output import get_option_name, hide_passwords
from polarbear.errors import DataError

if TYPE_CHECKING:
    from polarbear.racing.model import Model
    from polarbear.racing.questions.question import Question
    from polarbear.racing.race import Race

SourceKind = Literal["results", "posterior", "ratings", "selector", "store"]

RESULT_OPTIONS = (*READING_OPTIONS, *TIME_OPTIONS, *FIT_OPTIONS, "seed")
"""Options that are for files of results alone."""

_SQLITE_SIGNATURE = b"SQLite format 3\0"
_RATINGS_SIGNATURE = b'"kind": "polarbear ratings"'
_KINDS: dict[str | None, SourceKind] = {
    "polarbear posterior": "posterior",
    "polarbear instance ratings": "selector",
}


def detect_kind(source: str) -> SourceKind:
    """Detect the kind of a path or URL by its first bytes; anything unknown counts as results."""
    if source.startswith(("postgresql://", "postgres://")):
        return "store"
    path = Path(source)
    if not path.is_file():
        return "results"
    with path.open("rb") as file:
        first = file.read(256)
    if first.startswith(_SQLITE_SIGNATURE):
        return "results" if _is_of_another_program(path) else "store"
    if _RATINGS_SIGNATURE in first:
        return "ratings"
    if first.startswith(b"PK"):
        return _detect_archive_kind(path)
    return "results"


def _is_of_another_program(path: Path) -> bool:
    """Return whether an SQLite file belongs to another program, such as Optuna."""
    import sqlite3
    from contextlib import closing

    from polarbear.store.sqlite import APPLICATION

    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as file:
            (application,) = file.execute("PRAGMA application_id").fetchone()
            tables = file.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    except sqlite3.Error:  # a damaged store, which open_store explains
        return False
    return application != APPLICATION and tables > 0


def _detect_archive_kind(path: Path) -> SourceKind:
    """Detect the kind of a ZIP file by its header, which posteriors and selectors have."""
    import json
    import zipfile

    from polarbear.data.unpacking import check_zip

    try:
        with zipfile.ZipFile(path) as file:
            check_zip(file)
            header = json.loads(file.read("header.json"))
    except (zipfile.BadZipFile, KeyError, ValueError):
        return "results"
    kind = header.get("kind") if isinstance(header, dict) else None
    return _KINDS.get(kind, "results")


def load_runs(arguments: argparse.Namespace) -> "polarbear.Runs":
    """Load runs from results, from a store, or from the package's examples."""
    source = get_source(arguments)
    activity.says(f"reading {hide_passwords(source)}")
    if getattr(arguments, "example", None) is not None:
        _refuse_options(arguments, READING_OPTIONS, "--example comes with its own data")
        return polarbear.example(arguments.example)
    if detect_kind(source) == "store":
        _refuse_options(
            arguments, (*READING_OPTIONS, *TIME_OPTIONS), f"{source} is the store of a race"
        )
        with polarbear.open_store(source, read_only=True) as store:
            return store.runs()
    if not Path(source).exists():
        raise DataError(f"{source}: there is no such file or folder")
    refuse_race_file(source)
    return polarbear.read(source, **get_reading_options(arguments))


def require_runs(arguments: argparse.Namespace, option: str) -> None:
    """Raise an error if the data have no runs, which an option needs."""
    source = get_source(arguments)
    if detect_kind(source) not in ("results", "store"):
        raise DataError(
            f"{option} needs runs, and {source} has none: pass results or the store of a race"
        )


def get_reading_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the options of ``polarbear.read`` that were given."""
    options = pick_given(arguments, READING_OPTIONS)
    if "columns" in options:
        options["columns"] = dict(options["columns"])
    for name in ("instance", "value"):
        if len(options.get(name, ())) == 1:
            (options[name],) = options[name]
    return options


def refuse_race_file(path: str) -> None:
    """Raise an error for a race's TOML file where a store or results are expected."""
    import tomllib

    if not path.endswith(".toml") or not Path(path).is_file():
        return
    try:
        store = tomllib.loads(Path(path).read_text("utf-8")).get("store")
    except (OSError, ValueError):
        store = None
    if not isinstance(store, str):
        raise DataError(
            f"{path} describes a race and holds no results: run `polarbear race {path} --store "
            "STORE`, and then this command with that store"
        )
    location = store if "://" in store else str(Path(path).parent / store)
    exists = "://" in store or Path(location).exists()
    hint = "" if exists else f" (`polarbear race {path}` creates it)"
    raise DataError(f"{path} describes a race: pass its store, {location}{hint}")


def get_source(arguments: argparse.Namespace) -> str:
    """Return the path of the data: the given one, or that of an example of the package."""
    name = getattr(arguments, "example", None)
    if name is None:
        if arguments.source is None:
            raise DataError("no data were given: name a file or a folder, or pass --example")
        return arguments.source
    if arguments.source is not None:
        raise DataError(f"--example comes with its own data: leave out {arguments.source}")
    from polarbear.readers.source import EXAMPLE_PATHS  # here, because it loads numpy

    return str(EXAMPLE_PATHS[name])


def list_sources(arguments: argparse.Namespace) -> list[str]:
    """List the paths and URLs that a command reads.

    >>> list_sources(argparse.Namespace(file="race.toml", store=None, stores=["a.db", "b.db"]))
    ['race.toml', 'a.db', 'b.db']
    """
    sources = [get_source(arguments)] if "source" in arguments else []
    sources += [getattr(arguments, name, None) for name in ("file", "store")]
    return [path for path in [*sources, *getattr(arguments, "stores", ())] if path is not None]


def choose_times(runs: "polarbear.Runs", arguments: argparse.Namespace) -> Any:
    """Return the times to rank at: those of a race, of the options, or chosen from the data."""
    from polarbear.inference.fit import warn_of_undecided_start  # here, because it loads numpy

    source = get_source(arguments)
    if arguments.targets is not None:
        raise DataError("--targets: this command compares at times; use analyse, select or report")
    if detect_kind(source) == "store":
        with polarbear.open_store(source, read_only=True) as store:
            return store.times
    check_clock(runs.clock, arguments.start, arguments.stop)
    if isinstance(arguments.times, tuple):
        first = arguments.start or 0.0
        last = float("inf") if arguments.stop is None else arguments.stop
        given = polarbear.grid.check_times(arguments.times).tolist()
        times = [time for time in given if first <= time <= last]
        if not times:
            raise DataError(f"none of --times is between --from {first:g} and --to {last:g}")
        return times
    times = polarbear.grid.from_runs(
        runs, arguments.times, start=arguments.start, stop=arguments.stop
    )
    if arguments.start is None:
        warn_of_undecided_start(polarbear.rank(runs, times))
    return times


def _choose_targets(runs: "polarbear.Runs", arguments: argparse.Namespace) -> Any:
    """Return the targets that ``--targets`` asks for, as shares of the values attained."""
    for name in pick_given(arguments, ("times", "start", "stop")):
        raise DataError(f"{get_option_name(name)} is for times: leave it out, or --targets")
    if arguments.targets == "default":
        return polarbear.targets.from_runs(runs)
    try:
        shares = [float(share) for share in arguments.targets.split(",")]
    except ValueError:
        raise DataError(
            f"--targets {arguments.targets}: expected percentages such as 50,90"
        ) from None
    return polarbear.targets.from_runs(runs, shares)


def get_model(arguments: argparse.Namespace) -> "Model":
    """Return the model of ``fit`` that the options, the question and the data of a command say."""
    return get_question(arguments).model


def get_question(arguments: argparse.Namespace) -> "Question":
    """Return the question of a command, with its ``fit``: as given, else of a race in a store."""
    from polarbear.racing.model import Model
    from polarbear.racing.questions.stored import BY_NAME, PARETO_SETS

    source, over_time = get_source(arguments), getattr(arguments, "over_time", None)
    asked: Any = None
    given = pick_given(arguments, FIT_OPTIONS)
    if "weights" in given:
        given["weights"] = dict(given["weights"])
    model = Model()
    if detect_kind(source) == "store":
        with polarbear.open_store(source, read_only=True) as store:
            model, asked = store.model, store.started().question
    known = {**model.fit_options(), **model.rank_options()}
    if "method" in given:  # not every method supports every kind of evidence
        known.pop("evidence")
    name = getattr(arguments, "question", None)
    known_kind = type(asked) if type(asked) in PARETO_SETS else PARETO_SETS[0]
    kind: Any = BY_NAME[name] if name else known_kind
    if over_time and kind is not polarbear.PaperParetoSet:
        raise DataError("--over-time is about --question PaperParetoSet: pass that as well")
    question = asked if type(asked) is kind else kind()
    is_same = question is asked and not model.function  # of which only the name is known
    if over_time and over_time != question.over_time:
        own = dict.fromkeys(("elimination", "resolution"))
        question, is_same = replace(question, over_time=over_time, **own), False
    fit = {**known, **({} if is_same else question.fit_options), **given}
    certainty = getattr(arguments, "certainty", None)
    return replace(question, fit=fit, **({} if certainty is None else {"certainty": certainty}))


def load_posterior(
    arguments: argparse.Namespace,
) -> "tuple[polarbear.Runs | None, polarbear.Posterior]":
    """Load a saved posterior, or fit one to runs; return the runs (or None) and the posterior."""
    source = get_source(arguments)
    if detect_kind(source) == "posterior":
        _refuse_options(arguments, RESULT_OPTIONS, f"{source} is a posterior")
        return None, polarbear.Posterior.load(source)
    if detect_kind(source) in ("ratings", "selector"):
        raise DataError(
            f"{source} holds only ratings: use `polarbear select`, or pass results or a posterior"
        )
    from polarbear.inference.fit import FewInstances, rank_runs  # here, because it loads numpy

    runs, model = load_runs(arguments), get_model(arguments)
    activity.says(
        f"rating {len(runs.algorithms):,} algorithms on {len(runs.instances):,} instances"
    )
    times, ranking = None, model.rank_options()
    is_race = detect_kind(source) == "store"
    if arguments.targets is not None:
        ranking["targets"] = _choose_targets(runs, arguments)
    elif is_race or pick_given(arguments, TIME_OPTIONS):
        times = choose_times(runs, arguments)
    with warnings.catch_warnings():
        if is_race:  # a race chooses instances on purpose
            warnings.simplefilter("ignore", FewInstances)
        rankings = rank_runs(runs, times, **ranking)
        return runs, polarbear.fit(rankings, seed=arguments.seed or 0, **model.fit_options())


def load_ratings(arguments: argparse.Namespace) -> Any:
    """Load what ``select`` chooses from: saved ratings, a saved posterior, or a fitted one."""
    source = get_source(arguments)
    kind = detect_kind(source)
    if kind == "selector":
        return _load_selector(source, dict(arguments.features or ()))
    if arguments.features:
        if "://" not in source and not Path(source).exists():
            raise DataError(f"{source}: there is no such file")
        raise DataError(
            f"--features needs a selector, a file of InstanceRatings.save, and {source} is none: "
            "leave it out"
        )
    if kind == "ratings":
        _refuse_options(arguments, RESULT_OPTIONS, f"{source} holds ratings")
        return polarbear.selection.Ratings.load(source)
    if kind == "store":
        _refuse_options(arguments, RESULT_OPTIONS, f"{source} is the store of a race")
        race = load_race(source)
        if race.posterior is None:
            raise DataError(
                f"{source}: no round of two or more algorithms is complete, so there are no "
                f"ratings: see `polarbear status {source}`"
            )
        return race.posterior
    return load_posterior(arguments)[1]


def _load_selector(source: str, features: dict[str, Any]) -> "polarbear.selection.Ratings":
    """Load the ratings on an instance with given features from a file of InstanceRatings."""
    selector = polarbear.selection.InstanceRatings.load(source)
    if not features:
        needed = " ".join(f"--features {name}=..." for name in selector.basis.names)
        raise DataError(f"{source} rates algorithms by instance: pass {needed}")
    return selector.on(features)


def load_race(source: str) -> "Race":
    """Load the race of a store, also while another process runs it."""
    activity.says(f"reading {hide_passwords(source)}")
    with polarbear.open_store(source, read_only=True) as store:
        return polarbear.Race.from_events(store.read(arrays=True))


def _refuse_options(arguments: argparse.Namespace, names: tuple[str, ...], reason: str) -> None:
    """Raise an error if options for files of results were given, for the reason stated."""
    for name in pick_given(arguments, names):
        raise DataError(
            f"{get_option_name(name)} is for files of results, but {reason}: leave it out"
        )
