"""What is usually looked at beside the race on MA-BBOB."""

import numpy as np
import pytest
from mabbob.classical import LOW, keep, load, median

import polarbear as pb

TIMES = np.array([100.0, 1000.0, 10_000.0])


@pytest.fixture
def runs():
    rng = np.random.default_rng(1)
    values = np.minimum.accumulate(10 ** rng.uniform(-10, 2, (2, 9, 3)), axis=-1)
    records = [
        pb.Run(name, str(k), TIMES, value, TIMES[-1])
        for name, of_one in zip(("CSA", "RS"), values, strict=True)
        for k, value in enumerate(of_one)
    ]
    return pb.Runs.from_records(records, direction="minimize", clock="evaluations")


def test_values_are_kept_to_a_thousandth_of_a_decade(runs, tmp_path):
    assert load(tmp_path) is None
    keep(runs, TIMES, tmp_path)
    again = load(tmp_path)
    assert again.algorithms == runs.algorithms
    assert [run.instance for run in again] == [run.instance for run in runs]
    expected = np.log10(np.maximum(runs.at(TIMES), LOW))
    np.testing.assert_allclose(np.log10(again.at(TIMES)), expected, atol=0.0006)


def test_the_median_is_what_half_of_the_runs_have_attained(runs):
    pytest.importorskip("moocore")
    when, value = median(runs, "CSA")
    expected = np.median(runs.at(TIMES)[runs.algorithm == 0], axis=0)  # of nine runs
    at = np.searchsorted(when, TIMES, side="right") - 1
    np.testing.assert_allclose(value[at], expected)
