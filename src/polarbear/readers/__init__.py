"""Readers of files: :func:`read` tries the formats of ``FORMATS`` and returns ``Runs``.

To add a format, write one function that takes a :class:`Source`, raises :class:`Refused` with the
reason if the files have another format, and returns ``Runs``. Pass it as
``read(path, format=function)``, name it in the entry points ``polarbear.readers`` of a package, or
add a row to ``FORMATS``. May import data and _text.
"""

import csv
import inspect
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import fields
from functools import cache, partial
from importlib.metadata import entry_points
from os import PathLike
from posixpath import dirname, splitext
from typing import Any, Literal, NamedTuple, Unpack, overload

from polarbear._text import format_count, format_list
from polarbear.data.archives import Archives
from polarbear.data.columns import ColumnOptions, Columns
from polarbear.data.long_table import check_frame_complete
from polarbear.data.missing_columns import suggest_call
from polarbear.data.names import suggest_name
from polarbear.data.run import Directions
from polarbear.data.run_ends import Ended
from polarbear.data.runs import Runs
from polarbear.errors import Argument, DataError, Text, join_texts, warn
from polarbear.readers.aslib import read_aslib
from polarbear.readers.benchexec import read_benchexec
from polarbear.readers.benchopt import read_benchopt
from polarbear.readers.carps import read_carps
from polarbear.readers.coco import read_coco
from polarbear.readers.contract import check_reader
from polarbear.readers.ioh import read_ioh
from polarbear.readers.log_formats import LOG_FORMATS
from polarbear.readers.logs import read_logs
from polarbear.readers.minizinc import read_minizinc
from polarbear.readers.mlflow import read_mlflow
from polarbear.readers.nevergrad import read_nevergrad
from polarbear.readers.optuna import find_sqlite_path, find_studies, read_optuna, wrap_studies
from polarbear.readers.pair_tables import read_pairs, refuse_pairs
from polarbear.readers.point_archives import read_archives
from polarbear.readers.ranking_tables import read_rankings
from polarbear.readers.smac import read_smac
from polarbear.readers.solved import read_solved
from polarbear.readers.source import (
    EXAMPLE_PATHS,
    Refused,
    RefusedIncomplete,
    Source,
    open_source,
    split_packing,
)
from polarbear.readers.syne_tune import read_syne_tune
from polarbear.readers.tables import Aliases, read_long_csv, read_long_parquet, read_wide_csv
from polarbear.readers.timefold import read_timefold

__all__ = [
    "FORMATS",
    "Archives",
    "Columns",
    "Format",
    "Refused",
    "Source",
    "check_reader",
    "example",
    "read",
    "read_archives",
    "read_pairs",
    "read_rankings",
]


class Format(NamedTuple):
    """A file format: its name, a description, and the function that reads it.

    ``part_of`` is the format that reads this one together with others, such as "logs" for the logs
    of one solver. Only ``format=`` selects such a format by itself.

    >>> [row.name for row in FORMATS][:2]
    ['ioh', 'coco']
    """

    name: str
    what: str
    read: Callable[..., Runs]
    part_of: str | None = None


FORMATS = (
    Format("ioh", "IOHprofiler folders (json or info, with dat)", read_ioh),
    Format("coco", "COCO/BBOB archives (info with dat and tdat)", read_coco),
    Format("aslib", "ASlib scenarios (description.txt with algorithm_runs.arff)", read_aslib),
    Format("benchexec", "BenchExec results (XML)", read_benchexec),
    Format("benchopt", "benchopt results (Parquet or CSV)", read_benchopt),
    Format("nevergrad", "Nevergrad benchmark tables (CSV)", read_nevergrad),
    Format("pairs", "pair tables, for which it names `pb.readers.read_pairs`", refuse_pairs),
    Format("optuna", "Optuna studies (SQLite, journal, storage URL or Study objects)", read_optuna),
    Format("smac", "SMAC3 run histories (runhistory.json)", read_smac),
    Format("syne_tune", "Syne Tune experiments (metadata.json, results.csv.zip)", read_syne_tune),
    Format("carps", "CARP-S logs (trial_logs.jsonl, or gathered Parquet)", read_carps),
    Format("mlflow", "MLflow runs (mlflow.db or mlruns)", read_mlflow),
    Format("solved", "tables of solved or not at a cost (CSV), SWE-bench boards", read_solved),
    Format("parquet", "long tables in Parquet", read_long_parquet),
    Format("csv", "long tables in CSV", read_long_csv),
    Format("wide", "CSV with a column per time", read_wide_csv),
    Format("minizinc", "MiniZinc streams (--json-stream) of all its solvers", read_minizinc),
    Format("timefold", "Timefold logs (DEBUG)", read_timefold),
    Format(
        "logs",
        "solver logs, also of several solvers, or a pattern",
        partial(read_logs, LOG_FORMATS),
    ),
    *(Format(log.name, log.what, partial(read_logs, (log,)), "logs") for log in LOG_FORMATS),
)
"""The formats of PolarBear in the order in which they are tried."""

RESULT_ENDINGS = (".arff", ".csv", ".db", ".jsonl", ".log", ".parquet", ".xml.bz2")
"""Endings of files that are rarely anything but results, packed or not."""

PACKED_ENDINGS = (".7z", ".tar", ".tgz", ".zip", ".zst")
"""Endings of packed files, which are not read inside a folder."""

OWN_READER_HINT = (
    "The store of a race: open_store(path).runs(). Any other format: write a function that makes "
    "runs of it (page Write a reader), or a table with columns algorithm, instance, time, value"
)
"""Advice for files that have no known format."""


class ReadOptions(ColumnOptions, total=False):
    """The options of :func:`read` that some formats take."""

    names: str | None
    columns: Aliases | None
    pattern: str | None
    curve: str
    partial: bool
    levels: bool


@overload
def read(
    source: object,
    *,
    direction: Directions | None = None,
    clock: str | None = None,
    ended: Ended | None = None,
    format: str | None = None,
    **options: Unpack[ReadOptions],
) -> Runs: ...
@overload
def read(source: object, *, format: Callable[..., Runs], **options: Any) -> Runs: ...
def read(
    source: object,
    *,
    direction: Directions | None = None,
    clock: str | None = None,
    ended: Ended | None = None,
    format: str | Callable[..., Runs] | None = None,  # noqa: A002
    **options: Any,
) -> Runs:
    r"""Read runs from a file, a folder, a zip or tar archive, or a data frame.

    Parameters
    ----------
    source
        A path, or a data frame as in :meth:`Runs.from_frame`. Also one or several
        ``optuna.Study`` objects, or the URL of a storage of Optuna.
    format
        The name of a format in ``polarbear.readers.FORMATS``; by default the first that fits.
        "Read your results" in the documents lists them. Or a reader of your own: a function of a
        :class:`polarbear.readers.Source` and of options that returns ``Runs``.
    direction
        "minimize" or "maximize", where the files do not say it.
    clock
        The unit of times: "evaluations", "seconds", ...
    ended
        "cut" or "finished": how runs ended where nothing else says it (see :attr:`Runs.ended`).
    options
        For tables the names of columns, ``until`` and ``missing``, as in
        :class:`polarbear.readers.Columns`, and ``columns={"time": ["evals", "fe"]}`` where names
        differ by file. For logs ``pattern``. For both ``names``, the meaning of the parts of a
        path. For trials of Optuna, SMAC, Syne Tune, CARP-S and MLflow ``names``, the meaning of
        the names of studies or runs, and ``curve``: every report counts ("best"), the last of each
        trial ("last"), or the one that ``chosen_by`` chooses, at every time ("chosen") or at the
        end ("final"). For Timefold ``levels=True``, to compare by all levels of the scores.

    Returns
    -------
    Runs
        In canonical order, whatever the order of rows and files.

    Raises
    ------
    DataError
        If no format accepts the files, with the reason of each; if files are damaged, with the
        line; or if nothing says whether small values are good.
    MissingDependency
        If the format needs a package that is not installed.

    Warns
    -----
    DataWarning
        If the data are ambiguous in a way that changes results.

    Examples
    --------
    >>> from pathlib import Path
    >>> file = Path("results.csv")
    >>> _ = file.write_text('''algorithm,instance,time,value
    ... CSA,sphere,10,4.0
    ... CSA,sphere,80,0.5
    ... RS,sphere,10,3.0
    ... RS,sphere,80,3.0
    ... ''')
    >>> print(read(file, direction="minimize", clock="evaluations"))
    2 runs: 2 algorithms on 1 instance, minimize
      algorithms  CSA, RS
      time        10 to 80 evaluations, 3 improvements
      ended       2 cut
    >>> file.unlink()

    One file per run, named by its path; fields in braces become columns:

    >>> for name in ("CSA", "RS"):
    ...     Path("runs", name).mkdir(parents=True, exist_ok=True)
    ...     _ = Path("runs", name, "sphere_s1.csv").write_text("evals,best\n10,4.0\n80,0.5\n")
    >>> runs = read("runs", direction="minimize", time="evals", value="best",
    ...             names="runs/{algorithm}/{instance}_s{repetition}.csv")
    >>> runs.algorithms, runs.instances, runs.repetition.tolist()
    (('CSA', 'RS'), ('sphere',), [1, 1])
    >>> import shutil; shutil.rmtree("runs")
    """
    formats = _select_formats(format)
    stated = {"direction": direction, "clock": clock}
    options = {**{name: one for name, one in stated.items() if one is not None}, **options}
    _check_option_names(options, formats)
    if (studies := find_studies(source)) is not None:
        _refuse_options(format, options, "a study of Optuna", _list_options(read_optuna))
        runs = _check_result(read_optuna(wrap_studies(studies), **options), "the studies")
    elif isinstance(path := find_sqlite_path(source) or source, str | PathLike):
        with closing(open_source(path)) as files:
            files.forced = format is not None
            runs = _read_first(files, formats, options)
    else:
        takes = _list_options(read_long_csv) - {"names", "columns"}
        _refuse_options(format, options, "a data frame", takes)
        check_frame_complete(source, options)
        runs = _check_result(Runs.from_frame(source, **options), "the table")
    return runs if ended is None else runs.read_as(ended)


def _refuse_options(wanted: object, options: Iterable[str], what: str, takes: set[str]) -> None:
    """Raise an error for a format, or for options, that are for files."""
    if wanted not in (None, "optuna"):
        raise DataError(Argument("format", wanted), f" is for files, not for {what}: leave it out")
    for name in set(options) - takes:
        raise DataError(f"{what} takes no option {name!r}: it is for files; leave it out")


def _read_first(files: Source, formats: tuple[Format, ...], options: dict[str, Any]) -> Runs:
    """Read files with the first format that accepts them; else raise an error with all reasons."""
    tried: list[tuple[str, Refused]] = []
    for row in formats:
        try:
            _check_options(row, options)
            files.used, files.skipped = set(), set()
            runs = _check_result(row.read(files, **options), files.label)
            _warn_if_unread(files, row)
            return runs
        except Refused as why:
            tried.append((row.name, why))
        except Exception as error:
            if row not in FORMATS:  # an error of another's reader, which may not name the file
                error.add_note(f"raised by {row.name} while it read {files.label}")
            raise
    incomplete = [(name, why) for name, why in tried if isinstance(why, RefusedIncomplete)]
    call: Text = ""
    if len(incomplete) == 1:
        call = suggest_call(repr(files.label), options, incomplete[0][1].arguments)
    raise DataError(
        f"{files.label}: cannot be read; what was tried and why not:\n",
        join_texts("\n", [(f"  {name:10} ", why) for name, why in incomplete or tried]),
        call,
        "" if incomplete or formats[0] not in FORMATS else f"\n{OWN_READER_HINT}",
    )


def example(name: Literal["bbob", "cma-variants"] = "bbob") -> Runs:
    """Read example results that come with the package.

    Parameters
    ----------
    name
        "bbob": six well-known optimisers on the 24 functions of BBOB in ten dimensions, five
        instances each. Values are distances to the optimum, and a distance below 1e-8, the target
        precision of BBOB, is recorded as 1e-8. Algorithms that reached the optimum are therefore
        tied. Instances have the attributes ``function`` and ``group``, which can be classes.

        "cma-variants": modular CMA-ES with six rules for its step size, and random search (RS), on
        60 combinations of BBOB functions (MA-BBOB) in five dimensions.

        All runs were made to the end of a budget of 10,000 evaluations.

    Returns
    -------
    Runs
        The example runs.

    Raises
    ------
    DataError
        If there is no example of this name.

    Examples
    --------
    >>> import polarbear as pb
    >>> print(pb.example())
    720 runs: 6 algorithms on 120 instances, minimize
      algorithms  CMA-ES, DE, L-BFGS-B, Nelder-Mead, PSO, random search
      time        100 to 10,000 evaluations, 14,711 improvements
      ended       720 cut
      instances   2 classes (function, group)
    >>> sorted(set(pb.example().instance_data["group"].tolist()))
    ['ill-conditioned', 'moderate', 'multi-modal', 'separable', 'weak structure']
    >>> print(pb.example("cma-variants"))
    420 runs: 7 algorithms on 60 instances, minimize
      algorithms  CSA, LPXNES, MSR, MXNES, RS, TPA, XNES
      time        100 to 10,000 evaluations, 7,411 improvements
      ended       420 cut
    """
    if name not in EXAMPLE_PATHS:
        raise DataError(f"no example {name!r}; {suggest_name(name, list(EXAMPLE_PATHS))}")
    path = EXAMPLE_PATHS[name]
    runs = read(path, direction="minimize", clock="evaluations")
    attributes = path.with_stem(f"{path.stem}_instances")
    if not attributes.exists():
        return runs
    with attributes.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    return runs.with_instance_data(dict(zip(header, zip(*rows, strict=True), strict=True)))


def _select_formats(wanted: str | Callable[..., Runs] | None) -> tuple[Format, ...]:
    """Return the formats to try: all, the named one, or the reader function of the caller."""
    if callable(wanted):
        return (Format(getattr(wanted, "__name__", "yours"), "a reader of your own", wanted),)
    rows = [row for row in FORMATS if wanted is not None or row.part_of is None]
    # Before the formats that may be anything: tables, and logs that a pattern reads.
    general = next(k for k, row in enumerate(rows) if row.name == "parquet")
    rows[general:general] = _installed_formats()
    if matching := tuple(row for row in rows if wanted in (None, row.name)):
        return matching
    known = ", ".join(row.name for row in rows)
    raise DataError(f"expected one of {known}, or a function that reads a source", format=wanted)


@cache
def _installed_formats() -> tuple[Format, ...]:
    """Load the readers of other packages, which their entry points ``polarbear.readers`` name."""
    named = entry_points(group="polarbear.readers")
    return tuple(Format(one.name, f"read by {one.value}", one.load()) for one in named)


def _list_options(reader: Callable[..., Runs]) -> set[str]:
    """List the options of a reader function, by its signature."""
    _, *parameters = inspect.signature(reader).parameters.values()  # the first is the source
    names = {one.name for one in parameters if one.kind is not one.VAR_KEYWORD}
    if len(names) < len(parameters):  # **parts are the names of columns
        names |= {field.name for field in fields(Columns)}
    return names


def _check_option_names(options: dict[str, Any], formats: tuple[Format, ...]) -> None:
    rows = (*FORMATS, *formats) if formats[0] in FORMATS else formats
    known = sorted(set().union(*(_list_options(row.read) for row in rows)))
    for name in options:
        if name not in known:
            raise DataError(f"no option {name!r}; {suggest_name(name, known)}")


def _check_options(row: Format, options: dict[str, Any]) -> None:
    takes = _list_options(row.read)
    for name in options:
        if name not in takes:
            raise Refused(f"takes no option {name!r}")


def _looks_like_results(name: str) -> bool:
    endings = (*RESULT_ENDINGS, *PACKED_ENDINGS)
    return name.endswith(endings) or split_packing(name)[0].endswith(endings)


def _warn_if_unread(files: Source, row: Format) -> None:
    """Warn about files that look like results of another program and were not read.

    Files beside others with the same ending that were read belong to them, such as further logs
    of the same program.
    """
    if files.forced:
        return
    known = {(dirname(name), splitext(name)[1]) for name in files.used | files.skipped}
    unread = [
        name
        for name in files.files
        if _looks_like_results(name.lower()) and (dirname(name), splitext(name)[1]) not in known
    ]
    if unread:
        warn(
            f"{files.label}: read as {row.name}, without {format_count(len(unread), 'other file')} "
            f"({format_list(unread, 4)}): if they hold results too, read them in a call of their "
            "own, and join both with Runs.concat"
        )


def _check_result(runs: Runs, what: str) -> Runs:
    if not isinstance(runs, Runs):
        raise DataError(f"{what}: a reader must return Runs, got {type(runs).__name__}")
    if not len(runs):
        raise DataError(f"{what} holds no runs")
    return runs
