"""Options that several commands have: one name, one meaning, said once."""

import argparse
from collections.abc import Callable
from typing import Any

from polarbear.errors import DataError
from polarbear.racing.deadlines import parse_duration

FILES = {"bash": "_shtab_compgen_files", "zsh": "_files", "tcsh": "f"}
"""What a shell completes where a file is expected; shtab looks for it."""

PRIORS = (
    "Dirichlet",
    "HierarchicalDirichlet",
    "BSpline",
    "RandomWalk",
    "SparseGP",
    "HSGP",
    "GP",
)

COLUMNS = ("algorithm", "instance", "time", "value", "repetition")

MANY = "may be repeated"

RESULTS = "results (a file, folder or archive)"

STORE = "the store of a race: a file, or a postgresql:// URL; it may be in use"


class Option(argparse.Action):
    """An option that takes a value, and remembers that it was given.

    Commands that take several kinds of files refuse options that a file has no use for, which needs
    to be told from defaults.
    """

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,  # noqa: ARG002
    ) -> None:
        """Keep the value."""
        if self.nargs is None and self.const == MANY:
            values = (*(getattr(namespace, self.dest) or ()), values)
        setattr(namespace, self.dest, values)
        namespace.given = {*getattr(namespace, "given", ()), self.dest}


def command(
    commands: argparse._SubParsersAction,
    name: str,
    about: str,
    more: str,
    *,
    takes: str,
    examples: tuple[str, ...],
    aliases: tuple[str, ...] = (),
    run: Callable[[argparse.Namespace], int],
) -> argparse.ArgumentParser:
    """Add a command: what it answers in a line, what else to know, what it takes, and examples."""
    shown = "\n".join(f"  polarbear {example}" for example in examples)
    parser = commands.add_parser(
        name,
        aliases=aliases,
        help=about,
        usage=f"polarbear {name} [OPTIONS] {takes}",
        description=f"{about[0].upper()}{about[1:]}{'' if about.endswith('?') else '.'} {more}",
        epilog=f"{'example' if len(examples) == 1 else 'examples'}:\n{shown}",
        formatter_class=_Help,
        allow_abbrev=False,
    )
    parser.set_defaults(run=run, command=name)
    return parser


class _Help(argparse.HelpFormatter):
    """Texts are filled, examples are left as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith("example"):
            return "\n".join(indent + line for line in text.splitlines())
        return super()._fill_text(text, width, indent)


def add_file(parser: argparse.ArgumentParser, *names: str, **more: Any) -> None:
    """An argument that is a file: shells complete it."""
    parser.add_argument(*names, **more).complete = FILES  # type: ignore[attr-defined]


def add_source(parser: argparse.ArgumentParser, what: str) -> None:
    """What to look at: a file, or the example that comes with the package."""
    add_file(parser, "source", nargs="?", help=what)
    parser.add_argument(
        "--example",
        action="store_true",
        help="take the results that come with the package: 7 algorithms on 60 problems",
    )


def add_reading(parser: argparse.ArgumentParser) -> None:
    """How to read results."""
    group = parser.add_argument_group("how to read results")
    group.add_argument(
        "--direction",
        choices=("minimize", "maximize"),
        action=Option,
        help="whether small or large values are good",
    )
    group.add_argument("--format", action=Option, help="of the files, where it is not recognised")
    group.add_argument(
        "--clock", action=Option, help="the unit of times: evaluations, seconds, ..."
    )
    for name in COLUMNS:
        many = name == "instance"
        group.add_argument(
            f"--{name}",
            metavar="COLUMN",
            action=Option,
            const=MANY if many else None,
            help=f"the column of the {name}{f'; {MANY}' if many else ''}",
        )
    group.add_argument(
        "--until",
        metavar="WHEN",
        action=Option,
        help="until when runs were observed: a column, a time for all, 'last' (until the last row "
        "of the run) or 'instance' (until the last row of any run on the instance)",
    )
    group.add_argument(
        "--pattern", metavar="REGEX", action=Option, help="finds times and values in solver logs"
    )
    group.add_argument(
        "--names",
        metavar="PATTERN",
        action=Option,
        help="what a file's path means: 'runs/{algorithm}/{instance}_s{repetition}.csv'",
    )
    group.add_argument(
        "--columns",
        metavar="NAME=OTHER,...",
        type=_other_names,
        action=Option,
        const=MANY,
        help=f"other names of a column, where files differ: time=evals,fe; {MANY}",
    )
    group.add_argument(
        "--missing",
        choices=("error", "drop"),
        action=Option,
        help="rows without a time or a value: refuse them, or leave them out (error)",
    )
    _add_times(parser)


def _add_times(parser: argparse.ArgumentParser) -> None:
    """At which times to rank results."""
    group = parser.add_argument_group("at which times")
    group.add_argument(
        "--times",
        type=_times,
        metavar="N",
        action=Option,
        help="compare at N times, spread over the data, or at these: 10,100,1000 (for a range: "
        "--from 10 --to 1000)",
    )

    group.add_argument(
        "--from",
        type=a_time,
        dest="start",
        metavar="TIME",
        action=Option,
        help="the first time to rank at (when half of the runs have a value)",
    )
    group.add_argument(
        "--to",
        type=a_time,
        dest="stop",
        metavar="TIME",
        action=Option,
        help="the last time to rank at (until which half of the runs are known)",
    )


def _other_names(text: str) -> tuple[str, tuple[str, ...]]:
    """A column, and what else it may be called."""
    name, equals, others = text.partition("=")
    if not (name and equals and all(others.split(","))):
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected a column, =, and its other names: time=evals,fe"
        )
    return name, tuple(others.split(","))


def _times(text: str) -> int | tuple[float, ...]:
    """How many times, or which: numbers with commas between them."""
    try:
        return tuple(map(float, text.split(","))) if "," in text else int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no number of times, and no times with commas between them"
        ) from None


FIT = ("prior", "evidence", "method", "abs_tol", "rel_tol", "weights")
"""Options of ``polarbear.fit`` that commands have; the store of a race knows its own."""


def add_between(group: argparse._ActionsContainer) -> None:
    """The range of times at which one may stop."""
    group.add_argument(
        "--between",
        nargs=2,
        type=a_time,
        metavar=("A", "B"),
        help="at some time from A to B, all equally likely",
    )


def add_output(parser: argparse.ArgumentParser) -> None:
    """How the output of programs is understood."""
    parser.add_argument(
        "--pattern",
        metavar="REGEX",
        action=Option,
        required=True,
        help="finds times and values in solver logs",
    )
    parser.add_argument(
        "--direction",
        choices=("minimize", "maximize"),
        action=Option,
        required=True,
        help="whether small or large values are good",
    )


def add_fit(parser: argparse.ArgumentParser) -> None:
    """How to make a posterior."""
    group = parser.add_argument_group("how to make a posterior")
    group.add_argument(
        "--prior",
        choices=PRIORS,
        default="Dirichlet",
        metavar="PRIOR",
        action=Option,
        help=f"how ratings may move over time: {', '.join(PRIORS)} (Dirichlet: each time by "
        "itself)",
    )
    group.add_argument(
        "--evidence",
        choices=("instances", "rankings"),
        action=Option,
        help="what counts as new evidence: every instance (instances), or every ranking at every "
        "time, as in the paper (rankings)",
    )
    group.add_argument(
        "--method",
        choices=("laplace", "nuts", "pathfinder", "pymc-laplace", "advi", "stan"),
        default="laplace",
        metavar="METHOD",
        action=Option,
        help="the engine: laplace, or to compare it with nuts, pathfinder, pymc-laplace, advi or "
        "stan (laplace)",
    )
    for name, what in (("--abs-tol", "at most this much"), ("--rel-tol", "at most this share")):
        group.add_argument(
            name, type=float, metavar="X", action=Option, help=f"values that differ by {what} tie"
        )
    group.add_argument(
        "--weight",
        type=_weight,
        dest="weights",
        metavar="INSTANCE=X",
        action=Option,
        const=MANY,
        help=f"how much an instance counts (1); {MANY}",
    )


def _weight(text: str) -> tuple[str, float]:
    """An instance, and how much it counts."""
    name, _, number = text.rpartition("=")
    try:
        weight = float(number if name else "")
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected the name of an instance, =, and a number: sphere=2"
        ) from None
    return name, weight


class Seconds(float):
    """A time that was given with a unit, so that the clock has to count seconds."""


def a_time(text: str) -> float:
    """A time: a number in the clock of the data, or with a unit.

    >>> a_time("500"), a_time("1.5h"), a_time("200ms"), a_time("4 min")
    (500.0, 5400.0, 0.2, 240.0)
    """
    duration = parse_duration(text)
    try:
        return float(text) if duration is None else Seconds(duration)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no time: give a number, in the clock of the data; if that counts "
            "seconds, 200ms, 90m, '4 min', 2h or 1d will do"
        ) from None


def a_probability(text: str) -> float:
    """A probability, also in percent.

    >>> a_probability("0.95"), a_probability("95%")
    (0.95, 0.95)
    """
    number, percent, rest = text.strip().partition("%")
    try:
        if rest:
            raise ValueError
        return float(number) / (100 if percent else 1)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no probability: give a number such as 0.95, or 95%"
        ) from None


def check_clock(clock: str, *times: float | None) -> None:
    """Refuse times with a unit where the clock does not count seconds."""
    from polarbear._text import choose_precision, format_unit

    given = any(isinstance(time, Seconds) for time in times)
    if given and choose_precision(clock) != "seconds":
        unit = format_unit(clock)
        counts = f"this one counts {unit}" if unit else "--clock seconds would say that it is one"
        raise DataError(
            f"times with ms, s, m, h or d are for a clock in seconds, and {counts}: give a number, "
            "in the clock of the data"
        )


def add_alpha(parser: argparse.ArgumentParser) -> None:
    """How sure to be."""
    parser.add_argument(
        "--alpha",
        type=a_probability,
        default=0.99,
        help="how probable a statement must be to be made (0.99)",
    )


def add_seed(parser: argparse.ArgumentParser) -> None:
    """The same seed, the same answer."""
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        action=Option,
        help="of random numbers: the same seed gives the same answer (0)",
    )


def add_workers(parser: argparse.ArgumentParser, default: str) -> None:
    """How many at once."""
    parser.add_argument(
        "--workers", type=int, metavar="N", help=f"how many runs at once ({default})"
    )


def add_json(parser: argparse.ArgumentParser, what: str = "the answer as JSON") -> None:
    """For programs."""
    parser.add_argument("--json", action="store_true", help=f"{what}, for programs")
