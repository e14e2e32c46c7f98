"""``read`` itself: which format is found, what is said if none is, files, folders and archives."""

import gzip
import io
import os
import re
import shutil
import tarfile
import zipfile
from collections import Counter

import numpy as np
import pytest

from polarbear import DataError, Run, Runs, example, read, readers
from polarbear.errors import DataWarning
from polarbear.readers import FORMATS

LONG = "algorithm,instance,time,value\nCSA,f1,10,4.0\nCSA,f1,80,0.5\nRS,f1,10,3.0\nRS,f1,80,3.0\n"


@pytest.fixture
def long_csv(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text(LONG)
    return path


def test_a_path_a_string_and_a_frame_say_the_same(long_csv):
    runs = read(long_csv, direction="minimize")
    assert runs.algorithms == ("CSA", "RS")
    assert read(str(long_csv), direction="minimize") == runs
    rows = [line.split(",") for line in LONG.splitlines()]
    frame = {name: [row[i] for row in rows[1:]] for i, name in enumerate(rows[0])}
    assert read(frame, direction="minimize") == runs


def test_folders_and_archives_are_read_as_a_whole(tmp_path, long_csv):
    runs = read(long_csv, direction="minimize")
    folder = tmp_path / "results"
    for i, algorithm in enumerate(runs.algorithms):
        part = folder / f"part{i}"
        part.mkdir(parents=True)
        lines = [line for line in LONG.splitlines() if line.startswith(("algorithm", algorithm))]
        (part / "long.csv").write_text("\n".join(lines))
    (folder / "notes.md").write_text("not data")
    (folder / ".hidden.csv").write_text("not data")
    assert read(folder, direction="minimize") == runs
    for kind in ("zip", "gztar"):
        archive = shutil.make_archive(str(tmp_path / kind), kind, folder)
        assert read(archive, direction="minimize") == runs
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as both:
        both.writestr("long.csv.gz", gzip.compress(LONG.encode()))
    assert read(tmp_path / "packed.zip", direction="minimize") == runs
    packed = tmp_path / "long.csv.gz"
    packed.write_bytes(gzip.compress(LONG.encode()))
    assert read(packed, direction="minimize") == runs


def test_an_unknown_file_lists_what_was_tried_and_why_each_refused(tmp_path):
    path = tmp_path / "thesis.docx"
    path.write_text("text")
    with pytest.raises(DataError) as error:
        read(path)
    message = str(error.value)
    for row in FORMATS:
        assert (f"\n  {row.name} " in message) == (row.part_of is None)
    assert "ioh        no IOHprofiler_*.json or IOHprofiler_*.info file" in message
    assert "csv        no file ends in .csv or .tsv" in message
    assert "Any other format: write a function" in message.splitlines()[-1]


def test_a_table_of_something_else_says_which_column_is_missing(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("solver,problem,best\na,b,1\n")
    with pytest.raises(DataError) as error:
        read(path, direction="minimize")
    (said,) = str(error.value).splitlines()[1:]  # formats that it cannot be are left out
    assert "csv        no columns 'algorithm', 'instance', 'time', 'value' among solver" in said
    assert said.endswith("algorithm='solver', instance='problem', time='...', value='best'")


def test_a_column_of_seeds_in_capitals_is_not_overlooked(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(
        "Solver;Problem;Seed;Seconds;Cost\na;b;1;1;5\na;b;1;2;4\na;b;2;1;6\na;b;2;2;3\n"
    )
    with pytest.raises(DataError, match="time='Seconds', value='Cost', repetition='Seed'$"):
        read(path, direction="minimize")
    names = {"algorithm": "Solver", "instance": "Problem", "time": "Seconds", "value": "Cost"}
    with pytest.warns(DataWarning, match="name it with repetition='Seed'"):
        read(path, direction="minimize", **names)


def test_a_column_per_algorithm_is_told_how_to_become_rows(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("problem,evals,CMA,DE\nf1,10,3,4\nf1,20,1,2\n")
    melt = r'frame = frame.melt(["problem", "evals"], var_name="algorithm", value_name="value")'
    with pytest.raises(DataError, match=f"a column per algorithm .CMA, DE.*{re.escape(melt)}"):
        read(path, direction="minimize")
    table = {"algorithm": ["a"], "instance": ["x"], "100": [3], "200": [2]}
    melt = r'melt(["algorithm", "instance"], var_name="time", value_name="value")'
    with pytest.raises(DataError, match=f"a column per time .100, 200.*{re.escape(melt)}"):
        read(table, direction="minimize")


def test_a_wide_table_does_not_ask_for_what_was_given(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("algorithm,instance,100,200\na,i,3,2\n")
    with pytest.raises(DataError, match=r"it has a column per time \(100, 200\).*leave out time="):
        read(path, direction="minimize", time="evals")
    path.write_text("solver,problem,100,200\na,i,3,2\n")
    with pytest.raises(DataError, match="wide .*algorithm='solver', instance='problem'$") as error:
        read(path, direction="minimize")
    assert len(str(error.value).splitlines()) == 2


def test_the_direction_must_be_said_where_the_file_does_not(long_csv):
    with pytest.raises(DataError, match="pass direction='minimize' or direction='maximize'"):
        read(long_csv)


def test_a_format_can_be_chosen_and_must_exist(long_csv):
    assert len(read(long_csv, format="csv", direction="minimize")) == 2
    with pytest.raises(DataError, match="coco +long.csv does not begin with"):
        read(long_csv, format="coco")
    with pytest.raises(DataError, match="format='excel': expected one of ioh, coco"):
        read(long_csv, format="excel")
    with pytest.raises(DataError, match="is for files, not for a data frame"):
        read({}, format="csv")


def test_an_option_of_another_format_is_a_reason_to_refuse(long_csv):
    with pytest.raises(DataError, match="csv +takes no option 'pattern'"):
        read(long_csv, direction="minimize", pattern="red")
    with pytest.raises(DataError, match="no option 'algoritm'; did you mean 'algorithm'?"):
        read(long_csv, direction="minimize", algoritm="red")


def test_a_format_that_is_insisted_on_does_not_look_at_the_name(tmp_path):
    path = tmp_path / "results.dat"
    path.write_text(LONG)
    with pytest.raises(DataError, match="csv +no file ends in .csv"):
        read(path, direction="minimize")
    assert len(read(path, direction="minimize", format="csv")) == 2


def test_nothing_to_read_is_an_error(tmp_path):
    with pytest.raises(DataError, match="the path is empty"):
        read("")
    with pytest.raises(DataError, match="holds no files"):
        read(tmp_path)
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(DataError, match="empty.csv: the file is empty"):
        read(tmp_path / "empty.csv")
    (tmp_path / "header.csv").write_text(LONG.splitlines()[0])
    with pytest.raises(DataError, match="header.csv holds no runs"):
        read(tmp_path / "header.csv", direction="minimize")
    with pytest.raises(DataError, match="pass direction="):
        read({"algorithm": []})
    with pytest.raises(DataError, match="a data frame takes no option 'pattern'"):
        read({"algorithm": []}, direction="minimize", pattern="x")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("a")
    (tmp_path / "notes" / "b.txt").write_text("b")
    with pytest.raises(DataError, match="logs +no file is a log of a known solver"):
        read(tmp_path / "notes")
    hidden = tmp_path / ".hidden.csv"
    hidden.write_text(LONG)
    assert len(read(hidden, direction="minimize")) == 2


def test_a_stray_text_does_not_block_a_folder(tmp_path):
    (tmp_path / "solver").mkdir()
    (tmp_path / "solver" / "a.log").write_text("0.1 o 3\n")
    (tmp_path / "README.txt").write_text("notes")
    (tmp_path / "a.csv").write_text("x,y,z\n")
    (tmp_path / "b.csv").write_text("u,v,w\n")
    (tmp_path / "project.info").write_text("about this")
    with pytest.warns(DataWarning, match=r"without 2 other files \(a.csv, b.csv\): .*Runs.concat"):
        assert read(tmp_path).algorithms == ("solver",)


def test_what_is_not_there_and_what_is_broken(tmp_path):
    with pytest.raises(DataError, match="^[^:]*nowhere.csv: no such file or folder"):
        read(tmp_path / "nowhere.csv")
    with pytest.raises(DataError, match="embedded null|no such file"):
        read("a\0b.csv")
    for name, content in [("a.zip", b"PK\x03\x04 not a zip"), ("a.csv.gz", b"\x1f\x8bnot gzip")]:
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(DataError, match=f"{name}: cannot be read"):
            read(path, direction="minimize")


def test_archives_cannot_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("polarbear.readers.source.MAX_UNPACKED_BYTES", 1000)
    bomb = LONG + "x" * 2000
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.csv", bomb)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(bomb.encode()))
    (tmp_path / "a.csv").write_text(bomb)
    with tarfile.open(tmp_path / "a.tgz", "w:gz") as archive:
        archive.add(tmp_path / "a.csv", "a.csv")
    for name in ("a.zip", "a.tgz", "a.csv.gz"):
        with pytest.raises(DataError, match="unpacks to more than"):
            read(tmp_path / name, direction="minimize")


def test_the_bound_on_unpacking_is_for_all_files_together(tmp_path, monkeypatch):
    monkeypatch.setattr("polarbear.readers.source.MAX_UNPACKED_BYTES", 100_000)
    rows = LONG + "CSA,f1,90,0.5\n" * 4000  # 56 kB each
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in "ab":
            archive.writestr(f"{name}.csv", rows)
            (tmp_path / f"{name}.csv.gz").write_bytes(gzip.compress(rows.encode()))
    with tarfile.open(tmp_path / "a.tgz", "w:gz") as archive:
        for i in range(300):  # headers count as well
            archive.addfile(tarfile.TarInfo(f"{i}.csv"))
    unpacked = []
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *_: unpacked.append(1))
    for name in ("a.zip", "a.tgz", "."):
        with pytest.raises(DataError, match="unpacks to more than 0 MiB"):
            read(tmp_path / name, direction="minimize")
    assert not unpacked  # the archive says how large its files are


def test_what_unpacks_to_many_times_its_size_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("polarbear.data.unpacking.FREE_BYTES", 100_000)
    rows = (LONG + "CSA,f1,80,0.5\n" * 100_000).encode()  # packed to less than a hundredth
    (tmp_path / "folder").mkdir()
    packed = gzip.compress(rows)
    (tmp_path / "folder" / "a.csv.gz").write_bytes(packed)
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.csv", rows)
    with zipfile.ZipFile(tmp_path / "nested.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.csv.gz", packed)
    with tarfile.open(tmp_path / "a.tar.bz2", "w:bz2") as archive:
        member = tarfile.TarInfo("a.csv")
        member.size = len(rows)
        archive.addfile(member, io.BytesIO(rows))
    for name in ("folder", "a.zip", "nested.zip", "a.tar.bz2"):
        with pytest.raises(DataError, match=r"over 100 times its size: if you trust it, unpack it"):
            read(tmp_path / name, direction="minimize")
    with zipfile.ZipFile(tmp_path / "stored.zip", "w") as archive:
        archive.writestr("a.csv", rows)
    assert len(read(tmp_path / "stored.zip", direction="minimize")) == 2


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE])
def test_a_header_of_a_tar_archive_cannot_ask_for_gigabytes(tmp_path, kind):
    header = tarfile.TarInfo("name")
    header.size, header.type = 4 * 2**30, kind
    (tmp_path / "a.tar").write_bytes(header.tobuf(tarfile.GNU_FORMAT) + bytes(512))
    with pytest.raises(DataError, match="a.tar: unpacks to more than 16 MiB"):
        read(tmp_path / "a.tar", direction="minimize")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_archive_with_two_files_of_one_name_is_refused(tmp_path):
    other = LONG.replace("0.5", "0.1")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for rows in (LONG, other):
            archive.writestr("runs/a.csv", rows)
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for name, rows in (("runs/a.csv", LONG), ("./runs/a.csv", other)):
            member = tarfile.TarInfo(name)
            member.size = len(rows)
            archive.addfile(member, io.BytesIO(rows.encode()))
    for name in ("a.zip", "a.tar"):
        with pytest.raises(DataError, match=rf"{name}: holds 2 files named 'runs/a.csv'"):
            read(tmp_path / name, direction="minimize")


def test_a_zip_is_opened_once(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for i in range(50):
            archive.writestr(f"{i}.csv", LONG.replace("f1", f"f{i}"))
    opened = []
    original = zipfile.ZipFile.__init__

    def count(self, *args, **options):
        opened.append(self)
        original(self, *args, **options)

    monkeypatch.setattr(zipfile.ZipFile, "__init__", count)
    assert len(read(tmp_path / "a.zip", direction="minimize")) == 100
    assert len(opened) == 1
    assert opened[0].fp is None  # and closed


def test_pipes_and_devices_are_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    for path in (tmp_path / "pipe.csv", "/dev/zero"):
        with pytest.raises(DataError, match="is a pipe or a device; save what it holds"):
            read(path, direction="minimize")


def test_an_index_cannot_point_outside_its_folder(tmp_path):
    (tmp_path / "secret.dat").write_text("% x\n1 0 1.0\n")
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "f.info").write_text("funcId = 1, DIM = 2, algId = 'a'\n%\n../secret.dat, 1:1|1.0")
    with pytest.raises(DataError, match="refers to '../secret.dat', which is not there"):
        read(folder)


def test_every_format_has_its_row_and_its_docstring():
    assert len({row.name for row in FORMATS}) == len(FORMATS)
    for row in FORMATS:
        assert getattr(row.read, "func", row.read).__doc__
        assert row.what


def test_runs_written_to_parquet_are_recognised(tmp_path, long_csv):
    pytest.importorskip("pyarrow")
    runs = read(long_csv, direction="maximize", clock="evaluations")
    runs.to_parquet(tmp_path / "runs.parquet")
    assert read(tmp_path / "runs.parquet") == runs
    assert isinstance(runs, Runs)


def test_the_examples_come_with_the_package_and_their_paths_say_so():
    assert len(example("cma-variants")) == 420
    for name, call in (("mabbob_d5.csv", "cma-variants"), ("bbob_d10.csv", "bbob")):
        with pytest.raises(DataError, match=rf"no such file .*pb\.example\('{call}'\)"):
            read(f"somewhere/{name}", direction="minimize")
    with pytest.raises(DataError, match="no such file or folder$"):
        read("somewhere/mine.csv", direction="minimize")
    with pytest.raises(DataError, match="no example 'bbop'; did you mean 'bbob'"):
        example("bbop")


def test_the_example_has_every_optimiser_on_every_instance_to_the_end():
    runs = example()
    assert len(runs) == 6 * 24 * 5
    assert set(zip(runs.algorithm.tolist(), runs.instance.tolist(), strict=True)) == {
        (a, i) for a in range(6) for i in range(120)
    }
    assert np.all(runs.until == 10_000)
    assert runs.value.min() == 1e-8  # closer to the optimum is not recorded
    functions, groups = (runs.instance_data[name] for name in ("function", "group"))
    assert [name.partition(" d10 i")[0] for name in runs.instances] == functions.tolist()
    assert Counter(Counter(functions.tolist()).values()) == {5: 24}
    names = ("separable", "moderate", "ill-conditioned", "multi-modal", "weak structure")
    assert Counter(groups.tolist()) == dict(zip(names, (25, 20, 25, 25, 25), strict=True))
    assert not example("cma-variants").instance_data


def test_a_function_is_a_format_too(tmp_path, long_csv):
    def read_mine(files, *, direction="minimize", unit=1.0):
        if not files.ending(".mine"):
            raise readers.Refused("no file ends in .mine")
        rows = [line.split() for line in files.lines("r.mine") if line]
        records = [Run(who, "i", [unit * float(at)], [float(v)], 9) for who, at, v in rows]
        return Runs.from_records(records, direction=direction)

    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "r.mine").write_text("a 1 5\nb 2 4\n")
    runs = read(tmp_path / "mine", format=read_mine, unit=3.0)
    assert runs.time.tolist() == [3, 6]
    with pytest.raises(DataError, match="no option 'algorithm'; there are direction, unit"):
        read(tmp_path / "mine", format=read_mine, algorithm="solver")
    (tmp_path / "mine" / "s.txt").write_text("")
    (tmp_path / "mine" / "r.mine").rename(tmp_path / "mine" / "r.txt")
    with pytest.raises(DataError, match=r"read_mine +no file ends in \.mine"):
        read(tmp_path / "mine", format=read_mine)
    with pytest.raises(DataError, match="a reader must return Runs, got list"):
        read(long_csv, format=lambda source: source.lines("long.csv"))


def test_an_error_of_a_readers_own_says_which_file_it_was(long_csv):
    def mine(source):
        return float(source.lines("long.csv")[0])

    with pytest.raises(ValueError, match="could not convert") as raised:
        read(long_csv, format=mine)
    assert raised.value.__notes__ == [f"raised by mine while it read {long_csv}"]
