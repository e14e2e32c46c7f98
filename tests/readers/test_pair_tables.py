"""Pair tables: rankings of two at a single time."""

import pytest

import polarbear as pb

BATTLES = """instance,model_a,model_b,winner,conversation_a,conversation_b
q1,x,y,model_a,hi,ho
q1,y,x,x,hi,ho
q2,z,x,tie (bothbad),hi,ho
q3,z,y,b,hi,ho
"""


def test_rows_become_rankings_of_two(tmp_path):
    (tmp_path / "battles.csv").write_text(BATTLES)
    rankings = pb.readers.read_pairs(tmp_path / "battles.csv")
    assert rankings.algorithms == ("x", "y", "z")
    assert rankings.instances == ("q1", "q2", "q3")
    assert rankings.order("q1", 1) == [[("x",), ("y",)], [("x",), ("y",)]]
    assert rankings.order("q2", 1) == [[("x", "z")]] or rankings.order("q2", 1) == [[("z", "x")]]
    assert rankings.order("q3", 1) == [[("y",), ("z",)]]
    assert rankings.weight.tolist() == [0.5, 0.5, 1.0, 1.0]
    rows = pb.readers.read_pairs(tmp_path / "battles.csv", instance="conversation_a")
    assert rows.instances == ("hi",)


def test_read_names_the_call_for_a_pair_table(tmp_path):
    (tmp_path / "battles.csv").write_text(BATTLES)
    for options in ({}, {"direction": "minimize"}):
        with pytest.raises(
            pb.DataError, match=r"read it with pb.readers.read_pairs\('.*battles.csv'\)"
        ):
            pb.read(tmp_path / "battles.csv", **options)


def test_a_long_table_with_such_columns_is_read():
    table = {"algorithm": ["a"], "instance": ["i"], "time": [1], "value": [2], "x_a": [1]}
    assert len(pb.read({**table, "x_b": [2], "winner": ["x"]}, direction="minimize")) == 1


def test_parquet_and_frames_are_read_alike(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    csv = pytest.importorskip("pyarrow.csv")
    (tmp_path / "battles.csv").write_text(BATTLES)
    frame = csv.read_csv(tmp_path / "battles.csv")
    parquet.write_table(frame, tmp_path / "battles.parquet")
    expected = pb.readers.read_pairs(tmp_path / "battles.csv")
    assert (
        pb.readers.read_pairs(tmp_path / "battles.parquet")
        == expected
        == pb.readers.read_pairs(frame)
    )
    with pytest.raises(pb.DataError, match="pb.readers.read_pairs"):
        pb.read(tmp_path / "battles.parquet")


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ({"a": ["x"], "b": ["y"], "winner": ["x"]}, "no columns such as model_a and model_b"),
        ({"m_a": ["x"], "m_b": ["y"]}, "no column 'winner' among m_a, m_b; name the columns"),
        ({"m_a": ["x"], "m_b": ["x"], "winner": ["x"]}, "row 0: 'x' is compared with itself"),
        ({"m_a": ["x"], "m_b": ["y"], "winner": ["z"]}, "row 0: the winner is 'z', expected"),
        ({"m_a": [], "m_b": [], "winner": []}, "has no rows"),
    ],
)
def test_what_is_no_pair_table_is_refused(table, why):
    with pytest.raises(pb.DataError, match=why):
        pb.readers.read_pairs(table)
    renamed = {"left": ["x"], "right": ["y"], "best": ["left"]}
    assert pb.readers.read_pairs(renamed, first="left", second="right", winner="best").win_rate(
        "x", "y"
    )


def test_a_rating_of_many_battles_finds_the_stronger():
    n = 400
    table = {
        "m_a": ["x", "y"] * n,
        "m_b": ["y", "x"] * n,
        "winner": ["a", "a", "a", "b"] * (n // 2),
    }
    posterior = pb.fit(pb.readers.read_pairs(table))
    assert posterior.prob_better("x", "y")[0] > 0.99
