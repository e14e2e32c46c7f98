"""The loop that runs the programs in benchmarks/ and studies/, and the packages that they need."""

import ast
import re
import sys
import tomllib
from importlib import util
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
IMPORTED_AS = {
    "cocoex": "coco-experiment",
    "ConfigSpace": "smac",  # which needs it
    "PIL": "matplotlib",  # which needs it
    "pytensor": "pymc",
    "sklearn": "scikit-learn",
}
"""The packages whose modules have other names."""


@pytest.fixture(scope="module")
def loop():
    spec = util.spec_from_file_location("run_programs", ROOT / ".ci" / "run_programs.py")
    module = util.module_from_spec(spec)
    sys.modules["run_programs"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def write(tmp_path):
    """Write a program of a made-up study, and say how its file is called."""
    (tmp_path / "studies" / "made").mkdir(parents=True)
    (tmp_path / "studies" / "made" / "table.md").write_text("measured\n")

    def write(name, text):
        path = tmp_path / "studies" / "made" / name
        path.write_text(f'{text}\nif __name__ == "__main__":\n    main()\n')
        return path

    return write


def named_packages():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    parts = [project["project"]["dependencies"], *project["dependency-groups"].values()]
    parts += project["project"]["optional-dependencies"].values()
    lines = [line for part in parts for line in part if isinstance(line, str)]
    return {re.split(r"[\[<>=!~; ]", line)[0] for line in lines}


def test_every_program_says_what_its_small_version_costs_and_needs(loop):
    programs = loop.find_programs()
    assert {Path(one.path).parts[0] for one in programs} == {"benchmarks", "studies"}
    needed = {package for one in programs for package in one.needs}
    assert needed <= named_packages()
    assert not needed & loop.read_default_packages()
    for one in programs:
        assert "--quick" in (ROOT / one.path).read_text("utf-8"), one.path


def test_every_package_that_a_program_imports_is_in_a_group():
    own = {path.stem for path in ROOT.glob("benchmarks/*.py")} | {"polarbear"}
    own |= {path.name for path in ROOT.glob("studies/*")}
    own |= {path.stem for path in ROOT.glob("tests/support/*.py")}
    own |= {path.stem for path in ROOT.glob("studies/programs/*.py")}  # started in their folder
    for place in ("benchmarks/*.py", "studies/*/*.py"):
        for path in ROOT.glob(place):
            for name in imported(path) - own - sys.stdlib_module_names:
                package = IMPORTED_AS.get(name, name.replace("_", "-"))
                assert package in named_packages(), f"{path.name} imports {name}"


def imported(path):
    """The first parts of the modules that a file imports."""
    nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    return {name.split(".")[0] for name in names}


def test_the_cheapest_programs_are_chosen_until_the_budget_is_spent(loop):
    programs = [loop.Program(f"{k}.py", float(k), ()) for k in (1, 2, 3, 4)]
    assert loop.choose_programs(programs, 6.5) == programs[:3]
    assert loop.choose_programs(programs, float("inf")) == programs


def test_a_program_that_declares_nothing_is_refused(loop, write, tmp_path):
    write("run.py", "QUICK_CPU_SECONDS = 1\ndef main(): pass")
    write("solver.py", 'STARTED_BY = "run.py"\ndef main(): pass')
    (tmp_path / "studies" / "made" / "tables.py").write_text("NO_PROGRAM = 1\n")
    (program,) = loop.find_programs(tmp_path)
    assert program == loop.Program("studies/made/run.py", 1.0, ())
    forgotten = write("new.py", "def main(): pass")
    with pytest.raises(SystemExit, match=r"new\.py: set QUICK_CPU_SECONDS"):
        loop.find_programs(tmp_path)
    forgotten.write_text(forgotten.read_text().replace("def", 'STARTED_BY = "gone.py"\ndef'))
    with pytest.raises(SystemExit, match=r"STARTED_BY names gone\.py: no such file"):
        loop.find_programs(tmp_path)
    write("new.py", 'QUICK_CPU_SECONDS = 1\nNEEDS = ("numpy",)\ndef main(): pass')
    with pytest.raises(SystemExit, match="NEEDS names numpy, which is always installed"):
        loop.find_programs(tmp_path)


def test_programs_that_fail_or_replace_results_are_reported(loop, write, tmp_path, capsys):
    def run(text):
        write("run.py", f"QUICK_CPU_SECONDS = 1\n{text}")
        (program,) = loop.find_programs(tmp_path)
        return loop.run_program(program, tmp_path)

    assert run("def main(): print('fine')") == ""
    assert "studies/made/run.py: " in capsys.readouterr().out
    failed = run("def main(): raise ValueError('a method was renamed')")
    assert failed.startswith("ended with 1:")
    assert "ValueError: a method was renamed" in failed
    replaced = "def main(): open('studies/made/table.md', 'w').write('small')"
    assert run(replaced) == "--quick changed studies/made/table.md"


def test_packages_that_ci_installs_are_found_through_groups_and_extras(loop):
    packages = loop.read_default_packages()
    assert {"numpy", "nutpie", "matplotlib", "pytest", "ioh", "ruff", "psycopg"} <= packages
    assert not {"choix", "pymoo", "arena-rank", "httpstan"} & packages
    assert loop.find_missing(["numpy", "no-such-package"]) == ["no-such-package"]
