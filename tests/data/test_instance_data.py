"""Attributes of instances go with them, through every operation and into files."""

import io
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest

import polarbear as pb

TABLE = {
    "instance": ["x", "y", "z", "elsewhere"],
    "family": ["easy", "hard", None, "hard"],
    "size": [10, None, 30.5, 7],
}


def make_runs(instances="xyz"):
    runs = [pb.Run(a, i, [1], [v], 9) for i in instances for v, a in enumerate("ab")]
    return pb.Runs.from_records(runs, direction="minimize")


def described(table=TABLE):
    return make_runs().with_instance_data(table)


@pytest.mark.parametrize("make", [dict, pd.DataFrame, lambda t: pl.DataFrame(t, strict=False)])
def test_a_table_is_joined_by_name(make):
    data = described(make(TABLE)).instance_data
    assert data["family"].tolist() == ["easy", "hard", ""]
    np.testing.assert_array_equal(data["size"], [10, np.nan, 30.5])


def test_attributes_of_selected_instances():
    runs = described()
    assert runs.filter(instances=["z", "y"]).instance_data["family"].tolist() == ["hard", ""]
    rankings = pb.rank(runs)
    np.testing.assert_array_equal(rankings.take([2, 0, 2]).instance_data["size"], [30.5, 10, 30.5])
    assert rankings.among(["a"]).instance_data["family"].tolist() == ["easy", "hard", ""]
    assert pb.rank(runs, unit="run").instance_data["family"].tolist() == ["easy", "hard", ""]


def test_attributes_of_joined_parts():
    runs = described()
    parts = [runs.filter(instances=["y"]), runs.filter(instances=["x"]), make_runs("w")]
    joined = pb.Runs.concat(parts)
    assert joined.instances == ("w", "x", "y")
    assert joined.instance_data["family"].tolist() == ["", "easy", "hard"]
    rankings = pb.rank(runs)
    both = rankings.join(pb.rank(make_runs("w")))
    np.testing.assert_array_equal(both.instance_data["size"], [10, np.nan, 30.5, np.nan])


def test_parts_must_agree():
    other = make_runs("x").with_instance_data({"instance": ["x"], "size": [11]})
    other = pb.Runs.concat([other.filter(algorithms=["a"])])
    with pytest.raises(pb.DataError, match=r"'x' has two values of 'size': 1[01].0 and 1[01].0"):
        pb.Runs.concat([described().filter(algorithms=["b"]), other])


def test_attributes_are_stored():
    runs, file = described(), io.BytesIO()
    assert pickle.loads(pickle.dumps(runs)) == runs
    runs.to_parquet(file)
    assert pb.Runs.from_parquet(file) == runs
    assert runs != make_runs()


def test_what_is_missing_is_said():
    with pytest.warns(pb.errors.DataWarning, match="1 instance of 3 have no row in the table.*: z"):
        make_runs().with_instance_data({"instance": ["x", "y"], "size": [1, 2]})
    assert "1 class (family), 1 feature (33 % missing)" in str(described())


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"name": ["x"], "size": [1]}, "no column 'instance'.*pass instance="),
        ({"instance": ["x", "x"], "size": [1, 2]}, "'x' has two rows"),
        ({"instance": ["q"], "size": [1]}, "no instance has a row"),
    ],
)
def test_unusable_tables_are_refused(table, says):
    with pytest.raises(pb.DataError, match=says):
        make_runs().with_instance_data(table)
