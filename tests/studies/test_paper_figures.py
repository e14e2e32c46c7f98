"""The paper's figures, redrawn from what the studies have kept, without any solver."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")
STUDIES = Path(__file__).parents[2] / "studies"
SOLVERS = ("ioh", "modcma")
WITHOUT = f"""
import runpy, sys
for name in {SOLVERS}:
    sys.modules[name] = None  # an import fails
sys.path.insert(0, {str(STUDIES)!r})
import gpbbob.run, mabbob.run
sys.argv = ["run.py", "--quick"]
runpy.run_path({str(STUDIES / "paper" / "run.py")!r}, run_name="__main__")
"""


@pytest.mark.long
def test_figures_are_redrawn_without_solver_packages():
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    drawn = set(done.stdout.split())
    assert {"landscape.png", "inference-growth.png", "winner-paper-rounds.png"} <= drawn
    assert {f"d30-T200-paper-{what}.png" for what in ("rounds", "course", "end")} <= drawn


def test_every_figure_of_the_paper_has_a_file(monkeypatch):
    monkeypatch.syspath_prepend(STUDIES)
    from paper.run import FIGURES

    assert list(FIGURES) == [str(k) for k in range(1, 14)]
    for said in FIGURES.values():
        first, *others = [name.split(" ")[0] for name in said.split(", ")]
        path = STUDIES.parent / first
        assert all(one.exists() for one in (path, *map(path.with_name, others)))
