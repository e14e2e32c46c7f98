"""``Choice``: which algorithm, or which portfolio, has the highest value for a known budget?

The weights of a preference over times turn an instance into one score. E-values of its mean show
that the chosen algorithm is ahead of another one, or not behind it by more than epsilon. Only pairs
of a chosen algorithm and another one are compared. No algorithm is eliminated: one that cannot
change the choice does not run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log2
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, Self

import numpy as np

from polarbear.errors import DataError
from polarbear.inference.dominance import equivalence_margin
from polarbear.inference.e_values import preference_evidence
from polarbear.inference.verdicts import Verdict
from polarbear.racing.budget import check_fields, is_between, is_margin, is_whole_number
from polarbear.racing.decisions import Decision, Forecast, Open, Pair, pair
from polarbear.racing.forecast import Leads, Routes, count_more, errors_of_proof, forecast_pairs
from polarbear.racing.questions.question import PosteriorUse, Question, View
from polarbear.selection.preferences import Linear, Weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from polarbear.data.rankings import Rankings
    from polarbear.inference.dominance import Bools, Floats
    from polarbear.inference.posterior import Posterior


@dataclass(frozen=True)
class Choice(Question):
    """Which algorithm to run for a known budget: the race spends only on what may change it.

    It ends when the chosen algorithm is at par with, or ahead of, every other one in the score
    averaged over the preference; or when its regret is most likely small.

    Attributes
    ----------
    preference
        The budget, such as ``preferences.between(60, 300)``.
    certainty
        A settled choice is behind another one by more than epsilon with probability at most
        1 - certainty.
    epsilon
        How much behind, in the probability of a win, a choice may be.
    regret
        If given, a choice is also settled when its regret is at most this, in the value of
        :func:`polarbear.select`. With k = log2(number of instances), the posterior probability of
        a larger regret must be at most (1 - ``certainty``) / (k (k + 1)), because the race looks
        after every round.
    size
        The number of algorithms that are wanted, to run in parallel.
    by
        What settles a choice: "e-values", whose error holds however often the race looks, or the
        "posterior", as in the paper: at each look, P(the chosen one has the higher value) must
        reach the certainty.

    Examples
    --------
    >>> import polarbear as pb
    >>> question = Choice(pb.preferences.between(1, 3)).at([1, 2, 3], "seconds")
    >>> question.preference.values
    (0.25, 0.5, 0.25)
    """

    preference: Linear | Weights
    epsilon: float = 0.05
    regret: float | None = None
    size: int = 1
    by: Literal["e-values", "posterior"] = "e-values"

    posterior_for: ClassVar[PosteriorUse] = "choice"
    n_draws: ClassVar[int | None] = 1000

    def __post_init__(self) -> None:
        super().__post_init__()
        a_preference = isinstance(self.preference, Linear | Weights)
        has_regret = self.regret is None or is_between(self.regret, 0)
        has_size = is_whole_number(self.size) and self.size > 0
        check_fields(
            self,
            {
                "preference": (
                    a_preference,
                    "a preference with weights on times, such as preferences.between(60, 300)",
                ),
                "epsilon": (is_margin(self.epsilon), "at least 0 and below 0.5"),
                "regret": (has_regret, "a number above 0, or None"),
                "size": (has_size, "a number of algorithms"),
                "by": (self.by in ("e-values", "posterior"), "'e-values' or 'posterior'"),
            },
        )

    def at(self, times: Sequence[float], clock: str) -> Self:
        """Return the question with the preference as weights at the times of a race."""
        preference = self.preference
        if isinstance(preference, Linear):
            preference = Weights.of(preference, np.asarray(times, dtype=float), clock)
        if len(preference.values) != len(times):
            raise DataError(
                f"preference has {len(preference.values)} weights, but the race has {len(times)} "
                "times: use a preference of polarbear.preferences"
            )
        return replace(self, preference=preference)

    def asked_times(self, n_times: int) -> int:
        """Return the times with a weight, as bits of a number."""
        if not isinstance(self.preference, Weights):
            return super().asked_times(n_times)
        return sum(1 << t for t, weight in enumerate(self.preference.values) if weight > 0)

    def describe(self) -> str:
        """Return which error has probability at most 1 - certainty, as a clause."""
        error = f"{1 - self.certainty:.6g}"
        if self.by == "posterior":
            return (
                "at each look a settled choice has a lower value than another algorithm with "
                f"posterior probability {error} at most"
            )
        if self.regret is not None:
            return (
                f"a settled choice has a regret above {self.regret:g} with posterior probability "
                f"{error} at most, or is behind by more than {self.epsilon:g} as seldom"
            )
        return (
            f"a settled choice is behind another algorithm by more than {self.epsilon:g} with "
            f"probability at most {error}"
        )

    def describe_test(self) -> str:
        """Return a sentence on how the race decides, for the methods section of a paper."""
        return (
            "The race was for the algorithm to choose at a known budget, and compared scores "
            "averaged over that budget by e-values after every round."
        )

    def decide(self, view: View, rankings: Rankings, posterior: Posterior | None) -> Decision:
        """Return the choice, and the undecided pairs of a chosen algorithm and another one."""
        if posterior is None:
            return view.unchanged()
        names, weights = posterior.algorithms, np.array(self.preference.values)  # pyright: ignore
        log_k = view.entries.log_thresholds(names, self.certainty)
        choice = choose(posterior.ratings, weights, min(self.size, len(names)))
        evidence = preference_evidence(rankings, weights, self.epsilon, view.heaviest or 1.0)
        settled = (evidence.lead[0] >= log_k) | (evidence.par[0] >= log_k)
        if self.by == "posterior":
            value = np.einsum("dtn,t->dn", posterior.ratings, weights)
            settled = (value[:, :, None] > value[:, None, :]).mean(axis=0) >= self.certainty
        open_ = choice.chosen[:, None] & ~choice.chosen & ~settled
        if self.regret is not None:
            error = error_of_look(1 - self.certainty, len(rankings.instances))
            if np.mean(choice.regret > self.regret) <= error:
                open_[:] = False
        behind = [(names[i], names[j]) for i, j in np.argwhere(open_).tolist()]
        forecast, needed = self._forecast(posterior, rankings, behind, log_k)
        chosen = [name for k, name in enumerate(names) if choice.chosen[k]]
        kinds = np.where(choice.chosen, "chosen", "not chosen")
        kinds[open_.any(axis=0) | open_.any(axis=1)] = "undecided"
        # Algorithms that have not run yet are compared with the chosen ones.
        behind += [(one, name) for name in view.members if name not in names for one in chosen]
        bits = self.asked_times(len(view.times))
        pairs = {pair(*both): bits for both in behind}
        return Decision(
            Open.list_all(pairs, needed),
            view.budget.batch_after(len(rankings.instances)),
            verdicts=tuple(map(Verdict, names, kinds.tolist())),
            chosen=tuple(chosen),
            forecast=forecast,
        )

    def _forecast(
        self, posterior: Posterior, rankings: Rankings, pairs: list[Pair], log_k: Floats
    ) -> tuple[Forecast | None, dict[Pair, float]]:
        """Return the forecast of the race, and the instances that each undecided pair needs.

        The first one of a pair is chosen, and has to be shown to be ahead or at par.
        """
        leads = Leads.of(posterior, rankings, np.array(self.preference.values))  # pyright: ignore
        if leads is None:
            return None, {}
        z, margin = errors_of_proof(log_k), equivalence_margin(self.epsilon)
        settled = (
            count_more(((lead + margin) / leads.spread)[0], leads.instances[0], z)
            for lead in leads.each()
        )
        routes = (Routes(np.full(one.shape, np.inf), one) for one in settled)
        return forecast_pairs(pairs, posterior.algorithms, routes)


class Chosen(NamedTuple):
    """The chosen algorithms, and the regret of this choice in each posterior draw."""

    chosen: Bools  # (n,)
    regret: Floats  # (D,)


def choose(ratings: NDArray[np.floating], weights: Floats, size: int) -> Chosen:
    """Return the algorithms with the highest expected value, from posterior draws of ratings.

    The value of a portfolio is the sum of its members' values (the rule of :func:`select`), so the
    best portfolio of distinct algorithms has the best members.

    >>> choice = choose(np.array([[[0.5, 0.3, 0.2]], [[0.2, 0.7, 0.1]]]), np.ones(1), 1)
    >>> choice.chosen.tolist(), choice.regret.round(2).tolist()
    ([False, True, False], [0.2, 0.0])
    """
    values = np.einsum("dtn,t->dn", ratings, weights)
    order = np.argsort(-values.mean(axis=0), kind="stable")
    chosen = np.zeros(values.shape[1], dtype=bool)
    chosen[order[:size]] = True
    best = np.sort(values, axis=1)[:, -size:].sum(axis=1)
    return Chosen(chosen, best - values[:, chosen].sum(axis=1))


def error_of_look(error: float, n_instances: int) -> float:
    """Return the part of an error probability that one look may use, by its number of instances.

    Each time the number of instances doubles, the parts are 1/2, 1/6, 1/12, ... of the error. They
    add up to the whole error, so that looking often hardly adds to it.

    >>> [round(error_of_look(0.06, n), 4) for n in (2, 4, 8, 1024)]
    [0.03, 0.01, 0.005, 0.0005]
    """
    doublings = max(1.0, log2(n_instances))
    return error / (doublings * (doublings + 1))
