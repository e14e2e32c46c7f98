"""Stores of several sites in one, and what the command line does with stores."""

import pytest

import polarbear as pb
from polarbear.cli.main import main
from polarbear.data.run import Run, Status
from polarbear.errors import StoreError
from polarbear.racing.budget import Budget
from polarbear.racing.events import Asked, Failed, Hosted, Imported, Told
from polarbear.racing.questions.pareto_set import ParetoSet
from polarbear.racing.race import Race
from polarbear.racing.state import key_of
from polarbear.store import merge, open_store
from racers import TIMES, drive, race_of, restore, solve

NAMES = [f"f{k}" for k in range(12)]


def site(path, race):
    with open_store(path) as store:
        store.append(race.events)
    return path


def test_the_runs_of_all_sites_count_in_one_race(where, tmp_path):
    """Two sites that share a seed and part of the instances, as a benchmark that was split."""
    first = drive(race_of(["good", "bad"], instances=NAMES[:8], seed=4))
    second = drive(race_of(["bad", "early"], instances=NAMES[4:], seed=4))
    paths = [site(tmp_path / "1.db", first), site(tmp_path / "2.db", second)]
    found = merge(paths, where)
    # Of a run that was made again for longer the last counts, as the one that it is.
    keys = {key_of(run)._replace(repetition=0) for race in (first, second) for run in race.runs}
    assert found.runs == len(keys)
    assert found.known == len(first.runs) + len(second.runs) - len(keys) > 0
    assert not found.conflicts  # the same seed, and solvers that depend on nothing else
    again = merge(paths, where)
    assert (again.runs, again.conflicts) == (0, ())
    with open_store(where) as store:
        race = restore(store.read())
        assert set(map(key_of, race.runs)) == keys
        assert race.pareto == ("bad", "early", "good")  # nothing was decided by all of them yet
        drive(race)
        store.append(race.events[store.n_events :])
        assert race.ended
        assert store.status().pareto == race.pareto


def test_different_outcomes_of_one_run_are_conflicts_and_the_first_stays(tmp_path):
    races = [race_of(["good", "bad"], instances=NAMES, seed=seed) for seed in (1, 2)]
    paths = [site(tmp_path / f"{k}.db", drive(race)) for k, race in enumerate(races)]
    found = merge(paths, tmp_path / "all.db")
    assert len(found.conflicts) == found.known > 0
    with open_store(tmp_path / "all.db", read_only=True) as store:
        kept = {key_of(run): run for run in store.runs()}
        assert list(found.conflicts) == store.conflicts()
    for run in races[0].runs:
        assert list(kept[key_of(run)].value) == list(run.value)
    for conflict in found.conflicts:
        assert list(kept[key_of(conflict.refused.run)].value) != list(conflict.refused.run.value)
    assert "with another outcome" in str(found)


def test_of_runs_that_were_tried_again_the_last_one_counts(tmp_path):
    question, budget = ParetoSet(certainty=0.9), Budget(batch=(2, 4), runs=60, retries=3)
    race = drive(race_of(instances=NAMES, question=question, budget=budget, seed=3), fails=0.4)
    retried = {key_of(run)[:2] for run in race.runs if run.repetition}
    assert retried
    merge([site(tmp_path / "1.db", race)], tmp_path / "all.db")
    with open_store(tmp_path / "all.db", read_only=True) as store:
        events = list(store.read())
    merged = {key_of(e.run)[:2]: e.run for e in events if isinstance(e, Imported)}
    assert len(merged) == sum(isinstance(e, Imported) for e in events)
    last = {}
    for run in race.runs:
        last[key_of(run)[:2]] = run  # in order of repetition
    assert {key: run.status for key, run in merged.items()} == {
        key: run.status for key, run in last.items()
    }
    assert {run.repetition for run in merged.values()} == {0}
    assert not any(isinstance(event, Asked) for event in events)


def test_runs_that_a_decision_made_superfluous_are_not_merged(tmp_path):
    """Those of the next round, which had begun when their algorithm was dropped."""
    names, budget = [f"f{k}" for k in range(80)], Budget(batch=(40, 40), overlap=1)
    race = race_of(["bad", "good"], instances=names, budget=budget)
    for job in race.ask():
        race.tell(solve(job))
    drive(race)
    path = site(tmp_path / "1.db", race)
    with open_store(path, read_only=True) as store:
        counted = {key_of(run) for run in store.runs()}
    assert race.pareto == ("good",)
    assert len(counted) < race.spent.runs
    assert merge([path], tmp_path / "all.db").runs == len(counted)
    with open_store(tmp_path / "all.db", read_only=True) as store:
        assert {key_of(run) for run in store.runs()} == counted


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (Race(["a"], [1, 2], direction="maximize"), "their times differ"),
        (Race(["a"], TIMES, direction="minimize"), "their direction differ"),
        (Race(["a"], TIMES, direction="maximize", clock="s"), "their clock differ"),
        (Race(["a"], TIMES, direction="maximize", instances=["x"]), "their endless differ"),
        (Race(["a"], TIMES, direction="maximize", seed=1), "made from the seeds of the races"),
    ],
)
def test_races_that_cannot_be_compared_are_not_merged(tmp_path, other, said):
    paths = [site(tmp_path / "1.db", race_of()), site(tmp_path / "2.db", other)]
    with pytest.raises(StoreError, match=said):
        merge(paths, tmp_path / "all.db")
    with pytest.raises(StoreError, match="at least one source"):
        merge([], tmp_path / "all.db")


def test_who_left_everywhere_leaves(tmp_path):
    races = [race_of(["good", "bad"], instances=NAMES) for _ in range(2)]
    races[0].remove("bad", "slow")
    races[0].remove("good", "slow")
    races[1].remove("bad", "slow")
    merge([site(tmp_path / f"{k}.db", race) for k, race in enumerate(races)], tmp_path / "all.db")
    with open_store(tmp_path / "all.db", read_only=True) as store:
        seen = store.status()
    assert (seen.pareto, seen.removed) == (("good",), ("bad",))


# The command line


def test_status_export_and_repair_while_the_race_runs(where, tmp_path, capsys):
    name = "bad; $(reboot) 'x' \"y\" ../.."
    race = race_of(["good", name, "\x1b[2Jclear\n"], seed=2, clock="evaluations")
    jobs = {job.algorithm: job for job in race.ask()}
    race.tell(solve(jobs["good"]))
    race.tell(jobs[name].run([1.0], [3.0], status=Status.CRASHED))
    with open_store(where) as store:
        store.append(race.events)
        assert main(["status", where]) == 0
        said = capsys.readouterr().out
        assert "race of 3 algorithms after 0 rounds" in said
        assert "2 runs made, maximize at 3 times of evaluations" in said
        assert f"3 pairs, {len(race.ask())} runs wanted" in said
        assert name in said
        assert r"\x1b[2Jclear\n" in said  # nothing that a terminal obeys
        if "#" not in where:
            assert main(["repair", where, str(tmp_path / "new.db")]) == 0
            assert "nothing is lost" in capsys.readouterr().out
            assert main(["merge", where, str(tmp_path / "new.db"), str(tmp_path / "all.db")]) == 0
            assert capsys.readouterr().out.startswith("2 runs added, 2 runs known already")
        pytest.importorskip("pyarrow")
        assert main(["read", where, "--output", str(tmp_path / "runs.parquet")]) == 0
        assert pb.Runs.from_parquet(tmp_path / "runs.parquet") == race.runs == store.runs()


def test_errors_are_said(tmp_path, capsys):
    (tmp_path / "odd.db").write_text("hello")
    for command, *rest in (["status"], ["read", "-o", "out"], ["repair", "out"]):
        words = [str(tmp_path / word) if word == "out" else word for word in rest]
        assert main([command, str(tmp_path / "odd.db"), *words]) == 1
        assert "polarbear: " in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_conflicts_are_listed(tmp_path, capsys):
    for k in range(2):
        race = race_of(["good"], instances=NAMES)
        run = Run("good", "f1", (1.0,), (float(k),), 4.0)
        site(tmp_path / f"{k}.db", race)
        with open_store(tmp_path / f"{k}.db") as store:
            store.append([Told(run)])
    assert main(["merge", *(str(tmp_path / f"{k}.db") for k in range(2)), str(tmp_path / "a")]) == 0
    said = capsys.readouterr().out
    assert "1 of them with another outcome" in said
    assert "repetition 0 of 'good' on instance 'f1'" in said


def test_reasons_of_failures_and_hosts_of_runs_are_merged(tmp_path):
    paths = []
    for k, name in enumerate(("good", "bad")):
        race = race_of(
            [name, "broken"], instances=[f"f{k}"], question=ParetoSet(), budget=Budget(runs=2)
        )
        for job in race.ask():
            if job.algorithm == "broken":
                run = job.run([], [], until=0.0, status=Status.CRASHED)
                race.tell(run, why=f"no licence on site {k}", output="licence?")
            else:
                race.tell(solve(job))
            race.record(race.state.ledger.attribute([job.key], (("host", f"node-{k}"),)))
        paths.append(site(tmp_path / f"{k}.db", race))
    merge(paths, tmp_path / "all.db")
    merge(paths, tmp_path / "all.db")  # twice is once
    with open_store(tmp_path / "all.db", read_only=True) as store:
        why = store.status().runs.why["broken"]
        origins = store.origins()
        assert len(store.of_kind(Failed)) == 2
        assert {event.output for event in store.of_kind(Failed)} == {"licence?"}
        assert len(store.of_kind(Hosted)) == 2
    assert "(2 runs, on f0, f1)" in why
    assert [own["host"] for own in origins.workers.values()] == ["node-0", "node-1"]
    assert {key[:2]: n for key, n in origins.worker_of.items()} == {
        ("good", "f0"): 1, ("broken", "f0"): 1, ("bad", "f1"): 2, ("broken", "f1"): 2
    }  # fmt: skip


def test_an_instance_that_was_withdrawn_is_not_offered_again(tmp_path):
    race = drive(race_of(["good", "bad"], instances=NAMES[:6]))
    race.withdraw(instance="f1", why="broken")
    race.withdraw(instance="f2", why="broken")
    race.offer(["f2"])
    merge([site(tmp_path / "1.db", race)], tmp_path / "all.db")
    with open_store(tmp_path / "all.db") as store:
        found = restore(store.read()).state.pool.names
    assert "f1" not in found
    assert "f2" in found
