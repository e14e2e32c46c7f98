"""The fitness of candidates, and which candidates have the same runs."""

import pytest

from polarbear.coordinator.fitness import find_identical
from polarbear.data.run import Run, Status
from polarbear.data.runs import Runs


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
