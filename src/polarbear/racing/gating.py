"""Decide a race against a baseline: which algorithms are no worse than it at every time.

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


def judge_against_baseline(
    outcomes: Outcomes, baseline: int, certainty: float, epsilon: float
) -> tuple[list[Kind], Bools]:
    """Return each algorithm's status against the baseline, and at which times it is at par.

    ``baseline``: its column in the outcomes. An e-value of 1 / (1 - certainty) is enough (Ville's
    inequality), at any number of instances.
    """
    wins, ties = outcomes.wins[:, :, baseline], outcomes.ties[:, :, baseline]
    losses = outcomes.losses[:, :, baseline]
    log_k = -np.log1p(-certainty)
    at_par = log_par(wins, ties, losses, epsilon) >= log_k
    behind = log_mean_over_times(log_better(losses, ties, wins, epsilon)) >= log_k
    statuses: list[Kind] = ["undecided"] * len(behind)
    for k in range(len(behind)):
        if k == baseline:
            statuses[k] = "baseline"
        elif behind[k]:
            statuses[k] = "failed"
        elif at_par[:, k].all():
            statuses[k] = "passed"
    return statuses, at_par


def decide_gate(state: State, rankings: Rankings, unchanged: Decided) -> Decided:
    """Return the decision of a race against a baseline: statuses, and the undecided pairs.

    ``unchanged``: the decision that changes nothing.
    """
    rules, names = state.rules, rankings.algorithms
    baseline = rules.baseline or ""
    if baseline not in names:
        return unchanged
    column = names.index(baseline)
    outcomes = count_outcomes(rankings, state.heaviest)
    statuses, at_par = judge_against_baseline(outcomes, column, rules.certainty, rules.epsilon)
    all_times = state.asked_times
    pairs: dict[Pair, int] = {
        pair(name, baseline): all_times for name in state.present() if name not in names
    }
    for k, name in enumerate(names):
        if statuses[k] == "undecided":
            bits = sum(1 << t for t in np.flatnonzero(~at_par[:, k]).tolist())
            pairs[pair(name, baseline)] = bits
    return replace(
        unchanged,
        open=tuple(Open(*both, times) for both, times in sorted(pairs.items())),
        batch=rules.batch_after(len(rankings.instances)),
        assessed=tuple(
            Assessed.of(AlgorithmStatus(name, status))
            for name, status in zip(names, statuses, strict=True)
        ),
    )
