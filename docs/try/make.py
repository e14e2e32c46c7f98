"""The page that analyses results in a browser, and the wheel that it loads.

Run it as ``python docs/try/make.py FOLDER``; the site is built with it, and
``python -m http.server --directory FOLDER`` shows it.
"""

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
RUNTIME = "https://cdn.jsdelivr.net/pyodide/v314.0.7/full/"
"""Where browsers load Pyodide from: CPython for WebAssembly."""

PACKAGES = ("numpy", "scipy", "narwhals", "threadpoolctl")
"""What the wheel depends on there, all built for Pyodide."""


def make(folder: Path) -> None:
    """Write the page and the wheel of this checkout."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.whl"):
        old.unlink()
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory"]
    build += [str(folder.resolve())]
    done = subprocess.run(build, cwd=HERE.parents[1], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    (wheel,) = folder.glob("*.whl")
    page = (HERE / "page.html").read_text("utf-8")
    packages = json.dumps(PACKAGES)
    for name, text in {"runtime": RUNTIME, "wheel": wheel.name, "packages": packages}.items():
        page = page.replace("{{" + name + "}}", text)
    (folder / "index.html").write_text(page, "utf-8")


if __name__ == "__main__":
    make(Path(sys.argv[1]))
