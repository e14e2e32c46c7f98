"""``Question``: what a race is to find out.

A question is a frozen record, stored with the event that starts the race. It decides a round from
the rankings of all runs so far. What it decides must follow from its arguments alone: then a race
is repeated from its events, and resumed where it stopped.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from polarbear.inference.e_values import Shares, multiplicity
from polarbear.racing.budget import Budget, check_fields, is_between
from polarbear.racing.decisions import Decision, Open, Pair, all_pairs
from polarbear.racing.model import FitOptions, Model, read_options

if TYPE_CHECKING:
    from polarbear.data.rankings import Rankings
    from polarbear.inference.dominance import Floats
    from polarbear.inference.findings import Findings
    from polarbear.inference.posterior import Posterior
    from polarbear.inference.verdicts import Kind

PosteriorUse = Literal["nothing", "choice", "decision"]


@dataclass(frozen=True)
class Question:
    """What a race is to find out; a base class for questions, of which ``decide`` is the core.

    Attributes
    ----------
    certainty
        The required certainty: what :meth:`describe` names as an error has probability at most
        1 - certainty.
    fit
        The model of the posteriors: options of ``polarbear.fit``, such as
        ``{"prior": "GP", "evidence": "rankings"}``, which a store keeps. Or a function of rankings
        and a seed, of which a store keeps only the name.

    Examples
    --------
    >>> import polarbear as pb
    >>> pb.ParetoSet().undecided(["a", "b"], n_times=2)  # at both times
    {('a', 'b'): 3}
    """

    certainty: float = field(default=0.95, kw_only=True)
    fit: FitOptions = field(default=None, kw_only=True, compare=False, repr=False)

    posterior_for: ClassVar[PosteriorUse] = "choice"
    """What decisions need a posterior for: nothing; a choice, which e-values settle; or the
    decision itself, by the probabilities of one look."""
    n_draws: ClassVar[int | None] = None
    """How many posterior draws are enough for a decision that does not end the race; None if every
    decision needs all."""
    rates_eliminated: ClassVar[bool] = False
    """Whether the posterior rates the eliminated algorithms too."""
    hands_over: ClassVar[bool] = False
    """Whether an eliminated algorithm goes to another rival, or returns, when its own one leaves:
    a round in which that happens is decided again, with rankings that include it."""
    focuses: ClassVar[bool] = True
    """Whether algorithms first run on instances on which rivals have run, and runs are extended
    when no instance is left. Else they run on new instances only, as in the paper."""

    alone: ClassVar[Kind] = "member"
    """The verdict about the only algorithm of a race."""

    def __post_init__(self) -> None:
        expected = (is_between(self.certainty, 0.5, 1), "a probability above 0.5 and below 1")
        check_fields(self, {"certainty": expected})

    @property
    def fit_options(self) -> Mapping[str, Any]:
        """The options of ``polarbear.fit`` that belong to the question, unless others are given."""
        return {}

    @property
    def model(self) -> Model:
        """The model of the posteriors: what was given as ``fit``, and the question's own options.

        >>> import polarbear as pb
        >>> pb.PaperParetoSet(fit={"prior": "GP"}).model.evidence
        'rankings'
        """
        given = read_options(self.fit)
        return Model.of({**self.fit_options, **given} if isinstance(given, Mapping) else given)

    def at(self, times: Sequence[float], clock: str) -> Self:  # noqa: ARG002
        """Return the question for a race with these times."""
        return self

    def asked_times(self, n_times: int) -> int:
        """Return the times that the question is about, as bits of a number."""
        return (1 << n_times) - 1

    def undecided(self, members: Collection[str], n_times: int) -> dict[Pair, int]:
        """Return the pairs that are undecided before any run, each with its times as bits."""
        return dict.fromkeys(all_pairs(members), self.asked_times(n_times))

    def decide(self, view: View, rankings: Rankings, posterior: Posterior | None) -> Decision:
        """Return what follows from the rankings of all runs so far.

        ``posterior`` is that of the rankings; None if it is not trusted or not used.
        """
        raise NotImplementedError

    def describe(self) -> str:
        """Return which error has probability at most 1 - certainty, as a clause."""
        raise NotImplementedError

    def describe_test(self) -> str:
        """Return a sentence on how the race decides, for the methods section of a paper."""
        return f"After every round the race decided the question {type(self).__name__}."

    def read_posterior(self, posterior: Posterior) -> Findings:
        """Return what a posterior says of all algorithms, in the terms of the question.

        >>> import numpy as np, polarbear as pb
        >>> posterior = pb.fit(pb.simulation.simulate_rankings(np.array([[3.0, 0.0]] * 2), 40))
        >>> for question in (pb.ParetoSet(), pb.PaperParetoSet()):
        ...     print(question.read_posterior(posterior).verdicts[1])
        a2 is replaceable by a1 (> 99 %)
        a2 is dominated by a1 (> 99 %)
        """
        return posterior.verdict(self.certainty)

    @property
    def guarantee(self) -> str:
        """One sentence on the error probability that follows from the certainty."""
        text = self.describe()
        often = "" if self.posterior_for == "decision" else ", however often the race looks"
        return f"{text[0].upper()}{text[1:]}{often}."

    def keeps_elimination(self, before: Question, probability: float | None) -> bool:  # noqa: ARG002
        """Return whether an elimination stays if this question follows another one.

        ``probability``: the posterior probability with which the algorithm was eliminated.
        """
        return type(self) is type(before) and self.certainty <= before.certainty

    def find_obstacle(self, members: Collection[str], removed: Collection[str]) -> str | None:  # noqa: ARG002
        """Return why nothing can be decided with these members; None if something can.

        Examples
        --------
        >>> import polarbear as pb
        >>> pb.ParetoSet().find_obstacle(["a", "b"], removed=[]) is None
        True
        """
        return None


@dataclass
class Entries:
    """When each algorithm joined the race, and which rivals it met then.

    ``numbers``: 0 before the first decision, then 1, 2, ... ``met``: the rivals of a late entrant.
    """

    numbers: dict[str, list[int]] = field(default_factory=dict)
    met: dict[str, frozenset[str]] = field(default_factory=dict)
    latest: int = 0

    def add(self, algorithm: str, racing: Collection[str], *, is_late: bool) -> None:
        """Record that an algorithm joins those that are racing, or returns."""
        numbers = self.numbers.setdefault(algorithm, [])
        if is_late and not numbers:
            self.met[algorithm] = frozenset(racing) - {algorithm}
        self.latest += is_late
        numbers.append(self.latest)

    def log_thresholds(
        self, names: Sequence[str], certainty: float, *, whole_race: bool = False
    ) -> Floats:
        """Return log e-values at which row eliminates column, for all pairs of algorithms.

        K = m / (1 - certainty), where m is the multiplicity of the test (weighted Bonferroni).
        Over all rivals that an algorithm ever meets, the reciprocals of m sum to at most 1; with
        ``whole_race`` they also do so over all algorithms.
        """
        initial = frozenset(name for name, numbers in self.numbers.items() if numbers[0] == 0)

        def factor(rival: str, algorithm: str) -> float:
            first = self.numbers[algorithm][0]
            met = self.met[algorithm] if first else initial - {algorithm}
            # Each later entry has a number of its own, so no two rivals have the same one.
            later = 0
            if rival not in met and rival != algorithm:
                # A rival that has left before meets the algorithm only if it returns.
                numbers = [number for number in self.numbers[rival] if number > first]
                later = min(numbers, default=self.latest + 1) - first
            among = multiplicity(len(initial), first) if whole_race else 1.0
            return multiplicity(len(met), later) * among

        factors = [[factor(rival, algorithm) for algorithm in names] for rival in names]
        return np.log(np.array(factors)) - np.log1p(-certainty)


@dataclass(frozen=True)
class View:
    """What a question may know of its race when a round is decided.

    Attributes
    ----------
    members
        The racing algorithms, in canonical order.
    times
        The times of the race.
    open
        The undecided pairs, each with its undecided times as bits.
    batch, budget
        The size of the last batch, and the limits of the race.
    entries
        When each algorithm joined, for the correction of errors for several rivals.
    dropped
        The algorithms that were eliminated, each with the rival that replaced it.
    error_shares
        The shares of the error for looks on the way, and for one test at this look.
    heaviest
        The largest weight that an instance can have; None if all have the same.
    exhausted
        The algorithms that have reached limits of their own.
    n_used, n_unused
        The number of used and of unused instances; infinite if they do not come to an end.
    """

    members: tuple[str, ...]
    times: tuple[float, ...]
    open: Mapping[Pair, int]
    batch: int
    budget: Budget
    entries: Entries
    dropped: Mapping[str, str]
    error_shares: Shares
    heaviest: float | None
    exhausted: frozenset[str]
    n_used: int
    n_unused: float

    def find_shares(self, *, plain: bool = True) -> Shares:
        """Return the shares of the error, all of it for e-values if no test can be made at the end.

        Weights and classes (``plain`` false) make counts that no number of instances can be
        compared with.
        """
        is_plain = plain and self.heaviest is None
        return self.error_shares if is_plain or not self.error_shares.on_the_way else Shares()

    def unchanged(self) -> Decision:
        """Return the decision that changes nothing."""
        return Decision(Open.list_all(self.open, {}), self.batch)
