"""Options that several commands share, and how their values are parsed."""

import argparse
from collections.abc import Callable
from typing import Any

from polarbear.errors import DataError
from polarbear.racing.deadlines import parse_duration

PRIORS = (
    "Dirichlet",
    "HierarchicalDirichlet",
    "BSpline",
    "RandomWalk",
    "SparseGP",
    "HSGP",
    "GP",
)

COLUMN_OPTIONS = ("algorithm", "instance", "time", "value", "repetition")

REPEATABLE = "may be repeated"

RESULTS_HELP = "results (a file, folder or archive)"

INSTANCES_HELP = "the number of instances of a data set or race (as many as yours)"

OUTPUT_HELP = "the file or folder to write"

STORE_HELP = "the store of a race: a file, or a postgresql:// URL; it may be in use"


PATTERN_HELP = "regular expression for times and values in solver logs"


class GivenOption(argparse.Action):
    """An argparse action that records in ``given_options`` which options were given.

    Some options apply only to some kinds of files. A command refuses those that were given, which
    it could not tell from defaults otherwise.
    """

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,  # noqa: ARG002
    ) -> None:
        """Store the value of an option, and record that the option was given."""
        if self.nargs is None and self.const == REPEATABLE:
            values = (*(getattr(namespace, self.dest) or ()), values)
        setattr(namespace, self.dest, values)
        namespace.given_options = {*getattr(namespace, "given_options", ()), self.dest}


def add_command(
    commands: argparse._SubParsersAction,
    name: str,
    summary: str,
    details: str,
    *,
    positionals: str,
    examples: tuple[str, ...],
    aliases: tuple[str, ...] = (),
    run: Callable[[argparse.Namespace], int],
) -> argparse.ArgumentParser:
    """Add a command with its one-line summary, details, positional arguments and examples."""
    end = "" if summary.endswith("?") else "."
    lines = "\n".join(f"  polarbear {example}" for example in examples)
    parser = commands.add_parser(
        name,
        aliases=aliases,
        help=summary,
        usage=f"polarbear {name} [OPTIONS] {positionals}",
        description=f"{summary[0].upper()}{summary[1:]}{end} {details}",
        epilog=f"{'example' if len(examples) == 1 else 'examples'}:\n{lines}",
        formatter_class=_Help,
        allow_abbrev=False,
    )
    parser.set_defaults(run=run, command=name)
    return parser


class _Help(argparse.HelpFormatter):
    """A formatter of help texts that wraps text, but keeps the lines of examples."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith("example"):
            return "\n".join(indent + line for line in text.splitlines())
        return super()._fill_text(text, width, indent)


def add_source_argument(parser: argparse.ArgumentParser, what: str) -> None:
    """Add the argument for the data: a path, or ``--example`` for an example of the package."""
    parser.add_argument("source", nargs="?", help=what)
    parser.add_argument(
        "--example",
        nargs="?",
        const="bbob",
        choices=("bbob", "cma-variants"),
        help="use results that come with the package: six optimisers on the BBOB functions (bbob, "
        "the default), or variants of CMA-ES on MA-BBOB (cma-variants)",
    )


def add_reading_options(parser: argparse.ArgumentParser, *, with_times: bool = True) -> None:
    """Add the options for reading results, and for the times of comparison."""
    group = parser.add_argument_group("how to read results")
    group.add_argument(
        "--direction",
        choices=("minimize", "maximize"),
        action=GivenOption,
        help="whether low (minimize) or high (maximize) values are better",
    )
    group.add_argument(
        "--format", action=GivenOption, help="format of the files, if it is not recognised"
    )
    group.add_argument(
        "--clock", action=GivenOption, help="the unit of times: evaluations, seconds, ..."
    )
    for name in COLUMN_OPTIONS:
        is_repeatable = name in ("instance", "value")
        group.add_argument(
            f"--{name}",
            metavar="COLUMN",
            action=GivenOption,
            const=REPEATABLE if is_repeatable else None,
            help=f"the column of the {name}{f'; {REPEATABLE}' if is_repeatable else ''}",
        )
    group.add_argument(
        "--until",
        metavar="WHEN",
        action=GivenOption,
        help="until when runs were observed: a column, a time for all, 'last' (until the last row "
        "of the run) or 'instance' (until the last row of any run on the instance)",
    )
    group.add_argument(
        "--ended",
        choices=("cut", "finished"),
        action=GivenOption,
        help="how runs ended where nothing says it: they were cut, and are unknown after their "
        "end, or they finished by themselves, and keep their value (the data decide)",
    )
    group.add_argument("--pattern", metavar="REGEX", action=GivenOption, help=PATTERN_HELP)
    group.add_argument(
        "--names",
        metavar="PATTERN",
        action=GivenOption,
        help="how paths, or names of studies, name runs: "
        "'runs/{algorithm}/{instance}_s{repetition}.csv'",
    )
    group.add_argument(
        "--columns",
        metavar="NAME=OTHER,...",
        type=_parse_column_names,
        action=GivenOption,
        const=REPEATABLE,
        help=f"other names of a column, if files differ: time=evals,fe; {REPEATABLE}",
    )
    group.add_argument(
        "--missing",
        choices=("error", "drop"),
        action=GivenOption,
        help="rows without a time or a value: refuse the file (error, the default) or drop them",
    )
    _add_order_options(group)
    _add_trial_options(group)
    if with_times:
        _add_time_options(parser)


def _add_order_options(group: argparse._ArgumentGroup) -> None:
    """Add the options for constraints, and for values that are not the best so far."""
    group.add_argument(
        "--violation",
        metavar="COLUMN",
        action=GivenOption,
        help="column of violations of constraints, 0 where all hold; feasible values are ahead",
    )
    group.add_argument(
        "--latest",
        action="store_false",
        default=None,
        dest="best_so_far",
        help="a run has its latest value, not its best so far: returns of agents, noisy values",
    )


def _add_trial_options(group: argparse._ArgumentGroup) -> None:
    """Add the options that say which values of trials are used."""
    group.add_argument(
        "--curve",
        choices=("best", "last", "chosen", "final"),
        action=GivenOption,
        help="of trials with several values count all (best), the last of each trial (last), or "
        "the one that --chosen-by chooses: at every time (chosen), or at the end of a run (final)",
    )
    group.add_argument(
        "--chosen-by",
        metavar="COLUMN",
        action=GivenOption,
        help="what chooses among rows or trials, if it is not the value; for trials with --curve "
        "chosen or final",
    )
    group.add_argument(
        "--partial",
        action="store_true",
        default=None,
        help="count the values of pruned trials and of lower budgets",
    )


def _add_time_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for the times at which results are ranked."""
    group = parser.add_argument_group("times of comparison")
    group.add_argument(
        "--times",
        type=_parse_times,
        metavar="N",
        action=GivenOption,
        help="compare at N times over the range of the data, or at given times: 10,100,1000 (for a "
        "range: --from 10 --to 1000)",
    )
    group.add_argument(
        "--from",
        type=parse_time,
        dest="start",
        metavar="TIME",
        action=GivenOption,
        help="the first time (1 %% of the last, and after at least 10 evaluations, because the "
        "first values are mostly luck)",
    )
    group.add_argument(
        "--to",
        type=parse_time,
        dest="stop",
        metavar="TIME",
        action=GivenOption,
        help="the last time (until which half of the runs are known)",
    )
    group.add_argument(
        "--targets",
        nargs="?",
        const="default",
        metavar="PERCENT,...",
        action=GivenOption,
        help="compare by the time to reach targets instead; a target of 90 is a value that 90 %% "
        "of the values of an instance over time miss (5,20,35,50,65,80,90,95,98)",
    )


def _parse_column_names(text: str) -> tuple[str, tuple[str, ...]]:
    """Parse a column and its other names, such as "time=evals,fe"."""
    name, equals, others = text.partition("=")
    if not (name and equals and all(others.split(","))):
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected a column and other names for it, such as time=evals,fe"
        )
    return name, tuple(others.split(","))


def _parse_times(text: str) -> int | tuple[float, ...]:
    """Parse either how many times to use, or a list of times separated by commas."""
    try:
        return tuple(map(float, text.split(","))) if "," in text else int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected a number of times, or times separated by commas"
        ) from None


FIT_OPTIONS = ("prior", "evidence", "method", "abs_tol", "rel_tol", "ties", "weights")
"""Options of ``polarbear.fit`` that commands have; the store of a race has its own values."""


def add_between_option(group: argparse._ActionsContainer) -> None:
    """Add the option for the range of times within which the user may stop."""
    group.add_argument(
        "--between",
        nargs=2,
        type=parse_time,
        metavar=("A", "B"),
        help="at some time from A to B, all equally likely",
    )


def add_size_option(group: argparse._ActionsContainer) -> None:
    """Add the option for the number of algorithms to choose."""
    group.add_argument(
        "--size",
        type=int,
        metavar="N",
        help="number of parallel runs, the best of which counts (1)",
    )


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how to find values in the output of programs."""
    parser.add_argument(
        "--pattern",
        metavar="REGEX",
        action=GivenOption,
        required=True,
        help=PATTERN_HELP,
    )
    parser.add_argument(
        "--direction",
        choices=("minimize", "maximize"),
        action=GivenOption,
        required=True,
        help="whether low (minimize) or high (maximize) values are better",
    )


class _Suggestions(tuple[str, ...]):
    """Values that a shell suggests, of an option that takes others too."""

    def __contains__(self, _: object) -> bool:
        return True


def _parse_prior(text: str) -> Any:
    """Return a prior from its name, or its name with parameters as in Python."""
    from polarbear.errors import DataError
    from polarbear.priors.by_name import parse_prior

    try:
        return parse_prior(text)
    except DataError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def add_question_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for the question, and for the two configurations of the paper."""
    parser.add_argument(
        "--question",
        choices=("ParetoSet", "StrictParetoSet", "PaperParetoSet"),
        default="ParetoSet",
        help="what to find out: the anytime Pareto set by the rule of this package, or by "
        "algorithm 1 of the paper with its model",
    )
    parser.add_argument(
        "--over-time",
        choices=("temporal", "independent"),
        help="PaperParetoSet: a prior over time, joint dominance and crossings (temporal), or each "
        "time by itself (independent)",
    )


def add_fit_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for fitting the posterior."""
    group = parser.add_argument_group("how to fit the posterior")
    group.add_argument(
        "--prior",
        type=_parse_prior,
        choices=_Suggestions(PRIORS),
        default="Dirichlet",
        metavar="PRIOR",
        action=GivenOption,
        help=f"prior of ratings over time: {', '.join(PRIORS)}, with parameters as in "
        "GP(warp=linear) (Dirichlet: times are independent)",
    )
    group.add_argument(
        "--evidence",
        choices=("instances", "rankings"),
        action=GivenOption,
        help="what counts as independent evidence: every instance (instances), or every ranking at "
        "every time, as in the paper (rankings)",
    )
    group.add_argument(
        "--method",
        choices=("laplace", "nuts", "pathfinder", "pymc-laplace", "advi", "stan"),
        default="laplace",
        metavar="METHOD",
        action=GivenOption,
        help="method of inference: laplace, or for comparison nuts, pathfinder, pymc-laplace, advi "
        "or stan (laplace)",
    )
    for name, what in (("--abs-tol", "at most this much"), ("--rel-tol", "at most this share")):
        group.add_argument(
            name,
            type=float,
            metavar="X",
            action=GivenOption,
            help=f"values that differ by {what} tie",
        )
    group.add_argument(
        "--ties",
        choices=("unordered", "averaged"),
        action=GivenOption,
        help="what a tie says about the order of the tied: nothing (unordered), or the mean of all "
        "orders, as in the paper (averaged)",
    )
    group.add_argument(
        "--weight",
        type=_parse_weight,
        dest="weights",
        metavar="INSTANCE=X",
        action=GivenOption,
        const=REPEATABLE,
        help=f"weight of an instance (1); {REPEATABLE}",
    )


def _parse_weight(text: str) -> tuple[str, float]:
    """Parse an instance and its weight, such as "sphere=2"."""
    name, _, number = text.rpartition("=")
    try:
        weight = float(number if name else "")
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected an instance and its weight, such as sphere=2"
        ) from None
    return name, weight


class Seconds(float):
    """A number of seconds that was given with a unit, so the clock must count seconds."""


def parse_time(text: str) -> float:
    """Parse a time: a number in the clock of the data, or a duration with a unit.

    >>> parse_time("500"), parse_time("1.5h"), parse_time("200ms"), parse_time("4 min")
    (500.0, 5400.0, 0.2, 240.0)
    """
    duration = parse_duration(text)
    try:
        return float(text) if duration is None else Seconds(duration)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected a number in the clock of the data; if that counts seconds, also "
            "200ms, 90m, '4 min', 2h or 1d"
        ) from None


def parse_feature(text: str) -> tuple[str, str | float]:
    """Parse a feature of an instance, or its class.

    >>> parse_feature("variables=2000"), parse_feature("family=hard")
    (('variables', 2000.0), ('family', 'hard'))
    """
    name, equals, value = text.rpartition("=")
    if not (equals and name and value):
        raise argparse.ArgumentTypeError(f"{text!r}: expected NAME=VALUE, such as variables=2000")
    try:
        return name, float(value)
    except ValueError:
        return name, value


def parse_probability(text: str) -> float:
    """Parse a probability, given as a number or in percent.

    >>> parse_probability("0.95"), parse_probability("95%")
    (0.95, 0.95)
    """
    number, percent, rest = text.strip().partition("%")
    try:
        if rest:
            raise ValueError
        return float(number) / (100 if percent else 1)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected a probability, such as 0.95 or 95%"
        ) from None


def check_clock(clock: str, *times: float | None) -> None:
    """Raise an error for times given with a unit if the clock does not count seconds."""
    from polarbear._text import choose_precision, format_unit

    has_unit = any(isinstance(time, Seconds) for time in times)
    if has_unit and choose_precision(clock) != "seconds":
        unit = format_unit(clock)
        hint = f", and this clock counts {unit}:" if unit else ": pass --clock seconds, or"
        raise DataError(
            f"a time with a unit (ms, s, m, h or d) needs a clock that counts seconds{hint} give "
            "the time without a unit"
        )


def add_certainty_option(parser: argparse.ArgumentParser) -> None:
    """Add the option for the certainty that a statement requires."""
    parser.add_argument(
        "--certainty",
        type=parse_probability,
        default=0.95,
        help="required probability of a statement (0.95)",
    )


def add_seed_option(parser: argparse.ArgumentParser) -> None:
    """Add the option for the seed of random numbers."""
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        action=GivenOption,
        help="seed of random numbers: the same seed gives the same answer (0)",
    )


def add_workers_option(parser: argparse.ArgumentParser, default: str) -> None:
    """Add the option for the number of parallel runs."""
    parser.add_argument(
        "--workers", type=int, metavar="N", help=f"number of parallel runs ({default})"
    )


def add_json_option(parser: argparse.ArgumentParser, what: str = "the answer as JSON") -> None:
    """Add the option ``--json``, which prints JSON instead of text."""
    parser.add_argument("--json", action="store_true", help=f"{what}, for programs")
