"""Targets: which run reaches a value first, compared with a literal twin."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polarbear as pb
from polarbear.data.targets import find_hitting_times
from polarbear.errors import DataError

VALUES = st.integers(0, 6)


@st.composite
def runs_and_targets(draw):
    """One instance, up to four runs with few distinct values and times, and three targets."""
    records = []
    for k in range(draw(st.integers(2, 4))):
        until = draw(st.integers(1, 8))
        time = draw(st.lists(st.integers(0, until), unique=True, max_size=4))
        value = [float(draw(VALUES)) for _ in time]
        status = draw(st.sampled_from([pb.Status.CUT, pb.Status.FINISHED]))
        records.append(pb.Run(f"a{k}", "i", sorted(time), value, until, status=status))
    goals = sorted(draw(st.lists(VALUES, min_size=3, max_size=3)), reverse=True)
    return records, [float(goal) for goal in goals]


def first_hit(run, goal):
    for time, value in zip(run.time, run.value, strict=True):
        if value <= goal:
            return float(time)
    return math.inf


@given(runs_and_targets())
def test_runs_are_ordered_as_by_the_literal_rule(case):
    """One is ahead if it reached the target, before the other did and before any run was cut."""
    records, goals = case
    runs = pb.Runs.from_records(records, direction="minimize")
    rankings = pb.rank(runs, targets=pb.targets.Targets([1, 2, 3], {"i": goals}))
    for level, goal in enumerate(goals):
        hits = [first_hit(run, goal) for run in records]
        cuts = [
            run.until
            for run, hit in zip(records, hits, strict=True)
            if math.isinf(hit) and run.status == pb.Status.CUT
        ]
        known = [hit if hit <= min(cuts, default=math.inf) else math.inf for hit in hits]
        for a, one in enumerate(known):
            for b, other in enumerate(known):
                ours = rankings.position[level]
                assert (ours[a] < ours[b]) == (one < other)
                assert (ours[a] == ours[b]) == (one == other)


@given(runs_and_targets(), st.sampled_from([np.exp, np.sqrt, lambda x: 3 * x - 7]))
def test_a_monotone_transformation_of_values_changes_nothing(case, transform):
    records, _ = case
    if not any(len(run.time) for run in records):
        return
    plain = pb.Runs.from_records(records, direction="minimize")
    changed = pb.Runs.from_records(
        [
            pb.Run(
                r.algorithm,
                r.instance,
                r.time,
                transform(np.array(r.value)),
                r.until,
                status=r.status,
            )
            for r in records
        ],
        direction="minimize",
    )
    first, second = (pb.rank(runs, targets=pb.targets.from_runs(runs)) for runs in (plain, changed))
    assert np.array_equal(first.position, second.position)


def test_both_directions_agree():
    rng = np.random.default_rng(1)
    value = rng.random((8, 5)).cumsum(axis=1)[:, ::-1]
    time = np.arange(5)
    names = [("a" if k % 2 else "b", str(k // 2)) for k in range(8)]
    down = pb.Runs.from_records(
        [pb.Run(*name, time, v, 9) for name, v in zip(names, value, strict=True)],
        direction="minimize",
    )
    up = pb.Runs.from_records(
        [pb.Run(*name, time, -v, 9) for name, v in zip(names, value, strict=True)],
        direction="maximize",
    )
    by_runs = [pb.rank(runs, targets=pb.targets.from_runs(runs)).position for runs in (down, up)]
    assert np.array_equal(*by_runs)
    low = pb.targets.from_optima(0.0, down, gaps=[3, 1, 0.3])
    high = pb.targets.from_optima(0.0, up, gaps=[3, 1, 0.3])
    assert np.array_equal(find_hitting_times(down, low), find_hitting_times(up, high))


def test_shares_are_missed_by_that_share():
    """Of the values at all times, the stated share is worse than the target."""
    runs = pb.example()
    targets = pb.targets.from_runs(runs, shares=[20, 50, 90])
    times = pb.grid.from_runs(runs, 50)
    for code, name in enumerate(runs.instances[:5]):
        values = runs.at(times)[runs.instance == code]
        for share, goal in zip([0.2, 0.5, 0.9], targets.values[name], strict=True):
            assert np.mean(values > goal) <= share <= np.mean(values >= goal)


@given(runs_and_targets(), st.sampled_from([1, 2, 10]))
def test_running_times_are_those_of_the_definition(case, penalty):
    records, goals = case
    runs = pb.Runs.from_records(
        [run._replace(algorithm="ab"[k % 2], repetition=k) for k, run in enumerate(records)],
        direction="minimize",
    )
    found = pb.targets.running_times(runs, pb.targets.Targets([1, 2, 3], {"i": goals}), penalty)
    for t, goal in enumerate(goals):
        for k in range(2):
            own = records[k::2]
            hits = [first_hit(run, goal) for run in own]
            reached = [hit for hit in hits if hit < math.inf]
            rest = [run.until for run, hit in zip(own, hits, strict=True) if hit == math.inf]
            ert = (sum(reached) + sum(rest)) / len(reached) if reached else math.inf
            assert found.reached[t, k] == pytest.approx(len(reached) / len(own))
            assert found.expected[t, k] == pytest.approx(ert)
            par = (sum(reached) + penalty * sum(rest)) / len(own)
            assert found.penalised[t, k] == pytest.approx(par)
    assert f"PAR{penalty}" in str(found)


def test_a_fit_at_targets_says_so():
    posterior = pb.fit(pb.rank(pb.example(), targets=pb.targets.from_runs(pb.example())))
    said = str(posterior.verdict(0.95))
    assert "from 90 to 98 % targets" in said
    assert "in the any-target Pareto set" in said


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda _: pb.targets.Targets([1, 2], {"i": [3.0]}), "expected 2 numbers"),
        (lambda _: pb.targets.Targets([1], {"j": [3.0]}), "no targets for instance 'i'"),
        (lambda _: pb.targets.Targets([1, 2], {"i": [1.0, 2.0]}), "the easiest first"),
        (lambda runs: pb.targets.from_runs(runs, shares=[120]), "percentages from 0 to 100"),
        (lambda runs: pb.targets.from_optima(0.0, runs, gaps=[0]), "positive numbers"),
    ],
)
def test_what_cannot_be_is_refused(make, message):
    runs = pb.Runs.from_records([pb.Run("a", "i", [1], [2.0], 3)], direction="minimize")
    with pytest.raises(DataError, match=message):
        pb.rank(runs, targets=make(runs))
    with pytest.raises(DataError, match="at times or at targets"):
        pb.rank(runs, [1], targets=pb.targets.Targets([1], {"i": [2.0]}))


def test_targets_at_gaps_are_labelled_by_their_gaps(tmp_path):
    """The difficulty of a gap of 1e-8 is 1e8, and nobody asked for that number."""
    runs = pb.example()
    targets = pb.targets.from_optima(0.0, runs, gaps=[10, 1, 1e-8])
    table = str(pb.targets.running_times(runs, targets))
    assert table.splitlines()[-1].startswith("1e-08 precision target")
    posterior = pb.fit(pb.rank(runs, targets=targets))
    assert "at 3 targets, 10 to 1e-08 precision targets" in str(posterior)
    assert "at 1e-08 precision target" in str(posterior.verdict(0.95))
    assert r"{\num{1e-08}}" in pb.papers.to_latex(posterior)
    axis = pb.plots.ratings(posterior).xaxis
    assert axis.get_major_formatter()(1e8, 0) == "1e-08"
    pb.report(posterior, tmp_path / "report.html")
    assert '"digits":"reciprocal"' in (tmp_path / "report.html").read_text().replace(" ", "")


def test_a_target_is_missed_by_the_share_that_it_says():
    """Once, 100 - 98 % of 50 values were two of them by rounding, in place of one."""
    values = np.arange(50.0, 0.0, -1.0)
    runs = pb.Runs.from_records([pb.Run("a", "x", range(1, 51), values, 50)], direction="minimize")
    levels = [2, 10, 50, 90, 98]
    found = pb.targets.from_runs(runs, levels).values["x"]
    missed = [100 * np.mean(values > target) for target in np.asarray(found)]
    assert missed == levels
