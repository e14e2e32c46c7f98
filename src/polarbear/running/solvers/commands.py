"""``Command``: a solver that runs a program and reads values from its output."""

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
from typing import Literal

from polarbear.data.names import suggest_name
from polarbear.errors import SolverError
from polarbear.running.solvers.exceptions import ENDING_SIGNALS, KilledProgramError
from polarbear.running.solvers.job import CLOCKS, Clock, HorizonReached, RunningJob
from polarbear.running.solvers.output_lines import read_lines
from polarbear.running.solvers.processes import (
    end_with_parent,
    start_when_possible,
)

PLACEHOLDERS = ("instance", "seed", "horizon")

MAX_QUOTED_LINES, MAX_QUOTED_CHARACTERS = 3, 200
"""How many lines are quoted of an output without values, and how many characters of each."""

_BRACES = re.compile(r"\{\{|\}\}|\{(\w+)\}")
_NO_VALUE_TEXTS = {"", "-", "--"}


@dataclass(frozen=True)
class Command:
    r"""A solver that runs a program, which prints the values that it finds.

    Parameters
    ----------
    arguments
        The program and its arguments: a list, or text that is split at spaces. There is no shell.
        ``{instance}``, ``{seed}`` and ``{horizon}`` are replaced by those of the run, doubled
        braces by single ones.
    pattern
        A regular expression that is searched in each line of output. It has a group ``value`` and
        may have a group ``time``.
    clock
        "wall" or "cpu" measure the program; "reported" and "evaluations" read the group ``time``.
        By default "reported" if the pattern has such a group, and "wall" if not. A time in the
        output counts in any case.
    ok_exit_codes
        The exit codes that are no crash; by default 0, and 10, 20 and 30 of SAT solvers.
    include_stderr
        Whether to search standard error too.
    use_pty
        Whether to run the program in a pseudo-terminal. Some programs delay their output otherwise.
    ended
        What a program that ends before its horizon says: it "finished", and keeps its last value,
        or it was "cut" by a limit of its own, and is unknown after its end.
    folder
        The working folder of the program, to which relative paths in ``arguments`` refer. By
        default, and if it does not exist, it is the current folder.

    Examples
    --------
    >>> maxsat = Command("maxsat --seed={seed} {instance}", pattern=r"^o (?P<value>\d+)")
    >>> maxsat.arguments, maxsat.clock
    (('maxsat', '--seed={seed}', '{instance}'), 'wall')
    >>> Command("solve {instnace}", pattern=r"(?P<value>\d+)")
    Traceback (most recent call last):
    polarbear.errors.SolverError: 'solve {instnace}': {instnace} is not a known placeholder; did ...
    """

    arguments: Sequence[str] | str
    pattern: str
    clock: Clock | None = None
    ok_exit_codes: tuple[int, ...] = (0, 10, 20, 30)
    include_stderr: bool = False
    use_pty: bool = False
    ended: Literal["cut", "finished"] = "finished"
    folder: str | None = field(default=None, compare=False)
    _regex: Pattern[str] = field(init=False, repr=False, compare=False)

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
                        f"{shown}: {{{name}}} is not a known placeholder; "
                        f"{suggest_name(name, PLACEHOLDERS)}"
                    )
        if self.ended not in ("cut", "finished"):
            raise SolverError("expected 'cut' or 'finished'", ended=self.ended)
        object.__setattr__(self, "arguments", tuple(words))
        object.__setattr__(self, "_regex", _compile_pattern(self.pattern))
        has_times = "time" in self._regex.groupindex
        clock = self.clock or ("reported" if has_times else "wall")
        if clock not in CLOCKS:
            raise SolverError(f"expected one of {', '.join(CLOCKS)}", clock=clock)
        if clock in ("reported", "evaluations") and not has_times:
            raise SolverError(
                f"clock={clock!r} takes times from the output, but the pattern has no group "
                "'time': add (?P<time>...), or use clock='wall'"
            )
        object.__setattr__(self, "clock", clock)

    def __call__(self, job: RunningJob) -> Iterator[tuple[float | None, float]]:
        """Run the program, and yield (time, value) for each value in its output."""
        argv = self.make_argv(job)
        unmatched: list[str] = []  # the first lines, until one has a value
        n_values = 0
        job.set_remark(f"{argv[0]!r} printed no line")
        with self._start(argv, job) as (process, output):
            last = ""
            for last in read_lines(output, lambda: process.poll() is not None):
                match = self._regex.search(last)
                if match is not None and match["value"] not in (*_NO_VALUE_TEXTS, None):
                    if not n_values:
                        job.set_remark("")
                    n_values += 1
                    yield self._read_time(match, last), _parse(match["value"], "value", last)
                elif not n_values and len(unmatched) < MAX_QUOTED_LINES:
                    unmatched.append(last[:MAX_QUOTED_CHARACTERS])
                    job.set_remark(self._describe_unmatched(unmatched))
            code = process.wait()
        if code not in self.ok_exit_codes:
            ending = f"exit code {code}" if code >= 0 else _describe_signal(-code)
            why = f"{argv[0]!r} ended with {ending}" + (f" after: {last}" if last else "")
            if unmatched and not n_values:
                why += f"; {self._describe_unmatched(unmatched)}"
            raise KilledProgramError(why) if -code in ENDING_SIGNALS else SolverError(why)
        if self.ended == "cut":
            raise HorizonReached

    def make_argv(self, job: RunningJob) -> list[str]:
        """Return the program and its arguments for a run, with all placeholders replaced.

        >>> from polarbear.running.solvers.job import make_trial_job
        >>> command = Command("solve --time={horizon} {instance}", pattern=r"(?P<value>.*)")
        >>> command.make_argv(make_trial_job("a file.cnf", horizon=60))
        ['solve', '--time=60', 'a file.cnf']
        """
        instance = job.instance
        is_path = isinstance(instance, str | os.PathLike)
        values = {
            "instance": os.fspath(instance) if is_path else job.name,
            "seed": str(job.seed),
            "horizon": f"{job.horizon:.15g}",
        }
        if "\0" in values["instance"]:
            raise SolverError(
                f"instance {job.name!r} holds a null byte, which no program accepts as an argument"
            )

        def replace(match: re.Match[str]) -> str:
            return values[match[1]] if match[1] else match[0][0]

        folder = self.start_folder or "."
        return [_protect(word, _BRACES.sub(replace, word), folder) for word in self.arguments]

    @property
    def start_folder(self) -> str | None:
        """The working folder of the program; None stands for the current folder."""
        return self.folder if self.folder and Path(self.folder).is_dir() else None

    def explain_missing(self) -> str:
        """Return why the program cannot be started on this machine; "" if it can.

        >>> Command("no-such-solver {instance}", pattern=r"(?P<value>.*)").explain_missing()
        'no folder of PATH has a program of this name'
        """
        program = str(self.arguments[0])
        return "" if _BRACES.search(program) else explain_missing(program, self.start_folder)

    def _describe_unmatched(self, first_lines: list[str]) -> str:
        lines = " | ".join(first_lines)
        return f"the pattern '{self.pattern}' found no value in its output, which began: {lines}"

    def _read_time(self, match: re.Match[str], line: str) -> float | None:
        """Return the time of a value in an output line; None if it is the time by the clock."""
        if match.groupdict().get("time") is not None:
            return _parse(match["time"], "time", line)
        return None

    @contextmanager
    def _start(
        self, argv: list[str], job: RunningJob
    ) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
        """Start the program and the clock; the program is killed at the end of ``with``."""
        reading, writing = os.openpty() if self.use_pty else os.pipe()
        parent = os.getpid()

        def start() -> subprocess.Popen[bytes]:
            job.start_clock()  # at each attempt: waiting for room is no time of the program
            return subprocess.Popen(
                argv,
                cwd=self.start_folder,
                stdin=subprocess.DEVNULL,
                stdout=writing,
                stderr=writing if self.include_stderr else None,
                preexec_fn=(lambda: end_with_parent(parent)) if os.name == "posix" else None,
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
        return {name: value for name, value in self.__dict__.items() if name != "_regex"}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        object.__setattr__(self, "_regex", _compile_pattern(self.pattern))


def explain_missing(program: str, folder: str | None) -> str:
    """Return why a program cannot be started from a folder; "" if it can.

    >>> explain_missing("./no-such-solver", "/usr")
    'there is no file /usr/no-such-solver'
    """
    start_folder = Path(folder or ".").absolute()
    if "/" in program or os.name != "posix":
        path = start_folder / program
        if shutil.which(path):
            return ""
        if not path.exists():
            return f"there is no file {path}"
        return f"{path} is a folder" if path.is_dir() else f"{path} is not executable: chmod +x"
    if shutil.which(program):
        return ""
    why = "no folder of PATH has a program of this name"
    if (start_folder / program).exists():
        why += f"; write './{program}' for the file in {start_folder}"
    return why


def _describe_signal(number: int) -> str:
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:  # one without a name
        return f"signal {number}"


def _compile_pattern(pattern: str) -> Pattern[str]:
    """Compile a regular expression, and check that it has a group ``value``."""
    try:
        regex = re.compile(pattern)
    except (re.error, TypeError) as error:
        raise SolverError(
            f"pattern '{pattern}' is not a valid regular expression: {error}"
        ) from None
    if "value" not in regex.groupindex:
        raise SolverError(f"pattern '{pattern}' needs a group (?P<value>...) around the value")
    return regex


def _protect(word: str, filled: str, folder: str) -> str:
    """Keep a file name from being read as an option: "-f" becomes "./-f"."""
    if not filled.startswith("-") or word.startswith("-"):
        return filled
    if Path(folder, filled).exists():
        return f"./{filled}"
    raise SolverError(
        f"{word!r} becomes {filled!r}, which the program would read as an option: rename the "
        f"instance, or pass it with an option of the program, as in --name={word}"
    )


def _parse(text: str, group: str, line: str) -> float:
    """Convert the text that a group of the pattern matched to a number."""
    try:
        return float(text)
    except ValueError:
        raise SolverError(f"the {group} {text!r} in the line {line!r} is not a number") from None
