import numpy as np
import pytest
from hypothesis import assume, example, given
from numpy.testing import assert_allclose, assert_array_equal

from polarbear import DataError, Run, Runs, Status, grid, rank
from strategies import records


def runs_at(times, until=None):
    values = -np.arange(len(times), dtype=float)
    record = Run("a", "i", times, values, until=max(times) if until is None else until)
    return Runs.from_records([record], direction="minimize")


def test_linear_and_log():
    assert_allclose(grid.linear(0, 1, 3), [0, 0.5, 1])
    assert_allclose(grid.log(1, 100, 3), [1, 10, 100])
    with pytest.raises(DataError, match="start=0: a logarithmic grid must start above 0"):
        grid.log(0, 10)


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ([], "at least one time"),
        ([[1, 2]], "at least one time"),
        ([1, np.nan], "nan at position 1"),
        ([-1, 2], "-1.0 at position 0"),
        ([1, 1], "times must increase: 1 at position 1 follows 1"),
    ],
)
def test_what_is_not_a_grid(times, message):
    with pytest.raises(DataError, match=message):
        rank(runs_at([1, 2]), times)


def test_few_recorded_times_are_the_grid():
    assert_array_equal(grid.from_runs(runs_at([100, 200, 400], until=500)), [100, 200, 400, 500])


def test_many_evaluation_counts_give_a_whole_log_grid():
    times = grid.from_runs(runs_at(np.arange(1, 5001)), start=1)
    assert times[0] == 1
    assert times[-1] == 5000
    assert_array_equal(times, np.round(times))
    assert 40 <= len(times) <= 50
    assert_allclose(np.diff(np.log(times[-10:])), np.log(5000) / 49, rtol=0.02)
    assert_allclose(np.diff(grid.from_runs(runs_at(np.arange(100, 5001)), 8)), 700)


@pytest.mark.parametrize(
    ("recorded", "start"),
    [
        (np.arange(1, 2001), 20),  # 1 % of the end
        (np.arange(1, 301), 10),  # ten evaluations
        (np.arange(1, 61), 6),  # a tenth of the end
        (np.arange(1, 51), 1),  # 50 times, all of which are compared
        (2.0 ** np.arange(16), 1),
        (np.arange(100, 10_001), 100),  # the first value
        (np.linspace(0.01, 36, 999), 0.36),
    ],
)
def test_it_begins_where_a_comparison_can_mean_something(recorded, start):
    runs = runs_at(recorded)
    assert_allclose(grid.from_runs(runs)[0], start)
    assert_allclose(grid.from_runs(runs, 40)[0], start)
    assert grid.from_runs(runs, start=recorded[0])[0] == recorded[0]
    assert grid.from_runs(runs, start=recorded[0], stop=recorded[9])[0] == recorded[0]


def test_a_later_start_does_not_change_the_scale():
    ratios = grid.from_runs(runs_at(np.linspace(0.01, 36, 999)), 30)
    assert_allclose(np.diff(np.log(ratios)), np.log(100) / 29)
    counts = grid.from_runs(runs_at(np.arange(1, 301)), 6)
    assert_array_equal(counts, np.round(np.geomspace(10, 300, 6)))


def test_a_narrow_range_of_seconds_gives_a_linear_grid():
    seconds = np.linspace(1.5, 9.25, 999)
    assert_allclose(grid.from_runs(runs_at(seconds), 4), np.linspace(1.5, 9.25, 4))


def test_it_starts_when_half_of_the_runs_have_a_value():
    late = [Run("a", str(i), [i, 100], [2, 1], 100) for i in range(1, 6)]
    assert grid.from_runs(Runs.from_records(late, direction="minimize"))[0] == 3
    silent = [Run("b", str(i), [], [], 100) for i in range(5)]
    assert grid.from_runs(Runs.from_records([*late, *silent], direction="minimize"))[0] == 5
    pair = Runs.from_records([late[0], late[4]], direction="minimize")
    assert grid.from_runs(pair)[0] == 1


def test_a_first_value_at_time_zero():
    assert_allclose(grid.from_runs(runs_at([0, 1, 1000]), 4), [1, 10, 100, 1000])
    assert_array_equal(grid.from_runs(runs_at([0])), [0])
    assert_array_equal(grid.from_runs(runs_at([7]), 5), [7])


def test_without_any_value_there_is_no_grid():
    silent = Runs.from_records([Run("a", "i", [], [], 5)], direction="minimize")
    with pytest.raises(DataError, match="no run has a value"):
        rank(silent)


@pytest.mark.slow
@given(records())
@example([Run("a", "x", [0], [-np.inf], 0)])
def test_a_grid_can_always_be_chosen_where_there_is_a_value(recorded):
    runs = Runs.from_records(recorded, direction="minimize")
    assume(len(runs.time))
    for n in (None, 1, 7):
        rank(runs, grid.from_runs(runs, n))
    with pytest.raises(DataError, match="expected a list of times; grid.from_runs"):
        rank(runs, 7)


def by_the_clock():
    """Thirty pairs of runs that were to end at 7200 seconds, and end some seconds off."""
    ends = 7200 + np.random.default_rng(1).uniform(-20, 20, 60)
    return Runs.from_records(
        [
            Run(
                name, str(k), [60 + k / 7, 900 + 11.3 * k], [2 + side, 1 + side], ends[2 * k + side]
            )
            for k in range(30)
            for side, name in enumerate(("a", "b"))
        ],
        direction="minimize",
        clock="seconds",
    )


def test_it_ends_when_half_of_the_runs_are_known():
    runs = by_the_clock()
    last = grid.from_runs(runs, 10)[-1]
    assert np.mean(runs.until >= last) == 0.5
    ended = [Run("b", str(i), [1], [2], 5 + i, status=Status.FINISHED) for i in range(6)]
    assert grid.from_runs(Runs.from_records(ended, direction="minimize"))[-1] == 10
    cut = [Run("a", str(i), [1], [2], 7) for i in range(7)]
    assert grid.from_runs(Runs.from_records([*ended, *cut], direction="minimize"))[-1] == 7


def test_it_does_not_end_before_it_starts():
    early = [Run("a", str(i), [], [], 5) for i in range(2)]
    late = [Run("b", "0", [200], [1], 1000), Run("b", "1", [1], [2], 2)]
    runs = Runs.from_records([*early, *late], direction="minimize").read_as("cut")
    assert_array_equal(grid.from_runs(runs), [200])
