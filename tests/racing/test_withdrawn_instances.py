"""An instance that was withdrawn is not used again, and the others decide as if it never was."""

import pytest

import polarbear as pb

WORTH = {"a": 0.0, "b": 1.0}


def finish(race):
    """Make all runs that a race asks for; return the instances of these runs."""
    instances = []
    while jobs := race.ask():
        instances += [job.instance for job in jobs]
        for job in jobs:
            race.tell(job.run([1], [WORTH[job.algorithm]]))
    return instances


def race_on(n, question=None):
    names = [f"i{k}" for k in range(n)]
    return pb.Race(["a", "b"], [1], direction="minimize", instances=names, question=question)


def test_runs_under_way_on_a_withdrawn_instance_are_cancelled():
    """Once, the run of the other algorithm stayed wanted, and the first one caught up on it."""
    race = race_on(12)
    job = race.ask()[0]
    race.tell(job.run([1], [0.0]))
    race.withdraw(instance=job.instance)
    assert job.instance not in finish(race)
    assert job.instance not in race.runs.instances


def test_a_run_that_is_loaded_later_makes_nobody_catch_up():
    race = race_on(12)
    job = race.ask()[0]
    race.tell(job.run([1], [0.0]))
    race.withdraw(instance=job.instance)
    late = pb.Run("b", job.instance, [1], [1.0], until=1)
    race.load(pb.Runs.from_records([late], direction="minimize"))
    assert job.instance not in finish(race)


@pytest.mark.parametrize(
    ("question", "n", "kind"),
    [(pb.ParetoSet(), 12, "dominated"), (pb.NoWorse("a", margin=0.3), 24, "failed")],
    ids=["pareto", "gate"],
)
def test_the_test_at_the_end_is_made_on_the_other_instances(question, n, kind):
    """Once, the withdrawn instance was waited for, so a race of few instances had no end."""
    race = race_on(n, question)
    jobs = race.ask()
    for job in jobs:
        race.tell(job.run([1], [WORTH[job.algorithm]]))
    race.withdraw(instance=jobs[0].instance, why="a broken file")
    finish(race)
    assert race.ended == "resolved"
    assert race.verdict("b").kind == kind
    assert race.status.counts.instances == len(race.runs.instances) == n - 1
