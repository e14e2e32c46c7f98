import pytest
from numpy.testing import assert_array_equal

from polarbear import DataError, read
from polarbear.readers import FORMATS, ReadOptions, _list_options

LONG = "algorithm,instance,time,value\n"


def file(tmp_path, text, name="t.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_separators_bom_blank_lines_quotes_and_line_ends(tmp_path, separator):
    text = 'algorithm,instance,time,value\r\n"a, or ""b""",i,1,2\r\n\r\nc,i,1,-inf\r\n'
    if separator != ",":
        text = text.replace("a, or", "a or").replace(",", separator)
    runs = read(file(tmp_path, b"\xef\xbb\xbf" + text.encode()), direction="minimize")
    assert runs.algorithms[1] == "c"
    assert runs.algorithms[0].endswith('or "b"')


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("a,i,1,nan\n", "column 'value', t.csv, line 2: nan is not a value"),
        ("a,i,1,2\na,i,,3\n", "column 'time', t.csv, line 3: the cell is empty"),
        ("a,i,1,2\n\na,i,x,3\n", "column 'time', t.csv, line 4: 'x' is not a number"),
        ('a,"i\ni",1,2\na,i,1\n', "t.csv: line 4: 3 cells where the first line has 4"),
        ("a,i,1,2\n,i,1,3\n", "column 'algorithm', t.csv, line 3: the cell is empty"),
        ('a,i,1,"2\n', "t.csv: line [234]: unexpected end of data"),
        ("a,i,1,2\na,\x00,1,\xff", "no error"),
    ],
)
def test_damage_is_named_by_its_line(tmp_path, rows, message):
    if message == "no error":
        assert len(read(file(tmp_path, LONG + "a,\x00,1,2"), direction="minimize")) == 1
        return
    with pytest.raises(DataError, match=message):
        read(file(tmp_path, LONG + rows), direction="minimize")


def test_bytes_that_are_no_text_are_named_by_their_line(tmp_path):
    with pytest.raises(DataError, match=r"^t.csv: line 2: not text in UTF-8"):
        read(file(tmp_path, LONG.encode() + b"a,\xff,1,2\n"), direction="minimize")


def test_files_of_one_folder_must_have_the_same_columns_in_any_order(tmp_path):
    file(tmp_path, LONG + "a,i,1,2\n", "a.csv")
    file(tmp_path, "time,value,algorithm,instance\n1,3,b,i\n", "b.csv")
    assert read(tmp_path, direction="minimize").algorithms == ("a", "b")
    file(tmp_path, "time,value,algorithm,problem\n1,3,b,i\n", "c.csv")
    with pytest.raises(DataError, match="the columns of c.csv are time, value, algorithm, problem"):
        read(tmp_path, direction="minimize")


def test_blank_lines_before_the_first(tmp_path):
    runs = read(file(tmp_path, "\n\n" + LONG + "a,i,1,2\n"), direction="minimize")
    assert len(runs) == 1
    with pytest.raises(DataError, match="t.csv, line 4: 'x' is not a number"):
        read(file(tmp_path, "\n\n" + LONG + "a,i,1,x\n"), direction="minimize")


def test_two_columns_of_one_name(tmp_path):
    with pytest.raises(DataError, match="line 1: two columns are named 'time'"):
        read(file(tmp_path, "algorithm,instance,time,time\n"), direction="minimize")


def test_columns_by_other_names(tmp_path):
    text = "solver,fid,dim,seed,evals,best\nA,1,5,3,10,2\nA,1,10,3,10,2\n"
    runs = read(
        file(tmp_path, text),
        direction="minimize",
        algorithm="solver",
        instance=["fid", "dim"],
        time="evals",
        value="best",
        clock="evaluations",
    )
    assert runs.instances == ("fid=1, dim=5", "fid=1, dim=10")
    assert runs.repetition.tolist() == [3, 3]


class TestWide:
    TEXT = "algorithm,instance,seed,100,t=1e3,time_5000\nA,f1,1,5,4,\nA,f1,2,,3,2\nB,f1,1,,,\n"

    def test_a_column_per_time_and_empty_cells(self, tmp_path):
        path = file(tmp_path, self.TEXT)
        runs = read(path, direction="minimize", clock="evaluations", ended="cut")
        assert runs.until.tolist() == [1000, 5000, 0]
        nan, inf = float("nan"), float("inf")
        assert_array_equal(
            runs.at([0, 100, 1000, 5000]),
            [[inf, 5, 4, nan], [inf, inf, 3, 2], [inf, nan, nan, nan]],
        )

    def test_nothing_was_recorded_where_a_cell_is_empty(self, tmp_path):
        text = "algorithm,instance,100,200,300\nA,f1,5,,4\nB,f1,,7,\n"
        runs = read(file(tmp_path, text), direction="minimize", ended="cut")
        inf, nan = float("inf"), float("nan")
        assert_array_equal(runs.at([100, 200, 300]), [[5, 5, 4], [inf, 7, nan]])

    def test_maximising(self, tmp_path):
        runs = read(file(tmp_path, self.TEXT), direction="maximize")
        assert runs.at([100])[1, 0] == float("-inf")

    def test_two_rows_of_one_run_need_a_column_that_tells_them_apart(self, tmp_path):
        text = "algorithm,instance,100,200\nA,f1,5,4\nA,f1,6,3\n"
        with pytest.raises(DataError, match="t.csv, line 2 and t.csv, line 3 are both A, f1"):
            read(file(tmp_path, text), direction="minimize")

    def test_columns_of_its_own_and_two_for_one_time(self, tmp_path):
        text = "algorithm,instance,time,until,.5,100\nA,f1,x,200,5,4\nB,f1,x,,5,4\n"
        runs = read(file(tmp_path, text), direction="minimize", format="wide")
        assert runs.until.tolist() == [200, 100]
        assert runs.time.tolist() == [0.5, 100, 0.5, 100]
        with pytest.raises(DataError, match="no column 'nope' among"):
            read(file(tmp_path, text), direction="minimize", format="wide", repetition="nope")
        text = "algorithm,instance,100,t=1e2\nA,f1,5,4\n"
        with pytest.raises(
            DataError, match="two columns are for the same time, remove one: 100, t=1e2"
        ):
            read(file(tmp_path, text), direction="minimize")

    def test_damage_is_named_by_line_and_column(self, tmp_path):
        text = self.TEXT.replace("3,2", "3,bad")
        with pytest.raises(
            DataError, match="t.csv, line 3, under 'time_5000': 'bad' is not a number"
        ):
            read(file(tmp_path, text), direction="minimize")


def test_a_damaged_parquet_file_is_an_error_of_the_data(tmp_path):
    pytest.importorskip("pyarrow")
    for content in (b"PAR1", b"PAR1" + bytes(100) + b"PAR1"):
        with pytest.raises(DataError, match=r"t.parquet: damaged Parquet file"):
            read(file(tmp_path, content, "t.parquet"), direction="minimize")


@pytest.mark.parametrize("columns", [{"algorithm": [["a"]]}, {"time": ["x"]}, {"value": [True]}])
def test_parquet_columns_of_the_wrong_kind(tmp_path, columns):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = {"algorithm": ["a"], "instance": ["i"], "time": [1], "value": [1.0], **columns}
    parquet.write_table(arrow.table(table), tmp_path / "t.parquet")
    with pytest.raises(DataError, match="is not a single column|expected numbers"):
        read(tmp_path / "t.parquet", direction="minimize")


def test_our_parquet_knows_its_direction(tmp_path):
    pytest.importorskip("pyarrow")
    read(file(tmp_path, LONG + "a,i,1,2\n"), direction="minimize").to_parquet(
        tmp_path / "r.parquet"
    )
    with pytest.raises(
        DataError, match="direction='maximize': the file was written with direction='minimize'"
    ):
        read(tmp_path / "r.parquet", direction="maximize")


def test_parquet_of_something_else_is_refused_with_its_columns(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "t.parquet"
    parquet.write_table(arrow.table({"x": [1]}), path)
    with pytest.raises(DataError, match="parquet +no columns 'algorithm', .* among x"):
        read(path, direction="minimize")


def test_editors_know_all_options_of_read():
    known = set().union(*(_list_options(row.read) for row in FORMATS))
    assert known == {*ReadOptions.__annotations__, "direction", "clock"}
