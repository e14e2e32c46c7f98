"""The table of formats: it is the list in the documents, and each row is recognised by read."""

import inspect
import warnings
from pathlib import Path

import pytest

from polarbear import Runs, example, read, write
from polarbear.errors import DataWarning
from polarbear.readers import FORMATS

FILES = Path(__file__).parent / "files"
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "read-your-results.md"

FIXTURES = {
    "ioh": "ioh/ioh_0.3.1_info",
    "coco": "coco/bbob-constrained",
    "aslib": "aslib",
    "benchexec": "benchexec",
    "benchopt": "benchopt/benchopt_1.10.0.parquet",
    "nevergrad": "nevergrad/tiny.csv",
    "optuna": "optuna/optuna_5.0.0.db.gz",
    "smac": "smac/smac_2.0.2",
    "syne_tune": "syne_tune",
    "carps": "carps/runs",
    "mlflow": "mlflow/mlflow_3.17.2.db.gz",
    "solved": "solved/leaderboards.json",
    "minizinc": "minizinc/gecode__k30__1.jsonl.gz",
    "timefold": "timefold",
    "logs": "scip/knap_max.log",
    "cpsat": "cpsat/single__js10__1.log.gz",
    "routing": "routing",
    "gurobi": "gurobi/default__cover400__1.log.gz",
    "xpress": "xpress/default__cover400__1.log.gz",
    "copt": "copt/default__cover400__1.log.gz",
    "cbc": "cbc/default__cover400__1.log.gz",
    "highs": "highs/default__cover400__1.log.gz",
    "scip": "scip/knap_max.log",
    "toulbar2": "toulbar2",
    "o-lines": "olines/clasp_wcnf_timelimit_ts_hms.log",
}
TABLES = {"parquet": "runs.parquet", "csv": "runs.csv", "wide": "wide.csv"}
REFUSED = {"pairs", "cplex", "glpk"}
"""Rows for files that hold no times: the message says what to do."""

OPTIONS = {
    "optuna": {"direction": "minimize", "names": "{algorithm}-{instance}-{repetition}"},
    "mlflow": {"direction": "minimize", "value": "test_loss", "algorithm": "model"},
    "o-lines": {"names": r"(?P<algorithm>\w+)_(?P<instance>\w+)"},
}


def format_table() -> list[str]:
    """Write the table of formats in Markdown, as it stands in the documents."""
    lines = ["| `format=` | what | time counts |", "|---|---|---|"]
    for row in FORMATS:
        clock = inspect.signature(row.read).parameters.get("clock")
        counts = clock.default if clock and clock.default not in (None, "time") else "you say"
        if row.name in ("benchexec", "pairs"):
            counts = {"benchexec": "CPU seconds", "pairs": ""}[row.name]
        what = f"log of {row.what}" if row.part_of else row.what
        lines.append(f"| `{row.name}` | {what} | {counts} |".replace("|  |", "| |"))
    return lines


def test_the_documents_list_the_formats():
    table = "\n".join(format_table())
    assert table in PAGE.read_text("utf-8"), f"put this table into {PAGE.name}:\n{table}"


def test_there_are_many_formats():
    assert {row.name for row in FORMATS} == FIXTURES.keys() | TABLES.keys() | REFUSED
    assert len(FIXTURES) + len(TABLES) >= 22


@pytest.mark.parametrize("name", FIXTURES)
def test_a_format_is_recognised(name):
    if name in ("benchopt", "optuna"):
        pytest.importorskip({"benchopt": "pyarrow"}.get(name, name))
    options = OPTIONS.get(name, {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        runs = read(FILES / FIXTURES[name], **options)
        assert isinstance(runs, Runs)
        assert runs == read(FILES / FIXTURES[name], format=name, **options)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_recognised(name, tmp_path):
    options = {} if name == "parquet" else {"direction": "minimize", "clock": "evaluations"}
    path = tmp_path / TABLES[name]
    if name == "wide":
        path.write_text("algorithm,instance,10,100\nA,f1,2,1\nB,f1,2,\n")
    elif name == "parquet":
        pytest.importorskip("pyarrow")
    if name != "wide":
        write(example(), path)
    assert read(path, **options) == read(path, format=name, **options)
