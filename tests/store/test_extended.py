"""Runs that were extended or tried again, through merging and repair: one run, no value lost."""

import sqlite3

import pytest

from polarbear.data.run import Run, Status
from polarbear.racing.budget import Budget
from polarbear.racing.events import Asked, Imported, Told
from polarbear.racing.jobs import RunId, job, key_of
from polarbear.racing.questions.pareto_set import ParetoSet
from polarbear.store import merge, open_store, repair_store
from racers import drive, race_of, restore, solve

WHOLE = Run("good", "f", (1.0, 2.0, 4.0), (1.0, 2.0, 3.0), 4.0)


def seen(until, status=Status.CUT, repetition=0):
    """What is seen of the run until some time."""
    time = tuple(t for t in WHOLE.time if t <= until)
    return Run("good", "f", time, WHOLE.value[: len(time)], until, repetition, status)


def asked(repetition, horizon, extends=None):
    return Asked((job(0, RunId("good", "f", repetition), horizon, extends),), repetition)


def site(path, *events):
    race = race_of(["good", "bad"], instances=["f"])
    with open_store(path) as store:
        store.append([*race.events, *events])
    return path


def extended(path, short, long):
    """A site at which a run was extended."""
    events = asked(0, short.until), Told(short), asked(1, 4.0, extends=0), Told(long)
    return site(path, *events)


def only_run(path):
    """The only run of a store, which its race also has."""
    with open_store(path, read_only=True) as store:
        (run,) = store.runs()
        (same,) = restore(store.read()).runs
    assert (key_of(run), run.until, run.status) == (key_of(same), same.until, same.status)
    return run.repetition, run.until, run.status, len(run.value)


def test_an_extension_that_crashed_early_takes_no_value_away_in_merging(tmp_path):
    path = extended(tmp_path / "1.db", seen(2.0), seen(1.0, Status.CRASHED, 1))
    assert only_run(path) == (0, 2.0, Status.CRASHED, 2)
    found = merge([path], tmp_path / "all.db")
    assert (found.runs, found.known, found.conflicts) == (1, 0, ())
    assert only_run(tmp_path / "all.db") == (0, 2.0, Status.CRASHED, 2)


@pytest.mark.parametrize("turn", [1, -1])
@pytest.mark.parametrize(
    ("there", "here", "kept"),
    [
        (seen(2.0), seen(4.0), (4.0, Status.CUT)),
        (seen(1.0), seen(4.0, Status.CRASHED), (4.0, Status.CRASHED)),
        (seen(2.0), seen(2.0, Status.CRASHED), (2.0, Status.CRASHED)),
        (seen(2.0), seen(2.0), (2.0, Status.CUT)),
    ],
)
def test_the_site_that_watched_a_run_for_longer_counts(tmp_path, there, here, kept, turn):
    paths = [
        site(tmp_path / f"{k}.db", asked(0, 4.0), Told(r)) for k, r in enumerate((there, here))
    ]
    for _ in range(2):  # merging twice is merging once
        found = merge(paths[::turn], tmp_path / "all.db")
        assert not found.conflicts
        repetition, until, status, _ = only_run(tmp_path / "all.db")
        assert (repetition, until, status) == (0, *kept)
    assert found.runs == 0


def test_a_site_goes_on_after_it_was_merged(tmp_path):
    path, into = site(tmp_path / "1.db", asked(0, 1.0), Told(seen(1.0))), tmp_path / "all.db"
    lengths = [only_run(into)[1:3] for _ in range(1) if merge([path], into)]
    for k, more in enumerate([seen(2.0, repetition=1), seen(1.5, Status.CRASHED, 2)], 1):
        with open_store(path) as store:
            store.append([asked(k, more.until, extends=0), Told(more)])
        assert not merge([path], into).conflicts
        lengths.append(only_run(into)[1:3])
    assert lengths == [(1.0, Status.CUT), (2.0, Status.CUT), (2.0, Status.CRASHED)]


@pytest.mark.parametrize(
    "other",
    [
        seen(4.0)._replace(value=(1.0, 2.0, 9.0)),
        seen(2.0)._replace(value=(1.0, 9.0)),
        seen(2.0, Status.CRASHED),  # the other site has seen it later than that
        seen(2.0, Status.FINISHED),
    ],
)
def test_sites_that_contradict_each_other_are_conflicts(tmp_path, other):
    """Also if the contradiction comes after the first attempt at the run ended."""
    paths = [
        extended(tmp_path / "1.db", seen(1.0), seen(4.0, repetition=1)),
        site(tmp_path / "2.db", asked(0, 4.0), Told(other)),
    ]
    into = tmp_path / "all.db"
    merge(paths[:1], into)
    found = merge(paths[1:], into)
    assert [conflict.refused.run for conflict in found.conflicts] == [other]
    assert only_run(into) == (0, 4.0, Status.CUT, 3)
    with open_store(into, read_only=True) as store:
        (conflict,) = store.conflicts()
        kept = list(store.read())[conflict.event - 1]
    assert key_of(kept.run)[:2] == key_of(other)[:2]


def test_a_loaded_run_that_was_extended_is_merged_as_one(tmp_path):
    events = [
        *(Imported(seen(2.0, repetition=k)._replace(value=(1.0 + k, 2.0))) for k in range(3)),
        asked(3, 4.0, extends=2),
        Told(seen(4.0, repetition=3)),
    ]
    found = merge([site(tmp_path / "1.db", *events)], tmp_path / "all.db")
    assert (found.runs, found.conflicts) == (3, ())
    with open_store(tmp_path / "all.db", read_only=True) as store:
        until = {run.repetition: run.until for run in store.runs()}
    assert until == {0: 2.0, 1: 2.0, 2: 4.0}


def damaged(path, event):
    """A store without one of its events."""
    connection = sqlite3.connect(path, isolation_level=None)
    for table in ("events", "runs", "trajectories"):
        connection.execute(f"DELETE FROM {table} WHERE seq = ?", (event,))
    connection.close()
    return path


FIRST = len(race_of(["good", "bad"], instances=["f"]).events) + 1


@pytest.mark.parametrize("lost", range(FIRST, FIRST + 4))
def test_repair_makes_one_run_of_an_extended_one(tmp_path, lost):
    """Whichever event is lost: who asked, the run, who asked for more, the extension."""
    path = extended(tmp_path / "1.db", seen(2.0), seen(4.0, repetition=1))
    repair_store(damaged(path, lost), tmp_path / "new.db")
    until = 2.0 if lost == FIRST + 3 else 4.0
    assert only_run(tmp_path / "new.db")[:2] == (0, until)


@pytest.mark.parametrize("lost", range(FIRST, FIRST + 4))
def test_repair_makes_one_run_of_one_that_was_tried_again(tmp_path, lost):
    events = (
        asked(0, 4.0),
        Told(seen(1.0, Status.CRASHED)),
        Asked((job(0, RunId("good", "f", 1), 4.0),), 0),
        Told(seen(4.0, repetition=1)),
    )
    repair_store(damaged(site(tmp_path / "1.db", *events), lost), tmp_path / "new.db")
    with open_store(tmp_path / "new.db", read_only=True) as store:
        race = restore(store.read())
        assert store.status().n_wanted == len(race.state.progress.wanted)
    race.ask()
    joined = race._ranked_runs._join_runs("f", (), race.state.ledger)
    counted = [run.until for run in joined if run.algorithm == "good"]
    if lost != FIRST + 3:
        assert counted in ([], [4.0])
        assert RunId("good", "f", 0) not in race.state.progress.wanted
    found = merge([tmp_path / "new.db"], tmp_path / "all.db")
    if lost == FIRST + 3:  # the first attempt counts no more, and the second has not arrived
        assert found.runs == 0
    else:
        assert only_run(tmp_path / "all.db")[:2] == (0, 4.0)


def test_a_run_that_fails_is_tried_again_under_a_number_that_is_free():
    """Its next number may be one of a run that was loaded; the race waited for it for ever."""
    race = race_of(
        ["good", "bad"],
        instances=["f", "g"],
        question=ParetoSet(),
        budget=Budget(retries=1, batch=(1, 1)),
    )
    (first, *_) = [job for job in race.ask() if job.algorithm == "good"]
    race._record(Imported(solve(first._replace(repetition=1, seed=5))))
    for one in race.ask():
        race.tell(one.run([], [], until=0.0, status=Status.CRASHED))
    again = {one.key for one in race.ask()}
    assert first.key._replace(repetition=2) in again
    assert drive(race).ended
