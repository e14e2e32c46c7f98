"""Do what the tutorials say, as a newcomer would, and compare what is printed with what they show.

Run it as ``python docs/run_tutorials.py`` with the Python of an environment that holds nothing but
the built wheel; it needs nothing else. A tutorial is made of

- blocks of ``python`` whose first line is a comment with a file's name: the file is written;
- blocks of ``console``: lines after ``$`` are run, in an empty folder, and must print what follows.
  Numbers may differ a little, as they do between machines; ``...`` stands for anything. To install
  is what was done before.
"""

import argparse
import doctest
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# (\S+\.py)\n")
ALIKE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")
SECONDS = 300
TRIES = 2  # a machine that is busy with other things may not come far before somebody kills a race


def steps(text: str) -> list[tuple[str, str]]:
    """Commands of a console block, each with what it is to print."""
    parts = re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
    return [(command, shown) for command, _, shown in (part.partition("\n") for part in parts)]


def alike(shown: str, printed: str) -> bool:
    """Whether the same is printed, with numbers within a tenth or two hundredths."""
    if "..." in shown:
        return doctest.OutputChecker().check_output(shown, printed, ALIKE)
    if NUMBER.sub("#", shown).split() != NUMBER.sub("#", printed).split():
        return False
    ours, theirs = (
        [float(number.replace(",", "")) for number in NUMBER.findall(text)]
        for text in (shown, printed)
    )
    return all(abs(a - b) <= max(0.02, 0.1 * a) for a, b in zip(ours, theirs, strict=True))


def follow(tutorial: Path, folder: Path, environment: dict[str, str]) -> list[str]:
    """Do all of a tutorial: what went otherwise than it says."""
    wrong = []
    for kind, text in BLOCK.findall(tutorial.read_text("utf-8")):
        if kind == "python":
            name = FILE.match(text)
            if name is None:
                wrong.append(f"a block of python does not begin with a file's name:\n{text}")
            else:
                (folder / name[1]).write_text(text, "utf-8")
            continue
        for command, shown in steps(text):
            if command.startswith("pip install"):
                continue
            done = subprocess.run(
                ["bash", "-c", command],
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=False,
            )
            printed = done.stdout + done.stderr
            if not alike(shown, printed):
                wrong.append(f"$ {command}\nis to print\n{shown}\nand printed\n{printed}")
    return wrong


def main() -> int:
    """Follow tutorials and say what went otherwise."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tutorials", nargs="*", type=Path, help="by default all")
    chosen = parser.parse_args().tutorials
    everything = sorted((Path(__file__).parent / "tutorials").glob("i-*.md"))
    # What the newcomer types, "python" and "polarbear", is what runs this.
    here = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    environment = {**os.environ, "PATH": here, "PYTHONWARNINGS": "error"}
    failed = 0
    for tutorial in chosen or everything:
        start = time.perf_counter()
        for _ in range(TRIES):
            with tempfile.TemporaryDirectory() as folder:
                wrong = follow(tutorial, Path(folder), environment)
            if not wrong:
                break
        failed += bool(wrong)
        took = f"{time.perf_counter() - start:.0f} s"
        print(f"{tutorial.name}: {'not ' if wrong else ''}as printed, {took}", flush=True)
        for what in wrong:
            print(f"\n{what}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
