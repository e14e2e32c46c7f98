"""``calibrate``: how far certainty can be trusted on data like yours."""

import warnings
from dataclasses import dataclass
from textwrap import fill
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polarbear._text import escape_text, format_count, format_range, format_time
from polarbear.calibration.odds import (
    MIN_INSTANCES,
    OddsCheck,
    OddsDifference,
    check_irrelevant_alternatives,
    check_win_rates,
)
from polarbear.calibration.population import find_contested_pairs, fit_utilities
from polarbear.calibration.tally import Estimate, Tally, tally_claims
from polarbear.errors import DataError, DataWarning, FitWarning
from polarbear.inference.fit import apart, as_rankings, fit
from polarbear.priors.dirichlet import Dirichlet
from polarbear.priors.prior import Prior

Floats = NDArray[np.float64]

MIN_POOL_INSTANCES = 10
"""Fewer instances cannot stand for all the others."""

TOLERATED_MISCOVERAGE = 0.02
"""By how much coverage may miss 95 % before anybody should care."""

SIGNIFICANCE_LEVEL = 0.01
"""Below this p-value the assumption of the model is said not to hold."""

MISFIT_DIFFERENCE = 0.05
"""The difference between a win probability of the model and a win rate that is a misfit."""

MIN_REPLICATES = 10
"""The least number of data sets for a verdict."""

VERDICT_TEXTS = {
    "unknown": "too few data sets, or too few pairs whose odds are known, to tell: ask for more "
    "replicates",
    "honest": "calibrated: on data like these certainty can be taken at its word",
    "too sure": "overconfident: on data like these the posterior is surer than it may be. Ask for "
    "a higher probability, or use another prior",
    "too timid": "underconfident: on data like these the posterior is less sure than it could be",
}
MISFIT_TEXT = "calibrated for the fitted model, but the model misfits these data"


@dataclass(frozen=True)
class Calibration:
    """How often claims are true on data like these, and whether the model's assumption holds.

    Attributes
    ----------
    algorithms, times, clock
        As in the data.
    instances, drawn
        How many instances the data have, and how many each resampled data set has.
    tally
        Claims of the resampled posteriors, counted.
    thirds, rates
        Whether odds change when a third algorithm is left out, and whether they are those with
        which two beat each other.
    prior
        The prior that was judged.
    """

    algorithms: tuple[str, ...]
    times: Floats
    clock: str
    instances: int
    drawn: int
    tally: Tally
    thirds: OddsCheck
    rates: OddsCheck
    prior: str

    @property
    def verdict(self) -> Literal["honest", "too sure", "too timid", "unknown"]:
        """Whether posteriors are as sure as they may be, beyond the error of this check."""
        held = self.tally.coverage
        claims = self.tally.claims(0.95)
        slack = 2 * np.nan_to_num(held.error)
        surplus = claims.claimed - claims.true.value - 2 * np.nan_to_num(claims.true.error)
        if held.value + slack < 0.95 - TOLERATED_MISCOVERAGE or surplus > TOLERATED_MISCOVERAGE:
            return "too sure"
        if (
            len(self.tally) < MIN_REPLICATES
            or not held.cases
            or not held.error <= 2 * TOLERATED_MISCOVERAGE
        ):
            return "unknown"
        return "too timid" if held.value - slack > 0.95 + TOLERATED_MISCOVERAGE else "honest"

    @property
    def assumption_holds(self) -> bool | None:
        """Whether odds of two do not depend on who else takes part, beyond chance (1 %).

        None if there is no third algorithm or there are too few instances to tell.
        """
        if not self.thirds.cases:
            return None
        return min(self.thirds.p_value, self.rates.p_value) >= SIGNIFICANCE_LEVEL

    @property
    def misfit(self) -> OddsDifference | None:
        """The pair whose win probability differs most from its win rate, if it is a misfit.

        That is a difference of more than 0.05, where differences are beyond chance (1 %).
        """
        if not self.rates.cases or self.rates.p_value >= SIGNIFICANCE_LEVEL:
            return None
        widest = max(self.rates.worst, key=lambda change: abs(change.other - change.model))
        return widest if abs(widest.other - widest.model) > MISFIT_DIFFERENCE else None

    def __str__(self) -> str:
        first, last = float(self.times[0]), float(self.times[-1])
        grid = f"{format_count(len(self.times), 'time')}, {format_range(first, last, self.clock)}"
        lines = {
            "verdict": self._verdict(),
            "data": f"{format_count(len(self.algorithms), 'algorithm')}, "
            f"{format_count(self.instances, 'instance')}, {grid}",
            "judged": f"posteriors of {format_count(len(self.tally), 'data set')}, each of "
            f"{format_count(self.drawn, 'instance')} drawn from yours with replacement, with "
            f"{self.prior}; the truth is the Plackett-Luce model nearest to all of yours",
            "intervals": self._intervals(),
            "claims": self._claims(0.95, 0.99, "ahead", "who is ahead at a time"),
            "": self._claims(0.99, 1.0, "ahead", "who is ahead at a time"),
            " ": self._claims(0.95, 1.0, "everywhere", "who is ahead at all times"),
            "IIA": self._irrelevant_alternatives(),
            "win rates": self._rates(),
        }
        return "\n".join(
            fill(escape_text(text), 96, initial_indent=f"  {name:<11} ", subsequent_indent=" " * 14)
            for name, text in lines.items()
        )

    def _intervals(self) -> str:
        held = self.tally.coverage
        if not held.cases:
            return "no two algorithms have both won often enough to know their odds"
        return f"95 % intervals of log-odds held the truth in {_format_estimate(held)} of cases"

    def _claims(self, low: float, high: float, kind: str, what: str) -> str:
        found = self.tally.claims(low, high, kind)
        size = f"{low:.0%} or more" if high == 1 else f"{low:.0%} to {high:.0%}"
        size = size.replace("%", " %")
        if not found.true.cases:
            return f"no claim of {what} was made with {size}"
        wrong = self.tally.wrong(low, high, kind)
        return (
            f"of claims of {what} made with {size}, {_format_estimate(wrong)} were wrong; "
            f"{_format_percent(1 - found.claimed)} expected if calibrated"
        )

    def _verdict(self) -> str:
        verdict, misfit = VERDICT_TEXTS[self.verdict], self.misfit
        if misfit is not None:
            if self.verdict == "honest":
                verdict = MISFIT_TEXT
            else:
                verdict += "; and the model misfits these data"
            verdict += (
                f". {misfit.a} beats {misfit.b} at {format_time(misfit.time, self.clock)} with "
                f"probability {misfit.model:.2f} by the model, {misfit.other:.2f} by counting"
            )
        elif self.assumption_holds is False:
            verdict += (
                f" (beside a misfit of the model of at most {self._largest():.2f}, see below)"
            )
        distrust = 1 - self.tally.trusted.mean()
        if distrust:
            verdict += f" ({_format_percent(distrust)} of posteriors did not trust themselves)"
        return verdict

    def _largest(self) -> float:
        return max(self.thirds.largest, self.rates.largest)

    def _irrelevant_alternatives(self) -> str:
        check = self.thirds
        if len(self.algorithms) < 3:
            return "there is no third algorithm to leave out"
        if not check.cases:
            return (
                f"to test independence of irrelevant alternatives takes {MIN_INSTANCES} instances, "
                "and pairs of which both have won"
            )
        size = (
            f"a win probability changes by {check.mean:.3f} in the mean and {check.largest:.2f} "
            "at most"
        )
        if check.p_value >= SIGNIFICANCE_LEVEL:
            return (
                "independence of irrelevant alternatives: leaving out a third algorithm changes "
                f"the odds of two no more than chance does (p = {check.p_value:.2g}): {size}"
            )
        worst = check.worst[0]
        return (
            "no independence of irrelevant alternatives: the odds of two depend on who else takes "
            f"part (p = {check.p_value:.2g}): {size}, and who is ahead in "
            f"{_format_percent(check.flipped)} of cases. Clearest: {worst.a} beats {worst.b} with "
            f"{worst.model:.2f} at {format_time(worst.time, self.clock)}, and with "
            f"{worst.other:.2f} if "
            f"{worst.without} is left out. Leave out algorithms that are not in question"
        )

    def _rates(self) -> str:
        found = self.rates
        if not found.cases:
            return "not compared"
        worst = found.worst[0]
        chance = "no more than" if found.p_value >= SIGNIFICANCE_LEVEL else "more than"
        return (
            f"the model's win probabilities differ from plain win rates by {found.mean:.3f} in the "
            f"mean and {found.largest:.2f} at most, {chance} by chance (p = {found.p_value:.2g}), "
            f"and in who wins more often in {_format_percent(found.flipped)} of cases. Clearest: "
            f"{worst.a} against {worst.b} at {format_time(worst.time, self.clock)}, "
            f"{worst.model:.2f} by the model, {worst.other:.2f} by counting"
        )


def calibrate(
    data: object,
    *,
    prior: Prior | None = None,
    instances: int | None = None,
    replicates: int = 100,
    seed: int = 0,
    times: ArrayLike | None = None,
    direction: Literal["minimize", "maximize"] | None = None,
    **options: Any,
) -> Calibration:
    """Say how far certainty can be trusted on data like yours.

    Your instances are taken for all there are. Data sets are drawn from them with replacement,
    fitted, and what the posteriors claim is counted against what is true of all your instances.

    Parameters
    ----------
    data, prior, times, direction, options
        As in :func:`fit`.
    instances
        How many instances each data set has; by default as many as yours.
    replicates
        How many data sets. The error of each figure is given with it.
    seed
        The same seed gives the same answer.

    Examples
    --------
    >>> import polarbear as pb
    >>> runs = pb.simulation.simulate_runs(np.array([[0.0, 0.4, 1.0]] * 4), 40, persistence=0.5)
    >>> found = pb.calibrate(runs, replicates=10)
    >>> found.verdict
    'honest'
    >>> found.tally.coverage.value > 0.8
    True
    """
    columns, options = apart(options)
    rankings = as_rankings(data, times, direction, columns)
    pool = len(rankings.instances)
    if pool < MIN_POOL_INSTANCES:
        raise DataError(
            f"{format_count(pool, 'instance')} cannot stand for others like them: to judge "
            f"certainty takes at least {MIN_POOL_INSTANCES}"
        )
    if len(rankings.algorithms) < 2:
        raise DataError("a single algorithm has nobody to be ahead of: at least two are needed")
    drawn = pool if instances is None else instances
    for name, value in (("instances", drawn), ("replicates", replicates)):
        if not (isinstance(value, int | np.integer) and value >= 2):
            raise DataError(f"{name}={value!r}: expected a whole number of at least 2")
    prior = Dirichlet() if prior is None else prior
    truth, asked = fit_utilities(rankings), find_contested_pairs(rankings)
    judged = []
    for replicate in range(replicates):
        chosen = np.random.default_rng([seed, replicate]).integers(pool, size=drawn)
        with warnings.catch_warnings():
            # What a posterior says against itself is counted; gaps are said once, by fit.
            warnings.simplefilter("ignore", FitWarning)
            warnings.simplefilter("ignore", DataWarning)
            posterior = fit(rankings.take(chosen), prior=prior, seed=replicate, **options)
        judged.append(tally_claims(posterior, truth, asked))
    return Calibration(
        rankings.algorithms,
        rankings.times,
        rankings.clock,
        pool,
        int(drawn),
        Tally.stacked(judged),
        check_irrelevant_alternatives(rankings, seed),
        check_win_rates(rankings, seed),
        repr(prior),
    )


def _format_percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _format_estimate(found: Estimate) -> str:
    return f"{_format_percent(found.value)} (±{100 * np.nan_to_num(found.error):.1f})"
