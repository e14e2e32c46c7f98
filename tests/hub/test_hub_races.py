"""Whole races of simulated workers: killed, late, twice, cut off, and false."""

import random
import time
from dataclasses import replace

import pytest

from hubs import RULES, Worker, ask, hub_of, race_alone
from polarbear.cli.main import main
from polarbear.hub.board import Policy


def run_all(hub, workers, each=lambda: None):
    end = time.monotonic() + 60
    while not hub.is_over:
        assert time.monotonic() < end, "the race does not end"
        for worker in workers:
            worker.work()
        each()


def assert_same_race(hub, alone):
    result = hub.result
    assert result.pareto == alone.pareto
    assert result.eliminated == alone.eliminated
    assert hub.runs == alone.runs


def assert_each_run_once(hub):
    told = [event.run for event in hub.events if type(event).__name__ == "Told"]
    keys = [(run.algorithm, run.instance, run.repetition) for run in told]
    assert len(keys) == len(set(keys)) == hub.result.n_runs


def test_a_race_decides_as_with_one_local_worker(tmp_path, capsys):
    with hub_of(tmp_path) as hub:
        run_all(hub, hub.workers(4))
    assert_same_race(hub, race_alone())
    assert_each_run_once(hub)
    assert hub.count("workers WHERE state = 'quarantined'") == 0
    assert 0 < hub.count("jobs WHERE agreed > 1") < hub.count("jobs")
    assert main(["contributors", str(hub.path), "--residuals", str(hub.store)]) == 0
    residuals = capsys.readouterr().out
    assert residuals.count(" runs  mean ") == 4
    assert "deviates" not in residuals


def test_kills_restarts_duplicates_and_late_results(tmp_path):
    """Nothing is lost and nothing counts twice, whatever happens to workers and the server."""
    rng = random.Random(1)
    policy = Policy(heartbeat_seconds=0.01, lease_seconds=0.05)
    with hub_of(tmp_path, policy=policy) as hub:
        workers = hub.workers(6)
        late = []

        def disturb():
            worker = rng.choice(workers)
            if worker.id and not worker.is_refused:
                worker.lease()
                if rng.random() < 0.5:  # it is thought dead, and reports later, or twice
                    late.append((worker, worker.results()))
                worker.jobs = []  # or it is killed
            if late and rng.random() < 0.5:
                worker, items = late.pop(rng.randrange(len(late)))
                for _ in range(2):
                    worker.call("results", results=items)
            if rng.random() < 0.1:
                hub.restart()

        run_all(hub, workers, disturb)
    assert_same_race(hub, race_alone())
    assert_each_run_once(hub)
    assert hub.count("workers WHERE state = 'quarantined'") == 0


def falsify(by):
    """Claim values that are better by this.

    Workers that falsify by the same amount could confirm each other, against which only a trusted
    worker helps; this race has none.
    """
    return lambda run: run._replace(value=[value + by for value in run.value])


def replay(run):
    """Report an old trajectory under the name of each new job."""
    return run._replace(value=[1.0, 31.0, 61.0][: len(run.value)])


def modify(run):
    """Run a solver that differs a little."""
    return run._replace(value=[value + 1e-9 for value in run.value])


@pytest.mark.slow
def test_of_20_workers_5_are_false_and_decisions_are_those_of_the_honest_race(tmp_path):
    rules = replace(RULES, certainty=0.9999, batch=(32, 64), max_runs=900)
    with hub_of(tmp_path, audit_share=0.2, rules=rules) as hub:
        honest = hub.workers(15)
        false = [
            Worker(honest[0].app, worker.token, change=change, honest_for=honest_for)
            for worker, change, honest_for in zip(
                hub.workers(5, "liar"),
                (falsify(4), falsify(5), falsify(6), replay, modify),
                (0, 6, 9, 5, 7),  # some are honest until they are trusted
                strict=True,
            )
        ]
        workers = [*honest, *false]
        random.Random(2).shuffle(workers)
        run_all(hub, workers)
    quarantined = {
        row[0] for row in hub.file.read("SELECT id FROM workers WHERE state != 'active'")
    }
    alone = race_alone(rules)
    assert {worker.id for worker in false} >= quarantined
    lied = [worker for worker in false if worker.made > worker.honest_for]
    assert {worker.id for worker in lied} == quarantined
    assert len(lied) == 5
    result = hub.result
    assert (result.pareto, {*result.eliminated}) == (alone.pareto, {*alone.eliminated})
    # Runs that replace withdrawn ones have the same seeds, so every value is an honest one.
    # Which runs are extended depends on what is known when, so the shorter one is compared.
    honest_values = {(r.algorithm, r.instance): r.value for r in alone.runs}
    for run in hub.runs:
        expected = honest_values.get((run.algorithm, run.instance), run.value)
        n = min(len(expected), len(run.value))
        assert list(run.value[:n]) == list(expected[:n])
    # The hub's secret is random, and so is when a liar is found. A lie that a look has used can
    # make the race longer, so the bound follows the jobs of this race: two reports for each, the
    # known results that a new worker gets, and one more report for each false one.
    n_made, n_jobs = sum(worker.made for worker in workers), hub.count("jobs")
    n_false = sum(worker.made - worker.honest_for for worker in false)
    n_expected = 2 * n_jobs + Policy().canaries * len(workers) + n_false
    assert n_made <= n_expected, f"{n_made} runs were made for {n_jobs} jobs"


def test_withdrawn_results_are_replaced_with_the_same_seed():
    from racers import race_of
    from racers import solve as solve_racers

    race = race_of()
    jobs = race.ask()
    for job in jobs:
        race.tell(solve_racers(job))
    pair = jobs[0].key[:2]
    assert race.withdraw(pairs=[pair], why="false", same_seeds=True) == 1
    again = next(job for job in race.ask() if job.key[:2] == pair)
    assert (again.repetition, again.seed) == (1, jobs[0].seed)
    race.tell(solve_racers(again))
    race.withdraw(pairs=[pair], same_seeds=True)
    assert next(job.seed for job in race.ask() if job.key[:2] == pair) == jobs[0].seed
    assert type(race).from_events(race.events).ask() == race.ask()


def test_a_race_waits_for_a_second_worker_to_confirm(tmp_path):
    with hub_of(tmp_path) as hub:
        first, second = hub.workers(2)
        first.work()
        while first.work():
            pass
        assert hub.count("jobs WHERE state = 'accepted'") == 0  # on probation: none is confirmed
        status, answer = ask(hub.app, "status", b"{}", token=first.token)
        assert (status, answer["waiting"] > 0, answer["workers"]) == (200, True, 1)
        run_all(hub, [first, second])
    assert_same_race(hub, race_alone())
