"""What all benchmarks share: processes apart, turns, rows of a table, the machine in words."""

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module, metadata
from operator import attrgetter
from pathlib import Path
from typing import Any, ParamSpec

STARTED_BY = "run.py"

RESULTS = Path(__file__).parent / "results"

SINGLE = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}
"""One thread for all who compute, so that CPU seconds are work and not waiting for each other."""

AGAIN = 2
"""How often what exceeds its limit is measured again."""

Figures = dict[str, Any]
Arguments = ParamSpec("Arguments")


@dataclass(frozen=True)
class Row:
    """One ratio of the table: what ours took, and what it took somebody else in the same run.

    Attributes
    ----------
    part, what, against
        Which part of the package, what it did, and the other side.
    ours, theirs
        Seconds, by ``clock``: "CPU" or "wall".
    goal
        The ratio that we want, if one was set.
    limit
        The ratio beyond which something is broken: goals with room for a busy machine.
    remark
        What else one must know to read it.
    """

    part: str
    what: str
    against: str
    ours: float
    theirs: float
    goal: float | None = None
    limit: float | None = None
    remark: str = ""
    clock: str = "CPU"

    @property
    def ratio(self) -> float:
        """Ours / theirs: below one, ours is faster."""
        return self.ours / self.theirs

    @property
    def reached(self) -> bool:
        """Whether the goal is reached, if there is one."""
        return self.goal is None or self.ratio <= self.goal

    @property
    def complaint(self) -> str:
        """What to say if the limit is exceeded; nothing if it holds."""
        if self.limit is None or self.ratio <= self.limit:
            return ""
        return (
            f"{self.part}, {self.what}: {share(self.ratio)} times {self.against}; the limit is "
            f"{share(self.limit)} ({seconds(self.ours)} against {seconds(self.theirs)} of "
            f"{self.clock})"
        )


# Processes of their own


def apart(
    function: Callable[Arguments, Figures], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> Figures:
    """What a function of a module of this folder finds in a fresh process with one thread."""
    file = Path(function.__code__.co_filename)
    command = [sys.executable, __file__, file.stem, function.__name__, json.dumps([args, kwargs])]
    done = subprocess.run(
        command, env={**os.environ, **SINGLE}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{file.stem}.{function.__name__}{args}:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def medians(runs: Sequence[Figures]) -> Figures:
    """Of each figure the median."""
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def in_turns(rounds: int, sides: Mapping[str, Callable[[], Figures]]) -> dict[str, Figures]:
    """The medians of each side, when all take turns: what else runs disturbs them alike."""
    found: dict[str, list[Figures]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, side in sides.items():
            found[name].append(side())
    return {name: medians(runs) for name, runs in found.items()}


def cpu() -> float:
    """CPU seconds of this process and of those that it has waited for, such as compilers."""
    whom = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    spent = [resource.getrusage(who) for who in whom]
    return sum(one.ru_utime + one.ru_stime for one in spent)


def peak() -> int:
    """The most memory that this process has had, in bytes.

    ``ru_maxrss`` would do, but a child inherits that of its parent.
    """
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    found = [int(line.split()[1]) for line in lines if line.startswith("VmHWM")]
    return 1024 * (found[0] if found else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


# Words


def gigabytes(found: Figures) -> str:
    """The peak of memory among what was measured, in GB."""
    return f"{found['memory'] / 1e9:.1f}"


def share(ratio: float) -> str:
    """A ratio as people read it.

    >>> share(0.01), share(0.62), share(1.049), share(1.0), share(123.4)
    ('1/100', '0.62', '1.05', '1', '123')
    """
    if ratio <= 0.2:
        return f"1/{1 / ratio:,.0f}"
    if ratio == round(ratio):
        return f"{ratio:,.0f}"
    return f"{ratio:,.{0 if ratio >= 20 else 1 if ratio >= 9.95 else 2}f}"


def seconds(value: float) -> str:
    """Two digits or more, in the unit that suits.

    >>> seconds(0.0000004), seconds(0.000312), seconds(0.034), seconds(3.21), seconds(123.4)
    ('0.40 us', '312 us', '34 ms', '3.2 s', '123 s')
    """
    for unit, name in ((1e-6, "us"), (1e-3, "ms"), (1.0, "s")):
        scaled = value / unit
        if scaled < 999 or name == "s":
            break
    digits = 0 if scaled >= 9.95 else 1 if scaled >= 0.995 else 2
    return f"{scaled:,.{digits}f} {name}"


def grouped(rows: Iterable[Row]) -> Iterator[list[str]]:
    """Rows for people, and the name of a part in its first row only."""
    part = ""
    for row in rows:
        first, *others = cells(row)
        yield [f"**{first}**" if first != part else "", *others]
        part = first


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


HEAD = ["part", "what", "against", "ours / theirs", "goal", "ours", "theirs", "remark"]


def cells(row: Row) -> list[str]:
    """A row for people: the ratio is bold, a goal that was not reached says so."""
    goal = "" if row.goal is None else f"{share(row.goal)}{'' if row.reached else ', not reached'}"
    ratio = f"**{share(row.ratio)}**"
    clock = "" if row.clock == "CPU" else f" {row.clock}"
    sides = [f"{_whole(seconds(side))}{clock}" for side in (row.ours, row.theirs)]
    return [row.part, row.what, row.against, ratio, goal, *sides, row.remark]


def _whole(text: str) -> str:
    return text.replace(" ", "\N{NO-BREAK SPACE}")


def shown(rows: Iterable[Row]) -> list[Row]:
    """The same rows, each printed as soon as it is measured."""
    print(table(HEAD, []), flush=True)
    found = []
    for row in rows:
        print(f"| {' | '.join(cells(row))} |", flush=True)
        found.append(row)
    return found


def versions(packages: Iterable[str]) -> Iterator[str]:
    """Name and version of each that is there."""
    for name in packages:
        try:
            yield f"{name} {metadata.version(name)}"
        except metadata.PackageNotFoundError:
            yield f"no {name}"


def machine(*packages: str) -> str:
    """Cores, processor, memory, Python and packages in a line."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    said = [f"{os.cpu_count()} cores ({processor()})", f"{memory:.0f} GB"]
    said += [f"Python {platform.python_version()}", *versions(packages)]
    return ", ".join(said)


def make_parser(about: str | None) -> argparse.ArgumentParser:
    """The options of every benchmark: ``--quick``."""
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small sizes; prints, writes nothing")
    return parser


def measure_rows(about: str | None, rows: Callable[[bool], Iterable[Row]]) -> None:
    """What a benchmark does that only has rows: print them, and check the limits of small ones."""
    if make_parser(about).parse_args().quick:
        check_limits(shown(repeat_beyond_limits(rows)))
    else:
        shown(rows(False))


def repeat_beyond_limits(rows: Callable[[bool], Iterable[Row]]) -> list[Row]:
    """Small rows, each the best of several if one exceeds its limit: others may have disturbed."""
    best = list(rows(True))
    for _ in range(AGAIN):
        if not any(row.complaint for row in best):
            break
        best = [min(pair, key=attrgetter("ratio")) for pair in zip(best, rows(True), strict=True)]
    return best


def check_limits(rows: Iterable[Row]) -> None:
    """End with a sentence for each ratio that exceeds its limit."""
    if complaints := [row.complaint for row in rows if row.complaint]:
        raise SystemExit("\n".join(complaints))


def keep(name: str, title: str, before: str, *parts: str) -> None:
    """Write a page of results, with the machine and the load before."""
    about = f"Made by `python benchmarks/{name}.py` on {machine('distributed')}; load {before}."
    (RESULTS / f"{name}.md").write_text("\n\n".join([f"# {title}", about, *parts]) + "\n")


def processor() -> str:
    """What the system calls the processor."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    named = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()


def load() -> str:
    """How many processes want to compute, on average over a minute."""
    return f"{os.getloadavg()[0]:.1f}"


def main() -> None:
    """What :func:`apart` starts."""
    module, function, arguments = sys.argv[1:]
    args, kwargs = json.loads(arguments)
    print(json.dumps(getattr(import_module(module), function)(*args, **kwargs)))


if __name__ == "__main__":
    main()
