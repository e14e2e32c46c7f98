"""A race of real runs: the same wherever it runs, and after whatever happens to it."""

import os
import re
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from inspect import signature

import pytest
from judge.in_process import InProcess

import course
import polarbear as pb
import solvers
from course import decisions, run, told
from polarbear.coordinator.run_race import MAX_WORKER_LOSSES, SolverRace
from polarbear.errors import DataError, SolverError, StoreError
from polarbear.racing.events import Asked
from polarbear.reporting.content import make_document
from polarbear.running.backends.checking import OfRace
from polarbear.running.workers.outcomes import LostRun


@pytest.fixture(scope="module")
def undisturbed():
    return run()


def test_the_example_race_asks_enough(undisturbed):
    """Not marked as slow: CI runs it with the oldest versions too."""
    result = undisturbed
    assert result.n_runs >= 70
    assert result.rounds >= 4
    assert set(result.eliminated) == {"bad", "worst"}
    assert result.verdict("worst").kind == "dominated"
    assert result.spent.runs == result.n_runs
    assert len(result.runs) == result.n_runs
    assert f"ended       {result.ended}\n  run         " in str(result)


SLOW = pytest.mark.long


@pytest.mark.slow
@pytest.mark.parametrize(
    "executor",
    [
        pytest.param(1, marks=SLOW),
        pytest.param(2, marks=SLOW),
        pytest.param(16, marks=SLOW),
        "threads",
    ],
)
def test_the_same_race_wherever_it_runs(executor, undisturbed):
    if executor == "threads":
        pytest.importorskip("cloudpickle")  # solvers that are closures are sent by value
        with ThreadPoolExecutor(3) as pool:
            result = run(executor=pool)
    else:
        result = run(executor=executor)
    assert decisions(result.events) == decisions(undisturbed.events)
    assert told(result.events) == told(undisturbed.events)
    assert result.posterior == undisturbed.posterior


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("workers", [1, 4])
def test_the_same_race_on_dask(workers, undisturbed):
    """With two workers it is in tests/running/test_dask.py."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=":0", host="127.0.0.1"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        result = run(executor=client)
    assert 1 <= len(result.state.ledger.workers) <= workers  # which process made a run is kept
    assert decisions(result.events) == decisions(undisturbed.events)
    assert told(result.events) == told(undisturbed.events)


@pytest.mark.slow
def test_the_same_call_resumes(tmp_path, undisturbed):
    path = tmp_path / "race.db"
    few = course.short(48)
    with run(path, budget=few) as result:
        assert result.ended == "budget of runs spent"
        spent = result.spent.runs
        assert len(result.runs) == spent
    with run(path) as result:
        assert result.pareto == undisturbed.pareto
        assert result.eliminated == undisturbed.eliminated
        assert result.spent == undisturbed.spent
        assert result.runs == undisturbed.runs
        assert result._events == []  # they are in the store
        posterior, rounds = result.posterior, result.rounds
    with run(path) as result:
        assert result.ended == undisturbed.ended
        assert result.n_runs == undisturbed.n_runs  # nothing was run again
        assert result.posterior == posterior
    with pb.open_store(path, read_only=True) as store:
        assert store.status().counts.rounds == rounds


@pytest.mark.slow
def test_a_newcomer_joins_by_add_or_by_the_next_call(tmp_path):
    pytest.importorskip("cloudpickle")
    names = {"good": course.SKILL["good"], "bad": course.SKILL["bad"]}
    solvers = {name: course.solver(skill) for name, skill in names.items()}
    some = {
        "direction": "maximize",
        "question": replace(course.QUESTION, fit=course.quick),
        "budget": course.short(),
        "executor": InProcess(),  # this is about decisions: runs need no processes
    }
    path = tmp_path / "race.db"
    with pb.race(solvers, course.instance, course.TIMES, store=path, **some) as result:
        assert result.pareto == ("good",)
        result.add("worst", course.solver(course.SKILL["worst"]))
        assert result.verdict("worst").kind == "undecided"  # nothing has run yet
        result.resume()
        assert result.verdict("worst").kind == "dominated"
        result.add("worst")  # readmitted, with the solver that it has
        assert "worst" in result.pareto
        result.resume()
        assert result.verdict("worst").kind == "dominated"
        with pytest.raises(DataError, match="'early' is not a solver of this race: pass it as wel"):
            result.add("early")
        runs = result.n_runs
    more = {
        **solvers,
        "worst": course.solver(course.SKILL["worst"]),
        "late": course.solver(course.SKILL["late"]),
    }
    with pb.race(more, course.instance, course.TIMES, store=path, **some) as result:
        assert "late" in result.pareto
        assert result.n_runs > runs
        result.remove("late", "to see")
        assert result.pareto == ("good",)
        result.extend(pb.ParetoSet(certainty=0.99), budget=pb.Budget(runs=400))
        result.resume()
        assert all(one.probability >= 0.99 for one in result.eliminated.values())
    with pytest.raises(DataError, match="'good' is racing in .*race.db, but is not among"):
        pb.race({"goood": solvers["good"]}, course.instance, course.TIMES, store=path, **some)


@pytest.mark.slow
def test_a_newcomer_has_limits_of_its_own_also_after_a_resume(tmp_path):
    with run(tmp_path / "race.db", executor=InProcess(), budget=course.short(80)) as result:
        for name in ("again", "timed"):
            solver = course.solver(course.SKILL["good"])
            limits = {"max_runs": 4} if name == "again" else {"max_time": 250.0}
            result.add(name, solver, **limits)
        result.extend(budget=course.short(200))
        before = result.state
    solvers = {name: course.solver(course.SKILL["good"]) for name in ("again", "timed")}
    with pb.race(
        {**course.solvers(), **solvers},
        course.instance,
        course.TIMES,
        direction="maximize",
        question=replace(course.QUESTION, fit=course.quick),
        budget=course.short(200),
        store=tmp_path / "race.db",
        executor=InProcess(),
    ) as result:
        assert result.state.members.limits == before.members.limits
        assert result.status.runs.made["again"] <= 4
        assert result.runs.filter(algorithms=["timed"]).until.sum() <= 250.0
        assert result.n_runs > 100


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 1}, "has seed = 0, but the call has 1"),
        ({"times": (10.0, 30.0)}, "has times ="),
        ({"direction": "minimize"}, "has direction ="),
        ({"instances": [1, 2, 3]}, "has endless instances = True, but the call has False"),
        ({"clock": "wall"}, "has clock ="),
    ],
)
def test_another_race_in_the_store_is_refused(tmp_path, change, message):
    path = tmp_path / "race.db"
    base = {
        "instances": course.instance,
        "times": course.TIMES,
        "direction": "maximize",
        "executor": 1,
        "question": pb.ParetoSet(fit=course.quick),
        "store": path,
        "budget": pb.Budget(runs=10),
    }
    pb.race(course.solvers(), **base).close()
    with pytest.raises(StoreError, match=message):
        pb.race(course.solvers(), **{**base, **change})
    pb.race(course.solvers(), **base).close()  # it was let go


def test_failures_are_reported_and_count(capsys):
    def broken(job):  # noqa: ARG001
        yield 1, 0.0
        raise ValueError("out of paper")

    solvers = {"broken": broken, "good": course.solver(course.SKILL["good"])}
    result = pb.race(
        solvers,
        course.instance,
        course.TIMES,
        direction="maximize",
        budget=pb.Budget(batch=(4, 4), failures=6),
        executor=1,
        progress=True,
    )
    assert result.pareto == ("good",)
    assert "out of paper" in result.failures["broken"]
    assert "failed      8 runs of broken: ValueError: out of paper" in str(result)
    output = capsys.readouterr().err
    assert output.count("broken failed on") == 1
    assert "round 1: " in output


@pytest.mark.parametrize("place", ["solvers", "instances"])
def test_a_round_in_which_all_runs_fail_ends_the_race(place, tmp_path):
    """Nothing was compared, and another night of it would not change that."""

    def broken(*_):
        raise ValueError("out of paper")

    good = {name: course.solver(course.SKILL[name]) for name in ("good", "early")}
    solvers = dict.fromkeys(good, broken) if place == "solvers" else good
    instances = course.instance if place == "solvers" else broken
    with pytest.raises(SolverError, match=r"failed before it reported a value.*early, good: Value"):
        pb.race(
            solvers,
            instances,
            course.TIMES,
            direction="maximize",
            executor=1,
            store=tmp_path / "race.db",
        )
    with pb.open_store(tmp_path / "race.db") as store:  # it was let go
        assert store.status().counts.rounds == 0
        assert store.status().n_runs == 0


@pytest.mark.slow
def test_a_solver_without_values_is_reported():
    def silent(job):  # noqa: ARG001
        return None

    solvers = {"silent": silent, "good": course.solver(course.SKILL["good"])}
    with pytest.warns(
        pb.errors.DataWarning, match=r"silent on .*: it reported no value: does it yield"
    ):
        result = pb.race(solvers, course.instance, course.TIMES, direction="maximize", executor=1)
    assert result.pareto == ("good",)
    why = result.failures["silent"]
    all_of_them = r"does it yield.*\((\d+) runs, on .*; dominated after \1 of \1 runs failed so"
    assert re.search(all_of_them, why)
    assert "dominated after" in str(make_document(result)["race"]["facts"])


@pytest.mark.slow
def test_a_run_that_hangs_without_a_value_counts_once():
    def hangs(job):  # noqa: ARG001
        time.sleep(60)
        yield 1, 1.0

    def works(job):
        yield 1, float(job.instance)

    result = pb.race(
        {"hangs": hangs, "works": works},
        range(8),
        [1],
        direction="minimize",
        limits=pb.Limits(wall_seconds=0.3),
        executor=2,
    )
    counts = re.findall(r"\((\d+) runs?, on", result.failures["hangs"])
    assert sum(map(int, counts)) == result.status.runs.made["hangs"] == 8


def test_no_jobs_after_the_deadline():
    question = pb.StrictParetoSet(certainty=0.999)
    budget = pb.Budget(deadline=time.time() + 1.0)
    begin = time.monotonic()
    result = run(question=question, budget=budget, seconds=0.05)
    assert result.ended == "deadline"
    assert time.monotonic() - begin < 120


class Losing:
    """An engine that loses some runs, and one for good."""

    def __init__(self, engine, unlucky):
        self.engine, self.unlucky, self.seen = engine, unlucky, set()

    def __getattr__(self, name):
        return getattr(self.engine, name)

    def outcomes(self, timeout=None):
        outcomes = []
        for made in self.engine.outcomes(timeout):
            first = made.job.key not in self.seen
            self.seen.add(made.job.key)
            lose = made.job.key == self.unlucky or (first and made.job.seed % 5 == 0)
            outcomes.append(LostRun(made.job, "its worker is gone") if lose else made)
        return outcomes


@pytest.mark.slow
def test_lost_runs_are_repeated_and_count_once(monkeypatch, undisturbed):
    from polarbear.coordinator import run_race

    start = run_race.start_backend
    monkeypatch.setattr(run_race, "start_backend", lambda *args: Losing(start(*args), None))
    result = run(executor=InProcess())
    assert decisions(result.events) == decisions(undisturbed.events)
    unlucky = next(e.jobs[0].key for e in undisturbed.events if isinstance(e, Asked))
    monkeypatch.setattr(run_race, "start_backend", lambda *args: Losing(start(*args), unlucky))
    result = run(executor=InProcess())
    (killed,) = [run_ for run_ in result.runs if run_.status == pb.Status.KILLED]
    assert (killed.algorithm, killed.instance) == unlucky[:2]
    assert MAX_WORKER_LOSSES > 1


def killed_on(instance, times, marks):
    """A solver whose run on an instance is killed for the first times, and what it leaves."""

    def solve(job):
        yield 10.0, job.instance
        if job.name == instance and len(list(marks.iterdir())) < times:
            (marks / f"{time.monotonic_ns()}").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        yield 20.0, job.instance - 1

    return solve


@pytest.mark.parametrize("times", [1, 9])
def test_a_run_that_is_killed_from_outside_is_made_again_once(tmp_path, times):
    solvers = {"a": killed_on("3", times, tmp_path), "b": lambda job: iter([(10.0, job.instance)])}
    news = []
    result = pb.race(
        solvers,
        range(8),
        [10, 100],
        direction="minimize",
        executor=2,
        progress=lambda status: news.extend(status.news),
    )
    ended = {(one.algorithm, one.instance): one for one in result.runs}
    again = ended.pop(("a", "3"))
    expected = (pb.Status.FINISHED, [3, 2]) if times == 1 else (pb.Status.KILLED, [3])
    assert (again.status, list(again.value)) == expected
    assert len(list(tmp_path.iterdir())) == min(times, 2)
    assert sum("a on 3 is run again: killed from outside" in line for line in news) == 1
    assert {one.status for one in ended.values()} == {pb.Status.FINISHED}


@pytest.mark.slow
def test_the_text_of_an_undecided_result():
    result = run(question=pb.StrictParetoSet(), budget=pb.Budget(runs=60, batch=(4, 4)))
    assert isinstance(result, SolverRace)
    assert not result.status.resolved
    assert "to settle" in str(result)


PROGRAM = """
import random, sys, time
skill, seed, instance = float(sys.argv[1]), sys.argv[2], sys.argv[3]
luck = random.Random(seed + instance)
best = 9.0
for step in range(1, 101):
    best = min(best, luck.random() / skill)
    print("o", step, best, flush=True)
"""

RACE = """
times = [10, 30, 100]
direction = "minimize"
clock = "reported"
store = "race.db"

[question]
certainty = 0.95

[budget]
runs = 200

[instances]
names = ["a", "b;$(touch hacked)", "../c", "'d'", "--e"]
"""


@pytest.mark.slow
def test_the_command_races_programs_and_resumes(tmp_path, capsys):
    from polarbear.cli.main import main

    (tmp_path / "program.py").write_text(PROGRAM)
    names = [f'"i{k}"' for k in range(40)]
    text = RACE.replace('"--e"]', '"--e", ' + ", ".join(names) + "]")
    for name, skill in (("strong", 30), ("weak", 1)):
        words = [sys.executable, str(tmp_path / "program.py"), str(skill), "{seed}", "{instance}"]
        text += f"\n[solvers.{name}]\ncommand = {words!r}\n"
        text += "pattern = '^o (?P<time>\\d+) (?P<value>\\S+)'\n"
    path = tmp_path / "race.toml"
    path.write_text(text)
    assert main(["check", str(path), "--seconds", "120"]) == 0
    assert main(["race", str(path), "--workers", "2", "--quiet"]) == 0
    output = capsys.readouterr().out
    assert "weak is replaceable by strong" in output
    assert "ended       resolved" in output
    assert main(["race", str(path), "--workers", "2", "--quiet"]) == 0
    assert capsys.readouterr().out in output  # nothing was run again
    assert main(["status", str(tmp_path / "race.db")]) == 0
    assert not list(tmp_path.glob("hacked*"))
    assert main(["race", str(path), "--workers", "2", "--dask", "tcp://x"]) == 1
    assert "cannot be combined: choose one place to run" in capsys.readouterr().err


@pytest.mark.slow
def test_a_race_in_which_no_run_ends_warns(monkeypatch):
    monkeypatch.setattr("polarbear.coordinator.round_health.QUIET_SECONDS", 0.1)

    def hangs(_):
        time.sleep(3.0)
        yield 1, 1.0

    news = []
    with pytest.warns(pb.errors.DataWarning, match="no run has ended for .* on i"):
        pb.race(
            {"hangs": hangs, "other": hangs},
            ["i"],
            [1],
            direction="minimize",
            executor=1,
            progress=lambda progress: news.extend(progress.news),
        )
    assert sum("no run has ended" in line for line in news) >= 1


def test_check_takes_the_arguments_of_race():
    taken, raced = signature(pb.check).parameters, signature(pb.race).parameters
    assert {*taken, *OfRace.__annotations__} >= {*raced}
    with pytest.raises(TypeError, match="unexpected keyword argument 'rules'"):
        pb.check([solvers.quick], ["i"], [10], direction="minimize", rules=1)
    asked = {"question": pb.ParetoSet(certainty=0.95), "budget": pb.Budget(runs=9)}
    check = pb.check([solvers.quick], ["i"], [10], direction="minimize", **asked, store="no.db")
    assert not check.problems
    for name in asked:
        with pytest.raises(pb.DataError, match=f"{name}=3"):
            pb.check([solvers.quick], ["i"], [10], direction="minimize", **{name: 3})


def test_check_prints_no_control_characters():
    def wrong(_):
        raise ValueError("\x1b[2J")

    printed = str(
        pb.check({"a\x1b[31m": wrong}, ["i"], [0.5, 3], direction="minimize", clock="wall")
    )
    assert "\x1b" not in printed
    assert "from 0.5 to 3 seconds; watched here for 2 seconds\n" in printed


@pytest.mark.slow
def test_a_round_in_which_a_newcomer_alone_fails_is_kept():
    def broken(job):
        raise ValueError(f"out of paper on {job.name}")

    some = {
        "direction": "maximize",
        "question": replace(course.QUESTION, fit=course.quick),
        "budget": course.short(),
        "executor": 1,
    }
    solvers = {name: course.solver(course.SKILL[name]) for name in ("good", "worst")}
    with pb.race(solvers, course.instance, course.TIMES, **some) as result:
        before = result.n_runs
        result.add("broken", broken)
        result.resume()
        assert result.n_runs > before
        assert result.verdict("broken").kind == "dominated"
        assert "runs failed so" in result.failures["broken"]
