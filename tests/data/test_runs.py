import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import reference
from polarbear import DataError, Run, Runs, Status, rank
from polarbear.errors import DataWarning
from strategies import DIRECTIONS, GRIDS, records


def table(*rows, columns=("algorithm", "instance", "time", "value")):
    return {name: [row[i] for row in rows] for i, name in enumerate(columns)}


def minimize(*rows, **options):
    return Runs.from_frame(table(*rows), direction="minimize", **options)


def rows_of(runs):
    """A plain long table of the runs."""
    columns = runs.columns()
    return {
        name: [column.names[c] for c in column.codes] if hasattr(column, "codes") else list(column)
        for name, column in columns.items()
    }


@given(records(), GRIDS, DIRECTIONS)
def test_best_so_far_agrees_with_its_slow_twin(recorded, times, direction):
    runs = Runs.from_records(recorded, direction=direction).read_as("finished")
    by_identity = {(r.algorithm, r.instance, r.repetition): r for r in recorded}
    expected = [
        [
            reference.best_so_far(by_identity[r.algorithm, r.instance, r.repetition], t, direction)
            for t in times
        ]
        for r in runs
    ]
    assert_array_equal(runs.at(times), np.array(expected, dtype=float))


@given(records(), DIRECTIONS)
def test_columns_give_the_same_runs_back(recorded, direction):
    runs = Runs.from_records(recorded, direction=direction)
    assert Runs.from_frame(runs.columns(), direction=direction) == runs


@given(records(), DIRECTIONS, st.randoms(use_true_random=False))
def test_rows_in_any_order_and_repeated_give_the_same_runs(recorded, direction, random):
    runs = Runs.from_records(recorded, direction=direction)
    rows = rows_of(runs)
    order = list(range(len(rows["time"]))) * 2
    random.shuffle(order)
    shuffled = {name: [values[i] for i in order] for name, values in rows.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # that they go back in time
        again = Runs.from_frame(shuffled, direction=direction)
    assert again == runs


def test_the_table_of_others_is_neither_shared_nor_locked():
    time, value = np.array([1.0, 2.0]), np.array([9.0, 8.0])
    frame = {"algorithm": ["a", "a"], "instance": ["i", "i"], "time": time, "value": value}
    runs = Runs.from_frame(frame, direction="minimize")
    time[0] = value[0] = 7.0
    assert runs[0].time.tolist() == [1.0, 2.0]
    assert runs[0].value.tolist() == [9.0, 8.0]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (np.array(["2020-01-01"], dtype="datetime64[D]"), "is not a number"),
        ([1 + 2j], "is not a number"),
        (["1_0"], "'1_0' is not a number"),
        ("5", "expected a column of values, got '5'"),
        (5, "expected a column of values, got '5'"),
        ({1}, "expected a column of values"),
        ([[1, 2]], "is not a number"),
        (np.ma.masked_array([1.0], [True]), "nan is not a value"),
    ],
)
def test_what_is_no_column_of_numbers(column, message):
    frame = {"algorithm": ["a"], "instance": ["i"], "time": [1], "value": column}
    with pytest.raises(DataError, match=message):
        Runs.from_frame(frame, direction="minimize")


@pytest.mark.parametrize("kind", [list, np.array, lambda values: [str(v) for v in values]])
def test_whole_numbers_that_floats_cannot_tell_apart_warn(kind):
    frame = table(("a", "i", 1, 2**53), ("b", "i", 1, 2**53 + 1))
    frame["value"] = kind(frame["value"])
    with pytest.warns(DataWarning, match=r"column 'value' has whole numbers beyond 2\^53"):
        Runs.from_frame(frame, direction="minimize")


@given(records(), DIRECTIONS, st.randoms(use_true_random=False))
def test_parts_concatenate_to_the_whole(recorded, direction, random):
    runs = Runs.from_records(recorded, direction=direction)
    mask = np.array([random.random() < 0.5 for _ in recorded])
    parts = [runs.filter(where=mask), runs.filter(where=~mask)]
    assert Runs.concat(parts) == runs
    assert Runs.concat(reversed(parts)) == runs


@given(records(), DIRECTIONS)
def test_only_improvements_are_kept(recorded, direction):
    runs = Runs.from_records(recorded, direction=direction)
    for run in runs:
        assert np.all(np.diff(run.time) > 0)
        before, after = run.value[:-1], run.value[1:]
        assert np.all(after < before if direction == "minimize" else after > before)
        assert runs.worst not in run.value


def test_a_longer_noisy_run_becomes_its_running_best():
    rng = np.random.default_rng(5)
    value = rng.normal(size=1000)
    # A low value followed by slowly falling higher ones needs more than a look at neighbours.
    value[500:] = np.r_[-9.0, np.linspace(8, 1, 499)]
    runs = Runs.from_records([Run("a", "i", range(1000), value, 1000)], direction="minimize")
    assert_array_equal(runs.at(np.arange(1000))[0], np.minimum.accumulate(value))


def test_names_and_runs_are_in_natural_order_whatever_the_input():
    runs = minimize(("b10", "f2", 1, 1.0), ("b9", "f2", 1, 1.0), ("b9", "f1", 1, 1.0))
    assert runs.algorithms == ("b9", "b10")
    assert runs.instances == ("f1", "f2")
    assert [(r.instance, r.algorithm) for r in runs] == [("f1", "b9"), ("f2", "b9"), ("f2", "b10")]


def test_after_a_cut_unknown_after_any_other_end_what_was_found():
    recorded = [Run(str(status), "i", [1], [5.0], until=2, status=status) for status in Status] + [
        Run("crashed before", "i", [], [], until=2, status=Status.CRASHED)
    ]
    runs = Runs.from_records(recorded, direction="minimize").read_as("finished")
    later = {run.algorithm: value for run, value in zip(runs, runs.at([9])[:, 0], strict=True)}
    assert math.isnan(later.pop("cut"))
    assert later.pop("crashed before") == math.inf
    assert set(later.values()) == {5.0}


def test_infinite_and_huge_values():
    runs = minimize(
        ("a", "i", 1, math.inf),
        ("a", "i", 2, 1e308),
        ("a", "i", 3, -1e308),
        ("a", "i", 4, -math.inf),
    )
    assert_array_equal(runs.at([1, 2, 3, 4])[0], [math.inf, 1e308, -1e308, -math.inf])


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (("a", "i", math.nan, 1.0), "column 'time', row 1: nan is not a time"),
        (("a", "i", math.inf, 1.0), "column 'time', row 1: a time must be finite"),
        (("a", "i", -1, 1.0), "column 'time', row 1: a time cannot be negative"),
        (
            ("a", "i", 1, math.nan),
            "column 'value', row 1: nan is not a value; drop the row",
        ),
        (("a", "i", 1, "fast"), "column 'value', row 1: 'fast' is not a number"),
        ((None, "i", 1, 1.0), "column 'algorithm', row 1: the cell is empty"),
        (("a", math.nan, 1, 1.0), "column 'instance', row 1: the cell is empty"),
        (("a\ud800", "i", 1, 1.0), "character 1 of the name .* is not valid Unicode"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(row, message):
    with pytest.raises(DataError, match=message):
        minimize(("a", "i", 1, 1.0), row)


def test_a_missing_column_names_those_there_are():
    with pytest.raises(DataError, match="no column 'value' among algorithm, instance, time; say"):
        Runs.from_frame({"algorithm": [], "instance": [], "time": []}, direction="minimize")


def test_unequal_columns_and_directions_are_refused():
    with pytest.raises(DataError, match="columns must have the same length"):
        Runs.from_frame({"algorithm": ["a"], "instance": []}, direction="minimize")
    with pytest.raises(DataError, match="direction must be 'minimize' or 'maximize', not 'up'$"):
        Runs.from_frame(table(), direction="up")
    with pytest.raises(DataError, match="direction must be 'minimize' or 'maximize', not 'min'"):
        Runs.from_frame(table(), direction="min")
    with pytest.raises(DataError, match="not 'minimise'; did you mean 'minimize'"):
        Runs.from_frame(table(), direction="minimise")
    with pytest.raises(DataError, match="cannot read a table from int"):
        Runs.from_frame(3, direction="minimize")


def test_an_empty_table_is_no_run():
    runs = minimize()
    assert len(runs) == 0
    assert runs.at([1, 2]).shape == (0, 2)
    assert str(runs) == "0 runs: 0 algorithms on 0 instances, minimize"
    assert Runs.from_records([], direction="minimize") == runs


def test_repetitions_by_column_or_seed_and_large_seeds_stay_apart():
    rows = [("a", "i", 2**62, 1, 3.0), ("a", "i", 2**62 + 1, 1, 4.0)]
    columns = ("algorithm", "instance", "seed", "time", "value")
    runs = Runs.from_frame(table(*rows, columns=columns), direction="minimize")
    assert runs.repetition.tolist() == [2**62, 2**62 + 1]
    named = Runs.from_frame(
        table(*rows, columns=("algorithm", "instance", "run", "time", "value")),
        direction="minimize",
        repetition="run",
    )
    assert named == runs
    with pytest.raises(DataError, match=r"column 'seed', row 1: 'x' is not a whole number"):
        Runs.from_frame(
            table(rows[0], ("a", "i", "x", 1, 4.0), columns=columns), direction="minimize"
        )
    with pytest.raises(DataError, match="is not a whole number"):
        Runs.from_frame(table(("a", "i", 2**63, 1, 4.0), columns=columns), direction="minimize")


def test_values_that_only_get_worse_ask_for_the_direction():
    table = {
        "algorithm": ["a"] * 4 + ["b"] * 4,
        "instance": ["x"] * 8,
        "time": [1, 2, 3, 4] * 2,
        "value": [9, 5, 4, 1, 8, 6, 3, 2],
    }
    with pytest.warns(DataWarning, match="8 of 8 would if .*: is direction='maximize' right?"):
        Runs.from_frame(table, direction="maximize")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Runs.from_frame(table, direction="minimize")
        # The best at once and nothing afterwards is a run like others.
        Runs.from_frame({**table, "value": [9] * 8}, direction="maximize")


def test_two_values_at_one_time_without_a_repetition_column_warn():
    with pytest.warns(DataWarning, match="algorithm 'a' on instance 'i' has two different values"):
        minimize(("a", "i", 1, 3.0), ("a", "i", 1, 4.0))


def test_rows_that_go_back_in_time_warn_that_runs_may_have_been_merged():
    one = [("a", "i", k, 30.0 - k) for k in range(10)]
    two = [("a", "i", k + 0.5, 30.0 - k) for k in range(10)]
    with pytest.warns(DataWarning, match="goes back in time from row to row; taken as one run"):
        minimize(*one, *two)


def test_rows_in_no_order_at_all_do_not_warn():
    rng = np.random.default_rng(4)
    rows = [(f"a{k % 4}", f"i{k // 120}", k % 30, 100.0 - k % 30) for k in range(600)]
    for _ in range(20):
        minimize(*[rows[i] for i in rng.permutation(600)], until=30)


def test_a_warning_points_at_the_line_of_the_user():
    with pytest.warns(DataWarning) as caught:
        minimize(("a", "i", 1, 3.0), ("a", "i", 1, 4.0))
    assert caught[0].filename == __file__


def test_several_columns_make_an_instance():
    frame = {
        "algorithm": ["a"] * 3,
        "f": [1, 1, 2],
        "dim": [5, 10, 5],
        "time": [1] * 3,
        "value": [1] * 3,
    }
    runs = Runs.from_frame(frame, direction="minimize", instance=("f", "dim"))
    assert runs.instances == ("f=1, dim=5", "f=1, dim=10", "f=2, dim=5")


class TestUntil:
    ROWS = (("a", "i", 1, 5.0), ("a", "i", 3, 4.0), ("b", "i", 2, 5.0), ("c", "j", 1, 5.0))

    def test_improvements_only_are_watched_as_long_as_their_instance(self):
        with pytest.warns(DataWarning, match="because all rows are improvements"):
            assert minimize(*self.ROWS).until.tolist() == [3, 3, 1]

    def test_observations_are_watched_until_their_last_row(self):
        runs = minimize(*self.ROWS, ("b", "i", 2.5, 5.0))
        assert runs.until.tolist() == [3, 2.5, 1]
        assert [str(run.status) for run in runs] == ["cut", "unstated", "unstated"]

    @pytest.mark.parametrize(
        ("rows", "expected"),
        [
            (
                [("a", "i", 1, 5.0), ("a", "i", 1, 3.0), ("a", "i", 2, 4.0), ("b", "i", 9, 8.0)],
                [2, 9],
            ),
            (
                [("a", "i", 1, 3.0), ("a", "i", 1, 5.0), ("a", "i", 2, 4.0), ("b", "i", 9, 8.0)],
                [2, 9],
            ),
            ([("a", "i", 1, 3.0), ("a", "i", 50, math.inf), ("b", "i", 99, 2.0)], [50, 99]),
            ([("a", "i", 1, math.inf), ("a", "i", 5, 2.0), ("b", "i", 99, 2.0)], [99, 99]),
            ([("a", "i", 1, 3.0), ("a", "i", 1, 3.0), ("b", "i", 99, 2.0)], [99, 99]),
        ],
    )
    def test_what_is_an_observation_does_not_depend_on_the_order_of_rows(self, rows, expected):
        for some in (rows, rows[::-1]):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DataWarning)
                assert minimize(*some).until.tolist() == expected

    def test_nothing_is_said_where_nothing_is_open(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert minimize(*self.ROWS, ("b", "i", 3, 4.0)).until.tolist() == [3, 3, 1]

    @pytest.mark.parametrize("until", [math.nan, math.inf, [1, 2]])
    def test_it_must_be_a_time(self, until):
        with pytest.raises(DataError, match="expected the name of a column, a finite time"):
            minimize(*self.ROWS, until=until)

    @pytest.mark.parametrize(
        ("until", "expected"), [("last", [3, 2, 1]), ("instance", [3, 3, 1]), (10, [10, 10, 10])]
    )
    def test_it_can_be_said(self, until, expected):
        assert minimize(*self.ROWS, until=until).until.tolist() == expected

    def test_by_a_column(self):
        columns = ("algorithm", "instance", "time", "value", "end")
        frame = table(("a", "i", 1, 5.0, 4), ("a", "i", 3, 4.0, 4), columns=columns)
        assert Runs.from_frame(frame, direction="minimize", until="end").until.tolist() == [4]
        frame["end"] = [4, 5]
        with pytest.raises(DataError, match="column 'end', row 0: differs from another row"):
            Runs.from_frame(frame, direction="minimize", until="end")

    def test_no_row_may_lie_behind_it(self):
        with pytest.raises(
            DataError,
            match="column 'time', row 1: 3 is after the end of the run, until=2",
        ):
            minimize(*self.ROWS, until=2)


def test_an_unknown_status_is_refused():
    columns = ("algorithm", "instance", "time", "value", "status")
    with pytest.raises(DataError, match="column 'status', row 0: 'fine' is not one of cut"):
        Runs.from_frame(table(("a", "i", 1, 1, "fine"), columns=columns), direction="minimize")


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (Run("a", "i", [1], [], 2), "1 times and 0 values"),
        (Run("a", "i", [-1], [0], 2), "time -1.0 is not a finite time"),
        (Run("a", "i", [1], [math.nan], 2), "the value at time 1 is nan"),
        (Run("a", "i", [3], [1], 2), "watched until 2, but it has a value at 3"),
        (Run("a", "i", [], [], math.nan), "watched until nan, which is not a finite time"),
        (Run("a", "i", ["x"], [1], 2), "times, values and until must be numbers"),
        (Run("a", "i", [1], [1], [2, 3]), "times, values and until must be numbers"),
        (Run("a", "i", [], [], -1), "watched until -1, which is before the start"),
        (Run("a", "i", [1], [1], 2, 0, "fine"), "the status 'fine' is not one of cut"),
    ],
)
def test_bad_records_are_named(record, message):
    with pytest.raises(DataError, match=f"algorithm 'a' on instance 'i', repetition 0: {message}"):
        Runs.from_records([record], direction="minimize")


def test_times_are_one_list():
    runs = minimize(("a", "i", 1, 1.0), until=2)
    assert runs.at(1).shape == (1, 1)
    for wrong in ([[1, 5], [1, 5]], [math.nan]):
        with pytest.raises(DataError, match="expected a time or a list of times"):
            runs.at(wrong)


@pytest.mark.parametrize("name", [None, "", math.nan])
def test_a_run_has_a_name(name):
    with pytest.raises(DataError, match="the name of the algorithm or of the instance is missing"):
        Runs.from_records([Run(name, "i", [], [], 1)], direction="minimize")


def test_the_same_run_twice_is_an_error():
    runs = minimize(("a", "i", 1, 1.0))
    with pytest.raises(
        DataError, match="repetition 0 of algorithm 'a' on instance 'i' occurs twice"
    ):
        Runs.concat([runs, runs])
    evaluations = minimize(("c", "i", 1, 1.0), clock="evaluations")
    assert Runs.concat([runs, evaluations]).clock == "evaluations"
    with pytest.raises(DataError, match="evaluations and seconds"):
        Runs.concat([evaluations, minimize(("b", "i", 1, 1.0), clock="seconds")])
    with pytest.raises(DataError, match="at least one Runs"):
        Runs.concat([])


def test_filter_refuses_strangers_and_bad_masks():
    runs = minimize(("CSA", "i", 1, 1.0))
    with pytest.raises(DataError, match="no algorithm named 'CSB'; did you mean 'CSA'"):
        runs.filter(algorithms=["CSB"])
    with pytest.raises(DataError, match="no algorithm named 'csa'; did you mean 'CSA'"):
        runs.filter(algorithms="csa")
    with pytest.raises(DataError, match="boolean mask over the 1 runs"):
        runs.filter(where=[1, 0])
    assert len(runs.filter(algorithms=[])) == 0


def test_single_runs_by_index():
    runs = minimize(("a", "i", 1, 1.0))
    assert runs[0].algorithm == "a"
    assert runs[-1].algorithm == "a"
    with pytest.raises(IndexError):
        runs[1]
    with pytest.raises(DataError, match="the repetition 1.5 is not a whole number"):
        Runs.from_records([runs[0]._replace(repetition=1.5)], direction="minimize")
    with pytest.raises(DataError, match="expected a list of Run records, got str"):
        Runs.from_records(["a"], direction="minimize")


def test_arrays_cannot_be_changed_by_accident():
    with pytest.raises(ValueError, match="read-only"):
        minimize(("a", "i", 1, 1.0)).value[0] = 7


def test_notebooks_show_a_table():
    runs = Runs.from_records(
        [Run("<b>", "x", [1], [2.0], 9), Run("c", "x", [2], [1.0], 9)], direction="minimize"
    )
    for shown, words in (
        (runs._repr_html_(), "1 cut"),
        (rank(runs, [2, 9])._repr_html_(), "in first place"),
    ):
        assert shown.count("<tr>") == 3
        assert "<b>" not in shown
        assert words in shown
