"""The data of classical figures equals direct computation."""

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import polarbear as pb
from polarbear.data.targets import Targets
from polarbear.plots import aocc_data, eaf_difference_data, ecdf_data

EXAMPLE = Path(__file__).parents[2] / "examples" / "mabbob_d5.csv"

RUNS = pb.Runs.from_records(
    [
        pb.Run("a", "1", [1, 10, 100], [10.0, 1.0, 0.1], until=1000),
        pb.Run("a", "2", [1, 100], [10.0, 0.01], until=1000),
        pb.Run("b", "1", [1], [1.0], until=1000),
        pb.Run("b", "2", [10], [0.1], until=1000),
    ],
    direction="minimize",
    clock="evaluations",
)


def share(value, low, high):
    return np.clip((np.log(high) - np.log(value)) / (np.log(high) - np.log(low)), 0, 1)


def flipped(runs):
    records = [run._replace(value=-np.asarray(run.value)) for run in runs]
    return pb.Runs.from_records(records, direction="maximize", clock=runs.clock)


def runs_of_many_scales():
    """Values of instances that differ by powers of ten, which halve at each of ten times."""
    times = np.arange(1, 11)
    return pb.Runs.from_records(
        [
            pb.Run(name, f"f{k}", times, 10.0**k * factor * 0.5**times, until=10)
            for k in range(8)
            for name, factor in (("a", 1.0), ("b", 2.0))
        ],
        direction="minimize",
    )


def test_flat_lines_are_answered_with_targets():
    runs = runs_of_many_scales()
    with pytest.warns(pb.errors.DataWarning) as said:
        flat = ecdf_data(runs, log=False)
    (warning,) = said
    assert "the lines are flat, because half of the runs change by less than 5 %" in str(
        warning.message
    )
    assert "targets=pb.targets.from_runs(runs)" in str(warning.message)
    assert np.ptp(flat.mean, axis=0).max() < 0.2
    targets = pb.targets.from_runs(runs)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        curves = ecdf_data(runs, targets=targets)
    assert np.ptp(curves.mean, axis=0).min() > 0.7
    assert (curves.scale, curves.n_targets) == (None, 9)
    assert pb.plots.ecdf(runs, targets=targets).get_ylabel() == "Mean attained share (ECDF)"
    with pytest.raises(pb.DataError, match="leave them out, or targets"):
        ecdf_data(runs, targets=targets, low=1)


def test_an_ecdf_of_targets_counts_those_that_were_reached():
    records = [
        pb.Run("a", "x", [1, 4], [8, 2], until=6, status=pb.Status.CUT),
        pb.Run("b", "x", [2], [5], until=9, status=pb.Status.FINISHED),
    ]
    runs = pb.Runs.from_records(records, direction="minimize")
    targets = Targets([1, 2], {"x": [6, 3]})
    share = ecdf_data(runs, targets=targets, times=[1, 2, 4, 8]).mean
    np.testing.assert_allclose(share, [[0, 0], [0, 0.5], [1, 0.5], [np.nan, 0.5]])


def test_ecdf_is_the_mean_attained_share():
    curves = ecdf_data(RUNS, low=0.01, high=10, times=[1, 10, 100, 1000])
    by_hand = [share(RUNS.at([t])[:, 0], 0.01, 10).reshape(2, 2).mean(axis=0) for t in curves.times]
    assert np.allclose(curves.mean, by_hand)
    assert np.all((curves.lower <= curves.mean) & (curves.mean <= curves.upper))
    assert ecdf_data(RUNS).scale == (0.01, 10.0, True)
    linear = ecdf_data(RUNS, low=0, high=10, log=False, times=[1])
    assert np.allclose(linear.mean, [[0.0, 0.45]])
    turned = ecdf_data(flipped(RUNS), low=-10, high=0, log=False, times=[1])
    assert np.allclose(turned.mean, linear.mean)


def test_aocc_is_the_area_under_the_attained_share():
    areas = aocc_data(RUNS, low=0.01, high=10)
    first = (0 * 10 + 90 * share(1.0, 0.01, 10) + 900 * share(0.1, 0.01, 10)) / 1000
    second = (0 * 100 + 900 * share(0.01, 0.01, 10)) / 1000
    assert np.allclose(areas.values[0], [first, second])
    assert areas.mean[0] == pytest.approx((first + second) / 2)
    assert (areas.until, areas.clock) == (1000.0, "evaluations")


def test_the_last_time_of_the_area_is_not_that_of_a_crashed_run():
    """Once, a run that crashed at 1 evaluation made the area end there."""
    crashed = pb.Run("b", "3", [1], [5.0], until=1, status=pb.Status.CRASHED)
    runs = pb.Runs.from_records([*RUNS, crashed], direction="minimize", clock="evaluations")
    areas = aocc_data(runs, low=0.01, high=10)
    assert areas.until == 1000
    assert len(areas.values[1]) == 3  # the crashed run keeps its value
    assert areas.values[1][2] == pytest.approx(share(5.0, 0.01, 10), rel=0.002)


def test_a_last_time_that_leaves_out_part_of_the_runs_causes_a_warning():
    short = pb.Run("b", "3", [1], [5.0], until=50, status=pb.Status.CUT)
    runs = pb.Runs.from_records([*RUNS, short], direction="minimize", clock="evaluations")
    with pytest.warns(pb.errors.DataWarning, match=r"until 50 evaluations.* 4 of 5 runs.* until="):
        assert aocc_data(runs, low=0.01, high=10).until == 50


def many_runs(first, final):
    """Pairs of values at times 1 and 10."""
    return pb.Runs.from_records(
        [
            pb.Run("ab"[k % 2], str(k // 2), [1, 10], [one, two], until=100)
            for k, (one, two) in enumerate(zip(first, final, strict=True))
        ],
        direction="minimize",
        clock="evaluations",
    )


def test_a_few_extreme_values_do_not_stretch_the_range():
    usual = many_runs([100.0] * 40, np.geomspace(1, 10, 40))
    assert ecdf_data(usual).scale == pytest.approx((1.06, 100.0, False), rel=0.1)
    first, final = [2.4e6, *[100.0] * 39], [6e-29, *np.geomspace(0.1, 10, 39)]
    with pytest.warns(
        pb.errors.DataWarning, match=r"log scale, and the values are from 6e-29 to 2\.4e"
    ):
        scale = ecdf_data(many_runs(first, final)).scale
    assert scale == pytest.approx((0.1, 100.0, True), rel=0.2)
    with pytest.warns(pb.errors.DataWarning, match="set low=, high= and log="):
        scale = ecdf_data(many_runs([100.0] * 40, [1e-29] * 40)).scale
    assert scale == pytest.approx((1e-8, 100.0, True))


def test_a_given_range_causes_no_warning(recwarn):
    ecdf_data(many_runs([100.0] * 4, [1e-29] * 4), low=1e-8, high=100)
    assert not recwarn.list


def test_the_difference_of_attainment_is_that_of_shares_of_runs():
    pytest.importorskip("moocore")
    attainment = eaf_difference_data(RUNS, "a", "b")
    values = {name: RUNS.filter(algorithms=[name]) for name in "ab"}
    for (t0, v0, t1, v1), difference in zip(
        attainment.rectangles, attainment.difference, strict=True
    ):
        time, value = (t0 + t1) / 2, (v0 + v1) / 2
        a, b = (np.mean(values[name].at([time]) <= value) for name in "ab")
        assert difference == pytest.approx(a - b), (time, value)
    turned = eaf_difference_data(flipped(RUNS), "a", "b")
    assert turned.rectangles[:, [1, 3]].max() == -attainment.rectangles[:, [1, 3]].min()


def run(name, repetition, value, until=10):
    """A run with a value at time 1, or one that crashed without a value."""
    if value is None:
        return pb.Run(name, "x", [], [], until, repetition, pb.Status.CRASHED)
    return pb.Run(name, "x", [1], [value], until, repetition, pb.Status.FINISHED)


def test_the_difference_of_attainment_is_of_what_both_ran_with_and_without_values():
    """Once, a run without a value or an uneven number of runs changed even the sign."""
    pytest.importorskip("moocore")

    def differ(first, second):
        records = [run("a", k, value) for k, value in enumerate(first)]
        records += [run("b", k, value) for k, value in enumerate(second)]
        runs = pb.Runs.from_records(records, direction="minimize")
        return eaf_difference_data(runs, "a", "b").difference.tolist()

    assert differ([5.0], [7.0, 7.0, 7.0]) == [1.0]
    assert differ([5.0] * 4, [7.0, 7.0, 7.0, None]) == [1.0]
    assert differ([5.0, None, 9.0], [5.0, 5.0, 6.0]) == pytest.approx([-1 / 3, -2 / 3])
    assert differ([5.0], [5.0]) == []
    with pytest.raises(pb.DataError, match="no run of 'a' or 'b' has a finite value"):
        differ([None], [None])


def test_an_empty_range_is_refused():
    with pytest.raises(pb.DataError, match="from 0 to 10 on a log scale are not a range"):
        ecdf_data(RUNS, low=0, high=10, log=True)


def test_shares_and_areas_are_those_of_iohinspector():
    inspector = pytest.importorskip("iohinspector")
    polars = pytest.importorskip("polars")
    runs = pb.read(EXAMPLE, direction="minimize", clock="evaluations")
    scale, until = (1e-2, 1e3, True), 3_000.0
    # iohinspector takes the first value for what holds from 0 on: say that nothing is attained.
    rows = [
        (k, float(time), min(max(value, scale[0]), scale[1]))
        for k, one in enumerate(runs)
        for time, value in zip([0, *one.time], [np.inf, *one.value], strict=True)
    ]
    table = polars.DataFrame(rows, schema=["data_id", "evaluations", "raw_y"], orient="row")
    table = inspector.transform_fval(table, *scale).with_columns(run="data_id")
    theirs = inspector.get_aocc(table, until, free_vars=["run"]).sort_values("run")["AOCC"]
    ours = aocc_data(runs, low=scale[0], high=scale[1], until=until)
    for k, values in enumerate(ours.values):
        np.testing.assert_allclose(values, theirs[runs.algorithm == k], rtol=1e-12)


def test_the_time_before_a_first_value_has_no_area():
    late = pb.Run("a", "1", [99], [0.0], until=100)
    later = pb.Run("a", "2", [150], [0.0], until=200)
    never = pb.Run("a", "3", [], [], until=100)
    again = pb.Run("a", "4", [0, 50], [0.5, 0.0], until=100)
    runs = pb.Runs.from_records([late, later, never, again], direction="minimize")
    areas = aocc_data(runs, low=0, high=1, log=False, until=100)
    assert areas.values[0] == pytest.approx([0.01, 0.0, 0.0, 0.75])


def test_the_error_for_a_missing_library_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "moocore", None)
    with pytest.raises(
        pb.errors.MissingDependency, match=r"pip install 'polarbear-race\[classical\]'"
    ):
        eaf_difference_data(RUNS, "a", "b")


def test_a_missing_library_is_reported_before_any_warning(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    uneven = [pb.Run("a", "x", [1], [2.0], 9), pb.Run("b", "x", [1], [3e9], 50)]
    runs = pb.Runs.from_records(uneven, direction="minimize")
    for draw in (pb.plots.ecdf, pb.plots.aocc):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(pb.errors.MissingDependency, match="matplotlib"):
                draw(runs)
