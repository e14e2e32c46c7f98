"""The fitness of candidates, and which candidates have the same runs."""

import numpy as np
import pytest
from scipy.stats import kendalltau

import polarbear as pb
from polarbear.data.run import Run, Status
from polarbear.data.runs import Runs
from polarbear.design.fitness import find_identical, measure_fitness
from polarbear.inference.laplace.engine import estimate_utilities
from polarbear.priors.dirichlet import Dirichlet


def make_runs(*kinds):
    """Make runs on nine instances; each kind is a name, times of values, an end and a status."""
    return Runs.from_records(
        [
            Run(name, str(i), times, [9.0 - t for t in times], until, status=status)
            for name, times, until, status in kinds
            for i in range(9)
        ],
        direction="minimize",
    )


CUT, FINISHED, CRASHED = Status.CUT, Status.FINISHED, Status.CRASHED


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (((1, 3), 5, CUT), ((1, 3), 5, CUT), True),
        (((1, 3), 5, CUT), ((1,), 2, CUT), True),  # one was not observed for as long
        (((1, 3), 5, FINISHED), ((1,), 2, CUT), True),
        (((1, 3), 5, FINISHED), ((1, 3), 5, FINISHED), True),
        (((1, 3), 5, CUT), ((1,), 2, FINISHED), False),
        (((1, 3), 5, CUT), ((1,), 1, CRASHED), False),
        (((1, 3), 5, CUT), ((1,), 1, Status.OUT_OF_TIME), False),
        (((1, 3), 5, CUT), ((1, 3), 5, Status.KILLED), False),
        (((1,), 1, CRASHED), ((1,), 1, CRASHED), False),
        (((1, 3), 5, CUT), ((1, 2), 5, CUT), False),
        (((1, 3), 5, CUT), ((), 5, CUT), False),
        (((), 5, CUT), ((), 5, CUT), False),
    ],
)
def test_runs_are_the_same_if_both_went_equally_far(first, second, same):
    for a, b in ((first, second), (second, first)):
        found = find_identical(make_runs(("a", *a), ("b", *b)), "b", 8)
        assert found == ("a" if same else None)


def test_a_crash_before_the_first_value_is_a_difference():
    runs = [*make_runs(("a", (1, 3), 5, CUT), ("b", (1, 3), 5, CUT))]
    runs += [Run("a", "late", (1,), (1.0,), 5), Run("b", "late", (), (), 0, status=CRASHED)]
    assert find_identical(Runs.from_records(runs, direction="minimize"), "b", 8) is None


def simulate(rng, name, utilities, n_instances):
    """Make runs with Gumbel noise, which take the order of the times out of the values."""
    times = range(1, len(utilities) + 1)
    costs = -(utilities + rng.gumbel(size=(n_instances, len(times)))) - 100 * np.array(times)
    return [Run(name, str(i), times, row, len(times)) for i, row in enumerate(costs.tolist())]


def measure(records, name, times):
    runs = Runs.from_records(records, direction="minimize")
    race = pb.Race(["reference"], times, direction="minimize")
    return measure_fitness(runs, times, [name], "reference", race)[name].overall


def test_fitness_of_a_winner_and_a_loser_does_not_depend_on_the_number_of_others():
    """A Dirichlet prior on all algorithms gave the winner 0.90, 0.70 and 0.61."""
    found = []
    for n_others in (0, 10, 30):
        rng = np.random.default_rng(1)
        records = simulate(rng, "reference", np.zeros(1), 16)
        records += simulate(rng, "winner", np.full(1, 30.0), 16)
        for k in range(n_others):
            records += simulate(rng, f"bad {k}", np.full(1, -6.0), 16)
        found.append(measure(records, "winner", (1.0,)))
    assert found == pytest.approx([16.5 / 17] * 3, abs=0.01)
    found = []
    for n_others in (0, 10, 30):
        rng = np.random.default_rng(1)
        records = simulate(rng, "reference", np.zeros(1), 16)
        records += simulate(rng, "loser", np.full(1, -30.0), 16)
        for k in range(n_others):
            records += simulate(rng, f"good {k}", np.full(1, 6.0), 16)
        found.append(measure(records, "loser", (1.0,)))
    assert found == pytest.approx([0.5 / 17] * 3, abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.long) for k in (1, 2))])
def test_fitness_orders_candidates_as_the_truth_does(seed):
    """Thirty candidates are judged one after the other, most of them bad, as in design loops."""
    rng, n, times = np.random.default_rng(seed), 30, (1.0, 2.0, 3.0)
    overall = np.where(rng.random(n) < 0.3, rng.normal(size=n), rng.normal(-4, 1, n))
    utilities = overall[:, None] + rng.normal(0, 0.5, (n, len(times)))
    truth = utilities.mean(axis=1)
    records, new, old = simulate(rng, "reference", np.zeros(len(times)), 40), [], []
    for k, true in enumerate(truth):
        records += simulate(rng, f"c{k}", utilities[k], 40 if true > -1 else 16)
        new.append(measure(records, f"c{k}", times))
        rankings = pb.rank(Runs.from_records(records, direction="minimize"), times)
        fitted = estimate_utilities(rankings, Dirichlet()).mean(axis=0)
        columns = map(rankings.algorithms.index, (f"c{k}", "reference"))
        old.append(np.subtract(*(fitted[column] for column in columns)))
    tau, tau_before = (kendalltau(values, truth).statistic for values in (new, old))
    assert tau > 0.85
    assert tau > tau_before - 0.02
