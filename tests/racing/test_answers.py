"""A race always answers: what is proven, likely and open, what would settle it, what to run."""

import json

import numpy as np
import pytest

import polarbear as pb
from polarbear.cli.main import main
from polarbear.racing.budget import Budget
from polarbear.racing.race import Race
from polarbear.racing.status import RaceStatus

TRUTH = np.array([[2.0, 0.0, 0.0, -2.0], [1.0, 1.0, 0.0, -2.0], [0.0, 2.0, 0.0, -2.0]])


def facts_of(text):
    """The lines of a text by their label; lines without one belong to the label before."""
    found, label = {}, ""
    for line in text.splitlines():
        if line.startswith("  ") and line[2:14].strip():
            label = line[2:14].strip()
        if line.startswith("  "):
            found.setdefault(label, []).append(line[14:])
    return found


@pytest.mark.parametrize("name", ["bbob", "cma-variants"])
def test_the_examples_end_with_a_statement_for_every_algorithm_and_what_to_run(name, capsys):
    assert main(["replay", "--example", name]) == 0
    text = capsys.readouterr().out
    facts = facts_of(text.partition("\n\n")[0])
    said = facts["proven"] + facts["likely"] + facts.get("open", [])
    for algorithm in pb.example(name).algorithms:
        (line,) = [line for line in said if line.startswith(f"{algorithm} is ")]
        assert "undecided" not in line
    assert facts["run"][0].split()[0] in text
    assert "more instances (" in facts["to settle"][0]  # a range
    assert float(facts["saved"][0].split()[0]) > 0
    assert "What to run if you stop here" in text
    assert f"polarbear report --example {name} --open" in text
    assert f"polarbear select --example {name} --at 1000" in text


@pytest.mark.parametrize(
    ("budget", "n", "ended"),
    [
        (None, 200, "resolved"),
        (None, 9, "no instances left"),
        (Budget(runs=40), 200, "budget of runs spent"),
        (Budget(time=40), 200, "budget of time spent"),
    ],
)
def test_a_race_says_what_to_run_whatever_ended_it(budget, n, ended):
    runs = pb.simulation.simulate_runs(TRUTH, n)
    race = pb.replay(runs, budget=budget, times=[0.5, 1.0])
    assert race.ended == ended
    facts = facts_of(str(race))
    assert facts["run"]
    if ended != "resolved":
        assert facts["to settle"]


def test_what_to_run_is_never_an_algorithm_that_was_dropped():
    runs = pb.simulation.simulate_runs(TRUTH, 60)
    for stage in Race.after_each_round(pb.replay(runs).events):
        status = stage.status.with_best(stage.posterior)
        if status.ribbon is not None:
            assert {*status.ribbon.algorithms} <= {*status.pareto}
            assert status.describe_run()
        again = RaceStatus.from_dict(json.loads(json.dumps(status.to_dict())))
        assert again == status
        assert str(again) == str(status)


def test_python_command_line_and_store_say_the_same(tmp_path, capsys):
    def make(skill):
        def solve(job):
            yield 1, job.rng.gumbel() + skill

        return solve

    solvers = {"good": make(0.0), "better": make(0.4), "bad": make(-4.0)}
    path = tmp_path / "race.db"
    seen = []
    with pb.race(
        solvers, range(40), [1], direction="maximize", executor=1, store=path, progress=seen.append
    ) as race:
        text, status = str(race), race.status
    assert status.ribbon is not None
    assert seen[-1].ribbon.describe() == status.ribbon.describe()
    with pb.open_store(path, read_only=True) as store:
        stored = store.status()
    assert stored.answer == status.answer
    assert main(["status", str(path)]) == 0
    said = capsys.readouterr().out
    for line in text.splitlines():
        assert line in said
    assert f"polarbear select {path} --at 1\n" in said
    ended = [one for one in seen if one.ended]
    settled = [one.n_pairs - one.counts.open_pairs for one in seen]
    assert ended
    assert settled == sorted(settled)


def test_many_algorithms_are_counted_and_not_listed():
    truth = np.tile([3.0, *np.zeros(24)], (2, 1))
    runs = pb.simulation.simulate_runs(truth, 60)
    text = str(pb.replay(runs))
    assert len(text.splitlines()) < 40
    assert " more: a" in text
