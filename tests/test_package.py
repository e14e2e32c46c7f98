"""The package as a whole: what it costs to import, what is public, how it is laid out."""

import ast
import re
import resource
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import polarbear
from polarbear.cli.main import main

SOURCE = Path(polarbear.__file__).parent
ROOT = Path(__file__).parents[1]


def python(code, *flags):
    command = [sys.executable, *flags, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_importing_loads_nothing_of_others():
    code = "import sys, polarbear; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    loaded = set(python(code).split()) - set(python(code.replace(", polarbear", "")).split())
    assert loaded - sys.stdlib_module_names == {"polarbear"}


def test_importing_takes_less_than_twice_bare_python():
    def seconds(code):  # of CPU, for others may keep the machine busy
        start = spent()
        python(code)
        return spent() - start

    def spent():
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    pairs = [(seconds("pass"), seconds("import polarbear")) for _ in range(15)]
    assert min(ours for _, ours in pairs) < 2 * min(bare for bare, _ in pairs)


def test_a_race_is_loaded_without_modules_that_take_longer_than_the_rest():
    code = "import sys, polarbear.coordinator.run_race; print(*sys.modules)"
    assert {"scipy.stats", "scipy.interpolate", "scipy.optimize"}.isdisjoint(python(code).split())


def test_public_names_are_few_there_documented_and_nothing_else():
    assert dir(polarbear) == sorted(polarbear.__all__)
    assert len(set(polarbear.__all__) - {"__version__"}) <= 48
    for name in polarbear.__all__:
        assert getattr(polarbear, name) is not None
        assert name == "__version__" or getattr(polarbear, name).__doc__, name
    with pytest.raises(AttributeError, match="has no attribute 'fly'"):
        polarbear.fly  # noqa: B018


def test_the_command_says_its_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"polarbear {polarbear.__version__}\n"
    assert main(["--version", "--verbose"]) == 0
    first, *facts = capsys.readouterr().out.splitlines()
    assert first == f"polarbear {polarbear.__version__}"
    assert {"Python", "system", "SQLite", "numpy"} <= {line.split()[0] for line in facts}
    assert main([]) == 0
    assert "usage: polarbear" in capsys.readouterr().out


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("polarbear"):
            for alias in node.names:
                yield node.module, alias.name


@pytest.mark.slow
def test_inside_the_package_names_are_imported_from_where_they_are_defined():
    for path in SOURCE.rglob("*.py"):
        if path == SOURCE / "__init__.py":
            continue
        for module, name in imports(path):
            home = SOURCE.joinpath(*module.split(".")[1:])
            if (home / "__init__.py").exists():  # a package: only its modules may be taken from it
                assert (home / f"{name}.py").exists(), f"{path.name}: from {module} import {name}"


def test_few_rooms_and_no_module_name_twice():
    rooms = [p for p in SOURCE.iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()]
    assert len([p for p in rooms if not p.name.startswith("__")]) <= 19
    assert {p.name for p in (SOURCE / "running").iterdir() if p.is_dir()} - {"__pycache__"} == {
        "backends",
        "solvers",
        "workers",
    }
    names = [p.stem for p in SOURCE.rglob("*.py") if not p.name.startswith("__")]
    assert len(names) == len(set(names))


@pytest.fixture
def hook(monkeypatch):
    """The module that makes the metadata, without the program that builds the package."""
    interface = ModuleType("interface")
    interface.MetadataHookInterface = object
    monkeypatch.setitem(sys.modules, "hatchling.metadata.plugin.interface", interface)
    return runpy.run_path(str(ROOT / "hatch_build.py"))


def test_the_page_on_installing_lists_every_extra():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    text = (ROOT / "docs" / "how-to" / "install.md").read_text("utf-8")
    table = text[text.index("| extra |") :].partition("\n\n")[0]
    first_cells = [row.split("|")[1] for row in table.splitlines()[2:]]
    listed = re.findall("`([a-z]+)`", " ".join(first_cells))
    assert sorted(listed) == sorted(project["optional-dependencies"])


def test_links_of_the_readme_are_absolute_where_the_package_is_published(hook):
    text = (ROOT / "README.md").read_text("utf-8")
    assert hook["make_absolute"](text, "", "1.0") == text
    assert hook["make_urls"]("", "1.0") == {}
    base = "https://example.org/bear"
    published = hook["make_absolute"](text, base, "1.0")
    relative = re.findall(r"\]\((?!https?:|#)", published)
    assert len(re.findall(r"\]\((?!https?:|#)", text)) > 20
    assert not relative
    assert f"]({base}/raw/v1.0/docs/first-answer.png)" in published
    assert f"]({base}/blob/v1.0/docs/tutorials/i-have-data.md)" in published
    assert all(url.startswith(base) for url in hook["make_urls"](base, "1.0").values())
