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
from polarbear.inference.dominance import Bools, Floats
from polarbear.inference.e_values import (
    Outcomes,
    count_outcomes,
    log_better,
    log_mean_over_times,
    log_par,
)
from polarbear.racing.events import Assessed, Decided, Open
from polarbear.racing.rules import Rules
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
    at_par, behind = _test_scores(wins, ties, losses, certainty, epsilon)
    statuses: list[Kind] = ["undecided"] * len(behind)
    for k in range(len(behind)):
        if k == baseline:
            statuses[k] = "baseline"
        elif behind[k]:
            statuses[k] = "failed"
        elif at_par[:, k].all():
            statuses[k] = "passed"
    return statuses, at_par


def _test_scores(
    wins: Floats, ties: Floats, losses: Floats, certainty: float, epsilon: float
) -> tuple[Bools, Bools]:
    """Return a mask of times (T, n) at par with the baseline, and one (n,) of who fails it."""
    log_k = -np.log1p(-certainty)
    at_par: Bools = log_par(wins, ties, losses, epsilon) >= log_k
    behind: Bools = log_mean_over_times(log_better(losses, ties, wins, epsilon)) >= log_k
    return at_par, behind


def estimate_win_probability(
    outcomes: Floats, rules: Rules, *, decided: bool, resamples: int = 200, seed: int = 0
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
    rules
        The rules of the gate.
    decided
        Whether the gate passed or failed, and did not end for want of instances.
    resamples, seed
        The number of simulated gates, and their seed.

    Examples
    --------
    >>> won = np.arange(40) % 10 < 8
    >>> outcomes = np.array([[won], [0 * won], [~won]], dtype=float)
    >>> estimate_win_probability(outcomes, Rules(), decided=True) < 0.8
    array([ True])
    """
    rng, n_instances = np.random.default_rng(seed), outcomes.shape[2]
    most = 4 * n_instances if decided else n_instances
    by_instance = np.moveaxis(outcomes, 2, 0).astype(np.float32)
    counts = np.zeros((resamples, *outcomes.shape[:2]))
    shares, running, n = np.zeros(counts.shape[::2]), np.arange(resamples), 0
    while len(running):
        batch = min(rules.batch_after(n), most - n)
        drawn = rng.integers(n_instances, size=(len(running), batch))
        counts[running] += by_instance[drawn].sum(axis=1)
        n += batch
        wins, ties, losses = counts[running].transpose(1, 2, 0)
        at_par, behind = _test_scores(wins, ties, losses, rules.certainty, rules.epsilon)
        done = behind | at_par.all(axis=0) | (n >= most)
        shares[running[done]] = _share_of_wins(wins, losses).T[done]
        running = running[~done]
    share = _share_of_wins(outcomes[0].sum(axis=1), outcomes[2].sum(axis=1))
    return np.clip(2 * share - np.median(shares, axis=0), 0.0, 1.0)


def _share_of_wins(wins: Floats, losses: Floats) -> Floats:
    """Return the share of wins among wins and losses, and 1/2 where there are neither."""
    both = wins + losses
    return np.where(both > 0, wins / np.maximum(both, 1e-12), 0.5)


def decide_gate(state: State, rankings: Rankings, unchanged: Decided) -> Decided:
    """Return the decision of a race against a baseline: statuses, and the undecided pairs.

    ``unchanged``: the decision that changes nothing.
    """
    rules, names = state.rules, rankings.algorithms
    baseline = rules.baseline or ""
    if baseline not in names:
        return replace(unchanged, open=()) if state.lacks_baseline else unchanged
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
