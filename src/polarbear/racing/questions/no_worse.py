"""``NoWorse``: is an algorithm no worse than a baseline, on any stretch of time?

- *passed*: on each stretch the algorithm is shown to be not worse by more than the margin. If it is
  worse on some stretch, it passes with probability at most 1 - certainty.
- *failed*: it is shown to be worse by more than the margin on some stretch. If it is worse on none,
  it fails with probability at most 1 - certainty.

What is worse, and what shows it, is said in :mod:`polarbear.inference.replacing`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy.special import bdtr

from polarbear._text import escape_text
from polarbear.data.names import suggest_name
from polarbear.inference.e_values import Shares
from polarbear.inference.replacing import (
    PairEvidence,
    PairTables,
    compare_on_stretches,
    find_stretches,
)
from polarbear.inference.verdicts import Verdict
from polarbear.racing.budget import Budget, check_fields, check_width, is_between
from polarbear.racing.decisions import Decision, Open, Pair, pair
from polarbear.racing.questions.question import PosteriorUse, Question, View
from polarbear.racing.questions.replacements import Shown, mark_times

if TYPE_CHECKING:
    from polarbear.data.rankings import Rankings
    from polarbear.inference.dominance import Floats
    from polarbear.inference.posterior import Posterior
    from polarbear.inference.verdicts import Kind

BASELINE_REMOVED = "baseline removed, so nothing is compared"
"""The reason for which a race against a baseline ends when the baseline was removed."""

POWER = 0.8
"""The probability with which a difference that can be proven is proven."""


@dataclass(frozen=True)
class NoWorse(Question):
    """Which algorithms are no worse than a baseline, on any stretch of time (:func:`gate`).

    Attributes
    ----------
    baseline
        The name of the algorithm that the others are tested against.
    certainty
        A wrong pass and a wrong fail have probability at most 1 - certainty each.
    margin, width
        What is worse, and the length of a stretch, as in :class:`ParetoSet`: on a stretch of this
        share of the time axis, more than 1/2 + margin of the decided duels are lost, and the losses
        exceed the wins by more than the margin's share of the instances.

    Examples
    --------
    >>> NoWorse("main", margin=0.2).describe()
    'a wrong pass (worse than main by more than 0.2 on some stretch of time) and a wrong fail have \
probability at most 0.05 each'
    """

    baseline: str
    margin: float = 0.1
    width: float = 0.1

    posterior_for: ClassVar[PosteriorUse] = "nothing"
    alone: ClassVar[Kind] = "undecided"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(
            self,
            {
                "baseline": (isinstance(self.baseline, str), "the name of an algorithm"),
                "margin": (is_between(self.margin, 0, 0.5), "above 0 and below 0.5"),
                "width": check_width(self.width),
            },
        )

    def describe(self) -> str:
        """Return which errors have probability at most 1 - certainty, as a clause."""
        return (
            f"a wrong pass (worse than {self.baseline} by more than {self.margin:g} on some "
            f"stretch of time) and a wrong fail have probability at most {1 - self.certainty:.6g} "
            "each"
        )

    def describe_test(self) -> str:
        """Return a sentence on how the race decides, for the methods section of a paper."""
        return (
            f"Each algorithm was tested against {escape_text(self.baseline)} after every round: it "
            f"passes when it is shown to be worse by more than a margin of {self.margin:g} on no "
            f"stretch of {100 * self.width:g}% of the time axis."
        )

    def undecided(self, members: Collection[str], n_times: int) -> dict[Pair, int]:
        """Return the pairs with the baseline, about which alone it asks."""
        asked = self.asked_times(n_times)
        return {pair(one, self.baseline): asked for one in members if one != self.baseline}

    def find_obstacle(self, members: Collection[str], removed: Collection[str]) -> str | None:
        """Return that the baseline does not race; None if it does.

        Examples
        --------
        >>> NoWorse("old").find_obstacle(["new", "odd"], removed=[])
        "baseline='old' is not in the race; did you mean 'odd'?..."
        """
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
        heaviest, shares = view.heaviest or 1.0, view.find_shares()
        evidence = compare_on_stretches(
            rankings, self.margin, self.width, heaviest, both_sides=True
        )
        n_used = view.n_used if shares.on_the_way else None
        shown, column = show(self, evidence, shares, n_used), names.index(self.baseline)
        all_times = self.asked_times(len(view.times))
        pairs: dict[Pair, int] = {
            pair(name, self.baseline): all_times for name in view.members if name not in names
        }
        stretches = find_stretches(np.array(view.times), self.width)
        verdicts = [Verdict(names[column], "baseline")]
        for k, name in enumerate(names):
            if k == column:
                continue
            no_worse = shown.no_worse[0][:, k, column]
            kind = find_kind(bool(no_worse.all()), bool(shown.worse[0][k, column]))
            verdicts.append(Verdict(name, kind, margin=self.margin))
            if kind == "undecided":
                pairs[pair(name, self.baseline)] = mark_times(stretches, no_worse)
        return Decision(
            tuple(Open(*both, times) for both, times in sorted(pairs.items())),
            view.budget.batch_after(len(rankings.instances)),
            verdicts=tuple(sorted(verdicts, key=lambda one: names.index(one.algorithm))),
        )


def show(
    question: NoWorse, evidence: PairEvidence, shares: Shares, n_used: int | None = None
) -> Shown:
    """Return what the evidence of pairs shows, each by itself, with these shares of the error."""
    log_k = np.full(evidence.better.shape, -np.log1p(-question.certainty))
    return Shown.of((evidence,), log_k, question.certainty, shares, n_used)


def judge(
    question: NoWorse, tables: PairTables, counts: list[Floats], shares: Shares
) -> list[Kind]:
    """Return the answer for each of several counts (rows, cells) of the tables of a pair."""
    shown = show(question, tables.weigh(counts, question.margin), shares)
    no_worse = np.all(shown.no_worse[0][..., 0], axis=0).tolist()
    worse = shown.worse[0][:, 0].tolist()
    return [find_kind(*both) for both in zip(no_worse, worse, strict=True)]


def find_kind(no_worse: bool, worse: bool) -> Kind:
    """Return the verdict about an algorithm that is shown to be no worse, or to be worse."""
    return "failed" if worse else "passed" if no_worse else "undecided"


def find_proven_margin(question: NoWorse, tables: PairTables, shares: Shares) -> float | None:
    """Return the smallest margin, to two digits, at which a gate would pass; None if at no margin.

    With the certainty of the question, the algorithm is nowhere worse by more than that.
    """
    margins = [k / 100 for k in range(1, 50)]

    def passes(margin: float) -> bool:
        asked = replace(question, margin=margin)
        return judge(asked, tables, tables.count_all(), shares) == ["passed"]

    least = bisect_left(margins, True, key=passes)
    return margins[least] if least < len(margins) else None


def find_provable(question: NoWorse, n: int, shares: Shares) -> tuple[float | None, float | None]:
    """Return the share of wins from which n instances show a pass, and up to which a fail.

    Each is shown with probability 0.8, if instances are won or lost as a whole; None if no share
    is enough.

    >>> find_provable(NoWorse("old"), 12, Shares.at_end_of(12))
    (0.803, 0.069)
    """
    wins, share = np.arange(n + 1.0), np.linspace(0, 1, 1001)
    counts = [np.stack([n - wins, wins], axis=1)]
    kinds = np.array(judge(question, PairTables.of_wins(n), counts, shares))
    # The binomial distribution, without scipy.stats: half of the time to load a race was its.
    chance = np.diff(bdtr(wins[:, None], n, share), axis=0, prepend=0.0)
    enough = [share[chance[kinds == kind].sum(axis=0) >= POWER] for kind in ("passed", "failed")]
    passing, failing = (one.tolist() for one in enough)
    return min(passing, default=None), max(failing, default=None)


def find_decisive_instances(
    question: NoWorse, tables: PairTables, shares: Shares
) -> tuple[str, ...]:
    """Return few instances without which the answer of a gate would be undecided.

    They are removed in the order of their results on the stretch where the answer is closest.
    """
    total = tables.count_all()
    (kind,) = judge(question, tables, total, shares)
    if kind == "undecided":
        return ()
    evidence = tables.weigh(total, question.margin)
    passed = kind == "passed"
    closest = int(np.argmin(evidence.t_no_worse[:, 0, 0]))
    order = np.argsort(tables.leads[closest] * (-1 if passed else 1), kind="stable")

    def changes(n_removed: int) -> bool:
        rest = [one[order[n_removed:]].sum(axis=0, keepdims=True) for one in tables.cells]
        return judge(question, tables, rest, shares) != [kind]

    fewest = 1 + bisect_left(range(1, len(order)), True, key=changes)
    return tuple(tables.instances[k] for k in sorted(order[:fewest].tolist()))


def estimate_win_probability(
    outcomes: Floats,
    tables: PairTables,
    question: NoWorse,
    budget: Budget | None = None,
    *,
    most: int | None = None,
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
    tables, question, budget
        The results on stretches, and those of the gate.
    most
        The number of instances at which a gate ends; None if that is not known.
    decided
        Whether the gate passed or failed, and did not end for want of instances.
    resamples, seed
        The number of simulated gates, and their seed.
    """
    budget = Budget() if budget is None else budget
    rng, n_instances = np.random.default_rng(seed), outcomes.shape[2]
    last = most or (4 * n_instances if decided else n_instances)
    by_instance = np.moveaxis(outcomes, 2, 0).astype(np.float32)
    counts = np.zeros((resamples, *outcomes.shape[:2]))
    cells = [np.zeros((resamples, one.shape[1])) for one in tables.cells]
    shares, running, n = np.zeros(counts.shape[::2]), np.arange(resamples), 0
    while len(running):
        batch = min(budget.batch_after(n), last - n)
        drawn = rng.integers(n_instances, size=(len(running), batch))
        counts[running] += by_instance[drawn].sum(axis=1)
        for total, one in zip(cells, tables.cells, strict=True):
            total[running] += one[drawn].sum(axis=1)
        n += batch
        error = Shares() if most is None else Shares.at_end_of(most)
        error = error if n >= last else error._replace(now=0.0)
        kinds = judge(question, tables, [one[running] for one in cells], error)
        done = np.array([kind != "undecided" for kind in kinds]) | (n >= last)
        wins, _, losses = counts[running].transpose(1, 2, 0)
        shares[running[done]] = _share_of_wins(wins, losses).T[done]
        running = running[~done]
    share = _share_of_wins(outcomes[0].sum(axis=1), outcomes[2].sum(axis=1))
    return np.clip(2 * share - np.median(shares, axis=0), 0.0, 1.0)


def _share_of_wins(wins: Floats, losses: Floats) -> Floats:
    """Return the share of wins among wins and losses, and 1/2 where there are neither."""
    both = wins + losses
    return np.where(both > 0, wins / np.maximum(both, 1e-12), 0.5)
