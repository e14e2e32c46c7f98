"""Values that are more than one number, and values that are not the best so far."""

import io
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import polarbear as pb
from polarbear.data.levels import decode_violations, encode_violations
from polarbear.errors import DataError

SMALL = st.integers(-2, 2)


@st.composite
def tables(draw, columns=("hard", "soft")):
    """Rows of three runs on one instance: times, and few distinct values in each column."""
    rows = [
        {"algorithm": f"a{k}", "instance": "i", "time": time, **{c: draw(SMALL) for c in columns}}
        for k in range(3)
        for time in sorted(draw(st.sets(st.integers(0, 5), min_size=1, max_size=4)))
    ]
    return {name: [row[name] for row in rows] for name in rows[0]}


def rows_of(table, algorithm, time):
    rows = [dict(zip(table, cells, strict=True)) for cells in zip(*table.values(), strict=True)]
    own = [row for row in rows if row["algorithm"] == algorithm and row["time"] <= time]
    return sorted(own, key=lambda row: row["time"])


def assert_order(rankings, costs_at):
    """Check positions against a cost, or a tuple of costs, of each algorithm at each time."""
    for position, time in zip(rankings.position, rankings.times, strict=True):
        costs = [costs_at(name, time) for name in rankings.algorithms]
        assert position.tolist() == [sum(other < cost for other in costs) for cost in costs]


@settings(max_examples=40)
@given(tables())
def test_levels_order_runs_as_tuples_do(table):
    runs = pb.Runs.from_frame(
        table, direction=("maximize", "minimize"), value=("hard", "soft"), until=6
    )

    def best(name, time):
        tuples = [(-row["hard"], row["soft"]) for row in rows_of(table, name, time)]
        return min(tuples, default=(math.inf, math.inf))

    assert_order(pb.rank(runs, [0, 1, 2, 4, 6]), best)
    single = [runs.filter(algorithms=[name]) for name in runs.algorithms]
    assert pb.Runs.concat(single) == runs
    file = io.BytesIO()
    runs.to_parquet(file)
    assert pb.Runs.from_parquet(file) == runs
    text = io.StringIO()
    runs.to_csv(text)
    assert "hard,soft" in text.getvalue()


@settings(max_examples=40)
@given(tables(("value", "violation")), st.sampled_from(["minimize", "maximize"]))
def test_feasible_values_come_first(table, direction):
    table["violation"] = [max(v, 0) for v in table["violation"]]
    runs = pb.Runs.from_frame(table, direction=direction, violation="violation", until=6)
    sign = 1 if direction == "minimize" else -1

    def best(name, time):
        rows = rows_of(table, name, time)
        costs = [(r["violation"], 0 if r["violation"] else sign * r["value"]) for r in rows]
        return min(costs, default=(math.inf, 0))

    assert_order(pb.rank(runs, [0, 1, 2, 4, 6], rel_tol=0.0), best)
    shown = runs.feasible().at([6])[:, 0]
    assert [value == runs.worst for value in shown] == [best(n, 6)[0] > 0 for n in runs.algorithms]


POSITIVE = st.floats(min_value=5e-324, allow_nan=False, allow_infinity=False)


@given(POSITIVE, POSITIVE, st.floats(-1e300, 1e300))
def test_violations_keep_their_order_and_their_size(a, b, objective):
    low, high = sorted((a, b))
    first, second = encode_violations([0.0, 0.0], [low, high])
    assert objective < first <= second < math.inf
    assert first < second or high <= low * (1 + 2**-44) or high < 1e-307
    assert decode_violations([second])[0] == pytest.approx(high, rel=1e-13, abs=1e-321)


@settings(max_examples=40)
@given(tables(("value", "choice")))
def test_latest_and_chosen_values(table):
    options = {"direction": "minimize", "until": 6}
    latest = pb.Runs.from_frame(table, best_so_far=False, **options)
    chosen = pb.Runs.from_frame(table, chosen_by="choice", **options)
    for k, name in enumerate(latest.algorithms):
        for time in (0, 1, 2, 3, 6):
            rows = rows_of(table, name, time)
            newest = rows[-1]["value"] if rows else math.inf
            best = min(rows, key=lambda row: row["choice"], default={"value": math.inf})
            assert latest.at([time])[k, 0] == newest
            assert chosen.at([time])[k, 0] == best["value"]
    file = io.BytesIO()
    latest.to_parquet(file)
    assert pb.Runs.from_parquet(file) == latest
    assert pb.Runs.concat([latest.filter(algorithms=[n]) for n in latest.algorithms]) == latest


def overfitting():
    """Two learners on 20 tasks: one is better early and then overfits."""
    rng = np.random.default_rng(3)
    rows = []
    for task in range(20):
        for name, values in (("steady", [6, 4, 3]), ("hasty", [4, 1, 5])):
            rows += [
                (name, task, t, v + rng.normal(0, 0.2))
                for t, v in zip((1, 2, 3), values, strict=True)
            ]
    columns = zip(*rows, strict=True)
    return dict(zip(("algorithm", "instance", "time", "value"), columns, strict=True))


def test_the_order_is_stated_where_it_changes_a_conclusion(tmp_path):
    table = overfitting()
    best = pb.fit(pb.Runs.from_frame(table, direction="minimize"), times=[1, 2, 3])
    runs = pb.Runs.from_frame(table, direction="minimize", best_so_far=False)
    latest = pb.fit(runs, times=[1, 2, 3])
    assert best.pareto(0.95) == ("hasty",)
    assert latest.pareto(0.95) == ("hasty", "steady")
    said = "the latest value of each run"
    assert "latest values" in str(runs)
    for text in (
        str(pb.rank(runs)),
        str(latest.verdict()),
        pb.papers.describe_methods(latest),
        str(latest),
    ):
        assert said in text
    assert said not in str(best.verdict())
    latest.save(tmp_path / "latest.zip")
    assert said in str(pb.Posterior.load(tmp_path / "latest.zip").verdict())


def test_what_levels_cannot_do():
    table = {
        "algorithm": ["a", "b"],
        "instance": ["i", "i"],
        "time": [1, 1],
        "h": [0, -1],
        "s": [2, 3],
    }
    runs = pb.Runs.from_frame(table, direction="maximize", value=("h", "s"))
    with pytest.raises(DataError, match=r"losses needs one value.*runs.level\('s'\)"):
        pb.losses(runs, [1])
    with pytest.raises(DataError, match="a tolerance needs one value"):
        pb.rank(runs, abs_tol=0.1)
    with pytest.raises(DataError, match="2 levels of values .* need a direction each"):
        pb.Runs.from_frame(table, direction=("maximize",), value=("h", "s"))
    with pytest.raises(DataError, match="violation must be a number of at least 0"):
        pb.Runs.from_frame(table, direction="minimize", value="s", violation="h")
    with pytest.raises(DataError, match="cannot concatenate"):
        pb.Runs.concat([runs, runs.level("s").filter(algorithms=["a"])])
    assert pb.losses(runs.level("s"), [1]).values.tolist() == [[[1.0], [0.0]]]


SCORES = ("hard", "soft")


def test_records_with_levels_keep_the_latest_values():
    record = pb.Run("a", "x", [1, 2], [(0, 5), (-1, 9)], 9)
    runs = pb.Runs.from_records(
        [record], direction="maximize", levels=SCORES, best_so_far=False, clock="seconds"
    )
    assert not runs.best_so_far
    assert runs.level("hard").at([1, 2]).tolist() == [[0, -1]]
    best = pb.Runs.from_records([record], direction="maximize", levels=SCORES)
    assert best.level("hard").at([1, 2]).tolist() == [[0, 0]]


def test_records_with_levels_keep_their_bounds():
    records = [pb.Run(name, "x", [1, 2], [(-3, 5), (-1, 9)], 9) for name in "ab"]
    bounds = [one._replace(time=[0, 3], value=[(0, 50), (0, 20)]) for one in records]
    directions = ("maximize", "minimize")
    runs = pb.Runs.from_records(records, direction=directions, levels=SCORES, bounds=bounds)
    assert runs.bounds.levels.directions == ("minimize", "maximize")
    soft = runs.level("soft")
    assert (soft.direction, soft.bounds.direction) == ("minimize", "maximize")
    assert soft.bounds.at([2, 4]).tolist() == [[50, 50]] * 2
    known, unknown = runs.filter(algorithms=["a"]), runs.filter(algorithms=["b"])
    both = pb.Runs.concat([known, replace(unknown, bounds=None)])
    assert both.level("soft").bounds.at([2]).tolist() == [[50], [-np.inf]]
    assert pb.Runs.concat([known, unknown]) == runs
    with pytest.raises(DataError, match="a figure of bounds needs one value"):
        pb.plots.gaps_data(runs)


def test_levels_of_records_are_checked():
    with pytest.raises(DataError, match="levels hard, soft: expected at least one run"):
        pb.Runs.from_records([], direction="maximize", levels=SCORES)
    record = pb.Run("a", "x", [1, 2], [(1, 2, 3), (1, 2, 3)], 9)
    message = r"a on x \(repetition 0\): expected a tuple with the levels hard, soft for each of 2"
    with pytest.raises(DataError, match=message):
        pb.Runs.from_records([record], direction="maximize", levels=SCORES)


def test_runs_in_different_orders_are_not_concatenated():
    parts = [
        pb.Runs.from_records([pb.Run(name, "x", [1], [2.0], 9)], direction="minimize")
        for name in "abc"
    ]
    stated = [replace(part, stated_order="hypervolume") for part in parts]
    assert pb.Runs.concat(stated).order_by == "hypervolume"
    with pytest.raises(DataError, match="by hypervolume and by the value of each run: give"):
        pb.Runs.concat([stated[0], parts[1]])
    with pytest.raises(DataError, match="ordered by hypervolume and by time: give"):
        pb.Runs.concat([*stated[:2], replace(parts[2], stated_order="time")])
