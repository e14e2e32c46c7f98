#!/usr/bin/env -S uv run --script
# /// script
# requires-python = ">=3.11"
# dependencies = ["nox>=2025.2.9"]
# ///
"""The checks of the project, one session each: ``nox -s lint types tests``.

``bash .ci/run`` makes all of them from a clean clone, on two cores at once; with ``--no-venv`` a
session uses the environment that it is called in.
"""

from pathlib import Path

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"

EVERYTHING = ("--editable", ".[all]", "--group", "dev", "--group", "docs")
CORE_TESTS = (
    *(f"tests/test_{name}.py" for name in ("package", "selection")),
    *(f"tests/inference/test_{name}.py" for name in ("likelihood", "posterior", "dominance")),
    "tests/inference/test_e_values.py",
    "tests/data/test_rankings.py",
    "tests/readers/test_tables.py",
    "tests/test_replays.py",
)
"""What uses numpy, scipy and narwhals most, and needs no extra."""


def install(session: nox.Session, *packages: str) -> None:
    """Install packages, unless the session uses the environment that it is called in."""
    if not isinstance(session.virtualenv, nox.virtualenv.PassthroughEnv):
        session.install(*packages)


@nox.session
def lint(session: nox.Session) -> None:
    """Style, format, spelling, layers."""
    install(session, "--group", "lint")
    session.run("ruff", "check", ".", external=True)
    session.run("ruff", "format", "--check", ".", external=True)
    session.run("codespell", external=True)
    session.run("lint-imports", "--no-cache", external=True)


@nox.session
def types(session: nox.Session) -> None:
    """Types, by pyright."""
    install(session, *EVERYTHING)
    session.run("pyright", *session.posargs, external=True)


@nox.session
def tests(session: nox.Session) -> None:
    """All tests that CI runs; with arguments of pytest after ``--``, some of them."""
    install(session, *EVERYTHING)
    session.run("pytest", "-m", "not long", *session.posargs, external=True)


@nox.session(default=False)
def core(session: nox.Session) -> None:
    """The package without any extra: what needs none."""
    install(session, ".", "--group", "core-test")
    session.run("pytest", "-m", "not long and not slow", *CORE_TESTS, external=True)


@nox.session(default=False)
def oldest(session: nox.Session) -> None:
    """The package without any extra, with the oldest versions of dependencies that are promised."""
    install(session, ".", "--group", "core-test", "--group", "lowest")
    session.run("pytest", "-m", "not long and not slow", *CORE_TESTS, external=True)


@nox.session(default=False)
def nightly(session: nox.Session) -> None:
    """The package without any extra, with versions of dependencies that are not released yet."""
    install(session, ".", "--group", "core-test")
    session.install("--upgrade", "--pre", "numpy", "scipy", "narwhals")
    session.run("pytest", "-m", "not long and not slow", *CORE_TESTS)


@nox.session(default=False)
def coverage(session: nox.Session) -> None:
    """Which lines and branches of each room the fast tests reach: tests/coverage.md."""
    install(session, *EVERYTHING)
    session.run("coverage", "erase")
    # As many examples as in CI: each takes longer when it is traced.
    examples = {"HYPOTHESIS_PROFILE": "ci"}
    # Each part has a process of its own: a small one forks faster, which a trace makes dearer.
    folders = sorted(
        str(folder) for folder in Path("tests").iterdir() if any(folder.glob("test_*"))
    )
    # What is traced loads other modules, and takes longer to load.
    chosen = "not loads_no_numpy and not less_than_twice and not without_processes"
    for part in ["src", *folders, *sorted(map(str, Path("tests").glob("test_*.py")))]:
        run = ("coverage", "run", "-m", "pytest", "--quiet", "-m", "not slow", "-k", chosen, part)
        session.run(*run, env=examples, success_codes=[0, 5])  # 5: all tests of it are slow
    session.run("coverage", "combine", "--quiet")
    session.run("python", ".ci/check_coverage.py")


@nox.session(default=False)
def mutation(session: nox.Session) -> None:
    """Which changes of the modules that decide no test notices: tests/mutants.md."""
    install(session, *EVERYTHING)
    session.run("python", ".ci/mutate.py", *session.posargs)


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """The site, with warnings as errors."""
    install(session, *EVERYTHING)
    session.run("sphinx-build", "-q", "-W", "--keep-going", "docs", "site", external=True)


@nox.session(default=False)
def studies(session: nox.Session) -> None:
    """Every program of benchmarks and studies, small."""
    install(session, *EVERYTHING)
    session.run("python", ".ci/run_programs.py", *session.posargs, external=True)


@nox.session(default=False)
def review(session: nox.Session) -> None:
    """The conventions of scientific Python packages."""
    install(session, "--group", "release")
    session.run("repo-review", ".", external=True)


@nox.session(default=False)
def release(session: nox.Session) -> None:
    """What a release is made of."""
    install(session, "--group", "release")
    session.run("python", "-m", "build", "--no-isolation", "--outdir", "dist", external=True)
    session.run("python", ".ci/check_release.py", "dist", external=True)


if __name__ == "__main__":
    nox.main()
