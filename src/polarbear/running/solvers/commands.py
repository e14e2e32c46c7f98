"""``Command``: a program as a solver."""

import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from re import Pattern

from polarbear.data.names import suggest_name
from polarbear.errors import SolverError
from polarbear.running.solvers.job import CLOCKS, Clock, RunningJob
from polarbear.running.solvers.output_lines import lines
from polarbear.running.solvers.processes import (
    cpu_seconds,
    descendants,
    die_with,
    start_when_possible,
)

PLACEHOLDERS = ("instance", "seed", "horizon")

FIRST_LINES, LINE_CHARACTERS = 3, 200
"""How much is shown of the output of a program in which the pattern finds nothing."""

_BRACES = re.compile(r"\{\{|\}\}|\{(\w+)\}")
_NO_VALUE = {"", "-", "--"}


@dataclass(frozen=True)
class Command:
    r"""A program that prints the values of what it finds.

    Parameters
    ----------
    arguments
        The program and its arguments, as a list, or as text that is cut at spaces here and now.
        There is no shell. ``{instance}``, ``{seed}`` and ``{horizon}`` stand for those of the run,
        doubled braces for braces.
    pattern
        A regular expression that is looked for in each line of output, with a group ``value`` and
        perhaps ``time``.
    clock
        "wall" or "cpu" measure the program; "reported" and "evaluations" take the group ``time``.
        By default "reported" if the pattern has such a group, and "wall" if not. A time in the
        output counts in any case.
    exits
        The exit codes of a program that has done its work: 0, and 10, 20 and 30 of SAT solvers.
    errors
        Whether to read standard error too.
    terminal
        Run it in a terminal of its own, for programs that hold back what they print otherwise.
    folder
        Where the program is started, and what relative paths in ``arguments`` start from; by
        default, and where there is no such folder, the current folder.

    Examples
    --------
    >>> kissat = Command("kissat --seed={seed} {instance}", pattern=r"^o (?P<value>\S+)")
    >>> kissat.arguments, kissat.clock
    (('kissat', '--seed={seed}', '{instance}'), 'wall')
    >>> Command("solve {instnace}", pattern=r"(?P<value>\d+)")
    Traceback (most recent call last):
    polarbear.errors.SolverError: 'solve {instnace}': no placeholder {instnace}; did you mean ...
    """

    arguments: Sequence[str] | str
    pattern: str
    clock: Clock | None = None
    exits: tuple[int, ...] = (0, 10, 20, 30)
    errors: bool = False
    terminal: bool = False
    folder: str | None = field(default=None, compare=False)
    _find: Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        words = self.arguments
        shown = repr(words)
        try:
            words = shlex.split(words) if isinstance(words, str) else [os.fspath(w) for w in words]
        except (ValueError, TypeError) as error:
            raise SolverError(f"{shown} is not a list of arguments: {error}") from None
        if not words or any("\0" in word for word in words):
            raise SolverError(f"{shown}: expected a program and its arguments, as text")
        for word in words:
            for name in filter(None, _BRACES.findall(word)):
                if name not in PLACEHOLDERS:
                    raise SolverError(
                        f"{shown}: no placeholder {{{name}}}; {suggest_name(name, PLACEHOLDERS)}"
                    )
        object.__setattr__(self, "arguments", tuple(words))
        object.__setattr__(self, "_find", _compiled(self.pattern))
        timed = "time" in self._find.groupindex
        clock = self.clock or ("reported" if timed else "wall")
        if clock not in CLOCKS:
            raise SolverError(f"clock={clock!r}: expected one of {', '.join(CLOCKS)}")
        if clock in ("reported", "evaluations") and not timed:
            raise SolverError(
                f"clock={clock!r} takes times from the output, but the pattern has no group 'time'"
            )
        object.__setattr__(self, "clock", clock)

    def __call__(self, job: RunningJob) -> Iterator[tuple[float | None, float]]:
        """Run the program: (time, value) as they come."""
        argv = self.argv(job)
        unmatched: list[str] = []  # the first lines, until one has a value
        n_values = 0
        job.remark(f"{argv[0]!r} printed no line")
        with self._started(argv, job) as (process, output):
            last = ""
            for last in lines(output):
                match = self._find.search(last)
                if match is not None and match["value"] not in (*_NO_VALUE, None):
                    if not n_values:
                        job.remark("")
                    n_values += 1
                    yield self._time(job, match, last), _number(match["value"], "value", last)
                elif not n_values and len(unmatched) < FIRST_LINES:
                    unmatched.append(last[:LINE_CHARACTERS])
                    job.remark(self._describe_unmatched(unmatched))
            code = process.wait()
        if code not in self.exits:
            how = f"exit code {code}" if code >= 0 else _signal_name(-code)
            why = f"{argv[0]!r} ended with {how}" + (f" after: {last}" if last else "")
            if unmatched and not n_values:
                why += f"; {self._describe_unmatched(unmatched)}"
            raise SolverError(why)

    def argv(self, job: RunningJob) -> list[str]:
        """The arguments of a run: each placeholder is replaced within its argument.

        >>> from polarbear.running.solvers.job import watched
        >>> command = Command("solve --time={horizon} {instance}", pattern=r"(?P<value>.*)")
        >>> command.argv(watched("a file.cnf", horizon=60))
        ['solve', '--time=60', 'a file.cnf']
        """
        instance = job.instance
        named = isinstance(instance, str | os.PathLike)
        values = {
            "instance": os.fspath(instance) if named else job.name,
            "seed": str(job.seed),
            "horizon": f"{job.horizon:.15g}",
        }
        if "\0" in values["instance"]:
            raise SolverError(f"instance {job.name!r} holds a null byte, which no program can take")

        def value(match: re.Match[str]) -> str:
            return values[match[1]] if match[1] else match[0][0]

        here = self.start_folder or "."
        return [_harmless(word, _BRACES.sub(value, word), here) for word in self.arguments]

    @property
    def start_folder(self) -> str | None:
        """Where the program is started; None is the current folder."""
        return self.folder if self.folder and Path(self.folder).is_dir() else None

    def explain_missing(self) -> str:
        """Why the program cannot be started here, and what to write; "" if it can.

        >>> Command("no-such-solver {instance}", pattern=r"(?P<value>.*)").explain_missing()
        'no folder of PATH has a program of this name'
        """
        program = str(self.arguments[0])
        return "" if _BRACES.search(program) else explain_missing(program, self.start_folder)

    def _describe_unmatched(self, first: list[str]) -> str:
        lines = " | ".join(first)
        return f"the pattern '{self.pattern}' found no value in its output, which began: {lines}"

    def _time(self, job: RunningJob, match: re.Match[str], line: str) -> float | None:
        if match.groupdict().get("time") is not None:
            return _number(match["time"], "time", line)
        if job.clock == "cpu":
            return job.now() + cpu_seconds(descendants(os.getpid()))
        return None

    @contextmanager
    def _started(
        self, argv: list[str], job: RunningJob
    ) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
        reading, writing = os.openpty() if self.terminal else os.pipe()
        parent = os.getpid()

        def start() -> subprocess.Popen[bytes]:
            job.begin()  # an attempt for which the system had no room costs the program no time
            return subprocess.Popen(
                argv,
                cwd=self.start_folder,
                stdin=subprocess.DEVNULL,
                stdout=writing,
                stderr=writing if self.errors else None,
                preexec_fn=(lambda: die_with(parent)) if os.name == "posix" else None,
            )

        try:
            process = start_when_possible(start)
        except OSError as error:
            os.close(reading)
            why = explain_missing(argv[0], self.start_folder) or str(error.strerror)
            raise SolverError(f"cannot start {argv[0]!r}: {why}") from None
        finally:
            os.close(writing)
        try:
            yield process, reading
        finally:
            process.kill()
            process.wait()
            os.close(reading)

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "_find"}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        object.__setattr__(self, "_find", _compiled(self.pattern))


def explain_missing(program: str, folder: str | None) -> str:
    """Why a program cannot be started from a folder, and what to write; "" if it is there.

    >>> explain_missing("./no-such-solver", "/usr")
    'there is no file /usr/no-such-solver'
    """
    here = Path(folder or ".").absolute()
    if "/" in program or os.name != "posix":
        path = here / program
        if shutil.which(path):
            return ""
        if not path.exists():
            return f"there is no file {path}"
        return f"{path} is a folder" if path.is_dir() else f"{path} is not executable: chmod +x"
    if shutil.which(program):
        return ""
    why = "no folder of PATH has a program of this name"
    return (
        f"{why}; write './{program}' for the file in {here}" if (here / program).exists() else why
    )


def _signal_name(number: int) -> str:
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:  # one without a name
        return f"signal {number}"


def _compiled(pattern: str) -> Pattern[str]:
    try:
        found = re.compile(pattern)
    except (re.error, TypeError) as error:
        raise SolverError(f"pattern '{pattern}' is no regular expression: {error}") from None
    if "value" not in found.groupindex:
        raise SolverError(f"pattern '{pattern}' has no group (?P<value>...)")
    return found


def _harmless(word: str, filled: str, folder: str) -> str:
    """What a name is put into stays an operand: a file named "-f" becomes "./-f"."""
    if not filled.startswith("-") or word.startswith("-"):
        return filled
    if Path(folder, filled).exists():
        return f"./{filled}"
    raise SolverError(
        f"{filled!r} in place of {word!r} would be taken for an option: "
        f"write --name={word} if the program has such an option"
    )


def _number(found: str, what: str, line: str) -> float:
    try:
        return float(found)
    except ValueError:
        raise SolverError(f"the {what} {found!r} in the line {line!r} is not a number") from None
