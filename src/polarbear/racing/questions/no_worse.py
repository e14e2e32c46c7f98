"""``NoWorse``: is an algorithm no worse than a baseline, at any time?

- *passed*: at each time the algorithm is shown to be at par with the baseline, that is, not behind
  by more than epsilon in the mean score. If it is behind by more than that at some time, it passes
  with probability at most 1 - certainty: the smallest e-value over times decides.
- *failed*: the baseline is shown to be ahead by more than epsilon at some time. If it is not, the
  algorithm fails with probability at most 1 - certainty: the mean e-value over times decides.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from polarbear._text import escape_text
from polarbear.data.names import suggest_name
from polarbear.inference.e_values import count_outcomes, log_better, log_mean_over_times, log_par
from polarbear.inference.verdicts import Verdict
from polarbear.racing.budget import Budget, check_fields, is_between
from polarbear.racing.decisions import Decision, Open, Pair, pair
from polarbear.racing.questions.question import PosteriorUse, Question, View

if TYPE_CHECKING:
    from polarbear.data.rankings import Rankings
    from polarbear.inference.dominance import Bools, Floats
    from polarbear.inference.e_values import Outcomes
    from polarbear.inference.posterior import Posterior
    from polarbear.inference.verdicts import Kind

BASELINE_REMOVED = "baseline removed, so nothing is compared"
"""The reason for which a race against a baseline ends when the baseline was removed."""


@dataclass(frozen=True)
class NoWorse(Question):
    """Which algorithms are no worse than a baseline, at every time (:func:`polarbear.gate`).

    Attributes
    ----------
    baseline
        The name of the algorithm that the others are tested against.
    certainty
        A wrong pass and a wrong fail have probability at most 1 - certainty each.
    epsilon
        How much behind, in the probability of a win, an algorithm may be.

    Examples
    --------
    >>> NoWorse("main", epsilon=0.1).describe()
    'a wrong pass (behind main by more than 0.1 at some time) and a wrong fail have probability at \
most 0.05 each'
    """

    baseline: str
    epsilon: float = 0.05

    posterior_for: ClassVar[PosteriorUse] = "nothing"
    alone: ClassVar[Kind] = "undecided"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(
            self,
            {
                "baseline": (isinstance(self.baseline, str), "the name of an algorithm"),
                "epsilon": (is_between(self.epsilon, 0, 0.5), "above 0 and below 0.5"),
            },
        )

    def describe(self) -> str:
        """Return which errors have probability at most 1 - certainty, as a clause."""
        return (
            f"a wrong pass (behind {self.baseline} by more than {self.epsilon:g} at some time) "
            f"and a wrong fail have probability at most {1 - self.certainty:.6g} each"
        )

    def describe_test(self) -> str:
        """Return a sentence on how the race decides, for the methods section of a paper."""
        return (
            f"Each algorithm was tested against {escape_text(self.baseline)} by e-values after "
            "every round: it passes when it is at par at every time."
        )

    def find_obstacle(self, members: Collection[str], removed: Collection[str]) -> str | None:
        """Return that the baseline does not race; None if it does."""
        if self.baseline in members:
            return None
        if self.baseline in removed:
            return BASELINE_REMOVED
        hint = suggest_name(self.baseline, [*members])
        return f"baseline={self.baseline!r} is not in the race; {hint}"

    def decide(self, view: View, rankings: Rankings, posterior: Posterior | None) -> Decision:  # noqa: ARG002
        """Return who passed and who failed, and the undecided pairs with the baseline."""
        names = rankings.algorithms
        if self.baseline not in names:
            unchanged = view.unchanged()
            return unchanged if self.baseline in view.members else Decision((), unchanged.batch)
        outcomes = count_outcomes(rankings, view.heaviest or 1.0)
        column = names.index(self.baseline)
        kinds, at_par = judge_against_baseline(outcomes, column, self.certainty, self.epsilon)
        all_times = self.asked_times(len(view.times))
        pairs: dict[Pair, int] = {
            pair(name, self.baseline): all_times for name in view.members if name not in names
        }
        for k, name in enumerate(names):
            if kinds[k] == "undecided":
                bits = sum(1 << t for t in np.flatnonzero(~at_par[:, k]).tolist())
                pairs[pair(name, self.baseline)] = bits
        return Decision(
            tuple(Open(*both, times) for both, times in sorted(pairs.items())),
            view.budget.batch_after(len(rankings.instances)),
            verdicts=tuple(Verdict(name, kind) for name, kind in zip(names, kinds, strict=True)),
        )


def judge_against_baseline(
    outcomes: Outcomes, baseline: int, certainty: float, epsilon: float
) -> tuple[list[Kind], Bools]:
    """Return each algorithm's verdict against the baseline, and at which times it is at par.

    ``baseline``: its column in the outcomes. An e-value of 1 / (1 - certainty) is enough (Ville's
    inequality), at any number of instances.
    """
    wins, ties = outcomes.wins[:, :, baseline], outcomes.ties[:, :, baseline]
    losses = outcomes.losses[:, :, baseline]
    at_par, behind = _test_scores(wins, ties, losses, certainty, epsilon)
    kinds: list[Kind] = ["undecided"] * len(behind)
    for k in range(len(behind)):
        if k == baseline:
            kinds[k] = "baseline"
        elif behind[k]:
            kinds[k] = "failed"
        elif at_par[:, k].all():
            kinds[k] = "passed"
    return kinds, at_par


def _test_scores(
    wins: Floats, ties: Floats, losses: Floats, certainty: float, epsilon: float
) -> tuple[Bools, Bools]:
    """Return a mask of times (T, n) at par with the baseline, and one (n,) of who fails it."""
    log_k = -np.log1p(-certainty)
    at_par: Bools = log_par(wins, ties, losses, epsilon) >= log_k
    behind: Bools = log_mean_over_times(log_better(losses, ties, wins, epsilon)) >= log_k
    return at_par, behind


def estimate_win_probability(
    outcomes: Floats,
    question: NoWorse,
    budget: Budget | None = None,
    *,
    decided: bool,
    resamples: int = 200,
    seed: int = 0,
) -> Floats:
    """Estimate the probability (T,) of a win, given no tie, after a gate has stopped.

    A gate stops when the data favour one answer, so the plain share of wins is too extreme. The
    gate is simulated on resampled instances, and the median of their shares shows by how much; the
    estimate is the share less that difference. It exceeds the truth about as often as it falls
    below it (studies/gate).

    Parameters
    ----------
    outcomes
        Shape (3, T, I): wins, ties and losses on each instance.
    question, budget
        Those of the gate.
    decided
        Whether the gate passed or failed, and did not end for want of instances.
    resamples, seed
        The number of simulated gates, and their seed.

    Examples
    --------
    >>> won = np.arange(40) % 10 < 8
    >>> outcomes = np.array([[won], [0 * won], [~won]], dtype=float)
    >>> estimate_win_probability(outcomes, NoWorse("a"), decided=True) < 0.8
    array([ True])
    """
    budget = Budget() if budget is None else budget
    rng, n_instances = np.random.default_rng(seed), outcomes.shape[2]
    most = 4 * n_instances if decided else n_instances
    by_instance = np.moveaxis(outcomes, 2, 0).astype(np.float32)
    counts = np.zeros((resamples, *outcomes.shape[:2]))
    shares, running, n = np.zeros(counts.shape[::2]), np.arange(resamples), 0
    while len(running):
        batch = min(budget.batch_after(n), most - n)
        drawn = rng.integers(n_instances, size=(len(running), batch))
        counts[running] += by_instance[drawn].sum(axis=1)
        n += batch
        wins, ties, losses = counts[running].transpose(1, 2, 0)
        at_par, behind = _test_scores(wins, ties, losses, question.certainty, question.epsilon)
        done = behind | at_par.all(axis=0) | (n >= most)
        shares[running[done]] = _share_of_wins(wins, losses).T[done]
        running = running[~done]
    share = _share_of_wins(outcomes[0].sum(axis=1), outcomes[2].sum(axis=1))
    return np.clip(2 * share - np.median(shares, axis=0), 0.0, 1.0)


def _share_of_wins(wins: Floats, losses: Floats) -> Floats:
    """Return the share of wins among wins and losses, and 1/2 where there are neither."""
    both = wins + losses
    return np.where(both > 0, wins / np.maximum(both, 1e-12), 0.5)
