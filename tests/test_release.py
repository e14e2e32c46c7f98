"""What a release promises: pinned workflows, tests behind the security policy, pages that run."""

import ast
import os
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
USES = re.compile(r"uses: (\S+)(.*)")


def test_every_promise_of_the_security_policy_names_tests_that_exist():
    text = (ROOT / "SECURITY.md").read_text("utf-8")
    promises = [line for line in text.splitlines() if line.startswith("| ")]
    promises = [line for line in promises if not line.startswith("| promise |")]
    assert len(promises) >= 15
    for line in promises:
        assert TEST.search(line), f"no test: {line}"
    for file, name in TEST.findall(text):
        tree = ast.parse((ROOT / file).read_text("utf-8"))
        names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        assert name in names, f"no {name} in {file}"


def test_actions_are_pinned_by_commit_and_say_their_version():
    files = [*ROOT.glob(".github/workflows/*.yml"), *ROOT.glob(".github/actions/*/action.yml")]
    uses = [match for file in files for match in USES.findall(file.read_text("utf-8"))]
    assert len(uses) >= 10
    for action, comment in uses:
        assert re.search(r"@[0-9a-f]{40}$", action), action
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment), action


def test_workflows_get_no_more_rights_than_they_name():
    yaml = pytest.importorskip("yaml")
    for file in ROOT.glob(".github/workflows/*.yml"):
        workflow = yaml.safe_load(file.read_text("utf-8"))
        assert workflow["permissions"] == {}
        for name, job in workflow["jobs"].items():
            rights = {right for right, level in job["permissions"].items() if level == "write"}
            publishes = name in ("publish", "deploy")
            assert rights <= ({"id-token", "attestations", "pages"} if publishes else set())


@pytest.mark.slow
def test_the_skill_for_coding_agents_works_to_the_letter(tmp_path, monkeypatch):
    """Its files are written and its commands are run in its order; they print what it shows."""
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    run_tutorials = pytest.importorskip("run_tutorials")
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": programs, "PYTHONWARNINGS": "error"}
    for skill in ROOT.glob("skills/*/SKILL.md"):
        head = skill.read_text("utf-8").split("---")[1]
        assert f"name: {skill.parent.name}\n" in head
        assert "description: " in head
        assert run_tutorials.follow(skill, tmp_path, environment) == []


@pytest.mark.slow
def test_the_notebook_runs_from_top_to_bottom(tmp_path):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    [path] = ROOT.glob("examples/*.ipynb")
    notebook = nbformat.read(path, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells)  # committed without
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=300, resources=resources).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert "RS is replaceable by CSA" in str(outputs)
    assert "neither is replaceable by" in str(outputs)
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert not any(output.get("name") == "stderr" for output in outputs), outputs


def test_the_paper_cites_what_it_lists_and_has_the_figures_of_the_tables():
    paper = (ROOT / "paper" / "paper.md").read_text("utf-8")
    entries = re.findall(
        r"^@\w+\{(\w+),", (ROOT / "paper" / "paper.bib").read_text("utf-8"), re.MULTILINE
    )
    assert {*re.findall(r"@([a-z]+\d{4})", paper)} == {*entries}
    assert 750 <= len(paper.split()) <= 1_250
    text = " ".join(paper.split())
    errors = (ROOT / "studies" / "error_control" / "table.md").read_text("utf-8")
    rows = [line.split(" | ") for line in errors.splitlines()[2:]]
    dropped = [row for row in rows if not row[0].startswith(("| tied:", "| kept:"))]
    largest = max(float(cell.strip(" |")) for row in dropped for cell in row[2:])
    assert f"at most {100 * largest:.1f} % of races" in text
    peers = (ROOT / "studies" / "peers" / "table.md").read_text("utf-8")
    for method, claim in (
        ("PolarBear", "13 to 31 % of all evaluations and missed 0"),
        ("F-Race, value at the end", "spent 1 to 9 % and missed 183"),
        ("F-Race at every time", "spent 53 to 75 % and missed 0."),
    ):
        [row] = [line for line in peers.splitlines() if line.startswith(f"| {method} | ")][:1]
        cells = row.split(" | ")[1::2]  # at certainty 0.95
        spent = [int(re.findall(r"(\d+) %", cell)[0]) for cell in cells]
        missed = sum(int(number) for cell in cells for number in re.findall(r"misses (\d+)", cell))
        assert f"{min(spent)} to {max(spent)} %" in claim
        assert f"missed {missed}" in claim
        assert claim in text
