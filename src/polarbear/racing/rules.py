"""``Rules``: the required certainty of a race, its limits, and its treatment of failures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime, time
from numbers import Integral, Real
from typing import Any, Literal, Self, get_args

import numpy as np

from polarbear.errors import DataError
from polarbear.inference.dominance import Elimination, Resolution
from polarbear.racing.deadlines import EARLIEST, Deadline, parse_deadline
from polarbear.selection.preferences import Linear, Weights, parse_preference

ErrorControl = Literal["per_member", "whole_race", "per_look"]
Allocation = Literal["paper", "focused"]
Closing = Literal["current", "permanent"]
PosteriorOver = Literal["candidates", "all"]
Classes = Mapping[str, str] | tuple[tuple[str, str], ...]

PAPER_FIT = {"evidence": "rankings", "ties": "averaged"}
"""The options of ``fit`` that belong to :meth:`Rules.paper`."""

LOOKS: dict[Any, ErrorControl] = {
    "fixed": "per_look",
    "shared": "whole_race",
    "betting": "per_member",
}
"""Maps the rule ``looks`` of earlier stores to ``error_control``."""

PRESETS = ("default", "paper")
"""The names that files and commands use for ``Rules()`` and ``Rules.paper()``."""


@dataclass(frozen=True)
class Rules:
    """The rules of a race: certainty, equivalence, allocation and limits.

    Attributes
    ----------
    certainty
        The required certainty: a wrong elimination has probability at most 1 - certainty, as
        ``error_control`` defines it.
    epsilon
        Two algorithms are equivalent if each beats the other with a probability within epsilon of
        one half.
    elimination
        With error control "per_look": whether an algorithm is dominated at all times at once
        ("joint") or at each time separately ("pointwise"). E-values are for all times at once.
    resolution
        When a pair of algorithms is settled. "strict": its relation is certain at every time.
        "crossing": each is certain to lead or tie somewhere, and one of them to lead (paper,
        eq. 31). "at_par": the same without the strict lead, so that equal algorithms are settled
        when they are certain to tie somewhere.
    closing
        For how long a settled pair stays settled. "current": as long as the present posterior is
        certain; and a pair in which one algorithm leads at each time, but not at all times at once,
        is not settled. "permanent": for the rest of the race, as in the paper.
    posterior_over
        Which algorithms the posterior of a decision rates: the remaining "candidates", or "all"
        that have run, the eliminated ones too, as in the paper.
    error_control
        The error that the certainty bounds (:attr:`guarantee` describes it). "per_member": the
        probability that a given member of the Pareto set is ever eliminated, however often the
        race looks. "whole_race": the probability that any member is. Both decide by e-values
        (:mod:`polarbear.inference.e_values`), which need no model. "per_look": the posterior
        probability at each look, as in the paper; looking after every round makes errors more
        frequent.
    preference, regret, portfolio
        The budget for which an algorithm is wanted, such as ``preferences.between(60, 300)``: the
        race then spends only on what may change the choice. It ends when the chosen algorithm is
        at par with, or ahead of, every other one in the score averaged over that preference; or
        when its regret is most likely at most ``regret``, in the value of :func:`polarbear.select`.
        With k = log2(number of instances), the posterior probability of a larger regret must be at
        most (1 - ``certainty``) / (k (k + 1)), because the race looks after every round.
        ``portfolio``: the number of algorithms that are wanted.
    baseline
        The name of an algorithm that the others are tested against (:func:`polarbear.gate`): each
        passes when it is at par with the baseline at every time, and fails when the baseline is
        ahead by more than epsilon at some time.
    classes
        The class of each instance, such as ``{"i1": "easy", "i2": "hard"}``: an algorithm is
        eliminated only if it is dominated in every class, perhaps by another algorithm in each.
        Instances that are not named do not count. Decisions are by e-values, and all algorithms
        with an undecided pair run on new instances.
    allocation
        Which algorithms run next, on which instances and until when. "paper": all with an open
        pair, until their last open time, on new instances; an algorithm that joins first runs on
        the instances that were used before. "focused": what is expected to resolve pairs at the
        least cost (:mod:`polarbear.racing.allocation`), on used instances first; when instances
        are used up, runs that ended too early are extended.
    overlap
        The number of rounds that may be requested beyond an incomplete one, so that workers are
        not idle until the slowest run ends. Decisions do not depend on the order of arrival.
    batch
        The smallest and the largest number of instances of a round. With the paper's allocation
        the size is doubled after a round that resolves no pair, and halved after one that resolves
        more than a fifth of them.
    max_runs, max_time
        The largest number of requested runs, and their largest total time, by the clock of the
        runs.
    deadline
        No run is started from then on. :func:`polarbear.race` takes a duration from the start of
        the call ("8h", "90m", "1h 30m"), the next such time of day ("18:30"), a date and time
        ("2030-01-31T18:30"), or a Unix time. In :class:`Race`, which has no clock, it is a number
        that is compared with the ``now`` of ``ask(now)``.
    retries
        How often a failed run (crashed, killed or out of memory) is requested again, with another
        seed. If the last attempt fails too, it counts with the values it had reached. An extension
        that is requested again keeps its seed.
    max_failures
        An algorithm with more failed runs than this is removed.

    Examples
    --------
    >>> Rules(certainty=0.99, max_runs=2000).batch
    (8, 64)
    >>> Rules(certainty=0.4)
    Traceback (most recent call last):
    polarbear.errors.DataError: certainty=0.4: expected a probability above 0.5 and below 1
    """

    certainty: float = 0.95
    epsilon: float = 0.05
    elimination: Elimination = "joint"
    resolution: Resolution = "at_par"
    closing: Closing = "current"
    posterior_over: PosteriorOver = "candidates"
    error_control: ErrorControl = "per_member"
    preference: Linear | Weights | None = None
    regret: float | None = None
    portfolio: int = 1
    baseline: str | None = None
    classes: Classes | None = None
    allocation: Allocation = "focused"
    overlap: int = 0
    batch: tuple[int, int] = (8, 64)
    max_runs: int | None = None
    max_time: float | None = None
    deadline: Deadline | None = None
    retries: int = 0
    max_failures: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", _check_classes(self.classes))
        expected = {
            "certainty": (
                _is_between(self.certainty, 0.5, 1),
                "a probability above 0.5 and below 1",
            ),
            "epsilon": _check_epsilon(self.epsilon, self.baseline),
            "elimination": _check_choice(self.elimination, Elimination),
            "resolution": _check_choice(self.resolution, Resolution),
            "closing": _check_choice(self.closing, Closing),
            "posterior_over": _check_choice(self.posterior_over, PosteriorOver),
            "error_control": _check_choice(self.error_control, ErrorControl),
            "preference": (
                self.preference is None or isinstance(self.preference, Linear | Weights),
                "a preference with weights on times, such as preferences.between(60, 300)",
            ),
            "regret": (
                self.regret is None or _is_between(self.regret, 0),
                "a number above 0, or None",
            ),
            "portfolio": (
                _is_whole_number(self.portfolio) and self.portfolio > 0,
                "a number of algorithms",
            ),
            "baseline": (
                isinstance(self.baseline, str | None),
                "the name of an algorithm, or None",
            ),
            "allocation": _check_choice(self.allocation, Allocation),
            "overlap": (_is_whole_number(self.overlap), "a number of rounds"),
            "batch": (_is_batch(self.batch), "two whole numbers, such as (8, 64)"),
            "max_runs": (_is_whole_number(self.max_runs, None), "a number of runs, or None"),
            "max_time": (self.max_time is None or _is_between(self.max_time), "a time, or None"),
            "deadline": (self.deadline is None or _is_deadline(self.deadline), "a time, or None"),
            "retries": (_is_whole_number(self.retries), "a number of runs"),
            "max_failures": (
                _is_whole_number(self.max_failures, None),
                "a number of runs, or None",
            ),
        }
        for name, (is_valid, description) in expected.items():
            if not is_valid:
                raise DataError(f"{name}={getattr(self, name)!r}: expected {description}")
        self._check_combination()

    def _check_combination(self) -> None:
        """Raise an error if two rules exclude each other."""
        by_look = self.error_control == "per_look"
        if self.classes and (by_look or self.preference is not None or self.baseline is not None):
            raise DataError(
                "a race with classes needs error_control='per_member' or 'whole_race', and takes "
                "no preference and no baseline"
            )
        if self.preference is None and (self.regret is not None or self.portfolio > 1):
            raise DataError("a regret and a portfolio need a preference: pass preference= as well")
        if self.preference is not None and self.error_control == "per_look":
            raise DataError(
                "a race with a preference needs error_control='per_member' or 'whole_race', not "
                "'per_look'"
            )
        if self.baseline is not None and self.preference is not None:
            raise DataError("a race with a baseline takes no preference")

    def resolve_deadline(self, now: float) -> Rules:
        """Return these rules with the deadline as a Unix time; ``now`` is the present Unix time.

        >>> Rules(deadline="8h").resolve_deadline(now=1.8e9).deadline
        1800028800.0
        """
        if self.deadline is None:
            return self
        return replace(self, deadline=parse_deadline(self.deadline, now))

    def resolve_preference(self, times: Sequence[float], clock: str) -> Rules:
        """Return these rules with the preference as weights at the times of a race.

        >>> from polarbear import preferences
        >>> rules = Rules(preference=preferences.between(1, 3)).resolve_preference([1, 2, 3], "s")
        >>> rules.preference.values
        (0.25, 0.5, 0.25)
        """
        preference = self.preference
        if isinstance(preference, Linear):
            preference = Weights.of(preference, np.asarray(times, dtype=float), clock)
        if preference is not None and len(preference.values) != len(times):
            raise DataError(
                f"preference has {len(preference.values)} weights, but the race has {len(times)} "
                "times: use a preference of polarbear.preferences"
            )
        return replace(self, preference=preference)

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """Return the rules of algorithm 1 of the PolarBear paper, with changes.

        Together with ``fit={"evidence": "rankings", "ties": "averaged"}`` they are the paper's
        method. In files and commands the preset "paper" sets both. One of the paper's case studies
        uses ``elimination="pointwise"`` and ``resolution="strict"``.

        >>> Rules.paper(certainty=0.95).closing
        'permanent'
        """
        paper: dict[str, Any] = {
            "certainty": 0.99,
            "epsilon": 0.05,
            "elimination": "joint",
            "resolution": "crossing",
            "closing": "permanent",
            "posterior_over": "all",
            "error_control": "per_look",
            "allocation": "paper",
            "overlap": 0,
            "batch": (8, 64),
        }
        return cls(**{**paper, **changes})

    @property
    def questions(self) -> tuple[Any, ...]:
        """The rules that affect decisions: all but allocation and limits."""
        deciding = (self.elimination, self.resolution, self.closing, self.posterior_over)
        choosing = (self.preference, self.regret, self.portfolio, self.baseline, self.classes)
        return self.certainty, self.epsilon, *deciding, self.error_control, *choosing

    @property
    def guarantee(self) -> str:
        """One sentence on the error probability that follows from the certainty.

        >>> print(Rules().guarantee)
        A given member of the Pareto set is ever eliminated with probability at most 0.05, however
        often the race looks, at however many times and against however many rivals.
        """
        bound = f"{self.error_bound[0].upper()}{self.error_bound[1:]}"
        if self.preference is not None or self.baseline is not None:
            return f"{bound}, however often the race looks."
        if self.error_control == "per_look":
            return f"{bound}. Looking again after every round makes errors more frequent."
        return (
            f"{bound}, however often the race looks, at however many times and against however "
            "many rivals."
        )

    @property
    def error_bound(self) -> str:
        """The text that names the errors whose probability is at most 1 - ``certainty``.

        >>> Rules(certainty=0.9).error_bound
        'a given member of the Pareto set is ever eliminated with probability at most 0.1'
        """
        error = f"{1 - self.certainty:.6g}"
        if self.baseline is not None:
            return (
                f"a wrong pass (behind {self.baseline} by more than {self.epsilon:g} at some time) "
                f"and a wrong fail have probability at most {error} each"
            )
        if self.preference is not None and self.regret is not None:
            return (
                f"a settled choice has a regret above {self.regret:g} with posterior probability "
                f"{error} at most, or is behind by more than {self.epsilon:g} as seldom"
            )
        if self.preference is not None:
            return (
                "a settled choice is behind another algorithm by more than "
                f"{self.epsilon:g} with probability at most {error}"
            )
        if self.error_control == "per_look":
            return (
                f"at each look an elimination is wrong with posterior probability {error} at most"
            )
        which = "any" if self.error_control == "whole_race" else "a given"
        where = "the Pareto set of a class" if self.classes else "the Pareto set"
        return f"{which} member of {where} is ever eliminated with probability at most {error}"

    def next_batch(self, batch: int, resolved: int, pairs: int) -> int:
        """Return the next batch size: doubled if a round decided no pair, halved if many pairs.

        >>> Rules().next_batch(16, resolved=0, pairs=10), Rules().next_batch(16, 3, 10)
        (32, 8)
        """
        smallest, largest = self.batch
        if resolved <= 0:
            batch *= 2
        elif 5 * resolved > pairs:
            batch //= 2
        return min(max(batch, smallest), largest)

    def batch_after(self, instances: float) -> int:
        """Return the largest batch allowed after some instances: an eighth of them, within limits.

        It is for decisions by e-values, which may be made at any time without more error.

        >>> Rules().batch_after(10), Rules().batch_after(200), Rules().batch_after(1e6)
        (8, 25, 64)
        """
        smallest, largest = self.batch
        return min(max(int(instances / 8), smallest), largest)

    def plain(self) -> dict[str, Any]:
        """Return the rules as a dictionary of numbers and text, for a file.

        >>> Rules.from_plain(Rules(certainty=0.95).plain()).certainty
        0.95
        """
        if isinstance(self.preference, Linear):
            raise DataError(
                "a preference can be stored only as weights: call resolve_preference(times, clock) "
                "first"
            )
        return asdict(self)

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """Return the rules from what :meth:`plain` returned; ``preset`` names rules to start from.

        >>> Rules.from_plain({"preset": "paper", "certainty": 0.95}) == Rules.paper(certainty=0.95)
        True
        >>> Rules.from_plain({"alfa": 0.95})
        Traceback (most recent call last):
        polarbear.errors.DataError: unknown rule 'alfa': expected one of ...
        """
        known = {field.name for field in fields(cls)}
        changes = {name: value for name, value in plain.items() if name != "preset"}
        # Stores of earlier versions use these names.
        if "looks" in changes:
            changes["error_control"] = LOOKS.get(changes.pop("looks"), "per_look")
        if "alpha" in changes:
            changes["certainty"] = changes.pop("alpha")
        preset = plain.get("preset", "default")
        if preset not in PRESETS:
            raise DataError(f"preset={preset!r}: expected {' or '.join(map(repr, PRESETS))}")
        unknown = sorted(set(changes) - known)
        if unknown:
            raise DataError(
                f"unknown rule {unknown[0]!r}: expected one of {', '.join(sorted(known))}"
            )
        if changes.get("preference") is not None:
            changes["preference"] = parse_preference(changes["preference"])
        if "batch" in changes:
            changes["batch"] = tuple(changes["batch"])
        return cls.paper(**changes) if preset == "paper" else cls(**changes)


def _check_classes(classes: Any) -> tuple[tuple[str, str], ...]:
    """Return pairs of an instance and its class, sorted; raise an error if they are no texts."""
    pairs: list[tuple[Any, Any]] = [(classes, None)]  # refused below
    with suppress(TypeError, ValueError):
        pairs = sorted(dict(classes or {}).items())
    if not all(isinstance(text, str) for pair in pairs for text in pair):
        raise DataError(
            f"classes={classes!r}: expected a mapping from instances to classes, such as "
            "{'i1': 'easy'}"
        )
    return tuple(pairs)


def _is_between(value: object, above: float = -float("inf"), below: float = float("inf")) -> bool:
    return isinstance(value, Real) and above < float(value) < below


def _is_deadline(value: object) -> bool:
    if isinstance(value, str):
        parse_deadline(value, EARLIEST)
    return isinstance(value, str | datetime | time) or _is_between(value)


def _is_whole_number(value: object, *others: object) -> bool:
    return value in others or (
        isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 0
    )


def _is_batch(value: object) -> bool:
    pair = value if isinstance(value, tuple) else ()
    return len(pair) == 2 and all(map(_is_whole_number, pair)) and 1 <= pair[0] <= pair[1]


def _check_epsilon(epsilon: float, baseline: object) -> tuple[bool, str]:
    """Return whether epsilon is valid, and which values are; against a baseline, 0 is not."""
    is_inside = _is_between(epsilon, 0, 0.5)
    if baseline is not None:
        return is_inside, "above 0 and below 0.5 in a race against a baseline"
    return epsilon == 0 or is_inside, "at least 0 and below 0.5"


def _check_choice(value: object, choices: object) -> tuple[bool, str]:
    names = get_args(choices)
    return value in names, " or ".join(map(repr, names))


def check_rules(rules: object) -> Rules:
    """Return the argument if it is of type Rules; raise an error if not."""
    if not isinstance(rules, Rules):
        raise DataError(f"rules={rules!r}: expected Rules(...)")
    return rules
