"""``CandidateFolder``: the candidates of a judge in a folder, with requests and judgements.

Several processes use one folder. Every file is written under another name first and then renamed,
so that a reader sees all of it or nothing. A candidate is named by a hash of its content::

    candidates/c0123456789.json     what was proposed, never changed
    requests/c0123456789            an evaluator waits for its judgement
    judgements/c0123456789.json     its judgement
    race.db, holdout.db             the races
    lock                            held by the process that runs a race
"""

import ast
import json
import linecache
import os
import re
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from os import PathLike
from pathlib import Path
from typing import Any

from polarbear.errors import DataError, StoreError
from polarbear.racing.jobs import derive_seed
from polarbear.running.solvers.job import RunningJob
from polarbear.running.solvers.setup import Solver
from polarbear.running.workers.child import seed_generators
from polarbear.store.writer_lock import WriterLock

REFERENCE = "reference"
"""The name of the algorithm against which the fitness of candidates is measured."""

RACE = "race.db"
"""The store of the race of all candidates; the comparison on hold-out instances has another."""

CODE_NAME = "<candidate>"
"""The name that stands for the file of a candidate in tracebacks."""

_FOLDER = re.compile(r'^(\s*)File "[^"]*[/\\]')

_LOCKING = threading.Lock()  # a file lock is that of a process, so its threads take turns

Candidate = str | Mapping[str, Any] | list[Any]
"""A text such as a program, or a configuration of JSON values."""


def name_candidate(candidate: Candidate) -> str:
    r"""Name a candidate by a hash of its content, so that copies have the same name.

    White space around a text does not count. Of a Python program neither comments nor layout nor
    docstrings count. Of a configuration the order of the keys does not count.

    >>> name_candidate("def f(x):\n    return x  # slow") == name_candidate("def f(x): return x")
    True
    >>> name_candidate({"step": 1, "scale": 2}) == name_candidate({"scale": 2, "step": 1})
    True
    """
    if isinstance(candidate, str):
        content = _normalise_program(candidate) or candidate.strip()
    else:
        content = f"JSON {_encode(candidate)}"
    digest = blake2b(content.encode(errors="surrogatepass"), digest_size=5).hexdigest()
    return f"c{digest}"


def _normalise_program(text: str) -> str:
    """Return the syntax tree of a Python program as text; "" if the text is not a program.

    Only a text with a function or a class counts as a program: some prose is valid Python.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    is_program = False
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        is_program = True
        if ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.dump(tree) if is_program else ""


def _encode(value: object) -> str:
    try:
        return json.dumps(value, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise DataError(f"expected a text or JSON values ({error})", candidate=value) from None


def load_code(text: str) -> dict[str, Any]:
    r"""Execute the text of a Python program and return the names that it defines.

    Call it in ``make_solver`` of a :class:`Judge`, so that the text is executed in the process of a
    run. Tracebacks show the lines of the text.

    >>> load_code("def double(x):\n    return 2 * x")["double"](4)
    8
    """
    linecache.cache[CODE_NAME] = (len(text), None, text.splitlines(keepends=True), CODE_NAME)
    scope: dict[str, Any] = {"__name__": "candidate"}
    exec(compile(text, CODE_NAME, "exec"), scope)  # noqa: S102 (in the process of a run)
    return {name: value for name, value in scope.items() if not name.startswith("__")}


@dataclass(frozen=True)
class CandidateSolver:
    """A solver that makes a candidate's solver in the process of a run, and calls it.

    All candidates have the same random seed on an instance. So copies have the same runs, and
    comparisons use common random numbers.
    """

    candidate: Candidate
    make_solver: Callable[[Any], Solver]
    seed: int

    def __call__(self, job: RunningJob) -> Any:
        """Run the candidate; print the traceback if it fails, because output is recorded."""
        job.seed = derive_seed(self.seed, ["candidate", job.name])
        seed_generators(job.seed)
        try:
            items = self.make_solver(self.candidate)(job)
            if items is not None:
                job.call_solver(lambda _: items)
        except Exception:
            print(_trim_traceback(traceback.format_exc()), file=sys.stderr)  # noqa: T201
            raise


def _trim_traceback(text: str) -> str:
    """Return a traceback for a designer: no folders, and no frames before the candidate's own.

    If the candidate has no frame, because ``make_solver`` failed, the frames of that are kept.
    """
    lines = text.splitlines()
    frames = [k for k, line in enumerate(lines) if line.lstrip().startswith('File "')]
    own = [k for k in frames if f'File "{CODE_NAME}"' in lines[k]]
    first = (own or frames[1:] or [1])[0]  # the first frame is that of this module
    return "\n".join([lines[0], *(_FOLDER.sub(r'\1File "', line) for line in lines[first:])])


class CandidateFolder:
    """A folder with candidates, requests for judgements, and judgements.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     folder = CandidateFolder(place)
    ...     name = folder.keep("Solve it step by step.", "steps")
    ...     folder.candidate(name), folder.label(name), folder.requests()
    ('Solve it step by step.', 'steps', [])
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)
        for part in ("candidates", "requests", "judgements"):
            try:
                (self.path / part).mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise StoreError(
                    f"{self.path}: the folder cannot be made ({error}); name another"
                ) from None

    def keep(self, candidate: Candidate, label: str = "", name: str | None = None) -> str:
        """Write a candidate to the folder, unless the folder has it already; return its name."""
        name = name_candidate(candidate) if name is None else name
        path = self._place("candidates", name)
        if not path.exists():
            _write(path, {"candidate": candidate, "label": label})
        return name

    def candidate(self, name: str) -> Candidate:
        """Read the candidate that has the given name from the folder."""
        return self._read("candidates", name)["candidate"]

    def label(self, name: str) -> str:
        """Return the description that was given with a candidate; "" if there is none."""
        return self._read("candidates", name)["label"]

    def request(self, name: str) -> None:
        """Write a request to judge a candidate, for the process that runs the race."""
        (self._part("requests") / name).touch()

    def requests(self) -> list[str]:
        """Return the sorted names of the candidates that wait for a judgement."""
        names = sorted(path.name for path in self._part("requests").iterdir())
        return [name for name in names if self.judgement(name) is None]

    def judgement(self, name: str) -> dict[str, Any] | None:
        """Return the judgement of a candidate; None if it has not been judged yet."""
        return self._read("judgements", name) if self._place("judgements", name).exists() else None

    def judgements(self) -> list[dict[str, Any]]:
        """Return all judgements, in the order in which they were made."""
        kept = [self._read("judgements", path.stem) for path in self._list("judgements")]
        return sorted(kept, key=lambda judgement: judgement["number"])

    def add_judgement(self, name: str, judgement: Mapping[str, Any]) -> None:
        """Write a judgement to the folder, and delete the request for it."""
        _write(
            self._place("judgements", name), {**judgement, "number": len(self._list("judgements"))}
        )
        (self._part("requests") / name).unlink(missing_ok=True)

    def lock(self) -> WriterLock | None:
        """Take the lock that lets one process run the race; None if another process holds it."""
        with _LOCKING:
            try:
                return WriterLock(self._part(".") / "lock")
            except BlockingIOError:
                return None

    def find_race(self, file: str) -> Path:
        """Return the path of a race's store; raise an error if judgements are left without it."""
        path = self._part(".") / file
        if file == RACE and not path.exists() and self._list("judgements"):
            raise _gone(path)
        return path

    def _part(self, name: str) -> Path:
        """Return a folder of this folder; raise an error if it was deleted."""
        path = self.path / name
        if not path.is_dir():
            raise _gone(path)
        return path

    def _place(self, part: str, name: str) -> Path:
        return self._part(part) / f"{name}.json"

    def _list(self, part: str) -> list[Path]:
        return list(self._part(part).glob("*.json"))

    def _read(self, part: str, name: str) -> dict[str, Any]:
        path = self._place(part, name)
        try:
            return json.loads(path.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise StoreError(
                f"{path} cannot be read ({error}): restore the file, or judge in a new folder"
            ) from None


def _gone(path: Path) -> StoreError:
    """Return the error for a file or folder that was deleted while a judge used it."""
    return StoreError(
        f"{path} was deleted while the judge used its folder, perhaps by a candidate: restore the "
        "folder from a backup, or judge in a new one"
    )


def _write(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file completely or not at all."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    partial.write_text(json.dumps(content), "utf-8")
    partial.replace(path)
