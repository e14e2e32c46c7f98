"""What a solver sees, and how it says what it finds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polarbear.data.run import Status
from polarbear.errors import DataError, SolverError
from polarbear.racing.jobs import Job
from polarbear.running.solvers.instances import Instances
from polarbear.running.solvers.job import HorizonReached, make_trial_job
from polarbear.running.solvers.setup import Limits, Setup
from polarbear.running.solvers.shared_trajectory import MIN_CAPACITY, SharedTrajectory


def test_an_objective_is_counted_and_the_run_ends_after_its_horizon():
    job = make_trial_job(None, horizon=4)
    f = job.track(lambda x: x)
    for x in (3.0, 5.0, 2.0, 2.0):
        assert f(x) == x
    for _ in range(3):  # an optimiser that catches it meets it again
        with pytest.raises(HorizonReached):
            f(0.0)
    assert job.improvements == ([1.0, 3.0], [3.0, 2.0])
    assert (job.at_horizon, job.observed_until()) == (True, 4.0)
    assert not issubclass(HorizonReached, Exception)


def test_maximising_keeps_what_is_larger():
    job = make_trial_job(None, horizon=9, direction="maximize")
    f = job.track(lambda x: x)
    for x in (1.0, -2.0, 3.0, np.float64(4.0), np.float32(3.5), 5):
        f(x)
    assert job.improvements == ([1.0, 3.0, 4.0, 6.0], [1.0, 3.0, 4.0, 5.0])


def test_an_array_counts_as_many_evaluations():
    job = make_trial_job(None, horizon=5)
    f = job.track(lambda x: np.asarray(x))
    f([3.0, 2.0, 4.0])
    with pytest.raises(HorizonReached):
        f([1.0, 5.0, 0.0])
    assert job.improvements == ([1.0, 2.0, 4.0], [3.0, 2.0, 1.0])


def test_nan_counts_as_an_evaluation_and_is_not_kept():
    job = make_trial_job(None, horizon=5)
    f = job.track(lambda x: x)
    f(float("nan"))
    f(np.nan)
    f(1.0)
    f(np.array([np.nan]))
    assert job.improvements == ([3.0], [1.0])


def test_what_is_tracked_has_the_attributes_of_the_objective():
    class Problem:
        bounds = (-5, 5)

        def __call__(self, x, scale=1.0):
            return scale * x

    job = make_trial_job(Problem(), horizon=5)
    f = job.track(job.instance)
    assert f.bounds == (-5, 5)
    assert f(2.0, scale=3.0) == 6.0
    with pytest.raises(AttributeError):
        f.nothing  # noqa: B018


def test_two_tracked_objectives_share_one_count():
    job = make_trial_job(None, horizon=2)
    f, g = job.track(lambda x: x), job.track(lambda x: -x)
    f(1.0)
    g(1.0)
    with pytest.raises(HorizonReached):
        f(1.0)
    assert job.improvements == ([1.0, 2.0], [1.0, -1.0])


def test_a_solver_reports_or_yields():
    job = make_trial_job(None, horizon=10)
    job.call_solver(lambda _: iter([(1, 5.0), (2, 6.0), (4, 2)]))
    job.report(1.0, time=9)
    assert job.improvements == ([1.0, 4.0, 9.0], [5.0, 2.0, 1.0])
    with pytest.raises(HorizonReached):
        job.report(0.0, time=10.5)


def test_by_the_wall_clock_values_are_timed():
    job = make_trial_job(None, horizon=60, clock="wall")
    job.start_clock()
    job.call_solver(lambda _: iter([3.0, 2.0]))
    f = job.track(lambda x: x)
    f(1.0)
    times, values = job.improvements
    assert values == [3.0, 2.0, 1.0]
    assert 0 <= times[0] <= times[1] <= times[2] < 60
    late = make_trial_job(None, horizon=1e-9, clock="wall")
    late.start_clock()
    with pytest.raises(HorizonReached):
        late.track(lambda x: x)(1.0)


@pytest.mark.parametrize(
    ("clock", "wrong", "message"),
    [
        ("evaluations", lambda job: job.report(1.0), "nothing counts evaluations"),
        ("reported", lambda job: job.report(1.0), "job.report(value, time=...)"),
        ("reported", lambda job: job.track(abs), "times come from the solver"),
        ("evaluations", lambda job: job.track(3), "track takes a function, got int"),
        ("evaluations", lambda job: job.report("x", time=1), "'x' is not a value"),
        ("evaluations", lambda job: job.report(float("nan"), time=1), "nan was reported"),
        ("evaluations", lambda job: job.report(1.0, time=-1), "-1 is not a time"),
        ("evaluations", lambda job: job.track(list)("ab"), "the objective returned ['a', 'b']"),
        (
            "evaluations",
            lambda job: job.call_solver(lambda _: "text"),
            "the solver returned 'text'",
        ),
    ],
)
def test_what_is_wrong_is_said(clock, wrong, message):
    job = make_trial_job(None, horizon=10, clock=clock)
    with pytest.raises(SolverError) as caught:
        wrong(job)
    assert message in str(caught.value)


def test_values_beyond_all_floats_keep_their_order():
    job = make_trial_job(None, horizon=10)
    job.report(10**400, time=1)  # no value yet
    job.report(1e308, time=2)
    job.report(-(10**400), time=3)
    assert job.improvements == ([2.0, 3.0], [1e308, -np.inf])


def test_a_job_has_a_generator_of_its_seed():
    a, b, c = (make_trial_job(None, horizon=1, seed=seed).rng.random() for seed in (1, 1, 2))
    assert a == b != c


@given(
    st.lists(st.floats(0, 1e6), min_size=1, max_size=6, unique=True),
    st.integers(0, 3 * MIN_CAPACITY),
)
def test_a_board_is_exact_at_the_times_however_much_is_written(times, n):
    times = tuple(sorted(times))
    step = max(times) / (n + 1) + 1e-9
    trajectory = SharedTrajectory(times)
    for k in range(n):
        trajectory.record(k * step, float(n - k))
    found, values = trajectory.improvements()
    assert len(found) <= 2 * MIN_CAPACITY
    for time in times:
        before = [k for k in range(n) if k * step <= time]
        seen = [v for t, v in zip(found, values, strict=True) if t <= time]
        assert seen[-1:] == [float(n - k) for k in before[-1:]]
    trajectory.close()


def test_a_board_that_was_written_over_gives_what_is_sound():
    trajectory = SharedTrajectory((1.0,))
    trajectory.begin(0.0)
    for k in range(5):
        trajectory.record(float(k), float(-k))
    assert trajectory.ending() is None
    trajectory._cells[trajectory._buffer_start(False) + 2 * 3] = -7.0
    assert trajectory.improvements() == ([0.0, 1.0, 2.0], [0.0, -1.0, -2.0])
    trajectory._cells[1] = float("nan")
    assert trajectory.improvements() == ([], [])
    trajectory.end(Status.CRASHED, 1.0, "x" * 10_000)
    assert len(trajectory.ending().why) == 4_000


def test_instances_are_named_and_made_where_they_are_needed():
    job = Job("a", "2", 0, 1.0, 3, 4)
    assert Instances.of([3, 2.0, "x"]).names == ("3", "2", "x")
    assert Instances.of([[1], [2]]).make(job) == [2]
    assert Instances.of({2: "two"}).make(job) == "two"
    assert Instances(["1", "2"], lambda name: name * 2).make(job) == "22"
    drawn = Instances.of(lambda rng: rng.random())
    assert drawn.make(job) == np.random.default_rng(4).random()
    for wrong, message in [
        ("text", "expected a list"),
        (3, "expected a list"),
        ([], "the list of instances is empty"),
        (["a", "a"], "two instances are named 'a'"),
        (["\ud800"], "not valid Unicode"),
    ]:
        with pytest.raises((SolverError, DataError), match=message):
            Instances.of(wrong)


def test_a_setup_says_what_is_wrong():
    def walk(_):
        return None

    def setup(solvers=(walk,), instances=("a",), **more):
        return Setup.of(solvers, instances, **{"times": [1, 2], "direction": "minimize", **more})

    assert list(setup([walk]).solvers) == ["walk"]
    for more, message in [
        ({"solvers": {}}, "the list of solvers is empty"),
        ({"solvers": [lambda _: None]}, "lambda.* has no name: pass a mapping"),
        ({"solvers": [walk, walk]}, "two solvers are named 'walk': pass a mapping"),
        ({"solvers": [walk, 3]}, "3 is not a solver: expected a function that takes a job"),
        ({"solvers": walk}, "expected a list of functions; or pass a mapping"),
        ({"solvers": "walk"}, "expected a list of functions"),
        ({"solvers": {"a": 3}}, "expected a function that takes a job"),
        ({"clock": "sundial"}, "expected one of evaluations, wall"),
        ({"direction": "up"}, "direction must be"),
    ]:
        with pytest.raises((SolverError, DataError), match=message):
            setup(**more)
    with pytest.raises(DataError, match="threads=0"):
        Limits(threads=0)


def test_a_solver_must_take_a_job():
    def noarg():
        yield 1, 1.0

    with pytest.raises(SolverError, match=r"'noarg' cannot be called with a job alone.*def solver"):
        Setup.of([noarg], ["x"], times=[1], direction="minimize")
