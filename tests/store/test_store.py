"""A store keeps what was appended, once, in order, through anything; on SQLite and PostgreSQL."""

import itertools
import math
import os
import tracemalloc

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from killing import fork
from polarbear.data.run import Run, Status
from polarbear.errors import DataError, StoreError
from polarbear.inference.verdicts import Verdict
from polarbear.racing.budget import Budget
from polarbear.racing.decisions import Decision, Open
from polarbear.racing.events import (
    Added,
    Asked,
    Decided,
    Extended,
    Imported,
    Offered,
    Removed,
    Started,
    Told,
)
from polarbear.racing.jobs import RunId, job
from polarbear.racing.model import Model
from polarbear.racing.questions.pareto_set import ParetoSet
from polarbear.racing.state import key_of
from polarbear.store.opening import open_store
from polarbear.store.race_status import StoreStatus
from racers import drive, race_of, restore, solve

BEGIN = Started(
    7, (1.0, 2.0, 4.0), "minimize", "evaluations", False, ParetoSet(), Budget(time=1e9), Model()
)
ODD = ["a", "b", "1", "Robert'); DROP TABLE runs;--", "$(reboot)", "../../etc/passwd", "naïve 🐻",
       "line\nbreak", "nul\0byte", '"quoted"', "--option", "%s ? {0}", " "]  # fmt: skip


def run_of(algorithm="a", instance="i", repetition=0, *, value=1.0, status=Status.CUT):
    return Run(algorithm, instance, (1.0, 2.5), (value + 1, value), 4.0, repetition, status)


NUMBERS = st.floats(allow_nan=False) | st.sampled_from([-0.0, 5e-324, math.inf, -math.inf])


@st.composite
def runs(draw):
    rows = draw(st.lists(st.tuples(st.floats(0, 1e300), NUMBERS), max_size=6))
    return Run(
        draw(st.sampled_from(ODD)),
        draw(st.sampled_from(ODD)),
        tuple(time for time, _ in rows),
        tuple(value for _, value in rows),
        max([0.0, *(time for time, _ in rows)]),
        draw(st.sampled_from([0, 1, -1, 2**63 - 1])),
        draw(st.sampled_from(Status)),
    )


SMALL = st.one_of(
    st.sampled_from(ODD).map(Added),
    st.builds(Removed, st.sampled_from(ODD), st.text(st.characters(codec="utf-8"))),
    st.lists(st.sampled_from(ODD)).map(lambda names: Offered(tuple(names))),
    st.sampled_from(ODD).map(lambda name: Asked((job(3, RunId(name, name, 0), 4.0),), 1)),
    st.just(Extended(ParetoSet(certainty=0.9, errors="whole_race"), Budget(runs=9))),
    st.just(
        Decided(
            0,
            Decision(
                (Open("b", "1", 0b111),),
                8,
                verdicts=(Verdict("a", "dominated", 0.99, rival="b"),),
                problems=("no",),
            ),
        )
    ),
)
EVENTS = st.one_of(SMALL, runs().map(Told), runs().map(Imported))


class Keeping(RuleBasedStateMachine):
    """A store against a list."""

    where: str

    def __init__(self):
        super().__init__()
        self.model = [BEGIN]
        self.first = {}
        self.refused = set()
        self.store = open_store(self.fresh())
        self.store.append([BEGIN])

    def fresh(self):
        raise NotImplementedError

    @rule(events=st.lists(EVENTS, max_size=5))
    def append(self, events):
        self.store.append(events)
        for event in events:
            if isinstance(event, Told | Imported):
                kept = self.first.setdefault(key_of(event.run), event)
                if kept is not event:
                    if differs(kept.run, event.run):
                        self.refused.add((key_of(event.run), repr(event)))
                    continue
            self.model.append(event)

    @rule(data=st.data())
    def append_again(self, data):
        told = [event for event in self.model if isinstance(event, Told | Imported)]
        if told:
            some = data.draw(st.lists(st.sampled_from(told), max_size=3))
            self.store.append(some)

    @rule()
    def reopen(self):
        self.store.close()
        self.store = open_store(self.place)

    @rule()
    def read(self):
        assert list(self.store.read()) == self.model
        assert self.store.n_events == len(self.model)

    @rule()
    def read_elsewhere(self):
        with open_store(self.place, read_only=True) as reader:
            assert list(reader.read()) == self.model

    @rule()
    def conflicts(self):
        found = {(key_of(r.refused.run), repr(r.refused)) for r in self.store.conflicts()}
        assert found == self.refused
        events = list(self.store.read())
        for conflict in self.store.conflicts():
            assert key_of(events[conflict.event - 1].run) == key_of(conflict.refused.run)

    @rule()
    def look(self):
        seen = self.store.status()
        told = [event.run for event in self.model if isinstance(event, Told | Imported)]
        assert seen.n_runs == len(told)
        assert seen.store.n_conflicts == len(self.refused)
        for name, own in seen.store.run_statuses.items():
            for status, number in own.items():
                assert number == sum((r.algorithm, r.status) == (name, status) for r in told)

    def teardown(self):
        self.store.close()


def differs(first, second):
    """Whether two runs of one key are not the same, to the bit."""

    def bits(run):
        return np.array([*run.time, *run.value, run.until]).tobytes(), run.status

    return bits(first) != bits(second)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_store_is_a_list_without_doubles(kind, request, tmp_path):
    numbers = itertools.count()

    class Machine(Keeping):
        def fresh(self):
            self.place = str(tmp_path / f"{next(numbers)}.db")
            return self.place

    class Remote(Keeping):
        def fresh(self):
            self.place = f"{url}#machine-{next(numbers)}"
            return self.place

    if kind == "postgresql":
        url = request.getfixturevalue("server").url
    run_state_machine_as_test(
        Remote if kind == "postgresql" else Machine,
        settings=settings(
            max_examples=12,
            stateful_step_count=20,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )


def test_a_race_goes_on_where_its_store_ends(where):
    whole = drive(race_of(seed=3))
    stored = 0
    while True:
        with open_store(where) as store:  # the same call again and again
            race = restore(store.read()) if store.n_events else race_of(seed=3)
            before = store.n_events
            for _ in range(3):
                jobs = race.ask()
                for wanted in jobs[:7]:
                    race.tell(solve(wanted))
                store.append(race.events[before:])
                before = len(race.events)
            stored = store.n_events
            if not jobs:
                break
    assert stored == len(race.events)
    assert set(map(key_of, race.runs)) == set(map(key_of, whole.runs))
    assert race.pareto == whole.pareto
    assert race.eliminated == whole.eliminated
    with open_store(where, read_only=True) as store:
        light = restore(store.read(arrays=True))
    assert light.runs == race.runs
    assert (light.eliminated, light.spent) == (race.eliminated, race.spent)
    with open_store(where, read_only=True) as reader:
        assert reader.runs() == race.runs
        seen = reader.status()
        assert list(seen.verdicts) == race.verdicts()
        assert seen == StoreStatus(**vars(race.status), store=seen.store)
        assert seen.n_wanted == 0
        assert "is dominated by" in str(seen)


def test_the_status_knows_what_is_wanted(store):
    race = race_of(seed=3)
    jobs = race.ask()
    race.tell(solve(jobs[0]))
    race.remove("bad", "to see")
    store.append(race.events)
    seen = store.status()
    assert seen.n_wanted == len(race.ask()) < len(jobs) - 1
    assert (seen.removed, seen.store.last_event, seen.store.epoch) == (("bad",), "removed", 1)
    assert f"process {os.getpid()} on " in seen.store.holder
    race.extend(ParetoSet(certainty=0.95, errors="whole_race"), budget=Budget(runs=400))
    drive(race)
    race.add("bad")
    store.append(race.events[store.n_events :])
    seen = store.status()
    assert list(seen.verdicts) == race.verdicts()


def test_one_store_for_each_race(store):
    with pytest.raises(StoreError, match="holds no race yet"):
        store.status()
    with pytest.raises(StoreError, match="holds no race yet"):
        store.runs()
    with pytest.raises(DataError, match="needs an event Started as its first event"):
        store.append([Added("a")])
    store.append([BEGIN])
    assert len(store.runs()) == 0
    with pytest.raises(DataError, match="holds a race already"):
        store.append([BEGIN])
    with pytest.raises(DataError, match="expected an event of a race to store"):
        store.append(["hello"])
    assert list(store.read()) == [BEGIN]


def test_what_cannot_be_a_run_is_refused_and_leaves_nothing_behind(store):
    store.append([BEGIN])
    bad = [
        run_of()._replace(value=(math.nan, 1.0)),
        run_of()._replace(until=1.0),
        run_of(repetition=2**64),
        run_of("half \ud800 a character"),
        run_of(""),
        run_of()._replace(time="ab"),
    ]
    for run in bad:
        with pytest.raises(DataError):
            store.append([Added("a"), Told(run)])
    assert list(store.read()) == [BEGIN]
    store.append([Told(run_of()._replace(time=np.array([1, 2]), value=[2, 1]))])  # any numbers
    assert list(store.read())[1] == Told(Run("a", "i", (1.0, 2.0), (2.0, 1.0), 4.0, 0, Status.CUT))


def test_the_first_run_stays_and_another_one_is_remarked(store):
    store.append([BEGIN, Told(run_of())])
    store.append([Told(run_of()), Imported(run_of()), Added("a"), Told(run_of(value=3.0))])
    store.append([Told(run_of(value=3.0))])
    assert list(store.read()) == [BEGIN, Told(run_of()), Added("a")]
    assert [tuple(conflict) for conflict in store.conflicts()] == [(2, Told(run_of(value=3.0)))]
    assert "1 run came twice with different outcomes" in str(store.status())


def test_a_closed_store_and_a_reader_do_not_write(where):
    with pytest.raises(StoreError, match="no such"):
        open_store(where, read_only=True)
    store = open_store(where)
    store.append([BEGIN])
    with open_store(where, read_only=True) as reader:
        with pytest.raises(StoreError, match="for reading only"):
            reader.append([Added("a")])
        store.append([Added("a")])
        assert list(reader.read()) == [BEGIN, Added("a")]
    store.close()
    store.close()
    with pytest.raises(StoreError, match="was closed"):
        store.append([Added("b")])
    with pytest.raises(StoreError, match="was closed"):
        list(store.read())


@pytest.mark.slow
def test_a_second_coordinator_is_told_who_holds_the_store(where):
    with open_store(where) as store:
        store.append([BEGIN])
        with pytest.raises(StoreError, match=rf"written to by process {os.getpid()} on .* since"):
            open_store(where)
        store.append([Added("a")])  # and the first one notices nothing
    with open_store(where) as store:
        assert store.status().store.epoch == 2


def test_reading_is_streaming(store):
    store.append([BEGIN, *(Told(run_of(repetition=k)) for k in range(5000))])
    events = store.read()
    assert next(events) == BEGIN
    store.append([Told(run_of(repetition=5000))])  # while somebody reads
    assert sum(1 for _ in events) == 5000  # as it was when the reading started
    assert store.n_events == 5002


def test_a_child_process_does_not_use_the_store_of_its_parent(store):
    store.append([BEGIN])
    child = fork()
    if child == 0:
        try:
            store.append([Added("a")])
        except StoreError:
            store.close()
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    store.append([Added("b")])
    assert list(store.read()) == [BEGIN, Added("b")]


@pytest.mark.slow
def test_reading_takes_no_memory_and_the_status_no_trajectories(tmp_path):
    """A small version of ``benchmarks/store.py``."""
    numbers = tuple(map(float, range(50)))
    with open_store(tmp_path / "race.db") as store:
        store.append([BEGIN])
        for k in range(0, 8000, 2000):
            names = map(str, range(k, k + 2000))
            store.append([Told(Run("a", name, numbers, numbers, 50.0)) for name in names])
        tracemalloc.start()
        assert sum(1 for _ in store.read()) == 8001
        reading = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert reading < 12e6  # all events together take 28 MB
        asked = []
        store._database._connection.set_trace_callback(asked.append)
        assert store.status().n_runs == 8000
        assert asked
        assert not any("trajectories" in sql for sql in asked)


def test_a_store_says_what_its_race_is_about(tmp_path):
    race = drive(race_of(["early", "late"], seed=3))
    with open_store(tmp_path / "race.db") as store:
        store.append(race.events)
        store.accept_changes()
        assert store.times == tuple(race.times)
        assert store.model.prior == Model().prior
        assert store.n_instances == len(race.runs.instances)
        assert "race.db" in repr(store)
    with pytest.raises(StoreError, match="closed"):
        store.runs()
    assert not open_store(tmp_path / "empty.db").accept_changes()
