"""Options that several commands share, and how their values are parsed.

An option that is a field of a record is written there: its type, its choices and its words.
"""

import argparse
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from types import SimpleNamespace, UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from polarbear.cli.output import get_option_name
from polarbear.data.columns import Columns
from polarbear.errors import DataError
from polarbear.racing.deadlines import parse_duration

READING_OPTIONS = (
    *("direction", "format", "clock", "ended", "pattern", "names", "columns", "curve", "partial"),
    *(one.name for one in fields(Columns)),
)
"""Options of ``polarbear.read`` that commands have."""

TIME_OPTIONS = ("times", "start", "stop", "targets")

FIT_OPTIONS = ("prior", "evidence", "method", "abs_tol", "rel_tol", "ties", "weights")
"""Options of ``polarbear.fit`` and ``rank`` that commands have; a race has its own values."""

REPEATABLE = "may be repeated"

RESULTS_HELP = "results (a file, folder or archive)"

INSTANCES_HELP = "the number of instances of a data set or race (as many as yours)"

OUTPUT_HELP = "the file or folder to write"

STORE_HELP = "the store of a race: a file, or a postgresql:// URL; it may be in use"


PATTERN_HELP = "regular expression for times and values in solver logs"


class Subcommand(NamedTuple):
    """A command: its one-line summary, details, positional arguments, examples and options."""

    name: str
    summary: str
    details: str
    positionals: str
    examples: tuple[str, ...]
    add_options: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    aliases: tuple[str, ...] = ()

    def add_to(self, commands: argparse._SubParsersAction, *, with_options: bool) -> None:
        """Add the command to a parser; options cost time, and only one command needs them."""
        end = "" if self.summary.endswith("?") else "."
        lines = "\n".join(f"  polarbear {example}" for example in self.examples)
        parser = commands.add_parser(
            self.name,
            aliases=self.aliases,
            help=self.summary,
            usage=f"polarbear {self.name} [OPTIONS] {self.positionals}",
            description=f"{self.summary[0].upper()}{self.summary[1:]}{end} {self.details}",
            epilog=f"{'examples' if self.examples[1:] else 'example'}:\n{lines}",
            formatter_class=_Help,
            allow_abbrev=False,
        )
        parser.set_defaults(run=self.run, command=self.name)
        if with_options:
            self.add_options(parser)


class _Help(argparse.HelpFormatter):
    """A formatter of help texts that wraps text, but keeps the lines of examples."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith("example"):
            return "\n".join(indent + line for line in text.splitlines())
        return super()._fill_text(text, width, indent)


def add_parameters(
    group: argparse._ActionsContainer,
    sources: Sequence[Any],
    names: Iterable[str] | None = None,
) -> None:
    """Add an option for each field of a record, or for parameters of a function.

    Its type and its words are those of the first source that has the parameter.
    """
    signatures = {source: inspect.signature(source).parameters for source in sources}
    for name in signatures[sources[0]] if names is None else names:
        owners = [source for source in sources if name in signatures[source]]
        words = _read_parameters(owners[0]).get(name, "")  # none with python -OO
        words = f"{words[:1].lower()}{words[1:].removesuffix('.')}"
        if len(sources) > 1:
            words = f"{', '.join(one.__name__ for one in owners)}: {words}"
        default = signatures[owners[0]][name].default
        if type(default) in (float, int, tuple):
            words += f" ({default})"
        kind = _choose_kind(_get_type(owners[0], name))
        group.add_argument(get_option_name(name), default=None, help=words, **kind)


def _read_parameters(source: Any) -> dict[str, str]:
    """Return what the docstring of a record or a function says of each parameter.

    >>> print(_read_parameters(Columns)["repetition"])
    The column of the repetition (a column "repetition" or "seed", if there is one).
    """
    section = inspect.cleandoc(source.__doc__ or "").partition("\n----------\n")[2]
    words: dict[str, str] = {}
    names: list[str] = []
    for line in section.partition("\n\n")[0].splitlines():
        if not line.startswith(" "):
            names = line.split(", ")
        for name in names if line.startswith(" ") else ():
            text = re.sub(":[a-z]+:`|`", "", line.strip()).replace("%", "%%")
            words[name] = f"{words[name]} {text}" if name in words else text
    return words


def _get_type(source: Any, name: str) -> Any:
    """Return the type of a parameter, which may be written as a text."""
    owners = [
        one for one in getattr(source, "__mro__", (source,)) if "__annotations__" in vars(one)
    ]
    owner = next(one for one in owners or [source] if name in one.__annotations__)
    one = SimpleNamespace(__annotations__={name: owner.__annotations__[name]})
    return get_type_hints(one, vars(sys.modules[owner.__module__]))[name]


def _choose_kind(hint: Any) -> dict[str, Any]:
    """Return the arguments of an option for values of a type.

    >>> _choose_kind(int | None)["type"], _choose_kind(Literal["cut", "finished"] | None)
    (<class 'int'>, {'choices': ('cut', 'finished')})
    """
    is_union = isinstance(hint, UnionType) or get_origin(hint) is Union
    kinds = set(get_args(hint) if is_union else [hint]) - {type(None)}
    choices = [choice for kind in kinds if get_origin(kind) is Literal for choice in get_args(kind)]
    if float in kinds:
        has_words = choices or str in kinds
        return {"type": parse_number_or_text if has_words else parse_share, "metavar": "X"}
    if choices:
        return {"choices": tuple(choices)}
    if bool in kinds:
        return {"action": argparse.BooleanOptionalAction}
    if int in kinds:
        return {"type": int, "metavar": "N"}
    if get_origin(hint) is tuple:
        return {"type": get_args(hint)[0], "nargs": 2, "metavar": ("LEAST", "MOST")}
    is_several = any(get_origin(kind) in (Sequence, Iterable) for kind in kinds)
    return {"action": "append" if is_several else "store", "metavar": "NAME"}


def add_data_options(parser: argparse.ArgumentParser, what: str, *, fits: bool = True) -> None:
    """Add the data of a command, and how they are read and fitted; and ``--json``."""
    add_source_argument(parser, what)
    if fits:
        add_fit_options(parser)
        add_seed_option(parser)
    add_json_option(parser)
    add_reading_options(parser, with_times=fits)


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
    import polarbear

    group = parser.add_argument_group("how to read results")
    add = group.add_argument
    add_direction_option(group)
    add_parameters(group, [polarbear.read], ["format", "clock", "ended"])
    add("--pattern", metavar="REGEX", help=PATTERN_HELP)
    add(
        "--names",
        metavar="PATTERN",
        help="how paths, or names of studies, name runs: "
        "'runs/{algorithm}/{instance}_s{repetition}.csv'",
    )
    add(
        "--columns",
        metavar="NAME=OTHER,...",
        type=pair_parser(lambda names: tuple(names.split(",")), "time=evals,fe"),
        action="append",
        help=f"other names of a column, if files differ: time=evals,fe; {REPEATABLE}",
    )
    add(
        "--curve",
        choices=("best", "last", "chosen", "final"),
        help="of trials with several values count all (best), the last of each trial (last), or "
        "the one that --chosen-by chooses: at every time (chosen), or at the end of a run (final)",
    )
    add(
        "--partial",
        action="store_true",
        default=None,
        help="count the values of pruned trials and of lower budgets",
    )
    columns = parser.add_argument_group("columns of tables (--instance and --value: repeatable)")
    add_parameters(columns, [Columns])
    if with_times:
        _add_time_options(parser)


def add_direction_option(group: argparse._ActionsContainer, *, required: bool = False) -> None:
    """Add the option that says whether low or high values are better."""
    group.add_argument(
        "--direction",
        choices=("minimize", "maximize"),
        required=required,
        help="whether low (minimize) or high (maximize) values are better",
    )


def _add_time_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for the times at which results are ranked."""
    add = parser.add_argument_group("times of comparison").add_argument
    add(
        "--times",
        type=_parse_times,
        metavar="N",
        help="compare at N times over the range of the data, or at given times: 10,100,1000 (for a "
        "range: --from 10 --to 1000)",
    )
    add(
        "--from",
        type=parse_time,
        dest="start",
        metavar="TIME",
        help="the first time (1 %% of the last, and after at least 10 evaluations, because the "
        "first values are mostly luck)",
    )
    add(
        "--to",
        type=parse_time,
        dest="stop",
        metavar="TIME",
        help="the last time (until which half of the runs are known)",
    )
    add(
        "--targets",
        nargs="?",
        const="default",
        metavar="PERCENT,...",
        help="compare by the time to reach targets instead; a target of 90 is a value that 90 %% "
        "of the values of an instance over time miss (5,20,35,50,65,80,90,95,98)",
    )


def _parse_times(text: str) -> int | tuple[float, ...]:
    """Parse either how many times to use, or a list of times separated by commas."""
    try:
        return tuple(map(float, text.split(","))) if "," in text else int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected a number of times, or times separated by commas"
        ) from None


def add_between_option(group: argparse._ActionsContainer) -> None:
    """Add the option for the range of times within which the user may stop."""
    group.add_argument(
        "--between",
        nargs=2,
        type=parse_time,
        metavar=("A", "B"),
        help="at some time from A to B, all equally likely",
    )


class _Suggestions(tuple[str, ...]):
    """Values that a shell suggests, of an option that takes others too."""

    def __contains__(self, _: object) -> bool:
        return True


def _parse_prior(text: str) -> Any:
    """Return a prior from its name, or its name with parameters as in Python."""
    from polarbear.priors.by_name import parse_prior

    try:
        return parse_prior(text)
    except DataError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def add_question_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for the question, and for the two configurations of the paper."""
    from polarbear.racing.questions.stored import PARETO_SETS

    parser.add_argument(
        "--question",
        choices=[kind.__name__ for kind in PARETO_SETS],
        help="what to find out: the anytime Pareto set by the rule of this package, or by "
        "algorithm 1 of the paper with its model (default: ParetoSet, or as in the race)",
    )
    add_question_fields(parser, ["over_time"])


def add_question_fields(group: argparse._ActionsContainer, names: Iterable[str]) -> None:
    """Add options for fields of questions."""
    from polarbear.racing.questions.stored import BY_NAME

    add_parameters(group, list(BY_NAME.values()), names)


def add_fit_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for fitting the posterior."""
    from polarbear.data.rankings import rank
    from polarbear.inference.fit import fit
    from polarbear.priors.by_name import BY_NAME

    group = parser.add_argument_group("how to fit the posterior")
    group.add_argument(
        "--prior",
        type=_parse_prior,
        choices=_Suggestions(BY_NAME),
        metavar="PRIOR",
        help=f"prior of ratings over time: {', '.join(BY_NAME)}, with parameters as in "
        "GP(warp=linear) (Dirichlet: times are independent)",
    )
    add_parameters(group, [fit], ["evidence", "method"])
    add_parameters(group, [rank], ["abs_tol", "rel_tol", "ties"])
    group.add_argument(
        "--weight",
        type=pair_parser(float, "sphere=2"),
        dest="weights",
        metavar="INSTANCE=X",
        action="append",
        help=f"weight of an instance (1); {REPEATABLE}",
    )


def pair_parser(parse: Callable[[str], Any], example: str) -> Callable[[str], tuple[str, Any]]:
    """Return a parser of a name and its value.

    >>> pair_parser(parse_number_or_text, "variables=2000")("family=hard")
    ('family', 'hard')
    """

    def parse_pair(text: str) -> tuple[str, Any]:
        name, _, value = text.rpartition("=")
        try:
            if not (name and value):
                raise ValueError
            return name, parse(value)
        except ValueError:
            raise argparse.ArgumentTypeError(
                f"{text!r}: expected a name and its value, such as {example}"
            ) from None

    return parse_pair


def parse_number_or_text(text: str) -> float | str:
    """Parse a number; return a text that is none unchanged."""
    try:
        return float(text)
    except ValueError:
        return text


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


def parse_whole(text: str) -> int:
    """Parse a whole number of at least 0.

    >>> parse_whole("7")
    7
    """
    if not text.strip().isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number of at least 0")
    return int(text)


def parse_share(text: str) -> float:
    """Parse a number, which may be given in percent.

    >>> parse_share("0.95"), parse_share("95%")
    (0.95, 0.95)
    """
    number, percent, rest = text.strip().partition("%")
    try:
        if rest:
            raise ValueError
        return float(number) / (100 if percent else 1)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected a number, such as 0.95 or 95%"
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


def add_certainty_option(parser: argparse.ArgumentParser, of: str = "0.95") -> None:
    """Add the option for the certainty that a statement requires."""
    parser.add_argument(
        "--certainty",
        type=parse_share,
        help=f"required probability of a statement ({of})",
    )


def pick_given(arguments: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    """Return the options that were given, out of some that have no default.

    >>> pick_given(argparse.Namespace(clock=None, seed=0), ["clock", "seed", "prior"])
    {'seed': 0}
    """
    values = {name: getattr(arguments, name, None) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def add_seed_option(parser: argparse.ArgumentParser) -> None:
    """Add the option for the seed of random numbers."""
    parser.add_argument(
        "--seed",
        type=parse_whole,
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
