"""Run every program in benchmarks/ and studies/ small (``--quick``): does it still work?

    python .ci/run_programs.py                       # all of them, as the nightly workflow does
    python .ci/run_programs.py --cpu-seconds 60      # the cheapest that fit into this, as CI does
    python .ci/run_programs.py studies/gate          # those whose paths begin like this

A program is a module there with ``if __name__ == "__main__"``. Constants in it declare:

- ``QUICK_CPU_SECONDS``: about how many CPU seconds ``--quick`` takes. CI chooses by it.
- ``NEEDS``: packages that neither the extra ``all`` nor the group ``dev`` contains. If one of them
  is not installed, the program is skipped, and this is printed. Any other missing package is a
  failure.
- ``STARTED_BY``: in place of both, the program beside it that starts this one.

A small run that changes a file in either folder fails: it would replace measured results.
"""

import argparse
import ast
import os
import re
import resource
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PLACES = ("benchmarks/*.py", "studies/*/*.py")
LAST_CHARACTERS = 3000
"""How much of the output of a program that failed is printed."""


class Program(NamedTuple):
    """A program, and what it declares."""

    path: str
    cpu_seconds: float
    needs: tuple[str, ...]


def find_programs(root: Path = ROOT) -> list[Program]:
    """All programs but those that others start, the cheapest first."""
    found = []
    for path in sorted(path for place in PLACES for path in root.glob(place)):
        tree = ast.parse(path.read_text("utf-8"))
        if not any(_is_main_guard(node) for node in tree.body):
            continue
        declared, name = dict(_read_constants(tree)), path.relative_to(root).as_posix()
        if "STARTED_BY" in declared:
            if not path.with_name(declared["STARTED_BY"]).exists():
                raise SystemExit(f"{name}: STARTED_BY names {declared['STARTED_BY']}: no such file")
            continue
        if "QUICK_CPU_SECONDS" not in declared:
            raise SystemExit(f"{name}: set QUICK_CPU_SECONDS, the CPU seconds of --quick")
        needs = tuple(declared.get("NEEDS", ()))
        if wrong := sorted(set(needs) & read_default_packages()):
            raise SystemExit(f"{name}: NEEDS names {', '.join(wrong)}, which is always installed")
        found.append(Program(name, float(declared["QUICK_CPU_SECONDS"]), needs))
    return sorted(found, key=lambda program: (program.cpu_seconds, program.path))


def _is_main_guard(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "__name__ == '__main__'"


def _read_constants(tree: ast.Module) -> Iterator[tuple[str, Any]]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if name in ("QUICK_CPU_SECONDS", "NEEDS", "STARTED_BY"):
                yield name, ast.literal_eval(node.value)


def read_default_packages() -> set[str]:
    """The packages that CI installs: those of the core, of the extra all and of the group dev."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    extras, groups = project["project"]["optional-dependencies"], project["dependency-groups"]
    lines: list[Any] = [*project["project"]["dependencies"], *extras["all"], *groups["dev"]]
    names = set()
    for line in lines:  # which grows
        if isinstance(line, dict):
            lines.extend(groups[line["include-group"]])
        elif own := re.match(r"polarbear-race\[(.+)\]", line):
            lines.extend(part for name in own[1].split(",") for part in extras[name])
        else:
            names.add(re.split(r"[\[<>=!~; ]", line)[0])
    return names


def choose_programs(programs: Iterable[Program], cpu_seconds: float) -> list[Program]:
    """The cheapest programs that take no more than so many CPU seconds together."""
    chosen, spent = [], 0.0
    for program in programs:
        spent += program.cpu_seconds
        if spent <= cpu_seconds:
            chosen.append(program)
    return chosen


def find_missing(packages: Iterable[str]) -> list[str]:
    """Those of the packages that are not installed."""
    missing = []
    for package in packages:
        try:
            metadata.version(package)
        except metadata.PackageNotFoundError:
            missing.append(package)
    return missing


def run_program(program: Program, root: Path = ROOT) -> str:
    """Run a program, print a line on it, and return what is wrong with it, if anything."""
    before, spent = _read_times(root), _read_cpu_seconds()
    done = subprocess.run(
        [sys.executable, program.path, "--quick"],
        cwd=root,
        env={**os.environ, "MPLBACKEND": "agg"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    spent = _read_cpu_seconds() - spent
    print(
        f"{program.path}: {spent:.1f} CPU s, declared {program.cpu_seconds:g}",
        flush=True,
    )
    if done.returncode:
        return f"ended with {done.returncode}:\n{done.stdout[-LAST_CHARACTERS:]}"
    after = _read_times(root)
    changed = sorted(
        name for name in before.keys() | after.keys() if before.get(name) != after.get(name)
    )
    return f"--quick changed {', '.join(changed)}" if changed else ""


def _read_times(root: Path) -> dict[str, int]:
    """When each file in the folders of programs was changed."""
    files = (path for place in ("benchmarks", "studies") for path in (root / place).rglob("*"))
    return {
        path.relative_to(root).as_posix(): path.stat().st_mtime_ns
        for path in files
        if path.is_file() and "__pycache__" not in path.parts
    }


def _read_cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Run the programs that were asked for, and fail if one of them does."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="*", default=[""], help="how paths begin; default: all")
    parser.add_argument("--cpu-seconds", type=float, default=float("inf"), help="of all together")
    wanted = parser.parse_args()
    programs = [one for one in find_programs() if one.path.startswith(tuple(wanted.paths))]
    if not programs:
        parser.error(f"no program has a path that begins with {' or '.join(wanted.paths)}")
    able = {one: find_missing(one.needs) for one in programs}
    for program, missing in able.items():
        if missing:
            print(f"{program.path}: SKIPPED, {', '.join(missing)} is not installed")
    present = [one for one in programs if not able[one]]
    chosen = choose_programs(present, wanted.cpu_seconds)
    wrong = {one.path: said for one in chosen if (said := run_program(one))}
    if left := [one.path for one in present if one not in chosen]:
        print(f"left to the nightly workflow: {', '.join(left)}")
    for path, said in wrong.items():
        print(f"\n{path} {said}", file=sys.stderr)
    if wrong:
        raise SystemExit(f"{len(wrong)} of {len(chosen)} programs failed: {', '.join(wrong)}")
    print(f"{len(chosen)} of {len(programs)} programs work")


if __name__ == "__main__":
    main()
