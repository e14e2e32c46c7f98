import math
import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import reference
from polarbear import DataError, Run, Runs, rank
from polarbear.data import rankings as module
from polarbear.data.positions import compute_positions, keep_top
from polarbear.data.rankings import form_comparisons
from strategies import DIRECTIONS, GRIDS, VALUES, records

TOLERANCES = st.sampled_from([(0.0, 0.0), (1.0, 0.0), (0.0, 1e-6), (0.5, 0.5)])


def as_sets(rankings):
    """All rankings by instance and time, with ties in any order."""
    return {
        (name, float(t)): [[frozenset(tie) for tie in order] for order in rankings.order(name, t)]
        for name in rankings.instances
        for t in rankings.times
    }


@pytest.mark.slow
@given(records(), GRIDS, DIRECTIONS, TOLERANCES)
def test_ranks_agree_with_their_slow_twin(recorded, times, direction, tolerances):
    abs_tol, rel_tol = tolerances
    runs = Runs.from_records(recorded, direction=direction)
    ours = as_sets(rank(runs, times, abs_tol=abs_tol, rel_tol=rel_tol))
    slow = reference.rankings([*runs], times, direction, abs_tol, rel_tol)
    assert ours == {
        key: [[frozenset(tie) for tie in order] for order in orders] for key, orders in slow.items()
    }


@pytest.mark.slow
@given(records(), GRIDS)
def test_work_in_small_pieces_changes_nothing(recorded, times):
    runs = Runs.from_records(recorded, direction="minimize")
    whole = rank(runs, times)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_CHUNK_CELLS", 3)
        assert rank(runs, times) == whole


@given(records(), GRIDS, DIRECTIONS, st.randoms(use_true_random=False))
def test_renaming_algorithms_and_instances_renames_the_result(recorded, times, direction, rng):
    algorithms, instances = list("abcde"), ["i2", "i10", "x"]
    new_algorithm = dict(zip(algorithms, rng.sample(algorithms, 5), strict=True))
    new_instance = dict(zip(instances, rng.sample(instances, 3), strict=True))
    renamed = [
        run._replace(algorithm=new_algorithm[run.algorithm], instance=new_instance[run.instance])
        for run in recorded
    ]
    before = as_sets(rank(Runs.from_records(recorded, direction=direction), times))
    after = as_sets(rank(Runs.from_records(renamed, direction=direction), times))
    assert after == {
        (new_instance[instance], t): [
            [frozenset(new_algorithm[name] for name in tie) for tie in order] for order in orders
        ]
        for (instance, t), orders in before.items()
    }


@given(records(), GRIDS, DIRECTIONS, st.randoms(use_true_random=False))
def test_a_monotone_change_of_values_per_instance_changes_nothing(recorded, times, direction, rng):
    finite = [-1e308, -1.0, 0.0, 5e-324, 1.0, 1.0 + 1e-9, 2.0, 1e308]
    change = {}
    for instance in ("i2", "i10", "x"):
        new = sorted(rng.sample(range(-1000, 1000), len(finite)))
        change[instance] = dict(zip(finite, map(float, new), strict=True))
    changed = [
        run._replace(value=[change[run.instance].get(v, v) for v in run.value]) for run in recorded
    ]
    before = rank(Runs.from_records(recorded, direction=direction), times)
    assert rank(Runs.from_records(changed, direction=direction), times) == before


@given(records(), GRIDS, GRIDS, DIRECTIONS)
def test_a_finer_grid_keeps_the_old_columns(recorded, times, more, direction):
    runs = Runs.from_records(recorded, direction=direction)
    coarse, fine = rank(runs, times), rank(runs, sorted({*times, *more}))
    assert_array_equal(fine.position[np.isin(fine.times, times)], coarse.position)


@given(records(), GRIDS)
def test_maximising_is_minimising_the_negative(recorded, times):
    negative = [run._replace(value=[-v for v in run.value]) for run in recorded]
    ours = rank(Runs.from_records(recorded, direction="minimize"), times)
    assert rank(Runs.from_records(negative, direction="maximize"), times) == ours


@given(st.lists(st.one_of(VALUES, st.just(math.nan)), min_size=1, max_size=9))
def test_a_position_counts_those_ahead(values):
    expected = [-1 if math.isnan(v) else sum(w < v for w in values) for v in values]
    assert compute_positions(np.array(values)).tolist() == expected


def compared(*runs, **options):
    return rank(Runs.from_records(runs, direction="minimize"), [1], **options)


def run(algorithm, value, instance="i", repetition=0):
    return Run(algorithm, instance, [1], [value], 1, repetition)


class TestRepetitions:
    def test_same_numbers_are_compared_with_each_other(self):
        """And whoever lacks a number takes part with its other runs in turn."""
        rankings = compared(
            run("a", 1, repetition=0), run("a", 4, repetition=1), run("b", 3, repetition=1)
        )
        assert rankings.order("i", 1) == [[("a",), ("b",)], [("b",), ("a",)]]

    def test_different_seeds_are_compared_in_their_order(self):
        rankings = compared(
            run("a", 1, repetition=10), run("a", 4, repetition=11), run("b", 3, repetition=77)
        )
        assert rankings.order("i", 1) == [[("a",), ("b",)], [("b",), ("a",)]]

    def test_shared_numbers_stay_together_whoever_else_takes_part(self):
        runs = [run("a", 10 * k, repetition=k) for k in (0, 1, 2)]
        runs += [run("b", 10 * k + 1, repetition=k) for k in (1, 2, 3)]
        alone = compared(*runs)
        third = compared(*runs, *[run("c", 99, repetition=k) for k in range(4)])
        for rankings in (alone, third):
            assert_allclose(rankings.win_rate("a", "b"), 1.0)

    def test_repetitions_share_the_weight_of_their_instance(self):
        runs = [run("a", 1, repetition=k) for k in range(4)] + [run("a", 1, instance="j")]
        rankings = compared(*runs)
        assert_allclose(rankings.weight, [0.25] * 4 + [1.0])
        assert_allclose(np.bincount(rankings.instance, rankings.weight), [1.0, 1.0])

    def test_unequal_repetitions_do_not_make_an_instance_count_less(self):
        many = [run("a", 1, repetition=k) for k in range(10)] + [run("b", 2)]
        other = [run("a", 2, instance="j"), run("b", 1, instance="j")]
        assert_allclose(compared(*many, *other).win_rate("a", "b"), 0.5)

    def test_a_repetition_that_was_cut_does_not_make_its_instance_count_less(self):
        cut = [Run(a, "i", [1], [v], 1, 1) for a, v in (("a", 1), ("b", 2))]
        runs = [Run("a", "i", [1], [1], 9), Run("b", "i", [1], [2], 9), *cut]
        runs += [Run("a", "j", [1], [2], 9), Run("b", "j", [1], [1], 9)]
        rankings = rank(Runs.from_records(runs, direction="minimize"), [1, 5])
        assert_allclose(rankings.win_rate("a", "b"), [0.5, 0.5])

    def test_runs_go_round_evenly(self):
        few = [run("a", 1, repetition=k) for k in (1, 3, 5, 7)]
        recorded = Runs.from_records(
            [*few, *[run("b", 2, repetition=k) for k in range(8)]], direction="minimize"
        )
        entries = form_comparisons(recorded, in_turn=True).run
        assert np.bincount(entries[recorded.algorithm[entries] == 0])[:4].tolist() == [2, 2, 2, 2]

    def test_a_seed_that_two_share_by_chance_does_not_multiply_comparisons(self):
        runs = [run("a", 1, repetition=k) for k in range(1, 11)]
        runs += [run("b", 2, repetition=k) for k in (10, *range(100, 109))]
        assert len(compared(*runs).instance) == 19
        runs += [run("c", 3, repetition=k) for k in range(1000, 1010)]
        assert len(compared(*runs).instance) == 10

    def test_or_count_one_by_one_if_runs_are_the_unit(self):
        runs = [run("a", 1, repetition=k) for k in range(3)] + [run("b", 2, repetition=1)]
        rankings = compared(*runs, unit="run")
        assert rankings.instances == tuple(f"i, comparison {k}" for k in range(3))
        assert_allclose(rankings.weight, 1.0)
        lone = [rankings.order(name, 1) for name in rankings.instances]
        assert lone == [[[("a",)]], [[("a",), ("b",)]], [[("a",)]]]
        with pytest.raises(DataError, match="unit must be"):
            compared(run("a", 1), unit="seed")


def test_weights_by_instance():
    runs = [run("a", 1), run("b", 2), run("a", 2, instance="j"), run("b", 1, instance="j")]
    rankings = compared(*runs, weights={"j": 3.0})
    assert rankings.weight.tolist() == [1.0, 3.0]
    assert rankings.win_rate("a", "b").tolist() == [0.25]
    for wrong in (-1.0, math.nan, math.inf):
        with pytest.raises(
            DataError, match=f"weight of instance 'j': expected a number >= 0, got {wrong}"
        ):
            compared(*runs, weights={"j": wrong})
    with pytest.raises(DataError, match="no instance named 'k'"):
        compared(*runs, weights={"k": 1.0})


def test_win_rates_count_ties_half_and_only_what_is_known():
    runs = Runs.from_records(
        [
            Run("a", "i", [1], [1], 1), Run("b", "i", [1], [1], 5),
            Run("a", "j", [1, 2], [3, 1], 5), Run("b", "j", [1], [2], 5),
            Run("c", "j", [9], [2], 9),
        ],
        direction="minimize",
    ).read_as("cut")  # fmt: skip
    rankings = rank(runs, [1, 2, 9])
    assert_allclose(rankings.win_rate("a", "b"), [0.25, 1.0, math.nan])
    assert_allclose(rankings.win_rate("b", "a"), [0.75, 0.0, math.nan])
    with pytest.raises(DataError, match="no algorithm named 'z'"):
        rankings.win_rate("a", "z")


def test_tolerance_ties_with_the_best_of_a_group_not_in_a_chain():
    rankings = compared(
        *[run(name, v) for name, v in zip("abc", [1.0, 1.4, 1.8], strict=True)], abs_tol=0.5
    )
    assert rankings.order("i", 1) == [[("a", "b"), ("c",)]]
    for wrong in ({"abs_tol": -1}, {"abs_tol": math.nan}, {"rel_tol": 1.0}):
        with pytest.raises(DataError, match="tolerances"):
            compared(run("a", 1), **wrong)


def test_no_value_yet_ranks_last_and_tied():
    runs = Runs.from_records(
        [Run("a", "i", [5], [1], 9), Run("b", "i", [9], [1], 9), Run("c", "i", [1], [7], 9)],
        direction="minimize",
    )
    rankings = rank(runs, [1, 5])
    assert rankings.order("i", 1) == [[("c",), ("a", "b")]]
    assert rankings.order("i", 5) == [[("a",), ("c",), ("b",)]]
    with pytest.raises(DataError, match="2 is not a time of the grid: the nearest is 1; rank"):
        rankings.order("i", 2)


def test_a_thousand_algorithms_that_each_ran_on_few_instances_stay_small():
    rng = random.Random(3)
    recorded = [
        Run(f"a{k}", f"i{i}", [1, 2], [rng.random() + 1, rng.random()], 2)
        for i in range(500)
        for k in rng.sample(range(1000), 20)
    ]
    rankings = rank(Runs.from_records(recorded, direction="minimize"), [1, 2])
    assert rankings.position.shape == (2, 10_000)
    assert rankings.position.dtype == np.int8
    assert set(np.diff(rankings.offset)) == {20}


def test_more_algorithms_than_a_byte_counts():
    rankings = compared(*[run(f"a{k}", k) for k in range(300)])
    assert rankings.position.dtype == np.int16
    assert sorted(rankings.position[0].tolist()) == list(range(300))


def test_what_it_says_of_itself():
    rankings = compared(run("a", 1), run("b", 2))
    assert str(rankings) == (
        "1 comparison of 2 algorithms on 1 instance\n"
        "  algorithms  a, b\n"
        "  rankings    at 1\n"
        "  known       100% of positions"
    )


@given(st.lists(st.integers(0, 5), min_size=1, max_size=7), st.integers(1, 8))
def test_only_the_first_are_ordered(costs, top):
    """One is ahead if it was ahead before, and fewer than ``top`` are ahead of it."""
    plain = compute_positions(np.array(costs, dtype=float))
    kept = keep_top(plain, top)
    for a, before in enumerate(plain):
        for b, other in enumerate(plain):
            assert (kept[a] < kept[b]) == (before < other and before < top)
    assert (kept == [np.count_nonzero(kept < place) for place in kept]).all()


def test_rank_takes_the_first_only():
    rows = {
        "algorithm": list("abcd"),
        "instance": ["i"] * 4,
        "time": [1] * 4,
        "value": [4, 3, 2, 1],
    }
    runs = Runs.from_frame(rows, direction="minimize", until=2)
    assert rank(runs, [1], top=2).order("i", 1) == [[("d",), ("c",), ("a", "b")]]
    with pytest.raises(DataError, match="top=0: expected a whole number of at least 1"):
        rank(runs, [1], top=0)


def ranked_at(times, *instances, **options):
    """Rankings of two algorithms on instances, at the times given."""
    recorded = [Run(name, i, [1], [k], 9) for k, name in enumerate("ab") for i in instances]
    return rank(Runs.from_records(recorded, direction="minimize"), times, **options)


def test_rankings_at_other_times_are_not_joined():
    message = r"at different times, 1, 2 and 1, 3: pass the same times to both calls"
    with pytest.raises(DataError, match=message):
        ranked_at([1, 2], "x").join(ranked_at([1, 3], "y"))


def test_an_instance_does_not_count_twice_in_joined_rankings():
    first, second = ranked_at([1], "x", "y"), ranked_at([1], "y", "z")
    with pytest.raises(DataError, match=r"would count twice: y; rank\(Runs.concat\(\[a, b\]\)\)"):
        first.join(second)
    with pytest.raises(DataError, match="would count twice: x, y"):
        first.join(first)
    assert first.join(ranked_at([1], "z")).instances == ("x", "y", "z")


def test_rankings_that_were_made_differently_are_not_joined():
    with pytest.raises(DataError, match="ties='unordered' and ties='averaged': rank both alike"):
        ranked_at([1], "x").join(ranked_at([1], "y", ties="averaged"))
    one, other = (replace(ranked_at([1], i), order_by=what) for i, what in ("xp", "yq"))
    with pytest.raises(DataError, match="order_by='p' and order_by='q'"):
        one.join(other)
    assert ranked_at([1], "z").join(one).order_by == "p"
