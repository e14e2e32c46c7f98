"""Long tables of every frame library, and Parquet: there and back without loss."""

import io
import sys

import numpy as np
import pytest
from hypothesis import given

from polarbear import DataError, Runs
from polarbear.errors import MissingDependency
from strategies import DIRECTIONS, records

BACKENDS = ("pandas", "polars", "pyarrow")


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
@given(recorded=records(), direction=DIRECTIONS)
def test_frames_there_and_back(backend, recorded, direction):
    pytest.importorskip(backend)
    runs = Runs.from_records(recorded, direction=direction)
    assert Runs.from_frame(runs.to_frame(backend), direction=direction) == runs


@pytest.mark.slow
@given(recorded=records(), direction=DIRECTIONS)
def test_parquet_there_and_back(recorded, direction):
    pytest.importorskip("pyarrow")
    runs = Runs.from_records(recorded, direction=direction, clock="évaluations")
    file = io.BytesIO()
    runs.to_parquet(file)
    assert Runs.from_parquet(file) == runs


@pytest.mark.parametrize("backend", BACKENDS)
def test_names_may_be_numbers_or_categories(backend):
    library = pytest.importorskip(backend)
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "algorithm": pandas.Categorical(["x", "y", "x"]),
            "instance": [3, 3, 4],
            "time": [1, 2, 3],
            "value": [1.0, 2.0, 3.0],
        }
    )
    if backend == "polars":
        frame = library.from_pandas(frame).lazy()
    elif backend == "pyarrow":
        frame = library.Table.from_pandas(frame)
    runs = Runs.from_frame(frame, direction="minimize", until="last")
    assert runs.algorithms == ("x", "y")
    assert runs.instances == ("3", "4")


@pytest.mark.parametrize("backend", BACKENDS)
def test_empty_cells_and_texts_for_numbers_are_named(backend):
    library = pytest.importorskip(backend)
    good = {
        "algorithm": ["a", "b"],
        "instance": ["i", "i"],
        "time": [1.0, 2.0],
        "value": [1.0, 2.0],
    }
    make = library.table if backend == "pyarrow" else library.DataFrame
    with pytest.raises(DataError, match="column 'algorithm', row 1: the cell is empty"):
        Runs.from_frame(make({**good, "algorithm": ["a", None]}), direction="minimize")
    with pytest.raises(DataError, match="column 'value', row 1: nan is not a value"):
        Runs.from_frame(make({**good, "value": [1.0, None]}), direction="minimize")
    with pytest.raises(DataError, match="column 'time', row 1: 'x' is not a number"):
        Runs.from_frame(make({**good, "time": ["1", "x"]}), direction="minimize")
    assert Runs.from_frame(make({**good, "time": ["1", "2"]}), direction="minimize", until=2)
    with pytest.raises(DataError, match=r"column 'time' holds .*, expected numbers"):
        Runs.from_frame(make({**good, "time": [True, False]}), direction="minimize")
    assert len(Runs.from_frame(make({name: [] for name in good}), direction="minimize")) == 0


def test_parquet_of_others_needs_a_direction_and_names_its_empty_cells():
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = {"algorithm": ["a", "b"], "instance": [1, 2], "time": [1, 1], "value": [1.0, 2.0]}

    def file(**changes):
        target = io.BytesIO()
        parquet.write_table(arrow.table({**table, **changes}), target)
        return target

    with pytest.raises(DataError, match="pass direction='minimize'"):
        Runs.from_parquet(file())
    assert Runs.from_parquet(file(), direction="minimize").instances == ("1", "2")
    with pytest.raises(DataError, match="column 'algorithm', row 1: the cell is empty"):
        Runs.from_parquet(file(algorithm=["a", None]), direction="minimize")
    with pytest.raises(DataError, match="column 'value' holds string, expected numbers"):
        Runs.from_parquet(file(value=["1", "2"]), direction="minimize")
    stamp = {"polarbear": '{"version": 2}'}
    newer = io.BytesIO()
    parquet.write_table(arrow.table(table).replace_schema_metadata(stamp), newer)
    with pytest.raises(
        DataError, match="version 2 of its format, but this package reads version 1"
    ):
        Runs.from_parquet(newer)


def test_object_columns_with_mixed_names():
    pandas = pytest.importorskip("pandas")
    names = np.array([1, "1", "b"], dtype=object)
    frame = pandas.DataFrame(
        {"algorithm": names, "instance": "i", "time": [1, 2, 1], "value": [3.0, 2.0, 1.0]}
    )
    assert Runs.from_frame(frame, direction="minimize", until=2).algorithms == ("1", "b")


def test_a_frame_library_that_is_not_there_is_named():
    runs = Runs.from_records([], direction="minimize")
    with pytest.raises(DataError, match="backend='panda': expected one of pandas, polars, pyarrow"):
        runs.to_frame("panda")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "polars", None)
        with pytest.raises(MissingDependency, match="pip install polars"):
            runs.to_frame("polars")


def test_of_many_bad_cells_the_first_is_named_and_the_others_are_counted():
    table = {"algorithm": ["a"] * 9, "instance": range(9), "time": [1] * 9, "value": ["x"] * 9}
    with pytest.raises(DataError, match=r"'value', row 0: 'x' is not a number \(and 8 more cells"):
        Runs.from_frame(table, direction="minimize")
    table["value"] = [np.nan] * 3 + [1.0] * 6
    with pytest.raises(DataError, match=r"row 0: nan is not a value.* \(and 2 more cells of it\)"):
        Runs.from_frame(table, direction="minimize")
    table["value"], table["algorithm"] = [1.0] * 9, ["a", "", ""] * 3
    with pytest.raises(DataError, match=r"row 1: the cell is empty.* \(and 5 more cells of it\)"):
        Runs.from_frame(table, direction="minimize")


@pytest.mark.parametrize("make", [dict, "pandas"])
def test_columns_may_be_named_by_numbers(make):
    """As ``pivot`` of pandas names them. They were a raw KeyError."""
    make = pytest.importorskip("pandas").DataFrame if make == "pandas" else make
    table = make({"solver": ["a", "b"], "instance": ["x", "x"], 1: [5, 5], 2: [1.0, 2.0]})
    runs = Runs.from_frame(table, direction="minimize", algorithm="solver", time="1", value="2")
    assert runs.at([5]).tolist() == [[1.0], [2.0]]
    named = Runs.from_frame(table, direction="minimize", algorithm="solver", time=1, value=2)
    assert named == runs
    wide = make({"algorithm": ["a", "b"], "instance": ["x", "x"], 10: [5, 5], 100: [1.0, 2.0]})
    with pytest.raises(DataError, match=r"a column per time \(10, 100\); make rows of them"):
        Runs.from_frame(wide, direction="minimize")
    with pytest.raises(DataError, match="two columns of the table have the same name"):
        Runs.from_frame(make({"1": [1], 1: [2]}), direction="minimize")


@pytest.mark.parametrize("make", [dict, "pandas"])
def test_a_missing_value_in_a_column_named_by_a_number_is_named(make):
    make = pytest.importorskip("pandas").DataFrame if make == "pandas" else make
    names = {"algorithm": ["a", "b"], "instance": ["x", "x"], "time": [1, 1]}
    table = make({**names, 7: [np.nan, 2.0]})
    with pytest.raises(DataError, match="column '7', row 0: nan is not a value"):
        Runs.from_frame(table, direction="minimize", value="7")
    dropped = Runs.from_frame(table, direction="minimize", value="7", missing="drop")
    assert dropped.at([1]).tolist() == [[np.inf], [2.0]]
    features = make({"instance": ["x", "y"], 3: [np.nan, 2.0]})
    assert list(dropped.with_instance_data(features).instance_data) == ["3"]
