"""Decide whether algorithms are no worse than a baseline, at every time: a non-regression test.

- *passed*: at each time the algorithm is shown to be at par with the baseline, that is, not behind
  by more than epsilon in the mean score. If it is behind by more than that at some time, it passes
  with probability at most 1 - certainty: the smallest e-value over times decides.
- *failed*: the baseline is shown to be ahead by more than epsilon at some time. If it is not, the
  algorithm fails with probability at most 1 - certainty: the mean e-value over times decides.
"""

from dataclasses import replace

import numpy as np

from polarbear.data.rankings import Rankings
from polarbear.inference.algorithm_status import AlgorithmStatus, Kind
from polarbear.inference.dominance import Bools
from polarbear.inference.e_values import (
    Outcomes,
    count_outcomes,
    log_better,
    log_mean_over_times,
    log_par,
)
from polarbear.racing.events import Assessed, Decided, Open
from polarbear.racing.state import Pair, State, pair


def judge(
    outcomes: Outcomes, baseline: int, certainty: float, epsilon: float
) -> tuple[list[Kind], Bools]:
    """Return whether each algorithm passed or failed, and at which times it is at par (T, n)."""
    wins, ties = outcomes.wins[:, :, baseline], outcomes.ties[:, :, baseline]
    losses = outcomes.losses[:, :, baseline]
    level = -np.log1p(-certainty)
    at_par = log_par(wins, ties, losses, epsilon) >= level
    behind = log_mean_over_times(log_better(losses, ties, wins, epsilon)) >= level
    answers: list[Kind] = ["undecided"] * len(behind)
    for k in range(len(behind)):
        if k == baseline:
            answers[k] = "baseline"
        elif behind[k]:
            answers[k] = "failed"
        elif at_par[:, k].all():
            answers[k] = "passed"
    return answers, at_par


def decide_gate(state: State, rankings: Rankings, unchanged: Decided) -> Decided:
    """Return the decision of a race against a baseline: pairs with it that stay open.

    ``unchanged``: the decision that changes nothing.
    """
    rules, names = state.rules, rankings.algorithms
    baseline = rules.baseline or ""
    if baseline not in names:
        return unchanged
    place = names.index(baseline)
    outcomes = count_outcomes(rankings, state.heaviest)
    answers, at_par = judge(outcomes, place, rules.certainty, rules.epsilon)
    everything = state.asked_times
    pairs: dict[Pair, int] = {
        pair(name, baseline): everything for name in state.present() if name not in names
    }
    for k, name in enumerate(names):
        if answers[k] == "undecided":
            bits = sum(1 << t for t in np.flatnonzero(~at_par[:, k]).tolist())
            pairs[pair(name, baseline)] = bits
    return replace(
        unchanged,
        open=tuple(Open(*both, times) for both, times in sorted(pairs.items())),
        batch=rules.batch_after(len(rankings.instances)),
        assessed=tuple(
            Assessed.of(AlgorithmStatus(name, answer))
            for name, answer in zip(names, answers, strict=True)
        ),
    )
