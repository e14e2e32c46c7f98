"""What a folder of results holds is read, refused or named in a warning: none of it is lost."""

import lzma
import tarfile
from pathlib import Path

import numpy as np
import pytest

import polarbear as pb
from polarbear.errors import DataWarning

FILES = Path(__file__).parent / "files"
HEAD = "algorithm,instance,time,value\n"
STREAM = '{"type": "solution", "output": {"json": {"_objective": 5}}, "time": 900}\n'


def put(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def test_a_value_with_few_digits_is_no_rounded_one(tmp_path):
    """Once, 0 after 0.4 was taken for 0.4 with fewer digits, so an optimum was never reached."""
    put(tmp_path, {"a/k.log": "1s acc=0.8\n2s acc=0.96\n3s acc=1.0\n"})
    pattern = r"(?P<time>\d+)s acc=(?P<value>\S+)"
    (run,) = pb.read(tmp_path, pattern=pattern, direction="maximize")
    assert np.asarray(run.value).tolist() == [0.8, 0.96, 1.0]


def test_times_that_go_back_are_of_several_solves(tmp_path):
    lines = "0.1 c s\n1.5 o 10\n4.0 o 8\n10.0 s UNKNOWN\n"
    put(tmp_path, {"a/k.log": lines + "0.1 c s\n0.9 o 30\n2.0 o 7\n3.0 s OPTIMUM FOUND\n"})
    with pytest.raises(pb.DataError, match=r"line 6: the time goes back from 4 to 0\.9 seconds"):
        pb.read(tmp_path)


def test_repetitions_without_a_column_are_noticed_between_the_rows_of_others(tmp_path):
    rng = np.random.default_rng(0)
    rows = [
        f"{name},i{k},{time:.3f},{10 - time:.3f}\n"
        for _ in range(5)
        for name in "abc"
        for k in range(4)
        for time in np.sort(rng.uniform(0, 9, 4))
    ]
    put(tmp_path, {"r.csv": HEAD + "".join(rows)})
    with pytest.warns(DataWarning, match="goes back in time from row to row; taken as one run"):
        pb.read(tmp_path, direction="minimize", until=10)


def test_packed_files_are_read_or_named(tmp_path):
    packed = lzma.compress(f"{HEAD}b,x,1,4\n".encode())
    put(tmp_path, {"a.csv": HEAD + "a,x,1,5\n", "b.csv.xz": packed, "more.zip": b"PK\3\4"})
    with pytest.warns(DataWarning, match=r"without 1 other file \(more\.zip\)"):
        assert pb.read(tmp_path, direction="minimize").algorithms == ("a", "b")


def test_logs_beside_those_of_minizinc_are_named(tmp_path):
    put(tmp_path, {"gecode/p.jsonl": STREAM, "highs/p.log": "Running HiGHS\n", "b/p.jsonl": ""})
    with pytest.warns(DataWarning, match=r"without 2 other files \(b/p\.jsonl, highs/p\.log\)"):
        pb.read(tmp_path, direction="minimize")


@pytest.mark.parametrize("size", [2048, 2100, 2304])
def test_a_cut_tar_archive_is_refused(tmp_path, size):
    with tarfile.open(tmp_path / "t.tar", "w") as archive:
        for name in "abcd":
            file = put(tmp_path, {f"{name}.csv": f"{HEAD}{name},x,1,5\n"}) / f"{name}.csv"
            archive.add(file, f"{name}.csv")
    whole = (tmp_path / "t.tar").read_bytes()
    assert len(pb.read(tmp_path / "t.tar", direction="minimize").algorithms) == 4
    (tmp_path / "t.tar").write_bytes(whole[:size])
    with pytest.raises(pb.DataError, match="its end is missing"):
        pb.read(tmp_path / "t.tar", direction="minimize")


def test_a_missing_cell_was_not_observed(tmp_path):
    put(tmp_path, {"r.csv": "algorithm,instance,10,100,1000\na,x,5,4,NA\nb,x,6,5,4\n"})
    runs = pb.read(tmp_path, direction="minimize", missing="drop")
    assert runs.until.tolist() == [100.0, 1000.0]


def solved(medium, soft):
    score = f"(0hard/{medium}medium/{soft}soft)"
    return (
        "x Solving started: time spent (95), best score (0hard/0medium/0soft), random (JDK with "
        f"seed 0).\nx LS step (1), time spent (900), score {score},     new best score {score}, a\n"
    )


def test_levels_that_differ_between_logs_are_refused(tmp_path):
    put(tmp_path, {"A/p.log": solved(-1, -100), "B/p.log": solved(0, -500)})
    with pytest.raises(pb.DataError, match="differs from other runs on p, but runs are compared"):
        pb.read(tmp_path)
    levels = pb.read(tmp_path, levels=True)
    assert pb.rank(levels, [0.9]).order("p", 0.9) == [[("B",), ("A",)]]


def test_several_parquet_files_say_until_when_runs_were_observed(tmp_path):
    """In a file of its own each run seemed to be observed until its last improvement."""
    pandas = pytest.importorskip("pandas")
    for name, times in (("a", [1, 2]), ("b", [1, 9]), ("c", [])):
        table = {"instance": ["x"] * len(times), "time": times, "value": [3.0, 2.0][: len(times)]}
        pandas.DataFrame(table).to_parquet(tmp_path / f"{name}.parquet")
    paths = {"names": "{algorithm}.parquet", "direction": "minimize"}
    with pytest.warns(DataWarning, match=r"c\.parquet has no rows"):
        runs = pb.read(tmp_path, until=10, **paths)
    assert runs.until.tolist() == [10, 10]
    (tmp_path / "c.parquet").unlink()
    with pytest.raises(pb.DataError, match=r"do not say until when .* pass until='last'"):
        pb.read(tmp_path, **paths)
    for name in "ab":  # nothing depends on the end of a run that finished
        table = pandas.read_parquet(tmp_path / f"{name}.parquet")
        table.assign(status="finished").to_parquet(tmp_path / f"{name}.parquet")
    assert len(pb.read(tmp_path, **paths)) == 2
