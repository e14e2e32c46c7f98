"""Tolerances and weights of instances in fits, races, replays, stores and commands."""

import json

import pytest

import polarbear as pb
from polarbear.cli.main import main
from polarbear.racing.events import from_json, to_json
from polarbear.racing.model import Model
from polarbear.running.solvers.configuration import load
from racers import fitted, restore

NEAR = {"a": 1.000, "b": 1.004, "c": 3.0}


def runs():
    """On every instance a and b are nearly the same, and c is far behind."""
    made = [pb.Run(name, f"f{k}", [1], [v], 1) for k in range(24) for name, v in NEAR.items()]
    return pb.Runs.from_records(made, direction="minimize")


def split_runs():
    """On f0 to f5 a is ahead of b, on f6 to f23 b of a."""
    made = [pb.Run(n, f"f{k}", [1], [v], 1) for k in range(24) for n, v in (("a", k), ("b", 5.5))]
    return pb.Runs.from_records(made, direction="minimize")


def test_values_within_a_tolerance_tie_in_fit_and_replay():
    data = runs()
    assert pb.fit(data, draws=500).prob_better("a", "b")[0] > 0.99
    tied = pb.fit(pb.rank(data, rel_tol=0.01), draws=500)
    assert 0.3 < tied.prob_better("a", "b")[0] < 0.7
    assert tied.prob_better("a", "c")[0] > 0.99
    assert pb.replay(data).pareto == ("a",)
    assert pb.replay(data, fitted(None, {"rel_tol": 0.01})).pareto == ("a", "b")
    with pytest.raises(pb.DataError, match="fit has no rel_tol=: pass it to rank"):
        pb.fit(pb.rank(data), rel_tol=0.01)


def test_a_function_that_fits_is_given_the_rankings_of_the_race():
    """As the page of a running race restores it, which keeps posteriors."""
    raced = pb.replay(runs(), fitted(None, {"rel_tol": 0.01}))
    given = []

    def fit(rankings, *, seed):
        given.append(rankings)
        return pb.fit(rankings, seed=seed, draws=500)

    stored = [from_json(to_json(event)) for event in raced.events]
    posterior = restore(stored, fit=fit).posterior
    assert given
    assert 0.3 < posterior.prob_better("a", "b")[0] < 0.7


def test_weights_of_instances_in_fit_and_replay():
    data = split_runs()
    assert pb.fit(data, draws=500).prob_better("b", "a")[0] > 0.9
    weights = {f"f{k}": 0.0 for k in range(6, 24)}
    weighted = pb.fit(pb.rank(data, weights=weights), draws=500)
    assert weighted.prob_better("a", "b")[0] > 0.9
    race = pb.replay(data, fitted(pb.ParetoSet(certainty=0.9), {"weights": weights}))
    assert race.posterior is not None
    assert race.posterior.prob_better("a", "b")[0] > 0.9


@pytest.mark.slow
def test_they_are_recorded_and_compared_on_resume(tmp_path):
    fit = {"rel_tol": 0.01, "abs_tol": 1e-6, "weights": {"f1": 2, "f2": 0.5}}
    model = Model.of(fit)
    assert Model.from_plain(json.loads(json.dumps(model.to_plain()))) == model
    assert model.rank_options()["weights"] == {"f1": 2.0, "f2": 0.5}
    assert "rel_tol the default and not 0.01" in Model().describe_differences(model)
    race = pb.Race(
        list("abc"),
        [1],
        direction="minimize",
        instances=["f1", "f2"],
        question=pb.ParetoSet(fit=fit),
    )
    assert pb.Race.from_events(race.events).events[0].model == model
    solvers = dict.fromkeys("ab", _solver)
    options = {"direction": "minimize", "budget": pb.Budget(runs=4), "clock": "reported"}
    pb.race(
        solvers,
        ["f1", "f2"],
        [1],
        store=tmp_path / "r.db",
        question=pb.ParetoSet(fit=fit),
        **options,
    ).close()
    with pytest.raises(pb.errors.PolarBearError, match=r"rel_tol 0\.01 and not the default"):
        pb.race(solvers, ["f1", "f2"], [1], store=tmp_path / "r.db", **options)


def test_they_are_said_in_the_file_of_a_race(tmp_path):
    (tmp_path / "race.toml").write_text(
        'times = [1]\ndirection = "minimize"\nclock = "reported"\n'
        '[solvers.a]\ncommand = ["true", "{instance}"]\npattern = "(?P<time>.) (?P<value>.)"\n'
        '[instances]\nnames = ["f1", "f2"]\n[fit]\nrel_tol = 0.01\n[fit.weights]\nf1 = 2\n'
    )
    question = load(tmp_path / "race.toml").question
    assert question.model.rank_options() == {"rel_tol": 0.01, "weights": {"f1": 2.0}}


def _solver(job):
    job.report(1, 1.0)


@pytest.mark.parametrize(
    ("fit", "why"),
    [
        ({"rel_tol": 1}, "tolerances must be"),
        ({"abs_tol": "x"}, "must be numbers"),
        ({"weights": {"f1": -1}}, "weight -1.0 of instance 'f1' is not a number >= 0"),
        ({"weights": 3}, "weights=3: expected a mapping"),
    ],
)
def test_what_is_refused(fit, why):
    with pytest.raises(pb.DataError, match=why):
        pb.Race(["a", "b"], [1], direction="minimize", question=pb.ParetoSet(fit=fit))


def test_options_of_commands(tmp_path, capsys):
    runs().to_csv(tmp_path / "r.csv")
    data = [str(tmp_path / "r.csv"), "--direction", "minimize", "--json"]
    for options, pareto in [([], ["a"]), (["--rel-tol", "0.01"], ["a", "b"])]:
        assert main(["replay", *data, *options]) == 0
        assert json.loads(capsys.readouterr().out)["pareto"] == pareto
    split_runs().to_csv(tmp_path / "r.csv")
    weights = [word for k in range(6, 24) for word in ("--weight", f"f{k}=0")]
    assert main(["select", *data, *weights]) == 0
    assert json.loads(capsys.readouterr().out)["algorithms"] == ["a"]
    with pytest.raises(SystemExit):
        main(["select", *data, "--weight", "f1"])
    assert "expected a name and its value" in capsys.readouterr().err
