"""Check the built files of a release: contents, metadata, versions, recipe.

Run it as ``python -m build && python .ci/check_release.py dist``; it needs ``pip install --group
release``. ``--recipe FILE`` writes the conda recipe with the address and the hash of the sdist.
``--tag v0.1.0`` must be the version everywhere, and the changelog must have its date. It prints
what is wrong and ends with code 1.
"""

import argparse
import hashlib
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import rattler_build

ROOT = Path(__file__).resolve().parents[1]
RECIPE = ROOT / "conda" / "recipe.yaml"
SOURCE = "https://pypi.org/packages/source/p/polarbear-race/polarbear_race-${{ version }}.tar.gz"

IN_WHEEL = (
    "polarbear/__init__.py",
    "polarbear/py.typed",
    "polarbear/examples/bbob_d10.csv",
    "polarbear/examples/bbob_d10_instances.csv",
    "polarbear/examples/mabbob_d5.csv",
    "polarbear/reporting/",
    ".dist-info/licenses/LICENSE",
    ".dist-info/licenses/CITATION.cff",
    ".dist-info/entry_points.txt",
)
IN_SDIST = (
    "pyproject.toml",
    "hatch_build.py",
    "README.md",
    "CHANGELOG.md",
    "CITATION.cff",
    "LICENSE",
    "SECURITY.md",
    "conftest.py",
    "tests/conftest.py",
    "tests/support/reference.py",
    "studies/judge/in_process.py",
    "docs/index.md",
    "examples/race.py",
)


def package_version() -> str:
    """Return the version in the source."""
    text = (ROOT / "src/polarbear/__init__.py").read_text("utf-8")
    return re.findall(r'^__version__ = "(.+)"', text, re.MULTILINE)[0]


def check_versions(tag: str | None) -> Iterator[str]:
    """Yield files that name another version, and what a tag lacks."""
    version = package_version()
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    if f"\nversion: {version}\n" not in citation:
        yield f"CITATION.cff does not have version {version}"
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    heading = re.findall(r"^## (\S+) \((.+)\)", changelog, re.MULTILINE)
    if heading[0][0] != version:
        yield f"CHANGELOG.md begins with {heading[0][0]}, not with {version}"
    if tag is None:
        return
    if tag != f"v{version}":
        yield f"the tag is {tag}, the version is {version}"
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", heading[0][1]):
        yield f"CHANGELOG.md says ({heading[0][1]}) in place of the date of the release"


def check_files(wheel: Path, sdist: Path) -> Iterator[str]:
    """Yield what is missing in the wheel and the sdist, or does not belong there."""
    names = zipfile.ZipFile(wheel).namelist()
    yield from (f"wheel: no {part}" for part in IN_WHEEL if not any(part in n for n in names))
    yield from (f"wheel: {n} does not belong" for n in names if not n.startswith("polarbear"))
    modules = {p.relative_to(ROOT / "src").as_posix() for p in (ROOT / "src").rglob("*.py")}
    yield from (f"wheel: no {name}" for name in sorted(modules - {*names}))
    with tarfile.open(sdist) as archive:
        members = {name.partition("/")[2] for name in archive.getnames()}
    yield from (f"sdist: no {name}" for name in IN_SDIST if name not in members)
    junk = re.compile(r"__pycache__|\.(pyc|sock)$|(^|/)\.(venv|git)(/|$)")
    yield from (f"sdist: {name} does not belong" for name in members if junk.search(name))
    print(f"wheel: {len(names)} files, {wheel.stat().st_size / 1e6:.1f} MB", end="; ")
    print(f"sdist: {len(members)} files, {sdist.stat().st_size / 1e6:.1f} MB")


def check_programs(dist: Path, wheel: Path) -> Iterator[str]:
    """Yield what twine and check-wheel-contents find."""
    programs = Path(sys.executable).parent
    for name, *options in (
        ["twine", "check", "--strict", *map(str, dist.iterdir())],
        ["check-wheel-contents", str(wheel)],
        # Nothing in the source needs a Python newer than the oldest that is promised.
        [
            "vermin",
            "-t=3.11-",
            "--no-tips",
            "--violations",
            "--eval-annotations",
            str(ROOT / "src"),
        ],
    ):
        command = [str(programs / name), *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            yield f"{name}:\n{done.stdout}{done.stderr}"


def check_recipe(text: str) -> Iterator[str]:
    """Yield what differs between the conda recipe and the package; raise if it cannot be read."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    [variant] = rattler_build.Stage0Recipe.from_yaml(text).render()
    recipe = variant.recipe.to_dict()
    wanted = {
        f"python {project['requires-python']}",
        *(spaced(one.partition(";")[0]) for one in project["dependencies"]),
    }
    for name in sorted(wanted ^ {*recipe["requirements"]["run"]}):
        yield f"conda recipe: {name} is only in one of recipe.yaml and pyproject.toml"
    if recipe["package"]["version"] != package_version():
        yield f"conda recipe: version {recipe['package']['version']}"
    if recipe["about"]["summary"] != project["description"]:
        yield "conda recipe: another summary than in pyproject.toml"
    scripts = [f"{name} = {place}" for name, place in project["scripts"].items()]
    if recipe["build"]["python"]["entry_points"] != scripts:
        yield "conda recipe: other entry points than in pyproject.toml"


def spaced(requirement: str) -> str:
    """Return a requirement as conda writes it.

    >>> spaced("numpy>=1.26")
    'numpy >=1.26'
    """
    return re.sub(r"(?=[<>=~!])", " ", requirement, count=1)


def fill_recipe(sdist: Path) -> str:
    """Return the recipe with the address and the hash of the sdist."""
    digest = hashlib.sha256(sdist.read_bytes()).hexdigest()
    source = f"source:\n  url: {SOURCE}\n  sha256: {digest}\n"
    text = RECIPE.read_text("utf-8")
    return text[text.index("schema_version") :].replace("source:\n  path: ..\n", source)


def main() -> int:
    """Check all, print what is wrong, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("dist", type=Path, help="the folder with the wheel and the sdist")
    parser.add_argument("--tag", help="the tag of the release")
    parser.add_argument("--recipe", type=Path, help="write the conda recipe of this sdist")
    arguments = parser.parse_args()
    [wheel], [sdist] = arguments.dist.glob("*.whl"), arguments.dist.glob("*.tar.gz")
    recipe = fill_recipe(sdist)
    problems = [
        *check_versions(arguments.tag),
        *check_files(wheel, sdist),
        *check_programs(arguments.dist, wheel),
        *check_recipe(RECIPE.read_text("utf-8")),
        *check_recipe(recipe),
    ]
    if arguments.recipe is not None:
        arguments.recipe.write_text(recipe, "utf-8")
    print("\n".join(problems) or "the files of the release are as they should be")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
