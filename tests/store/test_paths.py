"""Random races through kills, merges, repairs, newcomers and removals: no value lost, no run twice.

What was told is kept in a plain list beside the stores. Two attempts with the same seed are one
run, which needs nothing of what the race says about extensions. More of it:
``HYPOTHESIS_PROFILE=thorough pytest tests/store/test_paths.py``.
"""

import shutil
import sqlite3
import tempfile
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from polarbear.data.run import Status
from polarbear.racing.budget import Budget
from polarbear.racing.events import Asked, Decided, Told
from polarbear.racing.jobs import key_of
from polarbear.racing.questions.pareto_set import ParetoSet
from polarbear.store import merge, open_store, repair_store
from racers import race_of, restore, solve

NAMES = ("early", "late", "good")
INSTANCES = [f"f{k}" for k in range(4)]
SITES = st.integers(0, 1)


def plain(run):
    """A run as it can be compared: without its repetition."""
    return run.algorithm, run.instance, float(run.until), run.status, tuple(run.value)


def expected(told):
    """What is known of each run: attempts with one seed are one run, seen as long as any saw it."""
    attempts = defaultdict(list)
    for seed, run in told:
        attempts[run.algorithm, run.instance, seed].append(run)
    known = []
    for own in attempts.values():
        own.sort(key=lambda run: run.repetition)
        last = own[-1]
        counted = [run for run in own[:-1] if run.status == Status.CUT] + [last]
        longest = max(counted, key=lambda run: (run.until, run.repetition))
        status = longest.status if last.status == Status.CUT else last.status
        known.append(plain(longest._replace(status=status)))
    return sorted(known)


def counted(told, race):
    """Without the attempts that were made again, or whose algorithm had left."""
    return [(seed, run) for seed, run in told if key_of(run) not in race.state.ledger.superseded]


class Site:
    """A race, its store, and what was told and stored."""

    def __init__(self, path, overlap):
        question = ParetoSet(certainty=0.9)
        budget = Budget(batch=(1, 2), retries=1, runs=80, overlap=overlap)
        self.path, self.told = path, []
        self.race = race_of(NAMES, instances=INSTANCES, question=question, budget=budget, seed=2)
        self.store()

    def store(self):
        with open_store(self.path) as store:
            store.append(self.race.events)
        self.race.forget()

    def restore(self):
        with open_store(self.path, read_only=True) as store:
            self.race = restore(store.read())
            self.race.forget()

    def runs(self, path=None):
        with open_store(path or self.path, read_only=True) as store:
            return sorted(plain(run) for run in store.runs())


class Paths(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.place = Path(self.folder.name)
        self.sites = [Site(self.place / f"{k}.db", overlap=k) for k in range(2)]
        self.number = 0

    def teardown(self):
        self.folder.cleanup()

    def fresh(self):
        self.number += 1
        return self.place / f"new-{self.number}.db"

    @initialize(rounds=st.tuples(st.integers(2, 7), st.integers(0, 7)))
    def begin(self, rounds):
        for site, number in enumerate(rounds):
            self.go_on(site, number, 0, kill=False)

    @rule(
        site=SITES,
        rounds=st.integers(1, 4),
        lost=st.integers(0, 5),
        kill=st.sampled_from([False, False, True]),
    )
    def go_on(self, site, rounds, lost, kill):
        """Run some rounds; every so often a run is lost, and the end may not be stored."""
        one = self.sites[site]
        for number in range(rounds):
            jobs = one.race.ask()
            told = []
            for k, job in enumerate(jobs):
                gone = lost and k % 6 == lost
                run = job.run([], [], until=0.0, status=Status.KILLED) if gone else solve(job)
                one.race.tell(run)
                told.append((job.seed, run))
            if kill and number == rounds - 1:
                one.restore()
                return
            one.store()
            one.told += told
            assert {key_of(run) for _, run in one.told} == one.race.state.ledger.arrived
        assert one.runs() == expected(counted(one.told, one.race))

    @rule(site=SITES, name=st.sampled_from(["twin", "bad"]))
    def join(self, site, name):
        race = self.sites[site].race
        if name not in race.pareto:
            race.add(name)
            self.sites[site].store()

    @rule(site=SITES, name=st.sampled_from(["twin", "bad", "late"]))
    def leave(self, site, name):
        one = self.sites[site]
        if name in one.race.pareto and len(one.race.pareto) > 2:
            one.race.remove(name)
            one.store()

    @rule(site=SITES)
    def restart(self, site):
        self.sites[site].restore()

    @rule(order=st.permutations([0, 1]), times=st.integers(1, 2))
    def merge_sites(self, order, times):
        path = self.fresh()
        for _ in range(times):
            found = merge([self.sites[k].path for k in order], path)
        with open_store(path, read_only=True) as store:
            merged = {key_of(run)[:2]: run for run in store.runs()}
            assert len(merged) == len(store.runs())
            refused = [plain(conflict.refused.run) for conflict in store.conflicts()]
            restore(store.read()).ask()
        assert times == 1 or found.runs == 0
        for one in self.sites:
            for run in counting(one):
                kept = merged[run.algorithm, run.instance]
                seen = len(run.value)
                longer = kept.until >= run.until and tuple(kept.value[:seen]) == tuple(run.value)
                assert longer or plain(run) in refused

    @rule(site=SITES, data=st.data())
    def damage(self, site, data):
        one = self.sites[site]
        copy, new = shutil.copy(one.path, self.fresh()), self.fresh()
        with open_store(copy, read_only=True) as store:
            events = list(store.read())
        kinds = Told | Decided | Asked
        places = [k for k, event in enumerate(events, 1) if isinstance(event, kinds)]
        if not places:
            return
        lost = data.draw(st.sampled_from(places))
        connection = sqlite3.connect(copy, isolation_level=None)
        for table in ("events", "runs", "trajectories"):
            connection.execute(f"DELETE FROM {table} WHERE seq = ?", (lost,))
        connection.close()
        repair_store(copy, new)
        event = events[lost - 1]
        gone = key_of(event.run) if isinstance(event, Told) else None
        kept = [(seed, run) for seed, run in one.told if key_of(run) != gone]
        with open_store(new, read_only=True) as store:
            race = restore(store.read())
        assert one.runs(new) == expected(counted(kept, race))
        for job in race.ask():
            assert job.key not in race.state.ledger.arrived


def counting(site):
    """The runs of a site that count: of several on an instance, the last that was asked for."""
    last = {}
    for seed, run in site.told:
        last[run.algorithm, run.instance] = seed
    own = [(seed, run) for seed, run in site.told if last[run.algorithm, run.instance] == seed]
    found = defaultdict(list)
    for _, run in own:
        found[run.algorithm, run.instance].append(run)
    for attempts in found.values():
        attempts.sort(key=lambda run: run.repetition)
        end = attempts[-1]
        seen = [run for run in attempts[:-1] if run.status == Status.CUT] + [end]
        longest = max(seen, key=lambda run: (run.until, run.repetition))
        status = longest.status if end.status == Status.CUT else end.status
        yield longest._replace(status=status, repetition=0, value=np.asarray(longest.value))


@pytest.mark.slow
def test_no_path_loses_a_value_or_makes_two_runs_of_one():
    thorough = settings().max_examples > 200
    run_state_machine_as_test(
        Paths,
        settings=settings(
            max_examples=200 if thorough else 12,
            stateful_step_count=40 if thorough else 10,
            suppress_health_check=list(HealthCheck),
            deadline=None,
        ),
    )
