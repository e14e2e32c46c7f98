"""Losses in the unit of the values, against a literal twin."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polarbear as pb

VALUES = st.integers(1, 9)


@given(
    st.lists(st.lists(VALUES, min_size=3, max_size=3), min_size=1, max_size=6),
    st.sampled_from(["difference", "ratio", "gap"]),
    st.sampled_from(["minimize", "maximize"]),
)
def test_losses_are_those_of_the_definition(rows, measure, direction):
    runs = pb.Runs.from_records(
        [
            pb.Run(name, str(i), [1], [float(value)], 5)
            for i, row in enumerate(rows)
            for name, value in zip("abc", row, strict=True)
        ],
        direction=direction,
    )
    found = pb.selection.losses(runs, [3], measure=measure)
    best_of = min if direction == "minimize" else max
    for i, row in enumerate(rows):
        best = best_of(row)
        for k, value in enumerate(row):
            ratio = value / best if direction == "minimize" else best / value
            expected = {
                "difference": abs(value - best),
                "ratio": ratio,
                "gap": abs(value - best) / max(value, best),
            }[measure]
            instance = runs.instances.index(str(i))
            assert found.values[0, k, instance] == pytest.approx(expected)
    ordered = np.sort(found.values[0], axis=-1)
    n = len(rows)
    for k in range(3):
        assert found.quantile(0.5)[0, k] == ordered[k, math.ceil(n / 2) - 1]
        assert found.worst()[0, k] == pytest.approx(ordered[k, n - math.ceil(n / 10) :].mean())


def test_runs_without_a_value_and_unknown_runs():
    runs = pb.Runs.from_records(
        [
            pb.Run("a", "1", [1], [2.0], 9),
            pb.Run("b", "1", [5], [1.0], 9),
            pb.Run("a", "2", [1], [4.0], 2),
            pb.Run("b", "2", [1], [3.0], 9),
        ],
        direction="minimize",
    ).read_as("cut")
    found = pb.selection.losses(runs, [1, 6])
    assert found.values[0].tolist() == [[0, 1], [math.inf, 0]]  # b has no value on 1 yet
    assert found.values[1, :, 0].tolist() == [1, 0]
    assert math.isnan(found.values[1, 0, 1])  # a was cut on 2
    assert found.values[1, 1, 1] == 0
    assert "algorithm  time" in str(found)
    assert "<table>" in found._repr_html_()


def test_factors_of_the_time_to_reach_targets():
    runs = pb.Runs.from_records(
        [
            pb.Run("a", "1", [2, 6], [5.0, 1.0], 9),
            pb.Run("b", "1", [4], [1.0], 9),
            pb.Run("a", "2", [3], [5.0], 9),
            pb.Run("b", "2", [3], [5.0], 9),
        ],
        direction="minimize",
    )
    targets = pb.targets.Targets([1, 2], {"1": [5.0, 1.0], "2": [5.0, 1.0]})
    found = pb.selection.losses(runs, targets=targets, measure="ratio")
    assert found.values[0].tolist() == [[1, 1], [2, 1]]
    assert found.values[1].tolist() == [[1.5, 1], [1, 1]]  # on 2 neither reaches it
    assert "loss against the best time" in str(found)
    with pytest.raises(pb.errors.PolarBearError, match="at times or at targets"):
        pb.selection.losses(runs, [1], targets=targets)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measure": "per cent"}, "measure='per cent': expected"),
        ({"among": ["z"]}, "no algorithm 'z'"),
        ({"measure": "ratio"}, "needs positive values"),
    ],
)
def test_what_cannot_be_is_refused(options, message):
    runs = pb.Runs.from_records([pb.Run("a", "1", [1], [-2.0], 9)], direction="minimize")
    with pytest.raises(pb.DataError, match=message):
        pb.selection.losses(runs, [1], **options)
    with pytest.raises(pb.DataError, match="share=2: expected a number from 0 to 1"):
        pb.selection.losses(runs, [1]).quantile(2)


def test_a_run_that_was_cut_before_the_best_came_is_unknown():
    records = [
        pb.Run("a", "i", [1], [9.0], 10, status=pb.Status.CUT),
        pb.Run("b", "i", [50], [5.0], 100, status=pb.Status.CUT),
    ]
    runs = pb.Runs.from_records(records, direction="minimize")
    targets = pb.targets.Targets([1], {"i": [5.0]})
    values = pb.selection.losses(runs, targets=targets, measure="ratio").values
    np.testing.assert_array_equal(values, [[[np.nan], [1.0]]])
