"""``Posterior``: its answers, and its one file."""

import html
import io
import json
import zipfile

import numpy as np
import pytest
from numpy.testing import assert_allclose

import polarbear as pb
from polarbear.inference.diagnostics import Diagnostics
from polarbear.inference.posterior import Posterior


@pytest.fixture(scope="module", params=["Dirichlet", "GP", "moved"])
def posterior(request):
    mu = np.stack([np.linspace(1, -1, 6), np.linspace(-1, 1, 6), np.zeros(6)], axis=1)
    rankings = pb.simulation.simulate_rankings(mu, 20, times=np.geomspace(1, 1e4, 6))
    if request.param == "moved":
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("polarbear.inference.laplace.sampling.MAX_K_HAT", -100.0)
            return pb.fit(rankings, prior=pb.priors.BSpline(), draws=1600)
    return pb.fit(rankings, prior=getattr(pb.priors, request.param)())


@pytest.mark.slow
def test_ratings_sum_to_one_and_lie_in_their_intervals(posterior):
    assert_allclose(posterior.mean().sum(axis=1), 1.0, atol=1e-5)
    lower, upper = posterior.interval(level=0.9)
    assert np.all((lower < posterior.mean()) & (posterior.mean() < upper))
    assert_allclose(posterior.mean("a2"), posterior.mean()[:, 1])
    assert_allclose(posterior.interval("a2", 0.9), [lower[:, 1], upper[:, 1]])


def test_one_of_two_is_ahead(posterior):
    ahead = posterior.prob_better("a1", "a2")
    assert_allclose(ahead + posterior.prob_better("a2", "a1"), 1.0, atol=1e-9)
    assert_allclose(posterior.prob_better()[:, 0, 1], ahead)
    assert ahead[0] > 0.9
    assert ahead[-1] < 0.1
    counted = (posterior.utilities[..., 0] > posterior.utilities[..., 1]).mean(axis=0)
    assert_allclose(ahead, counted, atol=0.05)
    assert posterior.prob_dominates("a1", "a2") < min(ahead) + 1e-6
    assert_allclose(posterior.prob_best().sum(axis=1), 1.0)


def test_nobody_is_ahead_of_oneself(posterior):
    assert_allclose(posterior.prob_better("a1", "a1"), 0.5)


def test_the_chance_to_win_is_that_of_the_ratings(posterior):
    mean, (lower, upper) = posterior.win_probability("a1", "a3")
    odds = posterior.ratings[..., 0] / (posterior.ratings[..., 0] + posterior.ratings[..., 2])
    if posterior.counted:  # duels are counted for themselves; the second pair is that of a1 and a3
        odds = posterior.wins[..., 1]
    assert_allclose(mean, odds.mean(axis=0), atol=1e-4)
    assert np.all((lower < mean) & (mean < upper))


def test_the_table_is_long_and_labelled(posterior):
    pytest.importorskip("pandas")
    table = posterior.to_frame()
    assert len(table) == 18
    assert table["algorithm"][:4].tolist() == ["a1", "a2", "a3", "a1"]
    assert table["mean"][3] == pytest.approx(posterior.mean("a1")[1])


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_the_table_is_a_data_frame(posterior, backend):
    pytest.importorskip(backend)
    frame = posterior.to_frame(backend)
    assert type(frame).__module__.startswith(backend)
    assert frame.shape == (18, 6)


@pytest.mark.parametrize("ask", [lambda p: p.mean("a4"), lambda p: p.prob_better("a1", "A2")])
def test_strangers_are_named(posterior, ask):
    with pytest.raises(pb.DataError, match="no algorithm named"):
        ask(posterior)


def test_a_level_is_a_probability(posterior):
    for level in (0, 1, 95):
        with pytest.raises(pb.DataError, match="between 0 and 1"):
            posterior.interval(level=level)


def test_it_says_what_it_is_and_whether_to_trust_it(posterior):
    said = str(posterior)
    assert "3 algorithms at 6 times" in said
    assert "trust it" in said


def test_weights_that_are_even_or_not_give_draws_that_weigh_the_same():
    draws = np.arange(8, dtype=np.float32).reshape(4, 2, 1)
    weight = np.array([[0.5, 0.25], [0.5, 0.25], [0.0, 0.25], [0.0, 0.25]], dtype=np.float32)
    apart = Posterior(("a",), np.arange(2.0), draws, weight, independent=True)
    found = apart.utilities
    assert_allclose(found[:, 0, 0], [0, 0, 2, 2])
    assert_allclose(found[:, 1, 0], [1, 3, 5, 7])


# The file


def test_what_was_saved_is_loaded(posterior, tmp_path):
    path = tmp_path / "it.zip"
    posterior.save(path)
    again = Posterior.load(path)
    assert again == posterior
    assert again.diagnostics == posterior.diagnostics
    assert_allclose(again.prob_better(), posterior.prob_better())
    assert [p.name for p in tmp_path.iterdir()] == ["it.zip"]


def test_any_name_and_any_figure_survives(tmp_path):
    draws = np.zeros((2, 1, 2), dtype=np.float32)
    names = ("../ü\n", "🐻 \ud7ff")
    said = Diagnostics({"k-hat": -np.inf, "R-hat": np.nan}, ("a problem",), ("a note",))
    weight = np.full((2, 1), 0.5, dtype=np.float32)
    odd = Posterior(names, np.zeros(1), draws, weight, diagnostics=said, hyper={"k/κ": np.ones(2)})
    odd.save(tmp_path / "odd")
    again = Posterior.load(tmp_path / "odd")
    assert again.algorithms == names
    assert again.diagnostics.measured["k-hat"] == -np.inf
    assert np.isnan(again.diagnostics.measured["R-hat"])
    assert_allclose(again.hyper["k/κ"], 1.0)


def rewritten(path, change):
    """The file with its header changed."""
    with zipfile.ZipFile(path) as file:
        entries = {name: file.read(name) for name in file.namelist()}
    header = json.loads(entries["header.json"])
    change(header, entries)
    entries["header.json"] = json.dumps(header).encode()
    with zipfile.ZipFile(path, "w") as file:
        for name, content in entries.items():
            file.writestr(name, content)


def pickled(_, entries):
    buffer = io.BytesIO()
    np.save(buffer, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    entries["times.npy"] = buffer.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda header, _: header.update(kind="cake"), "does not hold .polarbear posterior"),
        (lambda header, _: header.update(version=99), "newer PolarBear"),
        (lambda header, _: header.pop("algorithms"), "damaged"),
        (lambda header, _: header.update(algorithms=["one"]), "do not fit together"),
        (lambda header, _: header.update(diagnostics=3), "damaged"),
        (lambda _, entries: entries.pop("draws.npy"), "damaged"),
        (lambda _, entries: entries.update({"draws.npy": b"no"}), "damaged"),
        (pickled, "damaged"),
    ],
)
def test_damaged_and_foreign_files_are_refused(posterior, tmp_path, change, message):
    path = tmp_path / "it.zip"
    posterior.save(path)
    rewritten(path, change)
    with pytest.raises(pb.DataError, match=message):
        Posterior.load(path)


def stored(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def claiming(shape):
    """An array whose header claims a shape that its content does not have."""
    whole = stored(np.zeros(3))
    return whole.replace(b"(3,)" + b" " * (len(shape) - 4), shape.encode())


@pytest.mark.parametrize(
    ("entry", "content"),
    [
        ("draws.npy", claiming("(9999999999999,)")),
        ("draws.npy", claiming("(-3,)")),
        ("draws.npy", b"\x93NUMPY\x01"),
        ("draws.npy", b"\x93NUMPY\x01\x00\xff\xff{"),
        ("draws.npy", stored(np.zeros(3))),
        ("draws.npy", stored(np.zeros((2, 2, 2), dtype=int))),
        ("weight.npy", stored(np.array(["text"]))),
        ("weight.npy", stored(np.zeros(()))),
        ("times.npy", stored(np.array([np.nan, 1.0, 2.0]))),
        ("times.npy", stored(np.zeros(0))),
        ("header.json", b"[" * 200_000),
        ("header.json", b"\xff\xfe"),
        ("header.json", b'"text"'),
    ],
)
def test_crafted_entries_are_refused_in_words(posterior, tmp_path, entry, content):
    """They were a raw struct.error, RecursionError, MemoryError, or an error much later."""
    path = tmp_path / "it.zip"
    posterior.save(path)
    with zipfile.ZipFile(path) as file:
        entries = {name: file.read(name) for name in file.namelist()}
    with zipfile.ZipFile(path, "w") as file:
        for name, before in entries.items():
            file.writestr(name, content if name == entry else before)
    with pytest.raises(pb.DataError):
        Posterior.load(path)


@pytest.mark.parametrize(
    "change",
    [
        {"version": "1"},
        {"version": None},
        {"algorithms": [1, 2, 3]},
        {"algorithms": ["a1", "a1", "a1"]},
        {"algorithms": {"a1": 1}},
        {"chains": 0},
        {"chains": 7},
        {"chains": "one"},
        {"instances": -1},
        {"clock": 3},
        {"hyper": ["one", "two", "three"]},
        {"diagnostics": {"measured": {"k-hat": "many"}, "problems": [], "notes": []}},
        {"diagnostics": {"measured": {}, "problems": "text", "notes": []}},
    ],
)
def test_crafted_headers_are_refused_in_words(posterior, tmp_path, change):
    path = tmp_path / "it.zip"
    posterior.save(path)
    rewritten(path, lambda header, _: header.update(change))
    with pytest.raises(pb.DataError):
        Posterior.load(path)


@pytest.mark.parametrize(("place", "byte"), [(8, 99), (6, 1)], ids=["compression", "encrypted"])
def test_archives_that_cannot_be_unpacked_are_refused_in_words(posterior, tmp_path, place, byte):
    path = tmp_path / "it.zip"
    posterior.save(path)
    content = bytearray(path.read_bytes())
    for sign, offset in ((b"PK\x03\x04", place), (b"PK\x01\x02", place + 2)):
        content[content.index(sign) + offset] = byte
    path.write_bytes(content)
    with pytest.raises(pb.DataError):
        Posterior.load(path)


def test_a_file_that_is_none_is_refused(tmp_path):
    path = tmp_path / "text"
    path.write_text("hello")
    with pytest.raises(pb.DataError, match="not saved by PolarBear"):
        Posterior.load(path)


# Exchange


@pytest.mark.filterwarnings("ignore")
def test_draws_for_arviz_have_the_labels(posterior):
    pytest.importorskip("arviz")
    data = posterior.to_arviz()["posterior"]
    assert data["rating"].dims == ("chain", "draw", "time", "algorithm")
    mean = data["rating"].mean(("chain", "draw")).sel(algorithm="a2")
    assert_allclose(mean, posterior.mean("a2"), atol=1e-5)


@pytest.mark.filterwarnings("ignore")
def test_arviz_of_either_generation_reads_it(posterior):
    arviz = pytest.importorskip("arviz")
    data = posterior.to_arviz()
    summary = arviz.summary(data, var_names=["rating"], kind="stats")
    assert len(summary) == 18
    assert_allclose(summary["mean"].astype(float), posterior.mean().ravel(), atol=0.006)


def test_a_notebook_shows_it_and_names_stay_text(posterior):
    shown = posterior._repr_html_()
    for line in str(posterior.verdict()).split("\n"):
        assert html.escape(line) in shown
    assert shown.count("<polyline") == 3
    names = ("<b>a</b>", "b", "c")
    renamed = Posterior(names, posterior.times, posterior.draws, posterior.weight)
    assert "<b>" not in renamed._repr_html_()


def test_the_pareto_set_of_many_algorithms_needs_only_likely_pairs():
    rng = np.random.default_rng(0)
    draws = (rng.normal(size=(2, 101)) + 0.2 * rng.normal(size=(300, 2, 101))).astype(np.float32)
    names, weight = tuple(f"a{k}" for k in range(101)), np.full((300, 1), 1 / 300, np.float32)
    first, full = (Posterior(names, np.array([1.0, 2.0]), draws, weight) for _ in range(2))
    members = first.pareto(0.9)
    assert full.prob_dominates()[0, 1] >= 0  # computes all pairs
    assert full.pareto(0.9) == members
    assert 1 < len(members) < 20
