"""The content of the page, as data."""

import base64
import json
import re
from functools import partial
from importlib import metadata
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import polarbear as pb
from polarbear.inference.pairs import find_crossings, tabulate_pairs
from polarbear.papers.citation import render_bibtex, render_cff
from polarbear.racing.events import from_json, to_json
from polarbear.reporting import history
from polarbear.reporting.content import make_document
from polarbear.reporting.packing import find_candidates, pack_draws
from polarbear.reporting.page import render_document, render_page
from racers import drive, fitted, race_of

TYPES = {"f4": "<f4", "u2": "<u2", "u1": "u1"}


def unpacked(packed):
    flat = np.frombuffer(base64.b64decode(packed["base64"]), TYPES[packed["kind"]])
    return flat.reshape(packed["shape"])


@pytest.fixture(scope="module")
def posterior():
    mu = np.stack([np.linspace(1, -1, 6), np.linspace(-1, 1, 6), np.full(6, -3.0)], axis=1)
    rankings = pb.simulation.simulate_rankings(mu, 60, times=np.geomspace(1, 1e4, 6))
    return pb.fit(rankings, "HierarchicalDirichlet")  # a third is then behind in every draw


@pytest.fixture(scope="module")
def replay():
    truth = np.array([[2.0, 0.0, -2.0]] * 3)
    return pb.replay(pb.simulation.simulate_runs(truth, 60, persistence=np.inf))


def test_the_document_has_the_whole_posterior(posterior):
    content = make_document(posterior, certainty=0.95)
    assert content["algorithms"] == list(posterior.algorithms)
    assert [content["algorithms"][k] for k in content["pareto"]] == list(posterior.pareto(0.95))
    said = str(posterior.verdict(0.95))
    assert all(row["text"] in said for row in content["rows"])
    assert content["verdict"]["summary"] in said
    worth = posterior.prob_in_pareto()
    assert [row["probability"] for row in content["rows"]] == [worth[a] for a in ("a1", "a2", "a3")]
    assert [row["badge"] for row in content["rows"]] == ["worth running", "worth running", "drop"]
    assert content["rows"][2]["when"].startswith("never: ")
    assert_allclose(unpacked(content["ratings"]["mean"]), posterior.mean(), atol=1e-6)
    assert_allclose(unpacked(content["ratings"]["best"]) / 65535, posterior.prob_best(), atol=1e-5)
    ahead = unpacked(content["pairs"]["ahead"]) / 65535
    assert_allclose(ahead[0], posterior.prob_better("a1", "a2"), atol=1e-5)
    assert content["pairs"]["relation"] == tabulate_pairs(posterior)["relation"]
    (crossing,) = find_crossings(posterior, "a1", "a2")
    shipped = content["pairs"]["crossings"]["0"][0]
    assert (shipped["until"], shipped["since"]) == (crossing.until, crossing.since)
    assert shipped["up"] is False
    assert content["race"] is None


def make_runs_that_fail(share):
    """Return runs on 40 instances; "a" is the best, and this share of its runs crashed."""
    rng = np.random.default_rng(0)
    records = [
        {
            "algorithm": name,
            "instance": f"i{instance}",
            "time": time,
            "value": 3 * k + rng.normal() - 5 * np.log10(time),
            "status": "crashed" if name == "a" and instance < 40 * share else "cut",
        }
        for instance in range(40)
        for k, name in enumerate("abc")
        for time in (1, 10, 100, 1000)
    ]
    columns = {name: [one[name] for one in records] for name in records[0]}
    return pb.Runs.from_frame(columns, direction="minimize", status="status", clock="evaluations")


def test_failed_runs_are_in_the_first_line_and_in_the_row():
    content = make_document(pb.fit(make_runs_that_fail(0.2)))
    facts = dict(content["facts"])
    assert facts["8 of 120 runs crashed"] == "bad"
    row = content["rows"][0]
    assert (row["runs"], row["failed"], row["counts"]) == (40, 8, {"cut": 32, "crashed": 8})
    assert row["warning"].startswith("a failed in 8 of 40 runs (8 crashed). A failed run keeps")
    assert content["verdict"]["cautions"] == []  # it is said beside the answer, once
    assert content["rows"][1]["warning"] == ""
    few = make_document(pb.fit(make_runs_that_fail(0.05)))
    assert few["rows"][0]["warning"] == ""
    complete = make_document(pb.fit(make_runs_that_fail(0)))
    assert complete["facts"][2] == ("120 runs, none failed", "")


def test_the_ribbon_of_the_page_is_that_of_the_figure(posterior):
    content = make_document(posterior)
    for scale in ("log", "linear"):
        ribbon = pb.plots.ribbon_data(posterior, time=scale)
        shipped = content["ribbons"][scale]
        assert_allclose(shipped["edges"], ribbon.edges)
        assert shipped["top"] == ribbon.top.tolist()
        assert [one["start"] for one in shipped["leads"][1:]] == ribbon.switches
        assert shipped["says"] == ribbon.describe()
    assert content["is_log"]


def test_classes_have_ribbons_of_their_own():
    truth = np.repeat([[[2.0, 0.0], [0.0, 2.0]]], 60, axis=1)
    rankings = pb.simulation.simulate_rankings(np.repeat(truth, 2, axis=0), 120)
    families = {"instance": rankings.instances, "family": ["easy"] * 60 + ["hard"] * 60}
    posterior = pb.fit(rankings.with_instance_data(families), classes="family")
    classes = make_document(posterior)["classes"]
    assert classes["differ"] > 0.95
    leaders = {one["name"]: one["ribbons"]["linear"]["top"][0][0] for one in classes["each"]}
    assert leaders == {"easy": 0, "hard": 1}


def test_when_more_time_stops_paying_is_said_in_a_sentence(posterior):
    more_time = pb.selection.value_of_time(pb.example())
    said = make_document(posterior, more_time=more_time)["verdict"]["more_time"]
    assert said == f"M{str(more_time)[1:]}."
    assert said.startswith("More time still pays: at ")
    assert make_document(posterior)["verdict"]["more_time"] == ""


def test_losses_are_curves_of_known_values(posterior):
    runs = pb.simulation.simulate_runs(np.zeros((3, 3)), 10)
    losses = pb.selection.losses(runs, runs.until.max() * np.array([0.3, 0.6, 1.0]))
    shipped = make_document(posterior, losses=losses)["losses"]
    assert_allclose(shipped["median"], losses.quantile(0.5).T)
    assert shipped["algorithms"] == [0, 1, 2]


def test_packed_draws_keep_moments_and_leave_out_what_is_never_chosen(posterior):
    ratings = posterior.ratings
    codes = find_candidates(ratings, posterior.prob_dominates())
    assert codes == [0, 1]  # a3 is behind in every draw
    packed = pack_draws(ratings[::2], [0, 1, 2])
    level = unpacked(packed["levels"]).astype(float)
    draws = unpacked(packed["offset"])[..., None] + unpacked(packed["step"])[..., None] * level
    assert_allclose(draws.mean(axis=-1).T, ratings[::2].mean(axis=0), atol=1e-6)
    assert_allclose(draws.std(axis=-1).T, ratings[::2].std(axis=0), atol=1e-6)
    exact = np.moveaxis(ratings[::2], 0, -1).swapaxes(0, 1)
    wide = np.ptp(exact, axis=-1, keepdims=True)
    assert np.max(np.abs(draws - exact) / wide) < 0.01


class Shipped:
    """The ratings in a page, as an argument of ``select``."""

    def __init__(self, posterior):
        content = make_document(posterior)["draws"]
        offset, step = unpacked(content["offset"])[..., None], unpacked(content["step"])[..., None]
        curves = offset + step * unpacked(content["levels"])
        self.ratings = curves.transpose(2, 1, 0).astype(np.float32)
        self.algorithms = tuple(posterior.algorithms[k] for k in content["algorithms"])
        self.times, self.clock = posterior.times, posterior.clock


@pytest.mark.parametrize("most", [300_000, 6_000])
def test_the_shipped_draws_select_what_all_draws_select(posterior, monkeypatch, most):
    monkeypatch.setattr("polarbear.reporting.packing.MAX_DRAW_BYTES", most)
    shipped = Shipped(posterior)
    assert len(shipped.ratings) == min(len(posterior.draws), most // 12)
    near = 0.005 if most > 6_000 else 0.02
    for start, stop in combinations(np.geomspace(1, 1e4, 5), 2):
        for risk in ("expected", "best", 0.05):
            ask = pb.preferences.between(start, stop)
            exact, ours = (pb.select(one, ask, risk=risk) for one in (posterior, shipped))
            by_name = {choice.algorithms: choice for choice in exact.choices}
            assert exact.choice.score - by_name[ours.algorithms].score < near
            assert ours.choice.expected == pytest.approx(by_name[ours.algorithms].expected)
            for choice in ours.choices:
                assert choice.score == pytest.approx(by_name[choice.algorithms].score, abs=4 * near)
                assert choice.regret == pytest.approx(by_name[choice.algorithms].regret, abs=near)


def test_the_same_posterior_gives_the_same_identity(posterior):
    one, two = make_document(posterior), make_document(posterior)
    assert one["identity"] == two["identity"]
    assert make_document(posterior, certainty=0.9)["identity"] != one["identity"]


def test_the_document_of_a_race_has_its_history(replay):
    content = make_document(replay, refits=5)
    assert content["race"]["rounds"]["share"][-1] == 1.0
    assert {one["algorithm"] for one in content["race"]["out"]} == {
        content["algorithms"].index(name) for name in replay.eliminated
    }
    assert unpacked(content["race"]["dominance"]).shape == (replay.rounds, 3)
    assert {row["badge"] for row in content["rows"]} == {"worth running", "drop"}
    assert sum(one["runs"] for one in content["race"]["allocation"]) == replay.n_runs
    assert make_document(replay)["race"]["dominance"] is None  # no refits, no time spent
    again = pb.Race.from_events(replay.events)
    assert make_document(again)["race"]["rounds"] == content["race"]["rounds"]


def test_the_statuses_of_a_race_are_those_that_the_race_gave():
    """Whatever its posterior would say at another certainty."""
    truth = np.array([[0.6, 0.0, -0.4]] * 3)
    replay = pb.replay(pb.simulation.simulate_runs(truth, 24, persistence=np.inf))
    for certainty in (0.55, 0.95):
        content = make_document(replay, certainty=certainty)
        sentences = dict(zip(content["algorithms"], content["rows"], strict=True))
        assert sentences.keys() == {one.algorithm for one in replay.verdicts()}
        for name, one in sentences.items():
            verdict = replay.verdict(name)
            tones = {"member": "good", "equivalent": "good", "undecided": "doubt"}
            assert one["tone"] == tones.get(verdict.kind, "")
            assert one["text"] == f"{verdict}."


def test_a_report_after_the_end_says_what_the_undecided_lack():
    truth = np.array([[1.5, 0, 0, -1, -0.5]] + [[0.3, 0.5, 0.4, -0.8, -1]] * 3)
    replay = pb.replay(pb.simulation.simulate_runs(truth, 40, seed=0))
    content = make_document(replay)
    undecided = [one for one in replay.verdicts() if one.kind == "undecided"]
    sure = [one for one in undecided if one.probability > 0.95]
    assert replay.ended == "no instances left"
    assert sure
    for one in undecided:
        row = content["rows"][content["algorithms"].index(one.algorithm)]
        text = row["text"]
        assert one.brief() in text
        assert "not settled with " in text
        if one in sure:
            assert row["badge"] == "likely worth running"
        assert row["probability"] == pytest.approx(one.probability)
    facts = content["race"]["facts"]
    assert "racing" not in facts
    assert facts["remaining"] == ", ".join(replay.pareto)
    assert facts["open"].endswith("pairs of algorithms that remain")


def test_the_runs_of_the_table_add_up_to_what_was_spent():
    names = [f"f{k}" for k in range(12)]  # so few that runs are made again for longer
    races = (drive(race_of(instances=names, seed=seed), fails=0.1) for seed in range(20))
    race = next(one for one in races if len(one.runs) < one.n_runs)
    history = make_document(race)["race"]
    assert sum(one["runs"] for one in history["allocation"]) == race.spent.runs == race.n_runs
    assert sum(one["time"] for one in history["allocation"]) == pytest.approx(race.spent.time)
    again = race.n_runs - len(race.runs)
    assert history["facts"]["made again"].startswith(f"{again} run")


def test_a_race_that_has_not_decided_anything(tmp_path):
    race = pb.Race(["b", "a"], [1, 2], direction="minimize", clock="seconds")
    content = make_document(race)
    assert content["algorithms"] == ["a", "b"]
    said = {"cautions": [], "summary": "Nothing is decided yet.", "more_time": ""}
    assert content["verdict"] == said
    assert [row["badge"] for row in content["rows"]] == ["not compared"] * 2
    for job in race.ask()[:3]:
        race.tell(job.run([1, 2], [2.0, 1.0]))
    assert make_document(race)["race"]["facts"]["under way"] == "13 runs: b (7), a (6)"
    assert pb.report(race, tmp_path / "race.html").exists()


@pytest.mark.slow
def test_a_report_of_a_race_reads_its_store_once(tmp_path, monkeypatch):
    """Once, a report read the whole store seven times."""

    def constant(job, value):
        job.report(value + job.instance, time=1)

    solvers = {name: partial(constant, value=k) for k, name in enumerate("ab")}
    with pb.race(
        solvers,
        range(12),
        times=[1, 2],
        direction="minimize",
        clock="reported",
        store=tmp_path / "race.db",
    ) as result:
        fingerprint = history.hash_runs(result.runs)
        reads = []
        store = result._store
        for name in ("read", "runs"):
            real = getattr(store, name)
            monkeypatch.setattr(
                store,
                name,
                lambda *given, real=real, **named: reads.append(1) or real(*given, **named),
            )
        path = pb.report(result, tmp_path / "race.html")
    assert reads == [1]
    assert fingerprint in path.read_text("utf-8")


def test_a_report_needs_no_installed_metadata(posterior, tmp_path, monkeypatch):
    """A plain source tree has none; a report once ended with PackageNotFoundError."""

    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    monkeypatch.setattr("polarbear.inference.versions.version", missing)
    text = pb.report(posterior, tmp_path / "report.html").read_text("utf-8")
    assert f"polarbear-race {pb.__version__}" in text


def test_a_wrong_subject_is_refused():
    with pytest.raises(pb.DataError, match=r"not dict: make a posterior of runs with fit\(...\)"):
        pb.report({}, "report.html")  # type: ignore[arg-type]


def test_a_report_replaces_another_when_it_is_complete(posterior, tmp_path, monkeypatch):
    path = pb.report(posterior, tmp_path / "report.html", title="first", provenance={"data": "x"})
    before = path.read_text("utf-8")
    assert "<title>first</title>" in before
    assert '"data": "x"' in before
    monkeypatch.setattr("polarbear.reporting.page.render_document", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        pb.report(posterior, path)
    assert path.read_text("utf-8") == before
    assert list(tmp_path.iterdir()) == [path]


def test_many_pairs_are_reduced_to_those_that_decide_the_set(monkeypatch):
    rng = np.random.default_rng(0)
    posterior = pb.fit(pb.simulation.simulate_rankings(rng.normal(0, 2, (3, 9)), 60), draws=400)
    whole = make_document(posterior)["pairs"]
    monkeypatch.setattr("polarbear.reporting.content.MAX_PAIRS", 20)
    some = make_document(posterior)["pairs"]
    assert len(whole["first"]) == 36
    assert len(some["first"]) <= 20
    assert some["left_out"] == 36 - len(some["first"])
    pairs = set(zip(some["first"], some["second"], strict=True))
    stays = [posterior.algorithms.index(name) for name in posterior.pareto()]
    inside = {(a, b) for a in stays for b in stays if a < b}
    assert inside <= pairs or len(inside) > 20


def test_names_cannot_end_the_script_they_are_in():
    hostile = ["</script><script>alert(1)</script>", "{{script}}", "<!--", "a\u2028b"]
    race = pb.Race(hostile, [1.0], direction="minimize")
    page = render_page(race, title="</title><script>alert(2)</script>{{data}}")
    assert page.count("<script") == page.count("</script>") == 2
    assert "alert(2)" in page  # in the title, escaped
    data = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert data is not None
    assert set(json.loads(data[1])["algorithms"]) == set(hostile)


def test_only_a_live_page_may_connect_to_a_server():
    content = make_document(pb.Race(["a", "b"], [1.0], direction="minimize"))
    assert "connect-src 'none'" in render_document(content)
    assert "connect-src 'self'" in render_document(content, live=True)


def test_the_error_names_a_missing_folder(tmp_path):
    posterior = pb.fit(pb.simulation.simulate_rankings(np.eye(2), 10))
    with pytest.raises(pb.DataError, match=r"report.html: there is no folder .*nowhere"):
        pb.report(posterior, tmp_path / "nowhere" / "report.html")


def test_citation_file_and_bibtex_have_one_source():
    root = Path(__file__).parents[2]
    assert (root / "CITATION.cff").read_text("utf-8") == render_cff()
    bibtex = render_bibtex()
    assert bibtex.isascii()
    assert bibtex.count("{") == bibtex.count("}")
    assert f"version {pb.__version__}" in bibtex


def test_a_function_that_fits_is_named_without_its_address(replay):
    raced = pb.replay(replay.runs, fitted(pb.ParetoSet(certainty=0.9)))
    stored = [from_json(to_json(event)) for event in raced.events]
    for race in (raced, pb.Race.from_events(stored)):
        said = str(make_document(race)["provenance"])
        assert "ParetoSet(certainty=0.9)" in said
        assert "0x" not in said


def test_a_report_states_what_its_question_does():
    """By the paper's rule, the text and the report of one command contradicted each other."""
    posterior = pb.fit(pb.simulation.simulate_rankings(np.array([[1.0, 0.3, 0.0]] * 3), 60))
    for question in (pb.PaperParetoSet(certainty=0.9), pb.StrictParetoSet(certainty=0.9)):
        content = make_document(posterior, question=question)
        said = str(question.read_posterior(posterior))
        assert all(row["text"] in said for row in content["rows"])
        assert content["verdict"]["summary"] in said
