"""What benchmarks compute with: the plain pass, slopes, ratios in words. CI runs all the rest."""

import doctest
import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from polarbear.calibration.population import to_dense_positions
from polarbear.simulation import simulate_rankings
from reference import log_likelihood

FOLDER = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture
def module(monkeypatch):
    """Imports from the folder, whose modules are called what others are called elsewhere."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(FOLDER))
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if Path(getattr(sys.modules[name], "__file__", None) or "/").parent == FOLDER:
            del sys.modules[name]


def test_a_plain_pass_is_the_likelihood_and_its_gradient(module):
    rankings = simulate_rankings(np.zeros((2, 4)), 6, 1)
    order = to_dense_positions(rankings).argsort(axis=2)
    at = np.random.default_rng(2).normal(size=(2, 4))
    plain_pass = module("passes").plain_pass
    value, gradient = plain_pass(order, at)
    twin = [
        log_likelihood(rankings, dict(zip(rankings.algorithms, row, strict=True)), time)
        for row, time in zip(at.tolist(), rankings.times, strict=True)
    ]
    assert value == pytest.approx(sum(twin))
    step = np.zeros((2, 4))
    step[1, 2] = 1e-6
    slope = (plain_pass(order, at + step)[0] - plain_pass(order, at - step)[0]) / 2e-6
    assert gradient[1, 2] == pytest.approx(slope, rel=1e-6)


def test_a_ratio_beyond_its_limit_is_a_sentence(module):
    row = module("measuring").Row(
        "store", "a read", "bare SQLite", 3.0, 1.0, goal=2.0, limit=2.5, remark="A remark"
    )
    assert not row.reached
    assert row.complaint == (
        "store, a read: 3 times bare SQLite; the limit is 2.50 (3.0 s against 1.0 s of CPU)"
    )
    assert module("run").goals([row]).splitlines()[-1] == (
        "- store, a read: 3 times bare SQLite, and 2 was the goal. A remark."
    )


def test_a_limit_is_exceeded_if_it_is_every_time(module):
    measuring = module("measuring")
    row = measuring.Row
    seconds = iter([9.0, 9.0, 3.0, 8.0, 3.0, 3.0])

    def rows(quick):
        assert quick
        for what in ("read", "write"):
            yield row("store", what, "SQLite", next(seconds), 1.0, limit=4.0)

    assert [found.ours for found in measuring.repeat_beyond_limits(rows)] == [3.0, 3.0]
    assert next(seconds, None) is None  # three times, for both were disturbed once more
    slow = measuring.repeat_beyond_limits(
        lambda _: [row("store", "read", "SQLite", 9.0, 1.0, limit=4.0)]
    )
    assert slow[0].complaint


def test_examples_in_docstrings(module):
    for name in ("measuring", "growth"):
        found = doctest.testmod(module(name))
        assert found.attempted
        assert not found.failed


@pytest.mark.slow
def test_the_table_is_made_of_the_numbers_that_are_kept(module, monkeypatch, tmp_path):
    pytest.importorskip("matplotlib")
    run = module("run")
    for file in ("table.json", "table.md"):
        (tmp_path / file).write_text((FOLDER / "results" / file).read_text())
    monkeypatch.setattr(run, "RESULTS", tmp_path)
    monkeypatch.setattr(run, "NUMBERS", tmp_path / "table.json")
    kept = (tmp_path / "table.md").read_text()
    run.write()
    assert (tmp_path / "table.md").read_text() == kept
    assert (tmp_path / "growth.svg").stat().st_size > 1000
    assert json.loads(run.NUMBERS.read_text())["growth"]
