"""The programs of a study, started as a user starts them."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from programs.knapsack import draw, read, write

HERE = Path(__file__).parents[2] / "studies" / "programs"


@pytest.fixture
def knapsack(tmp_path):
    path = tmp_path / "k.lp"
    write(path, *draw(np.random.default_rng(1), items=12, limits=2))
    return path


def best(path):
    """The best value there is, by looking at all sets."""
    profit, weight, capacity = read(path)
    sets = (np.arange(2 ** len(profit))[:, None] >> np.arange(len(profit))) & 1
    fits = np.all(sets @ weight.T <= capacity, axis=1)
    return -float((sets[fits] @ profit).max())


def test_files_are_read_back(tmp_path):
    made = draw(np.random.default_rng(2), items=30, limits=4)
    write(tmp_path / "k.lp", *made)
    for expected, found in zip(made, read(tmp_path / "k.lp"), strict=True):
        np.testing.assert_array_equal(found, expected)


def said_by(program, knapsack, seconds):
    """When it says what."""
    command = [sys.executable, HERE / program, knapsack, f"--seconds={seconds}", "--seed=1"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in said.splitlines()]
    assert {row[0] for row in rows} == {"o"}
    times, values = np.array([row[1:] for row in rows], dtype=float).T
    assert np.all(np.diff(times) >= 0)
    assert np.all(np.diff(values) <= 0)
    return times, values


def test_highs_ends_when_it_has_found_the_best(knapsack):
    pytest.importorskip("highspy")
    times, values = said_by("highs.py", knapsack, 60)
    assert values[-1] == best(knapsack)
    assert times[-1] < 60


def test_the_search_goes_on_to_its_end(knapsack):
    times, values = said_by("search.py", knapsack, 0.3)
    assert best(knapsack) <= values[-1] < 0
    assert times[-1] >= 0.3
