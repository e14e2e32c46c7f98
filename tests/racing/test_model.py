"""The model belongs to the race: recorded, compared on resume, used by all that reads a store."""

import json
from functools import partial

import numpy as np
import pytest

import polarbear as pb
from polarbear.cli.main import main
from polarbear.errors import DataError, StoreError
from polarbear.priors.by_name import BY_NAME
from polarbear.racing.events import Started, from_json, to_json
from polarbear.racing.model import Model
from polarbear.running.solvers.configuration import load
from racers import drive, quick_fit, race_of

GP = {"prior": pb.priors.GP(kernel="matern52"), "evidence": "rankings", "draws": 500}
WIDE = {**GP, "prior": pb.priors.Dirichlet(alpha=2.0)}


def good(job):
    for step in (1, 10, 100):
        yield step, job.instance + 1 / step


def bad(job):
    for step in (1, 10, 100):
        yield step, job.instance + 2 / step


def raced(store, **more):
    """A small race of real runs, kept in a store."""
    budget = pb.Budget(batch=(4, 4), runs=8)
    return pb.race(
        [good, bad], range(8), [10, 100], direction="minimize", budget=budget, store=store,
        executor=1, question=pb.ParetoSet(**more)
    )  # fmt: skip


@pytest.mark.parametrize("name", BY_NAME)
def test_every_prior_is_recorded_in_full(name):
    model = Model.of({"prior": name, "draws": 300})
    event = Started(0, (1.0,), "minimize", "time", True, pb.ParetoSet(), pb.Budget(), model)
    again = from_json(to_json(event))
    assert again == event
    assert again.model.make_fit().keywords["prior"] == getattr(pb.priors, name)()


def test_the_same_model_said_in_several_ways_is_the_same():
    table = {"name": "GP", "kernel": "matern52", "scale": {"name": "LogNormal", "sd": 0.5}}
    said = {"evidence": "rankings", "draws": 500}
    assert Model.of(GP) == Model.of({"prior": table, **said}) == Model.of(partial(pb.fit, **GP))
    assert Model.of(None) == Model.of({}) == Model.of(pb.fit) == Model.of({"prior": "Dirichlet"})
    assert Model.of({"method": "nuts"}).evidence == "rankings"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"prior": "GPP"}, "prior='GPP'"),
        ({"prior": {"name": "GP", "kernels": 3}}, "prior='GP'"),
        ({"prior": {"name": "GP", "kernel": "x"}}, "kernel='x': expected one of"),
        ({"prior": {"name": "GP", "scale": 3}}, "expected a distribution"),
        ({"evidence": "runs"}, "evidence='runs'"),
        ({"evidence": "instances", "method": "nuts"}, "expected 'rankings' for nuts"),
        ({"method": "magic"}, "method='magic': expected one of"),
        ({"drows": 5}, "no option 'drows'"),
        ({"seed": 5}, "is an argument of the race"),
        (5, "expected options of polarbear.fit"),
    ],
)
def test_what_fit_would_refuse_is_refused_before_anything_runs(wrong, said):
    with pytest.raises(DataError, match=said):
        Model.of(wrong)


@pytest.mark.slow
def test_a_store_knows_its_model(tmp_path, capsys):
    path = str(tmp_path / "race.db")
    with raced(path, fit=WIDE) as found:
        truth = found.posterior
    with pb.open_store(path, read_only=True) as store:
        assert store.model == Model.of(WIDE)
        again = pb.Race.from_events(store.read()).posterior
    assert np.array_equal(again.draws, truth.draws)
    assert (again.prior, again.evidence) == (truth.prior, "rankings")
    capsys.readouterr()
    assert main(["select", path, "--json"]) == 0
    assert "alpha=2.0" in json.loads(capsys.readouterr().out)["provenance"]["model"]["prior"]
    assert main(["analyse", path, "--json"]) == 0
    assert "alpha=2.0" in capsys.readouterr().out
    assert main(["report", path, str(tmp_path / "page.html")]) == 0
    assert "alpha=2.0" in (tmp_path / "page.html").read_text()
    assert main(["status", path]) == 0
    assert "alpha=2.0" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("other", [None, {**WIDE, "evidence": "instances"}, quick_fit])
def test_to_go_on_by_another_model_is_an_error_that_says_both(tmp_path, other):
    raced(tmp_path / "race.db", fit=WIDE).close()
    with pytest.raises(StoreError, match="with another model: .*rankings.* and not"):
        raced(tmp_path / "race.db", fit=other)
    raced(tmp_path / "race.db", fit=partial(pb.fit, **WIDE)).close()


def test_a_function_is_recorded_by_its_name_and_never_imported():
    race = drive(race_of())
    assert race.events[0].model == Model(function="racers.quick_fit")
    again = pb.Race.from_events([from_json(to_json(event)) for event in race.events])
    assert again.pareto == race.pareto
    (note,) = [one for one in again.posterior.diagnostics.notes if "racers.quick_fit" in one]
    assert "polarbear.fit" in note


def test_a_file_says_the_model(tmp_path):
    text = """
        times = [1, 10]
        direction = "minimize"
        [solvers.a]
        command = ["true"]
        pattern = '(?P<value>.*)'
        [instances]
        names = ["x"]
        [fit]
        prior = { name = "GP", kernel = "matern52" }
        evidence = "rankings"
        draws = 500
    """
    (tmp_path / "race.toml").write_text(text)
    assert load(tmp_path / "race.toml").question.model == Model.of(GP)
    (tmp_path / "race.toml").write_text(text.replace("draws", "drows"))
    with pytest.raises(DataError, match=r": \[fit\] .*no option 'drows'"):
        load(tmp_path / "race.toml")


@pytest.mark.parametrize("command", ["analyse", "replay", "calibration", "select", "report"])
def test_commands_that_fit_take_the_same_options(command, capsys):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    said = capsys.readouterr().out
    assert all(f"--{name}" in said for name in ("prior", "evidence", "method"))


@pytest.mark.slow
def test_a_replay_by_another_model(capsys):
    args = ["--example", "--prior", "BSpline", "--evidence", "rankings", "--json", "--times", "2"]
    args += ["--batch", "60", "60"]
    assert main(["replay", *args]) == 0
    model = json.loads(capsys.readouterr().out)["provenance"]["model"]
    assert model["evidence"] == "rankings"
    assert "BSpline" in model["prior"]
