"""One file per run, named by its path: fields, aliases, missing values, runs without any value."""

import math
import shutil
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

from polarbear import DataError, Run, Runs, Status, rank, read
from polarbear.errors import DataWarning
from polarbear.readers.paths import PathPattern, propose_pattern

NAMES = "runs/{algorithm}/{instance}_s{repetition}.csv"


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.fixture
def runs_folder(tmp_path):
    """Two algorithms, two instances, two seeds; a file each."""
    files = {
        f"{algorithm}/{instance}_s{seed}.csv": f"time,value\n1,{9 + k}\n10,{k + seed}\n"
        for k, algorithm in enumerate(["CMA", "DE"])
        for instance in ("f1_s0", "f2")
        for seed in (1, 2)
    }
    return write(tmp_path / "runs", **files)


def test_a_path_names_the_run(runs_folder, monkeypatch):
    runs = read(runs_folder, names=NAMES, direction="minimize")
    assert runs.algorithms == ("CMA", "DE")
    assert runs.instances == ("f1_s0", "f2")
    assert runs.repetition.tolist() == [1, 2] * 4
    assert runs.at([10]).ravel().tolist() == [1, 2, 2, 3] * 2
    for names in (
        "{algorithm}/{instance}_s{seed}.csv",
        r"(?P<algorithm>\w+)/(?P<instance>\w+)_s(?P<seed>\d+)",
    ):
        assert read(runs_folder, names=names, direction="minimize") == runs
    monkeypatch.chdir(runs_folder)
    assert read(".", names=NAMES, direction="minimize") == runs
    assert read("CMA", names=NAMES, direction="minimize") == runs.filter(algorithms=["CMA"])
    assert len(read("CMA/f2_s2.csv", names=NAMES, direction="minimize")) == 1


@pytest.mark.parametrize("kind", ["zip", "gztar"])
def test_an_archive_is_a_folder_called_like_it(runs_folder, kind, tmp_path):
    runs = read(runs_folder, names=NAMES, direction="minimize")
    archive = shutil.make_archive(str(tmp_path / "runs"), kind, runs_folder)
    assert read(archive, names=NAMES, direction="minimize") == runs


def test_fields_are_columns_like_others(tmp_path):
    folder = write(
        tmp_path,
        **{
            "f1_d5/a.csv": "seed,time,value\n1,1,3\n2,1,2\n",
            "f1_d10/a.csv": "seed,time,value\n1,1,3\n",
        },
    )
    runs = read(
        folder, names="{function}_d{dim}/{solver}.csv", algorithm="solver",
        instance=("function", "dim"), direction="minimize",
    )  # fmt: skip
    assert runs.instances == ("function=f1, dim=5", "function=f1, dim=10")
    assert len(runs) == 3


def test_logs_and_parquet_are_named_in_the_same_way(tmp_path, runs_folder):
    pytest.importorskip("pyarrow")
    import pandas

    logs, tables = tmp_path / "logs", tmp_path / "tables"
    for file in sorted(runs_folder.rglob("*.csv")):
        name = file.relative_to(runs_folder)
        frame = pandas.read_csv(file).rename(columns={"time": "evals"})
        lines = [f"t={row.evals} best {row.value}" for row in frame.itertuples()]
        write(logs, **{str(name.with_suffix(".log")): "\n".join(lines)})
        (tables / name).parent.mkdir(parents=True, exist_ok=True)
        frame.to_parquet(tables / name.with_suffix(".parquet"))
    runs = read(runs_folder, names=NAMES, direction="minimize", clock="seconds")
    names = "{algorithm}/{instance}_s{repetition}.log"
    pattern = r"t=(?P<time>\S+) best (?P<value>\S+)"
    assert read(logs, names=names, pattern=pattern, direction="minimize") == runs
    names = "{algorithm}/{instance}_s{repetition}.parquet"
    options = {"names": names, "columns": {"time": ["fe", "evals"]}, "clock": "seconds"}
    assert read(tables, **options, direction="minimize") == runs


def test_logs_with_seeds_in_their_names_are_told_the_pattern(tmp_path):
    files = {f"{a}/f{k}_s{n}.log": "0.1 o 3\n" for a in "ab" for k in (1, 2) for n in (1, 2)}
    folder = write(tmp_path, **files)
    with pytest.warns(DataWarning, match=r"a/f1_s1\.log was taken as instance 'f1_s1'") as said:
        assert len(read(folder).instances) == 4
    (warning,) = said
    names = str(warning.message).split("names='")[1].rstrip("'")
    assert names == "{algorithm}/{instance}_s{repetition}.log"
    assert read(folder, names=names).instances == ("f1", "f2")


def test_a_folder_without_names_is_told_the_pattern(runs_folder):
    with pytest.raises(DataError) as error:
        read(runs_folder, direction="minimize")
    assert "pass names='{algorithm}/{instance}_s{repetition}.csv' (" in str(error.value)
    names = str(error.value).split("names='")[1].split("'")[0]
    assert len(read(runs_folder, names=names, direction="minimize")) == 8


def test_columns_that_differ_by_file_are_told_with_the_pattern(tmp_path):
    folder = write(
        tmp_path,
        **{"CMA/f1.csv": "evals,best\n1,3\n", "CMA/f2.csv": "evals,best\n1,3\n",
           "DE/f1.csv": "FE,sigma,fitness\n1,0.1,2\n", "DE/f2.csv": "FE,sigma,fitness\n1,.1,2\n"},
    )  # fmt: skip
    with pytest.raises(DataError) as error:
        read(folder, direction="minimize")
    said = str(error.value)
    assert "the columns of DE/f1.csv are FE, sigma, fitness; in CMA/f1.csv, evals, best" in said
    assert "names='{algorithm}/{instance}.csv', " in said
    columns = {"time": ["evals", "FE"], "value": ["best", "fitness"]}
    assert f"columns={columns!r}" in said
    runs = read(folder, names="{algorithm}/{instance}.csv", columns=columns, direction="minimize")
    assert runs.at([1]).ravel().tolist() == [3, 2, 3, 2]


def test_a_column_that_matters_must_be_in_all_files(tmp_path):
    folder = write(
        tmp_path, **{"a/x.csv": "time,value,until\n1,3,9\n", "b/x.csv": "time,value\n1,3\n"}
    )
    with pytest.raises(DataError, match=r"b/x\.csv has no column 'until', which a/x\.csv has"):
        read(folder, names="{algorithm}/{instance}.csv", direction="minimize")


def test_only_files_whose_runs_crashed_need_a_status(tmp_path):
    files = {
        "a/x.csv": "time,value\n1,3\n9,2\n",
        "b/x.csv": "time,value,status\n1,3,crashed\n",
        "c/x.csv": "time,value,status\n1,3,\n9,3,\n",
    }
    runs = read(
        write(tmp_path, **files),
        names="{algorithm}/{instance}.csv",
        direction="minimize",
        until="last",
    )
    assert [str(run.status) for run in runs] == ["cut", "crashed", "cut"]


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (["a/f_s1.csv", "a/g_s1.csv", "b/f_s10.csv"], "{algorithm}/{instance}_s{repetition}.csv"),
        (["a/f1/seed1.csv", "b/f2/seed2.csv"], "{algorithm}/{instance}/seed{repetition}.csv"),
        (["a/1/f1.csv", "a/2/f2.csv", "b/1/f1.csv"], "{algorithm}/{repetition}/{instance}.csv"),
        (["a__f1__1.csv", "b__f2__1.csv"], "{algorithm}__{instance}__{repetition}.csv"),
        (["a_f1.csv", "b_f2.csv"], "{algorithm}_{instance}.csv"),
        (["x/out/a-f1-run3.tsv.gz", "x/out/b-f1-run1.tsv.gz"],
         "x/out/{algorithm}-{instance}-run{repetition}.tsv.gz"),
        (["a/1.csv", "a/2.csv", "b/1.csv"], "{algorithm}/{instance}.csv"),
        (["a/f1.csv", "a/f2.csv"], "{algorithm}/{instance}.csv"),
        (["a_b_c.csv", "d_e_f.csv"], None),
        (["a/f1.csv", "f2.csv"], None),
        (["a.csv"], None),
    ],
)  # fmt: skip
def test_layouts_that_are_recognised(files, names):
    assert propose_pattern(files, ["algorithm", "instance"]) == names


def test_patterns_that_are_refused(runs_folder):
    for names, why in [
        ("{algorithm}/{algorithm}.csv", "occurs once"),
        ("{a b}.csv", "one word in braces"),
        ("*.csv", "has no field"),
        (7, "expected a pattern"),
        (
            "{algorithm}/{instance}.tsv",
            r"no file fits names=.*the first is .*/runs/CMA/f1_s0_s1.csv",
        ),
    ]:
        with pytest.raises(DataError, match=why):
            read(runs_folder, names=names, direction="minimize")
    with pytest.raises(DataError, match="fits in more than one way: algorithm 'a', instance 'b_c'"):
        PathPattern("{algorithm}_{instance}.csv").fields("a_b_c.csv", "a_b_c.csv")
    with pytest.raises(
        DataError, match=r"'time' is a column of the file, .*replace {time} by \* in names="
    ):
        read(runs_folder, names="{time}/{instance}_s{seed}.csv", direction="minimize")
    with pytest.raises(DataError, match="columns=5: expected"):
        read(runs_folder, names=NAMES, columns=5, direction="minimize")


def test_files_that_do_not_fit_are_named(runs_folder):
    write(runs_folder, **{"summary.csv": "a,b\n1,2\n"})
    with pytest.warns(DataWarning, match=r"1 of 9 files do not fit .* left out: summary\.csv"):
        assert len(read(runs_folder, names=NAMES, direction="minimize")) == 8


def test_a_file_without_rows_is_a_run_without_a_value(runs_folder):
    write(runs_folder, **{"DE/f2_s1.csv": "time,value\n", "DE/f2_s2.csv": ""})
    with pytest.warns(DataWarning, match=r"2 files without rows \(DE/f2_s1.csv, DE/f2_s2.csv\)"):
        runs = read(runs_folder, names=NAMES, direction="minimize")
    assert len(runs) == 8
    assert runs.without_value() == [f"DE on f2 (repetition {n}, crashed)" for n in (1, 2)]
    assert "no value    DE on f2 (repetition 1, crashed), DE on f2" in str(runs)
    assert rank(runs, [10]).order("f2", 10) == [[("CMA",), ("DE",)]] * 2


def test_a_file_without_rows_that_no_path_names_is_said(tmp_path):
    folder = write(
        tmp_path,
        **{
            "a.csv": "algorithm,instance,time,value\na,x,1,2\n",
            "b.csv": "algorithm,instance,time,value\n",
        },
    )
    with pytest.warns(DataWarning, match=r"1 file without rows left out \(b\.csv\)"):
        assert len(read(folder, direction="minimize")) == 1


LONG = "algorithm,instance,time,value,status\na,x,1,3,cut\nb,x,{},,{}\n"


@pytest.mark.parametrize("time", ["4", ""])
def test_a_row_with_an_empty_value_and_a_failure_is_a_run_without_a_value(tmp_path, time):
    path = tmp_path / "t.csv"
    path.write_text(LONG.format(time, "crashed"))
    runs = read(path, direction="minimize", until="last")
    assert runs.without_value() == ["b on x (repetition 0, crashed)"]
    assert runs[1].until == float(time or 0)
    assert rank(runs, [1]).order("x", 1) == [[("a",), ("b",)]]
    same = Runs.from_records(
        [
            Run("a", "x", [1], [3.0], 1, status=Status.CUT),
            Run("b", "x", [], [], runs[1].until, status=Status.CRASHED),
        ],
        direction="minimize",
    )
    assert same == runs
    path.write_text(LONG.format(time, "cut"))
    with pytest.raises(DataError, match=r"t\.csv, line 3: the cell is empty.*missing='drop'"):
        read(path, direction="minimize")


@pytest.mark.parametrize("cell", ["", "NA", "nan", "null"])
def test_rows_without_a_number_are_dropped_on_demand(tmp_path, cell):
    path = tmp_path / "t.csv"
    path.write_text(
        f"algorithm,instance,time,value\na,x,1,3\na,x,2,{cell}\na,x,{cell},1\nb,x,7,{cell}\n"
    )
    with pytest.raises(DataError, match="line (3|4): .*with missing='drop'"):
        read(path, direction="minimize")
    runs = read(path, direction="minimize", missing="drop", until="last")
    assert [len(run.value) for run in runs] == [1, 0]
    assert runs.until.tolist() == [1, 7]
    frame = {"algorithm": ["a", "a", "b"], "instance": ["x"] * 3, "time": [1, 2, 7],
             "value": [3.0, np.nan, np.nan]}  # fmt: skip
    assert Runs.from_frame(frame, direction="minimize", missing="drop", until="last") == runs
    with pytest.raises(DataError, match="missing='fill': expected 'error' or 'drop'"):
        read(frame, direction="minimize", missing="fill")


def test_who_ran_less_often_is_said():
    records = [Run(a, i, [1], [1.0], 2, n) for a in "ab" for i in "xy" for n in (1, 2)]
    runs = Runs.from_records(records[:-1], direction="minimize")
    assert runs.fewer() == ["b has 3 of 4 runs"]
    assert "incomplete  b has 3 of 4 runs" in str(runs)
    runs = Runs.from_records(records[:-2], direction="minimize")
    assert str(runs).endswith("incomplete  b ran on 1 of 2 instances")


def test_nothing_is_warned_of_where_all_is_said(runs_folder):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(runs_folder, names=NAMES, direction="minimize")


@pytest.mark.slow
def test_an_archive_of_4000_files_takes_at_most_three_times_its_folder(tmp_path):
    folder = tmp_path / "runs"
    for k in range(4000):
        path = folder / f"a{k % 4}" / f"i{k // 4}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"time,value\n1,{k % 7}\n")
    archive = shutil.make_archive(str(tmp_path / "packed"), "zip", folder)
    least = {folder: math.inf, archive: math.inf}  # of a few tries: other work disturbs each
    for _ in range(3):
        for source in least:
            start = time.process_time()
            runs = read(source, names="{algorithm}/{instance}.csv", direction="minimize")
            least[source] = min(least[source], time.process_time() - start)
            assert (len(runs), len(runs.instances)) == (4000, 1000)
        if least[archive] < 3 * least[folder]:
            return
    pytest.fail(f"{least[archive]:.2f} s, and {least[folder]:.2f} s from the folder")
