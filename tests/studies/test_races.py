"""What studies keep of a race."""

import numpy as np
import pytest
from tools.races import course, keep, load, load_all, reached
from tools.summaries import tables

import polarbear as pb


def test_rounds_eliminations_and_how_long_everybody_ran():
    truth = np.array([[2.0, 0.0, -2.0], [1.5, 0.5, -2.0]])
    runs = pb.simulation.simulate_runs(truth, 60, persistence=np.inf, times=np.array([1.0, 2.0]))
    found = pb.replay(runs, pb.ParetoSet(certainty=0.95), times=[1.0, 2.0])
    rounds = course(found.events)
    assert len(rounds) == found.rounds
    assert rounds[-1]["runs"] == found.spent.runs
    assert rounds[-1]["instances"] == len(found.runs.instances)
    out = [tuple(one) for each in rounds for one in each["eliminated"]]
    assert out == [(one.algorithm, one.rival, one.probability) for one in found.eliminated.values()]
    assert rounds[-1]["settled"] == sorted(found.pareto)
    number = reached(found.runs, [1.0, 2.0])
    for k, name in enumerate(found.runs.algorithms):
        until = found.runs.until[found.runs.algorithm == k]
        assert number[name] == [int(np.sum(until >= t)) for t in (1.0, 2.0)]


@pytest.mark.slow
def test_a_race_is_kept_in_small_files(tmp_path):
    def good(job):
        yield 1, job.instance
        yield 2, job.instance - 1

    def bad(job):
        yield 1, job.instance + 1

    store, folder = tmp_path / "race.db", tmp_path / "results"
    instances = [float(k) for k in range(30)]
    options = {"direction": "minimize", "store": store, "executor": 1, "clock": "evaluations"}
    facts = keep(pb.race([good, bad], instances, [1, 2], **options), folder, dimension=3)
    assert load(folder)["rounds"] == facts["rounds"]
    assert list(load_all(tmp_path)) == ["results"]
    assert (folder / "story.npz").exists()
    assert facts["pareto"] == ["good"]
    assert facts["dimension"] == 3
    with np.load(folder / "positions.npz", allow_pickle=False) as file:
        assert file["position"].shape == (2, facts["instances"], 2)
    text = "\n".join(tables(facts, "evaluations"))
    assert "| bad | eliminated by good" in text
    assert "| good | all pairs settled" in text
