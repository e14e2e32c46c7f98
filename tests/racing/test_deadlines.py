"""Deadlines: what people write, as Unix times."""

import time
from datetime import datetime, timedelta
from datetime import time as clock_time

import pytest

import polarbear as pb
from polarbear.errors import DataError
from polarbear.racing.deadlines import parse_deadline
from racers import race_of

NOW = datetime(2030, 1, 31, 12, 0).timestamp()
HOUR = 3600.0


@pytest.mark.parametrize(
    ("deadline", "hours"),
    [
        ("8h", 8),
        (" 90m ", 1.5),
        ("1h 30m", 1.5),
        ("1.5h", 1.5),
        ("1d", 24),
        ("36s", 0.01),
        ("18:30", 6.5),
        ("18:30:00", 6.5),
        (clock_time(18, 30), 6.5),
        ("09:00", 21),  # tomorrow
        ("2030-01-31T18:30", 6.5),
        ("2030-02-01", 12),
        (datetime(2030, 1, 31, 18, 30), 6.5),
        (NOW + HOUR, 1),
        (str(NOW + HOUR), 1),
    ],
)
def test_deadlines_are_durations_times_of_day_dates_and_unix_times(deadline, hours):
    assert parse_deadline(deadline, NOW) == pytest.approx(NOW + hours * HOUR)


@pytest.mark.parametrize("deadline", ["", "soon", "8 weeks", "25:00", "h", True, float("nan"), []])
def test_anything_else_is_refused(deadline):
    with pytest.raises(DataError, match=r"deadline=.* expected a duration"):
        parse_deadline(deadline, NOW)


@pytest.mark.parametrize("deadline", [28_800, 0, -5, "28800"])
def test_small_numbers_are_refused_with_a_hint(deadline):
    with pytest.raises(DataError, match=r'for a duration write "'):
        parse_deadline(deadline, NOW)


def test_races_take_them_and_races_without_a_clock_say_so():
    def slow(job):
        time.sleep(0.2)
        yield 1, job.rng.random()

    question = pb.StrictParetoSet(certainty=0.999)
    budget = pb.Budget(deadline="1s")
    given = {"direction": "minimize", "executor": 1}
    found = pb.race(
        {"a": slow, "b": slow}, range(999), [1], question=question, budget=budget, **given
    )
    assert found.ended == "deadline"
    assert abs(found.budget.deadline - time.time()) < timedelta(minutes=10).total_seconds()
    with pytest.raises(DataError, match='write "28800s"'):
        pb.race({"a": slow, "b": slow}, [1], [1], budget=pb.Budget(deadline=28_800), **given)
    with pytest.raises(DataError, match="expected a duration"):
        pb.Budget(deadline="soon")
    with pytest.raises(DataError, match="a Race has no clock"):
        race_of(question=question, budget=budget).ask(1.0)
