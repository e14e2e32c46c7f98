"""A round in which every run fails: the race stops, and goes on as if it had not been made."""

import time
from copy import deepcopy
from dataclasses import replace
from math import inf

import pytest
from judge.in_process import InProcess

import course
import polarbear as pb
from judging import code, make_judge
from polarbear.coordinator.run_race import SolverRace
from polarbear.errors import SolverError
from polarbear.racing.events import Told

NAMES = ("bad", "early", "good")
QUESTION = replace(course.QUESTION, fit=course.quick)


def make_solvers(broken):
    """Solvers that fail before their first value while a file exists."""

    def make(skill):
        solve = course.solver(skill)

        def fail_or_solve(job):
            if broken.exists():
                raise RuntimeError("out of paper")
            yield from solve(job)

        return fail_or_solve

    return {name: make(course.SKILL[name]) for name in NAMES}


def race(broken, budget, executor=None, **more):
    """A race in this process, unless it is to be elsewhere: what is tested is the coordinator."""
    return pb.race(
        make_solvers(broken),
        course.instance,
        course.TIMES,
        direction="maximize",
        question=QUESTION,
        budget=budget,
        executor=executor or InProcess(),
        **more,
    )


def get_facts(raced):
    """What a race says of itself, without the runs that it requests."""
    facts = raced.n_runs, raced.rounds, raced.spent, raced.failures, raced.verdicts(), raced.runs
    return *facts, raced.status.counts.since_decision, raced.state.members


FEW, MANY = (pb.Budget(runs=runs, batch=(4, 4)) for runs in (24, 48))


@pytest.mark.parametrize("kept", [False, True])
def test_a_failed_round_leaves_the_race_as_it_was(tmp_path, kept):
    broken = tmp_path / "broken"
    whole = race(broken, MANY)
    where = {"executor": 2, "store": tmp_path / "race.db"} if kept else {}
    with race(broken, FEW, **where) as raced:
        raced.extend(budget=MANY)
        before = deepcopy(get_facts(raced))
        broken.touch()
        for _ in range(2):
            with pytest.raises(SolverError, match="every run of this round failed.*out of paper"):
                raced.resume()
            assert get_facts(raced) == before
        broken.unlink()
        raced.resume()
        assert raced.verdicts() == whole.verdicts()
        assert raced.runs == whole.runs


def test_a_failed_round_leaves_the_store_as_it_was(tmp_path):
    broken, path = tmp_path / "broken", tmp_path / "race.db"
    whole = race(broken, MANY)
    race(broken, FEW, store=path).close()
    broken.touch()
    stored = []
    for _ in range(2):
        with pytest.raises(SolverError, match="every run of this round failed"):
            race(broken, MANY, store=path)
        with pb.open_store(path, read_only=True) as store:
            assert (store.status().n_runs, store.status().runs.failed) == (24, {})
            stored.append(list(store.read()))
    assert stored[0] == stored[1]
    broken.unlink()
    with race(broken, MANY, store=path) as raced:
        assert raced.verdicts() == whole.verdicts()
        assert raced.runs == whole.runs


def fails_at_first(skill, marks, times):
    """A solver whose first attempts on each instance fail."""
    solve = course.solver(skill)

    def fail_or_solve(job):
        (marks / f"{skill[0]}-{job.name}-{job.seed}").touch()
        if len(list(marks.glob(f"{skill[0]}-{job.name}-*"))) <= times:
            raise RuntimeError("out of paper")
        yield from solve(job)

    return fail_or_solve


@pytest.mark.parametrize(("times", "retries"), [(1, 1), (2, 2), (1, 3)])
def test_a_round_goes_on_if_a_retry_has_a_value(tmp_path, times, retries):
    solvers = {name: fails_at_first(course.SKILL[name], tmp_path, times) for name in NAMES}
    raced = pb.race(
        solvers,
        [f"i{k}" for k in range(4)],
        course.TIMES,
        direction="maximize",
        question=QUESTION,
        budget=pb.Budget(batch=(4, 4), retries=retries),
        executor=InProcess(),
    )
    assert raced.rounds == 1
    assert raced.n_runs == 3 * 4 * (times + 1)
    used = [one for one in raced.runs if one.repetition == times]
    assert len(used) == 12
    assert all(one.status == pb.Status.CUT for one in used)


@pytest.mark.parametrize("runs", [None, 12, 24])
def test_a_round_whose_retries_fail_too_is_an_error(tmp_path, runs):
    """Also if the budget leaves no retry; the last attempts are made again."""
    broken, path = tmp_path / "broken", tmp_path / "race.db"
    broken.touch()
    budget = pb.Budget(runs=runs, batch=(4, 4), retries=1)
    n_told = 0 if runs == 12 else 12
    for _ in range(2):
        with pytest.raises(SolverError, match="every run of this round failed"):
            race(broken, budget, store=path)
        with pb.open_store(path, read_only=True) as store:
            events = list(store.read())
        assert sum(isinstance(event, Told) for event in events) == n_told
    broken.unlink()
    with race(broken, replace(budget, runs=60), store=path) as raced:
        assert raced.rounds > 0
        assert not raced.state.members.failures.total()


def test_a_solver_that_alone_fails_is_known_to_the_race(tmp_path):
    def fails(job):
        raise RuntimeError(f"out of paper on {job.name}")

    good = course.solver(course.SKILL["good"])
    with pb.race(
        {"good": good},
        course.instance,
        course.TIMES,
        direction="maximize",
        question=QUESTION,
        budget=pb.Budget(batch=(4, 4), failures=2),
        executor=InProcess(),
        store=tmp_path / "race.db",
    ) as raced:
        raced.add("fails", fails)
        raced.resume()
        assert raced.status.removed == ("fails",)
        assert "out of paper" in raced.failures["fails"]


def test_failures_before_a_deadline_are_said_and_not_kept(tmp_path, monkeypatch):
    """The race ends while nothing is known but failures."""
    ask = SolverRace.ask
    monkeypatch.setattr(SolverRace, "ask", lambda self, now: ask(self, inf if self._held else now))

    def fails(job):
        raise RuntimeError(f"out of paper on {job.name}")

    def sleeps(_):
        time.sleep(600)
        yield 10.0, 1.0

    call = {"instances": range(4), "times": [10], "direction": "minimize", "executor": 2}
    call |= {"solvers": {"fails": fails, "sleeps": sleeps}, "store": tmp_path / "race.db"}
    with (
        pytest.warns(
            pb.errors.DataWarning, match="are not kept: fails: RuntimeError: out of paper on"
        ),
        pb.race(**call, budget=pb.Budget(deadline="9h")) as raced,
    ):
        assert (raced.ended, raced.n_runs, raced.failures) == ("deadline", 0, {})


def test_what_an_interrupted_call_held_back_is_made_again(tmp_path, monkeypatch):
    broken = tmp_path / "broken"
    with race(broken, FEW) as raced:
        raced.extend(budget=MANY)
        broken.touch()

        def interrupt(*_, **__):
            if raced._held:  # on a busy machine the first runs may take longer than a poll
                raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(raced, "_take_held", interrupt)
            with pytest.raises(KeyboardInterrupt):
                raced.resume()
        assert raced._held
        broken.unlink()
        raced.resume()
        assert not raced.failures
        assert raced.n_runs == 48


@pytest.mark.slow
@pytest.mark.parametrize("executor", [1, 2])
def test_a_candidate_is_not_blamed_if_the_reference_fails_too(tmp_path, executor):
    """Whichever of the two fails first."""
    broken = tmp_path / "broken"
    fails = f"import os\nif os.path.exists({str(broken)!r}): 1 / 0\n"
    judge = make_judge(
        tmp_path / "judge", reference=fails + code(0.3), executor=executor, budget=pb.Budget(runs=8)
    )
    broken.touch()
    with pytest.raises(SolverError, match="every run of this round failed"):
        judge(fails + code(3))
    with pb.open_store(tmp_path / "judge" / "race.db", read_only=True) as store:
        assert store.status().n_runs == 0
    broken.unlink()
    assert judge(fails + code(3)).failures.number == 0
