"""Check what can be checked of versions of Python that are not installed here.

Run it as ``python .ci/check_pythons.py``. For each version after the oldest: types as pyright sees
them for that version, and syntax and deprecated names as ruff sees them. vermin says whether the
source needs a newer Python than the oldest that is promised. With ``--resolve`` also
whether pip finds wheels of all dependencies of the core and of the extras in ``all`` for that
version, without installing them; that needs an index.
"""

import argparse
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSIONS = ("3.12", "3.13", "3.14")
PLATFORM = "manylinux_2_28_x86_64"


def make_commands(version: str, resolve: bool) -> dict[str, list[str]]:
    """Return the commands that check one version, by name."""
    programs = Path(sysconfig.get_path("scripts"))
    ruff = [
        str(programs / "ruff"),
        "check",
        "--quiet",
        f"--target-version=py{version.replace('.', '')}",
    ]
    pyright = [str(programs / "pyright"), f"--pythonversion={version}"]
    commands = {
        "types": [*pyright, "--pythonpath", sys.executable],
        "syntax": [*ruff, "--select=E9,F", "src", "tests", "docs", "examples"],
    }
    if not resolve:
        return commands
    only_wheels = ["--only-binary=:all:", f"--python-version={version}", f"--platform={PLATFORM}"]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--target=/nonexistent"]
    older = [f"--platform={name}" for name in ("manylinux2014_x86_64", "manylinux_2_27_x86_64")]
    for name in ("", "all"):
        commands[f"wheels of {name or 'the core'}"] = [
            *pip, "--ignore-installed", *only_wheels, *older, *read_requirements(name),
        ]  # fmt: skip
    return commands


def read_requirements(extra: str) -> list[str]:
    """Return the requirements of the core, and of the extras that an extra lists."""
    import re
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    lines, names = list(project["dependencies"]), [extra] if extra else []
    for name in names:
        for line in project["optional-dependencies"][name]:
            own = re.fullmatch(r"polarbear-race\[(.+)\]", line)
            if own:
                names.extend(set(own[1].split(",")) - {*names})
            else:
                lines.append(line)
    return lines


def main() -> int:
    """Run all checks, print what fails, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--resolve", action="store_true", help="also find wheels with pip")
    parser.add_argument("versions", nargs="*", default=VERSIONS, help="such as 3.14")
    arguments = parser.parse_args()
    n_failed = 0
    vermin = [str(Path(sysconfig.get_path("scripts")) / "vermin"), "-t=3.11-", "--no-tips"]
    checks = {"3.11": {"nothing newer": [*vermin, "--violations", "src"]}}
    checks |= {version: make_commands(version, arguments.resolve) for version in arguments.versions}
    for version, commands in checks.items():
        for name, command in commands.items():
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
            n_failed += bool(done.returncode)
            print(
                f"Python {version}, {name}: {'not right' if done.returncode else 'right'}",
                flush=True,
            )
            if done.returncode:
                print(done.stdout[-3000:] + done.stderr[-3000:], flush=True)
    return int(n_failed > 0)


if __name__ == "__main__":
    sys.exit(main())
