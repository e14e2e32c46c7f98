"""Compilation of Stan models to programs, with a cache.

The wheel of ``httpstan`` contains Stan's headers, its compiler ``stanc`` and the threads library it
needs; a C++ compiler must be installed. The driver uses models only through their base class, so it
is compiled once, and each model separately. The first use of a model therefore takes one or two
minutes.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from polarbear.errors import FitError, MissingDependency, require

HERE = Path(__file__).parent

FLAGS = (
    "-std=c++17",
    "-O2",
    "-w",  # no warnings about templates of libraries
    "-pthread",
    "-DSTAN_THREADS",
    "-D_REENTRANT",
    "-DBOOST_DISABLE_ASSERTS",
)


def compile_program(model: str) -> Path:
    """Return the path of a Stan model's program, such as "dirichlet"; compile it if needed."""
    httpstan = require("httpstan", extra="stan")
    stan = Path(httpstan.__file__).parent
    compiler = _find_compiler()
    sources = [(HERE / name).read_bytes() for name in (f"{model}.stan", "shared.stan")]
    driver = (HERE / "driver.cpp").read_bytes()
    # The program loads libraries from the folder of the wheel, hence its path in the key.
    setting = [" ".join([compiler, *FLAGS]), str(stan), httpstan.__version__]
    program = cache_folder() / f"{model}-{_hash_parts(*setting, *sources, driver)}"
    if program.exists():
        return program
    cache_folder().mkdir(mode=0o700, parents=True, exist_ok=True)
    main = cache_folder() / f"driver-{_hash_parts(*setting, driver)}.o"
    with tempfile.TemporaryDirectory(dir=cache_folder()) as folder:
        # Files are built in a temporary folder and then moved, so that no partial file is visible.
        work = Path(folder)
        compile_ = [compiler, *FLAGS, "-I", str(stan / "include"), "-c"]
        if not main.exists():
            _run([*compile_, str(HERE / "driver.cpp"), "-o", str(work / "driver.o")], "the driver")
            (work / "driver.o").replace(main)
        _transpile(stan / "stanc", model, work / "model.cpp")
        _run([*compile_, str(work / "model.cpp"), "-o", str(work / "model.o")], f"{model}.stan")
        libraries = ["-L", str(stan / "lib"), f"-Wl,-rpath,{stan / 'lib'}", "-ltbb"]
        objects = [str(work / "model.o"), str(main)]
        _run([compiler, "-pthread", *objects, *libraries, "-o", str(work / "program")], model)
        (work / "program").replace(program)
    return program


def cache_folder() -> Path:
    """Return the folder of compiled Stan programs, which may be deleted at any time."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "polarbear" / "stan"


def _find_compiler() -> str:
    """Return the path of the C++ compiler; raise MissingDependency if none is installed."""
    wanted = os.environ.get("CXX") or "g++"
    path = shutil.which(wanted)
    if path is None:
        raise MissingDependency(
            f"the C++ compiler {wanted!r} is not installed, and Stan's models need one: install "
            "g++ with the packages of your system, or name another in the variable CXX"
        )
    return path


def _hash_parts(*parts: str | bytes) -> str:
    """Return a short hash of a sequence of texts."""
    whole = sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        whole.update(len(data).to_bytes(8, "big") + data)
    return whole.hexdigest()[:20]


def _transpile(stanc: Path, model: str, to: Path) -> None:
    """Translate a Stan model to C++."""
    names = ["--name", f"polarbear_{model}", "--filename-in-msg", f"{model}.stan"]
    options = ["--O1", "--include-paths", str(HERE), "--o", str(to)]
    _run([str(stanc), *names, *options, str(HERE / f"{model}.stan")], f"{model}.stan")


def _run(command: Sequence[str], what: str) -> None:
    """Run a compiler; raise FitError with its messages if it fails."""
    # No shell, and no word of the command comes from data.
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        errors = [line for line in lines if "error" in line] or lines
        raise FitError(
            f"{Path(command[0]).name} could not compile {what} (code {done.returncode}): "
            f"{' / '.join(errors[:5]) or 'it said nothing'}"
        )
