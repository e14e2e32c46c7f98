"""Install the built package from an index on this machine, with each extra: sizes and times.

Run it as ``python .ci/local_index.py dist`` after ``python -m build``. It serves the files of
``dist`` as a simple index on 127.0.0.1, makes a fresh environment for the core and for each extra,
installs, imports what the extra names, and removes the environment. With the core it also goes from
nothing to a verdict of a table. Dependencies come from the index that pip is set up for.

Rows are kept in ``benchmarks/results/install.json``, so that an interrupted call continues;
``--again`` measures all. The table is ``benchmarks/results/install.md``.
"""

import argparse
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "install.json"
TABLE = RESULTS.with_suffix(".md")
NAME = "polarbear-race"
MAX_SECONDS = 1_800

IMPORTS = """
import importlib, sys
from importlib.metadata import packages_distributions
modules = packages_distributions()
for name in sys.argv[1:]:
    own = sorted(m for m, names in modules.items() if name in [n.lower() for n in names])
    own = [m for m in own if not m.startswith("_")] or sys.exit(f"{name} has no module")
    importlib.import_module(next((m for m in own if m == name.replace("-", "_")), own[0]))
"""
"""Import the main module of each distribution that is named."""


INTRODUCTION = """\
The built package from a simple index on 127.0.0.1, into a fresh environment each time. Size is that
of all installed packages, compiled modules included. CPU seconds also count the import of what the
extra names. Dependencies come from pip's cache or its index. Made by
`python -m build && python .ci/local_index.py dist`."""

FIRST_VERDICT = """\
From nothing to the verdict of a table of one's own, with the core: **{verdict_seconds:.0f} s**
(environment, installation and analysis)."""


class Quiet(SimpleHTTPRequestHandler):
    """Serves files, and prints nothing."""

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def serve_index(dist: Path, folder: Path) -> str:
    """Serve the files as a simple index from a thread, and return its address."""
    place = folder / "simple" / NAME
    place.mkdir(parents=True)
    files = [file for file in dist.iterdir() if file.name.endswith((".whl", ".tar.gz"))]
    for file in files:
        shutil.copy(file, place)
    links = "".join(f'<a href="{file.name}">{file.name}</a><br>' for file in files)
    (place / "index.html").write_text(f"<!doctype html>{links}", "utf-8")
    handler = partial(Quiet, directory=str(folder))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/simple"


def run(*command: object, cwd: Path | None = None) -> str:
    """Run a program and return what it printed."""
    environment = {**os.environ, "PYTHONNOUSERSITE": "1"}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(
        [*map(str, command)],
        capture_output=True,
        text=True,
        check=False,
        timeout=MAX_SECONDS,
        cwd=cwd,
        env=environment,
    )
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise RuntimeError(f"{Path(str(command[0])).name} failed: {' '.join(last)[:160]}")
    return done.stdout


def write_table(path: Path) -> None:
    """Write results as a user has them: three algorithms on 30 instances, in a CSV file."""
    chance = random.Random(1)
    lines = ["solver,problem,evaluations,best"]
    for problem in range(30):
        for solver, skill in (("mine", 0.5), ("theirs", 0.7), ("old", 1.6)):
            best = 10.0
            for evaluations in (10, 30, 100, 300, 1000):
                best *= chance.uniform(0.1, 1) ** (1 / skill)
                lines.append(f"{solver},p{problem},{evaluations},{best:.6g}")
    path.write_text("\n".join(lines) + "\n", "utf-8")


def size_of(folder: Path) -> int:
    """Return the bytes of all files in a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def own_requirements(extra: str) -> list[str]:
    """Return the names of the distributions that an extra names."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    lines = project["optional-dependencies"][extra] if extra else project["dependencies"]
    names = [re.split(r"[\[<>=,~! ]", line)[0].lower() for line in lines]
    return [name for name in names if name != NAME]


def measure(extra: str, index: str, version: str, folder: Path) -> dict[str, Any]:
    """Install into a fresh environment, import, and return what it took."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    run(sys.executable, "-m", "venv", folder / "env")
    python = folder / "env" / "bin" / "python"
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    empty = size_of(site)
    what = f"{NAME}[{extra}]=={version}" if extra else f"{NAME}=={version}"
    options = ["--quiet", "--disable-pip-version-check", "--extra-index-url", index]
    run(python, "-m", "pip", "install", *options, what)
    row: dict[str, Any] = {}
    row["install_seconds"] = round(time.perf_counter() - start, 1)
    row["megabytes"] = round((size_of(site) - empty) / 1e6, 1)
    row["distributions"] = len(run(python, "-m", "pip", "freeze").splitlines())
    if not extra:
        write_table(folder / "results.csv")
        names = "--algorithm solver --instance problem --time evaluations --value best"
        command = ["analyse", "results.csv", "--direction", "minimize", *names.split()]
        verdict = run(folder / "env" / "bin" / "polarbear", *command, cwd=folder)
        row["verdict"] = next(line for line in verdict.splitlines() if "anytime Pareto set" in line)
        row["verdict_seconds"] = round(time.perf_counter() - start, 1)
    run(python, "-c", IMPORTS, NAME, *own_requirements(extra))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {**row, "cpu_seconds": round(used, 1), "python": sys.version.split()[0]}


def make_table(rows: dict[str, dict[str, Any]]) -> str:
    """Return the page with the table of all rows."""
    core = rows.get("", {})
    lines = [
        "# What an installation takes",
        "",
        INTRODUCTION,
        "",
        "| extra | packages | size (MB) | CPU (s) | wall (s) | imports |",
        "|---|---|---|---|---|---|",
    ]
    for extra, row in rows.items():
        name = f"`{extra}`" if extra else "(core)"
        if "error" in row:
            lines.append(f"| {name} | | | | | no: {row['error']} |")
            continue
        lines.append(
            f"| {name} | {row['distributions']} | {row['megabytes']:,.0f}"
            f" | {row['cpu_seconds']:.0f} | {row['install_seconds']:.0f} | yes |"
        )
    if "verdict" in core:
        lines += ["", FIRST_VERDICT.format(**core)]
    missing = [name for name in list_extras() if name not in rows]
    if missing:
        lines += ["", f"Not measured yet: {', '.join(f'`{name}`' for name in missing)}."]
    python = sorted({row["python"] for row in rows.values() if "python" in row})
    lines += ["", f"Python {', '.join(python)}. Wall times depend on the load of the machine.", ""]
    return "\n".join(lines)


def list_extras() -> list[str]:
    """Return the names of all extras; the core is the empty name, which comes first."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return ["", *project["optional-dependencies"]]


def main() -> int:
    """Measure what is asked for, write the table, and return 1 if an installation failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("dist", type=Path, help="the folder with the wheel and the sdist")
    parser.add_argument("--extras", help="separated by commas; by default the core and all extras")
    parser.add_argument("--again", action="store_true", help="measure what was measured before")
    arguments = parser.parse_args()
    every = list_extras()
    chosen = every if arguments.extras is None else arguments.extras.split(",")
    [wheel] = arguments.dist.glob("*.whl")
    version = wheel.name.split("-")[1]
    rows = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    with tempfile.TemporaryDirectory() as name:
        index = serve_index(arguments.dist, Path(name))
        for extra in chosen:
            if not arguments.again and "error" not in rows.get(extra, {"error": ""}):
                continue
            with tempfile.TemporaryDirectory() as folder:
                try:
                    rows[extra] = measure(extra, index, version, Path(folder))
                except (RuntimeError, subprocess.TimeoutExpired) as error:
                    rows[extra] = {"error": str(error)}
            print(extra or "core", rows[extra], flush=True)
            rows = {key: rows[key] for key in every if key in rows}
            RESULTS.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
            TABLE.write_text(make_table(rows), "utf-8")
    return int(any("error" in rows[extra] for extra in chosen))


if __name__ == "__main__":
    sys.exit(main())
