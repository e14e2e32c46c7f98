"""What new users do first: plan and race solvers, or analyse a table of solved tasks."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from polarbear.cli.main import main

EXAMPLE = Path(__file__).parents[2] / "examples" / "plan_and_race.py"

RACE = """
times = { from = 0.05, to = 0.3, n = 5 }
direction = "minimize"
clock = "wall"
store = "race.db"
solvers.default.python = "plan_and_race:default"
solvers.heuristics.python = "plan_and_race:heuristics"
solvers.plain.python = "plan_and_race:plain"
instances.python = "plan_and_race:instances"
"""


@pytest.mark.slow
def test_a_plan_then_a_race_of_configurations_of_highs(tmp_path, capsys):
    pytest.importorskip("highspy")
    shutil.copy(EXAMPLE, tmp_path)
    path = tmp_path / "race.toml"
    path.write_text(RACE)
    assert main(["plan", str(path)]) == 0
    planned = capsys.readouterr().out
    assert "plan of a race of 3 algorithms on 12 instances" in planned
    assert re.search(r"with 12 instances a rival that loses 70 % is dropped in .* % of", planned)
    assert re.search(r"needed +\d+ to \d+ instances", planned)
    assert "at most 36 runs, 10.8 seconds in all" in planned
    assert main(["race", str(path), "--workers", "2", "--quiet"]) == 0
    answer = capsys.readouterr().out
    for name in ("default", "heuristics", "plain"):
        assert re.search(rf"^ .* {name} is ", answer, re.MULTILINE)  # a plain statement of each
    assert re.search(r"^  run +(default|heuristics|plain)\b", answer, re.MULTILINE)
    assert "What to run if you stop here" in answer
    assert f"polarbear report {tmp_path / 'race.db'} --open" in answer
    if "pairs open" in answer:
        assert re.search(r"^  to settle +about .* more instances? \(.* to ", answer, re.MULTILINE)


def test_from_a_table_of_solved_tasks_to_the_ribbon_in_one_command(tmp_path, capsys):
    rng, lines = np.random.default_rng(0), ["model,task,solved,cost"]
    for task in range(60):
        hard = rng.normal()
        for model, skill, dollars in (("small", 0.5, 0.02), ("large", 2.5, 0.4)):
            solved = rng.random() < 1 / (1 + np.exp(hard - skill))
            lines.append(f"{model},task-{task},{int(solved)},{dollars * rng.exponential():.5f}")
    path = tmp_path / "board.csv"
    path.write_text("\n".join(lines) + "\n")
    assert main(["analyse", str(path)]) == 0
    answer, notes = capsys.readouterr()
    assert "'solved' as solved or not, and 'cost' as the cost in dollars" in " ".join(notes.split())
    assert "What to run if you stop here" in answer
    assert re.search(r"^Run small: the best choice .* to .* dollars", answer, re.MULTILINE)
