"""From Stan's language to a program: transpiled, compiled, linked, and kept for the next time.

The wheel of ``httpstan`` carries Stan's headers, its compiler ``stanc`` and the threads library it
needs; a C++ compiler is expected on the machine. The driver knows models only through their base
class, so it is compiled once, and each model by itself. The first use of a model therefore takes
one or two minutes, and the next ones nothing.
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
    "-w",  # of templates that are not ours
    "-pthread",
    "-DSTAN_THREADS",
    "-D_REENTRANT",
    "-DBOOST_DISABLE_ASSERTS",
)


def program(model: str) -> Path:
    """The program of a model, such as "dirichlet": compiled if it has not been before."""
    httpstan = require("httpstan", extra="stan")
    stan = Path(httpstan.__file__).parent
    compiler = _compiler()
    sources = [(HERE / name).read_bytes() for name in (f"{model}.stan", "shared.stan")]
    driver = (HERE / "driver.cpp").read_bytes()
    # The libraries are found where the wheel is, hence its place in the key.
    setting = [" ".join([compiler, *FLAGS]), str(stan), httpstan.__version__]
    found = cache() / f"{model}-{_key(*setting, *sources, driver)}"
    if found.exists():
        return found
    cache().mkdir(mode=0o700, parents=True, exist_ok=True)
    main = cache() / f"driver-{_key(*setting, driver)}.o"
    with tempfile.TemporaryDirectory(dir=cache()) as folder:
        # Made beside and then moved: who looks meanwhile finds all of it or nothing.
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
        (work / "program").replace(found)
    return found


def cache() -> Path:
    """Where programs are kept; a folder that may be deleted at any time."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "polarbear" / "stan"


def _compiler() -> str:
    wanted = os.environ.get("CXX") or "g++"
    found = shutil.which(wanted)
    if found is None:
        raise MissingDependency(
            f"the C++ compiler {wanted!r} is not installed, and Stan's models need one: install "
            "g++ with the packages of your system, or name another in the variable CXX"
        )
    return found


def _key(*parts: str | bytes) -> str:
    whole = sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        whole.update(len(data).to_bytes(8, "big") + data)
    return whole.hexdigest()[:20]


def _transpile(stanc: Path, model: str, to: Path) -> None:
    names = ["--name", f"polarbear_{model}", "--filename-in-msg", f"{model}.stan"]
    options = ["--O1", "--include-paths", str(HERE), "--o", str(to)]
    _run([str(stanc), *names, *options, str(HERE / f"{model}.stan")], f"{model}.stan")


def _run(command: Sequence[str], what: str) -> None:
    """Run a compiler; what it said is shown only if it failed."""
    # No shell, and no word of the command comes from data.
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        errors = [line for line in said if "error" in line] or said
        raise FitError(
            f"{Path(command[0]).name} could not compile {what} (code {done.returncode}): "
            f"{' / '.join(errors[:5]) or 'it said nothing'}"
        )
