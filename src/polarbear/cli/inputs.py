"""What a command is given: results, a posterior, ratings or the store of a race."""

import argparse
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import polarbear
from polarbear.cli.options import COLUMNS, FIT, check_clock
from polarbear.cli.output import option_name
from polarbear.errors import DataError

if TYPE_CHECKING:
    from polarbear.racing.race import Race

Kind = Literal["results", "posterior", "ratings", "store"]

READING = (
    "direction", "format", "clock", *COLUMNS, "until", "pattern", "names", "columns", "missing"
)  # fmt: skip
TIMES = ("times", "start", "stop")
_SQLITE = b"SQLite format 3\0"
_RATINGS = b'"kind": "polarbear ratings"'


def kind_of(source: str) -> Kind:
    """What a path or a URL leads to, by its first bytes; whatever is nothing else are results."""
    if source.startswith(("postgresql://", "postgres://")):
        return "store"
    path = Path(source)
    if not path.is_file():
        return "results"
    with path.open("rb") as file:
        first = file.read(256)
    if first.startswith(_SQLITE):
        return "store"
    if _RATINGS in first:
        return "ratings"
    if first.startswith(b"PK") and _is_posterior(path):
        return "posterior"
    return "results"


def _is_posterior(path: Path) -> bool:
    import json
    import zipfile

    try:
        with zipfile.ZipFile(path) as file:
            header = json.loads(file.read("header.json"))
    except (zipfile.BadZipFile, KeyError, ValueError):
        return False
    return isinstance(header, dict) and "kind" in header


def runs_of(wanted: argparse.Namespace) -> "polarbear.Runs":
    """The runs of results, or of a store."""
    source = source_of(wanted)
    if kind_of(source) == "store":
        _refuse(wanted, (*READING, *TIMES), f"{source} is the store of a race, which knows it")
        with polarbear.open_store(source, read_only=True) as store:
            return store.runs()
    if not Path(source).exists():
        hint = ": leave it out and write --example" if Path(source).name == _example().name else ""
        raise DataError(f"{source}: there is no such file or folder{hint}")
    refuse_race_file(source)
    named = {name: getattr(wanted, name) for name in READING}
    if named["until"] is not None:
        named["until"] = _time_or_name(named["until"])
    if named["columns"] is not None:
        named["columns"] = dict(named["columns"])
    return polarbear.read(source, **{k: v for k, v in named.items() if v is not None})


def refuse_race_file(path: str) -> None:
    """Refuse the TOML file of a race where its store or results are wanted, and name the store."""
    import tomllib

    if not path.endswith(".toml") or not Path(path).is_file():
        return
    try:
        store = tomllib.loads(Path(path).read_text("utf-8")).get("store")
    except (OSError, ValueError):
        store = None
    if not isinstance(store, str):
        raise DataError(
            f"{path} says what to run, and is no results: try `polarbear race {path} --store "
            "STORE`, and then this command with its store"
        )
    where = store if "://" in store else str(Path(path).parent / store)
    made = "" if "://" in store or Path(where).exists() else f" (`polarbear race {path}` makes it)"
    raise DataError(f"{path} says what to run; the store of its race is {where}{made}: give that")


def source_of(wanted: argparse.Namespace) -> str:
    """The path, or the example that comes with the package."""
    if not getattr(wanted, "example", False):
        if wanted.source is None:
            raise DataError(
                "there is nothing to look at: name a file or a folder, or try --example"
            )
        return wanted.source
    if wanted.source is not None:
        raise DataError(f"--example comes with its own data: leave out {wanted.source}")
    wanted.direction, wanted.clock = wanted.direction or "minimize", "evaluations"
    return str(_example())


def _example() -> Path:
    from polarbear.readers.source import EXAMPLE_PATH  # here, for it loads numbers

    return EXAMPLE_PATH


def given_sources(wanted: argparse.Namespace) -> list[str]:
    """All that a command was told to read: results, posteriors, ratings, stores, a race as a file.

    >>> given_sources(argparse.Namespace(file="race.toml", store=None, stores=["a.db", "b.db"]))
    ['race.toml', 'a.db', 'b.db']
    """
    given = [source_of(wanted)] if "source" in wanted else []
    given += [getattr(wanted, name, None) for name in ("file", "store")]
    return [path for path in [*given, *getattr(wanted, "stores", ())] if path is not None]


def times_of(runs: "polarbear.Runs", wanted: argparse.Namespace) -> Any:
    """The times to rank at: those of a race, for it answers no other question."""
    from polarbear.inference.fit import warn_of_start  # here, for it loads numbers

    source = source_of(wanted)
    if kind_of(source) == "store":
        with polarbear.open_store(source, read_only=True) as store:
            return store.times
    check_clock(runs.clock, wanted.start, wanted.stop)
    if isinstance(wanted.times, tuple):
        first, last = wanted.start or 0.0, float("inf") if wanted.stop is None else wanted.stop
        times = [time for time in wanted.times if first <= time <= last]
        if not times:
            raise DataError(f"none of --times is between --from {first:g} and --to {last:g}")
        return times
    times = polarbear.grid.from_runs(runs, wanted.times, start=wanted.start, stop=wanted.stop)
    if wanted.start is None:
        warn_of_start(polarbear.rank(runs, times))
    return times


def fit_of(wanted: argparse.Namespace) -> dict[str, Any]:
    """Options of ``fit``: what was given, and else what the race in a store was run with."""
    from polarbear.racing.model import Model

    source = source_of(wanted)
    given = {name: getattr(wanted, name) for name in FIT if name in getattr(wanted, "given", ())}
    if "weights" in given:
        given["weights"] = dict(given["weights"])
    model = Model()
    if kind_of(source) == "store":
        with polarbear.open_store(source, read_only=True) as store:
            model = store.model
    known = model.given()
    if "method" in given:  # not every method has every kind of evidence
        known.pop("evidence")
    return Model.of({**known, **given}).given()


def model_of(wanted: argparse.Namespace) -> dict[str, str]:
    """The model of a command that fits, in words."""
    from polarbear.racing.model import Model

    return Model.of(fit_of(wanted)).described()


def fitted(wanted: argparse.Namespace) -> "tuple[polarbear.Runs | None, polarbear.Posterior]":
    """A posterior that was saved, or one of runs, with the runs."""
    source = source_of(wanted)
    if kind_of(source) == "posterior":
        _refuse(wanted, (*READING, *TIMES, *FIT, "seed"), f"{source} is a posterior already")
        return None, polarbear.Posterior.load(source)
    if kind_of(source) == "ratings":
        raise DataError(f"{source} holds ratings, which `polarbear select` takes; this needs more")
    runs = runs_of(wanted)
    times = times_of(runs, wanted)
    with warnings.catch_warnings():
        if kind_of(source) == "store":  # where a race runs, and how often, it has reasons for
            warnings.filterwarnings("ignore", "at .* the verdict rests on")
        posterior = polarbear.fit(runs, times=times, seed=wanted.seed, **fit_of(wanted))
    return runs, posterior


def rated(wanted: argparse.Namespace) -> Any:
    """Whatever one can select from: ratings, a posterior, or that of a race or of results."""
    source = source_of(wanted)
    kind = kind_of(source)
    if kind == "ratings":
        _refuse(wanted, (*READING, *TIMES, *FIT, "seed"), f"{source} holds ratings already")
        return polarbear.Ratings.load(source)
    if kind == "store":
        _refuse(wanted, (*READING, *TIMES, *FIT, "seed"), f"{source} is a race, which knows it")
        race = race_of(source)
        if race.posterior is None:
            raise DataError(
                f"{source}: nothing is decided yet of two or more who race: there are no ratings; "
                f"see `polarbear status {source}`"
            )
        return race.posterior
    return fitted(wanted)[1]


def race_of(source: str) -> "Race":
    """The race of a store, which may be running meanwhile."""
    with polarbear.open_store(source, read_only=True) as store:
        return polarbear.Race.from_events(store.read(arrays=True))


def _refuse(wanted: argparse.Namespace, names: tuple[str, ...], why: str) -> None:
    given = [name for name in names if name in getattr(wanted, "given", ())]
    if given:
        raise DataError(f"{option_name(given[0])} is for results: {why}")


def _time_or_name(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
