"""Schedules against a literal search, on held-out truth, and as algorithms of their own."""

from itertools import permutations

import numpy as np
import pytest

import polarbear as pb
from polarbear.selection.schedules import RunTable, Schedule, Search, find_rows

LAST = 100.0


def solve_at_random(n, seed, fails=(0.5, 0.2, 0.4), mean=(2.0, 40.0, 10.0)):
    """Return runs that solve an instance at a random time, or never."""
    rng = np.random.default_rng(seed)
    found = []
    for k in range(n):
        hard = rng.exponential(1.0)
        for a, (fail, scale) in enumerate(zip(fails, mean, strict=True)):
            time = hard * rng.exponential(scale)
            solved = time < LAST and rng.random() > fail
            at, value = ([time], [0.0]) if solved else ([], [])
            found.append(pb.Run(f"a{a}", f"i{k}", at, value, LAST, status=pb.Status.CUT))
    return pb.Runs.from_records(found, direction="minimize", clock="seconds")


def score_literally(runs, steps, score, budgets):
    """Return the score of a schedule on each instance, run by run as one would carry it out."""
    values = []
    for name in runs.instances:
        own = {run.algorithm: run for run in runs.filter(instances=[name])}
        marks = []
        for budget in budgets:
            best, solved, start = np.inf, np.inf, 0.0
            for who, until in steps:
                for time, value in zip(own[who].time, own[who].value, strict=True):
                    if start + time <= min(until, budget):
                        best, solved = min(best, value), min(solved, start + time)
                start = until
            if score == "solved":
                marks.append(float(np.isfinite(solved)))
            elif score == "par10":
                marks.append(-(solved / budget if np.isfinite(solved) else 10.0))
            else:
                others = [
                    min(
                        (v for t, v in zip(o.time, o.value, strict=True) if t <= budget),
                        default=np.inf,
                    )
                    for o in own.values()
                ]
                marks.append(np.mean([(best < o) + (best == o) / 2 for o in others]))
        values.append(marks)
    return np.array(values)


@pytest.mark.parametrize("score", ["solved", "par10", "wins"])
def test_two_steps_are_the_best_of_all_by_a_literal_search(score):
    runs = solve_at_random(8, 3) if score != "wins" else pb.example("cma-variants")
    if score == "wins":
        runs = runs.filter(algorithms=runs.algorithms[:3], instances=runs.instances[:4])
    budget = None if score == "wins" else 60.0
    table = RunTable.of(runs, budget, score, None)
    grid = pb.grid.from_runs(runs, 20) if budget is None else np.array([budget])
    budgets = grid[table.preference.weights(grid, runs.clock) > 0]
    marks = [
        score_literally(runs, ((a, s), (b, np.inf)), score, budgets).mean(axis=0)
        for a, b in permutations(runs.algorithms, 2)
        for s in table.splits.tolist()
    ]
    best = float(np.max(np.array(marks) @ table.weights))
    search = Search(table, 0)
    steps = search._find_pairs()[-1]
    assert search._evaluate(steps) @ search.training[:, -1] == pytest.approx(best)


def test_more_steps_are_never_worse_on_the_data_they_were_chosen_on():
    table = RunTable.of(solve_at_random(60, 1), LAST, "solved", None)
    search = Search(table, 0)
    steps = search._find_pairs()[-1]
    more = search._extend(steps, -1)
    assert len(more) in (2, 3)
    assert search._evaluate(more) @ search.training[:, -1] >= (
        search._evaluate(steps) @ search.training[:, -1]
    )


def test_the_curve_of_a_schedule_has_the_score_that_was_searched():
    runs = solve_at_random(80, 2)
    found = pb.selection.schedule(runs, LAST, score="solved")
    own = found.add_to(runs, "both").filter(algorithms=["both"])
    literal = score_literally(runs, found.steps, "solved", [LAST])
    assert np.isfinite(own.at([LAST])).mean() == pytest.approx(literal.mean())
    both = found.add_to(runs, "both")
    assert "both" in pb.rank(both).algorithms
    colours = {style.colour for style in pb.plots.Cast.of(both.algorithms).styles().values()}
    assert len(colours) == len(both.algorithms) == 4  # its own


def test_its_words_and_its_file(tmp_path):
    found = pb.selection.schedule(solve_at_random(200, 5), LAST, score="par10")
    assert found.is_worth_it
    assert str(found).startswith(f"run {found.steps[0][0]} until ")
    found.save(tmp_path / "schedule.json")
    assert Schedule.load(tmp_path / "schedule.json") == found


def test_one_family_of_optimisers_needs_no_schedule():
    found = pb.selection.schedule(pb.example("cma-variants"))
    assert not found.is_worth_it
    assert str(found).startswith(f"run {found.single}: no schedule is worth it")


@pytest.mark.parametrize("score", ["solved", "par10"])
def test_the_stated_gain_is_not_flattering(score):
    """By chance one of many schedules of equal algorithms looks good; held out, none does."""
    equal = {"fails": (0.4,) * 6, "mean": (20.0,) * 6}
    truth = solve_at_random(4000, 99, **equal)
    stated, true = [], []
    for seed in range(20):
        found = pb.selection.schedule(solve_at_random(40, seed, **equal), LAST, score=score)
        stated.append(found.gain[0])
        marks = [
            score_by_rows(truth, steps, score) for steps in (found.steps, ((found.single, np.inf),))
        ]
        true.append(marks[0] - marks[1])
    optimism = np.subtract(stated, true)
    assert optimism.mean() <= 2.5 * optimism.std(ddof=1) / np.sqrt(len(optimism))


def score_by_rows(runs, steps, score):
    table = RunTable.of(runs, LAST, score, None)
    code = {name: k for k, name in enumerate(table.algorithms)}
    return float(Search(table, 0)._evaluate(tuple((code[a], t) for a, t in steps)).mean())


def test_a_schedule_joins_runs_whose_repetitions_have_other_numbers():
    records = [
        pb.Run(name, "x", [at], [value + seed], 9, repetition=10 * at + seed)
        for name, at, value in (("a", 1, 5.0), ("b", 3, 2.0))
        for seed in (1, 2)
    ]
    runs = pb.Runs.from_records(records, direction="minimize")
    steps, unknown = (("a", 2.0), ("b", np.inf)), (0.0, 0.0, 0.0)
    own = Schedule(steps, "a", 0.5, unknown, unknown[:2], "wins", "any budget", "time")
    own = own.add_to(runs, "both").filter(algorithms=["both"])
    assert [one.time.tolist() for one in own] == [[1, 5], [1, 5]]
    assert [one.value.tolist() for one in own] == [[6, 3], [7, 4]]


def test_what_is_asked_is_checked():
    runs = solve_at_random(10, 0)
    with pytest.raises(pb.DataError, match="at least 2 algorithms"):
        pb.selection.schedule(runs, steps=1)
    with pytest.raises(pb.DataError, match="one of wins, solved, par10"):
        pb.selection.schedule(runs, score="best")  # pyright: ignore[reportArgumentType]
    with pytest.raises(pb.DataError, match="needs one budget"):
        pb.selection.schedule(runs, score="par10")
    with pytest.raises(pb.DataError, match="share 3 instances"):
        pb.selection.schedule(runs.filter(instances=runs.instances[:3]))
    assert find_rows(runs).shape == (3, 10)


def test_value_of_time_counts_improvements():
    found = [
        pb.Run("a", f"i{k}", [1, 10 + 10 * k, 90], [9.0, 5.0, 5.0 - 0.01 * k], 100)
        for k in range(8)
    ]
    runs = pb.Runs.from_records(found, direction="minimize")
    runs = pb.Runs.concat(
        [
            runs,
            pb.Runs.from_records(
                [one._replace(algorithm="b") for one in found], direction="minimize"
            ),
        ]
    )
    value = pb.selection.value_of_time(runs, "a", tolerance=0.1)
    for at, budget in enumerate(value.budgets):
        doubled = [budget < 10 + 10 * k <= 2 * budget for k in range(8)]
        assert value.improves[at, 0] == pytest.approx(np.mean(doubled))
    assert value.enough(1.0) == value.budgets[0]
    assert "a" in str(value)


def test_its_intervals_cover_the_truth():
    """Runs improve once, at a random time: the share that improves is known."""
    rng, covered = np.random.default_rng(0), []
    for _ in range(60):
        found = [
            pb.Run("ab"[a], f"i{k}", [1.0, at], [9.0, 5.0], 100.0)
            for k in range(40)
            for a, at in enumerate(rng.uniform(1.0, 100.0, 2))
        ]
        value = pb.selection.value_of_time(pb.Runs.from_records(found, direction="minimize"), "a")
        truth = value.budgets / 99.0  # uniform times, of which (b, 2 b] are an interval
        inside = (value.improves[:, 1] <= truth) & (truth <= value.improves[:, 2])
        covered.append(inside[-4:].mean())
    assert np.mean(covered) == pytest.approx(0.95, abs=0.04)
