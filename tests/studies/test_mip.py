"""The study of MIP solvers, with those that are installed."""

import subprocess
import sys
from pathlib import Path

import pytest
from mip.models import FAMILIES, make_model, write_mps

HERE = Path(__file__).parents[2] / "studies" / "mip"


@pytest.mark.parametrize("family", FAMILIES)
def test_models_are_within_the_limits_and_files_say_the_same(family, tmp_path):
    highspy = pytest.importorskip("highspy")
    full = make_model(f"{family}-3")
    assert full == make_model(f"{family}-3")
    assert max(len(full.cost), len(full.rows)) < 2000
    model = make_model(f"{family}-3", 0.1)
    write_mps(model, tmp_path / "m.mps")
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.readModel(str(tmp_path / "m.mps"))
    assert (highs.getNumCol(), highs.getNumRow()) == (len(model.cost), len(model.rows))
    highs.run()
    picked = [round(x) for x in highs.getSolution().col_value]
    cost = sum(c * x for c, x in zip(model.cost, picked, strict=True))
    assert cost == pytest.approx(highs.getObjectiveValue())
    for indices, coefficients, sense, limit in model.rows:
        total = sum(a * picked[j] for j, a in zip(indices, coefficients, strict=True))
        assert {"L": total <= limit, "G": total >= limit, "E": total == limit}[sense]


@pytest.mark.long
def test_the_study_runs():
    """CI runs the same command among the programs (.ci/run_programs.py)."""
    said = subprocess.run(
        [sys.executable, HERE / "run.py", "--quick"], capture_output=True, text=True, check=True
    ).stdout
    assert "Pareto set" in said
    assert "| HiGHS |" in said
