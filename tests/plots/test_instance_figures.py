"""Figures of ratings by class and by features show what the posterior says."""

from dataclasses import replace

import numpy as np
import pytest

import polarbear as pb
from polarbear.reporting.content import make_document
from polarbear.reporting.page import render_document

ALGORITHMS = ("a1", "a2", "a3")


@pytest.fixture(scope="module")
def rankings():
    """On large instances a1 is the best late, and a2 early; on small ones a3 is."""
    rng = np.random.default_rng(1)
    size, noise = np.exp(rng.uniform(0, 8, 120)), rng.normal(size=120)
    high = np.log(size) - 4
    gumbel = rng.gumbel(size=(120, 3))
    costs = [
        -(np.stack([s * high, (1 - s) * high, 0 * high + 1], axis=1) + gumbel) for s in (0.0, 1.0)
    ]
    rankings = pb.simulation.rank_costs(np.stack(costs))
    kinds = np.where(size > np.exp(4), "large", "small")
    table = {"instance": rankings.instances, "size": size, "noise": noise, "kind": kinds}
    return rankings.with_instance_data(table)


@pytest.fixture(scope="module")
def by_features(rankings):
    return pb.fit(rankings, features=["size", "noise"], draws=400)


@pytest.fixture(scope="module")
def by_class(rankings):
    return pb.fit(rankings, classes="kind", draws=1000)


def test_a_curve_follows_the_most_important_feature(by_features):
    assert next(iter(by_features.importance())) == "size"
    data = pb.plots.feature_curve_data(by_features)
    assert data.feature == "size"
    assert np.all(np.diff(np.log(data.values)).round(6) > 0)
    assert data.mean[0].argmax() == 2
    assert data.mean[-1].argmax() == 0
    assert np.all((data.lower <= data.mean) & (data.mean <= data.upper))
    ax = pb.plots.feature_curve(data)
    assert (ax.get_xlabel(), ax.get_xscale()) == ("size", "log")


def test_maps_show_where_the_best_changes(by_features):
    over_time = pb.plots.best_map_data(by_features, "size", over_time=True)
    assert [ALGORITHMS[k] for k in over_time.best[:, -1]] == ["a2", "a1"]
    assert over_time.prob_best[1, -1] > 0.95
    two = pb.plots.best_map_data(by_features)
    assert (two.x_name, two.y_name, two.best.shape) == ("size", "noise", (16, 16))
    assert set(two.best[:, -1]) == {0}
    for data in (over_time, two):
        ax = pb.plots.best_map(data)
        assert {"a1", "a3"} <= {text.get_text() for text in ax.texts}


def test_the_class_table_and_the_report(by_class):
    data = pb.plots.class_table_data(by_class, 1.0)
    assert data.classes == ("large", "small")
    assert sum(data.counts) == 120
    np.testing.assert_allclose(data.mean.sum(axis=1), 1, atol=1e-4)
    assert data.best[0, 0] > 0.95
    texts = pb.plots.class_table(data).texts
    assert any(text.get_weight() == "bold" for text in texts)
    lines = by_class.verdict().splitlines()
    assert lines[0].startswith("large (")
    assert "the best at the end is a1 (" in lines[0]
    content = make_document(by_class)
    assert [one["name"] for one in content["classes"]["each"]] == ["large", "small"]
    assert "<p>large: run a" in render_document(content)  # also without JavaScript
    assert content["algorithms"] == list(ALGORITHMS)


def test_refused(by_class, by_features):
    with pytest.raises(pb.DataError, match="this posterior has classes: use class_table"):
        pb.plots.feature_curve(by_class)
    with pytest.raises(pb.DataError, match="has features, not classes"):
        pb.plots.class_table(by_features)
    with pytest.raises(pb.DataError, match="no feature named 'x'"):
        pb.plots.best_map(by_features, "x")
    with pytest.raises(pb.DataError, match=r"expected the posterior of fit\(classes=\)"):
        pb.plots.class_table(by_class.population())


def test_the_note_of_a_class_table_is_not_clipped(by_class):
    data = pb.plots.class_table_data(by_class)
    names = ("weak structure", "ill-conditioned")  # which take their part of the width
    ax = pb.plots.class_table(replace(data, classes=names, clock="evaluations", time=10_000.0))
    figure = ax.figure
    figure.canvas.draw()
    note = next(text for text in ax.texts if "comes first" in text.get_text())
    box = note.get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.width
    assert box.y1 <= figure.bbox.height
