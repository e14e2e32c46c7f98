"""Tables with a ranking in each row."""

import pytest

import polarbear as pb

TEXTS = """instance,ranking
q1,x > y=z
q2,y > x
q1,z > y > x
"""
PLACES = "rank_1,rank_2,rank_3\nx,y,z\ny,x,\n"


def test_texts_become_rankings_with_ties(tmp_path):
    (tmp_path / "texts.csv").write_text(TEXTS)
    rankings = pb.readers.read_rankings(tmp_path / "texts.csv")
    assert rankings.algorithms == ("x", "y", "z")
    assert rankings.instances == ("q1", "q2")
    assert rankings.order("q1", 1) == [[("x",), ("y", "z")], [("z",), ("y",), ("x",)]]
    assert rankings.order("q2", 1) == [[("y",), ("x",)]]
    assert rankings.weight.tolist() == [0.5, 0.5, 1.0]


def test_all_forms_are_read_alike(tmp_path):
    csv, parquet = (pytest.importorskip(f"pyarrow.{name}") for name in ("csv", "parquet"))
    (tmp_path / "places.csv").write_text(PLACES)
    frame = csv.read_csv(tmp_path / "places.csv")
    parquet.write_table(frame, tmp_path / "places.parquet")
    expected = pb.readers.read_rankings([["x", "y", "z"], ["y", "x"]])
    assert expected.order("row 1", 1) == [[("y",), ("x",)]]
    for source in (tmp_path / "places.csv", tmp_path / "places.parquet", frame):
        assert pb.readers.read_rankings(source) == expected
    assert pb.readers.read_rankings(
        {"best to worst": ["x > y > z", "y > x"]}, ranking="best to worst"
    ) == (expected)


def test_names_that_are_numbers_may_have_empty_cells():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"rank_1": [1, 2], "rank_2": [2, 1], "rank_3": [3, None]})
    assert pb.readers.read_rankings(frame).algorithms == ("1", "2", "3")


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ({"first": ["x"]}, "no columns rank_1, rank_2, ... and no column 'ranking' among first"),
        ({"rank_1": ["x"], "rank_2": ["x"]}, "row 0: 'x' is ranked twice"),
        ({"rank_1": ["x"], "rank_2": [""], "rank_3": ["y"]}, "row 0: 'rank_2' is empty and"),
        ({"ranking": ["x > y", "x > > y"]}, "row 1: 'x > > y' lacks a name"),
        ({"ranking": []}, "has no rows"),
        ([], "no columns rank_1"),
    ],
)
def test_what_is_no_table_of_rankings_is_refused(table, why):
    with pytest.raises(pb.DataError, match=why):
        pb.readers.read_rankings(table)
