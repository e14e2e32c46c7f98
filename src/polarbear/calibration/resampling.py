"""``calibrate``: check by resampling how often the claims of posteriors are true on given data."""

from __future__ import annotations

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
from polarbear.calibration.population import Truth
from polarbear.calibration.tally import Estimate, Tally, tally_claims
from polarbear.data.rankings import Rankings
from polarbear.data.runs import Runs
from polarbear.errors import DataError, DataWarning, FitWarning
from polarbear.inference.fit import as_rankings, check_keywords, fit
from polarbear.priors.by_name import make_prior
from polarbear.priors.prior import Prior

Floats = NDArray[np.float64]

MIN_POOL_INSTANCES = 10
"""``calibrate`` needs this number of instances, since it treats them as the population."""

TOLERATED_MISCOVERAGE = 0.02
"""Coverage of 95 % intervals that differs by less than this counts as calibrated."""

SIGNIFICANCE_LEVEL = 0.01
"""Below this p-value the assumption of the model is rejected."""

MISFIT_DIFFERENCE = 0.05
"""A win probability of the model that differs by more from the win rate is a misfit."""

MIN_REPLICATES = 10
"""With fewer data sets the verdict is "unknown"."""

VERDICT_TEXTS = {
    "unknown": "too few data sets, or too few pairs whose odds are known, to tell: ask for more "
    "replicates",
    "calibrated": "calibrated: on data like these certainty can be taken at its word",
    "overconfident": "overconfident: on data like these the posterior is surer than it may be. "
    "Ask for a higher probability, or use another prior",
    "underconfident": "underconfident: on data like these the posterior is less sure than it "
    "could be",
}
MISFIT_TEXT = "calibrated for the fitted model, but the model misfits these data"


@dataclass(frozen=True)
class Calibration:
    """The result of ``calibrate``: how often claims are true, and tests of the model's assumption.

    Attributes
    ----------
    algorithms, times, clock
        As in the data.
    instances, drawn
        The number of instances of the data, and of each resampled data set.
    tally
        Counts of the claims of the resampled posteriors.
    thirds, rates
        Tests of the model: whether the odds of two algorithms change when a third is left out,
        and whether they agree with the win rates.
    prior
        The prior of the posteriors.
    counted
        Whether ratings are counted, so that the truth is the first places in all the data.
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
    counted: bool = False

    @property
    def verdict(self) -> Literal["calibrated", "overconfident", "underconfident", "unknown"]:
        """The verdict on the posteriors: whether they claim too much, too little, or neither."""
        coverage = self.tally.coverage
        claims = self.tally.claims(0.95)
        slack = 2 * np.nan_to_num(coverage.error)
        surplus = claims.claimed - claims.true.value - 2 * np.nan_to_num(claims.true.error)
        if coverage.value + slack < 0.95 - TOLERATED_MISCOVERAGE or surplus > TOLERATED_MISCOVERAGE:
            return "overconfident"
        if (
            len(self.tally) < MIN_REPLICATES
            or not coverage.cases
            or not coverage.error <= 2 * TOLERATED_MISCOVERAGE
        ):
            return "unknown"
        is_under = coverage.value - slack > 0.95 + TOLERATED_MISCOVERAGE
        return "underconfident" if is_under else "calibrated"

    @property
    def assumption_holds(self) -> bool | None:
        """Whether tests at the 1 % level do not reject the independence of irrelevant alternatives.

        None if there is no third algorithm, or if there are too few instances to tell.
        """
        if not self.thirds.cases:
            return None
        return min(self.thirds.p_value, self.rates.p_value) >= SIGNIFICANCE_LEVEL

    @property
    def misfit(self) -> OddsDifference | None:
        """The pair whose win probability differs most from its win rate; None without a misfit.

        A misfit is a difference of more than 0.05, where differences are significant (at 1 %).
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
            f"{self.prior}; the truth is "
            + (
                "how often each comes first in"
                if self.counted
                else "the Plackett-Luce model nearest to"
            )
            + " all of yours",
            "intervals": self._intervals(),
            "claims": self._claims(0.95, 0.99, "ahead", "a lead at a time"),
            "": self._claims(0.99, 1.0, "ahead", "a lead at a time"),
            " ": self._claims(0.95, 1.0, "everywhere", "a lead at all times"),
            "IIA": self._irrelevant_alternatives(),
            "win rates": self._rates(),
        }
        return "\n".join(
            fill(escape_text(text), 96, initial_indent=f"  {name:<11} ", subsequent_indent=" " * 14)
            for name, text in lines.items()
        )

    def _intervals(self) -> str:
        coverage = self.tally.coverage
        if not coverage.cases:
            return "no two algorithms have both won often enough to know their odds"
        return f"95 % intervals of log-odds held the truth in {_format_estimate(coverage)} of cases"

    def _claims(self, low: float, high: float, kind: str, what: str) -> str:
        claims = self.tally.claims(low, high, kind)
        size = f"{low:.0%} or more" if high == 1 else f"{low:.0%} to {high:.0%}"
        size = size.replace("%", " %")
        if not claims.true.cases:
            return f"no claim of {what} was made with {size}"
        wrong = self.tally.wrong(low, high, kind)
        return (
            f"of claims of {what} made with {size}, {_format_estimate(wrong)} were wrong; "
            f"{_format_percent(1 - claims.claimed)} expected if calibrated"
        )

    def _verdict(self) -> str:
        verdict = VERDICT_TEXTS[self.verdict]
        misfit = None if self.counted else self.misfit  # the model is only the prior of counts
        if misfit is not None:
            as_stated = self.verdict == "calibrated"
            verdict = MISFIT_TEXT if as_stated else f"{verdict}; and the model misfits these data"
            verdict += (
                f". {misfit.a} beats {misfit.b} at {format_time(misfit.time, self.clock)} with "
                f"probability {misfit.model:.2f} by the model, {misfit.other:.2f} by counting"
            )
        elif not self.counted and self.assumption_holds is False:
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
            "no independence of irrelevant alternatives: the odds of two algorithms change when a "
            f"third is left out (p = {check.p_value:.2g}): {size}, and the leader of a pair in "
            f"{_format_percent(check.flipped)} of cases. Clearest: {worst.a} beats {worst.b} with "
            f"{worst.model:.2f} at {format_time(worst.time, self.clock)}, and with "
            f"{worst.other:.2f} if "
            f"{worst.without} is left out. Leave out algorithms that are not in question"
        )

    def _rates(self) -> str:
        check = self.rates
        if not check.cases:
            return "not compared"
        worst = check.worst[0]
        chance = "no more than" if check.p_value >= SIGNIFICANCE_LEVEL else "more than"
        return (
            f"the model's win probabilities differ from plain win rates by {check.mean:.3f} in the "
            f"mean and {check.largest:.2f} at most, {chance} by chance (p = {check.p_value:.2g}), "
            f"and in which of two wins more often in {_format_percent(check.flipped)} of cases. "
            f"Clearest: {worst.a} against {worst.b} at {format_time(worst.time, self.clock)}, "
            f"{worst.model:.2f} by the model, {worst.other:.2f} by counting"
        )


def calibrate(
    data: Runs | Rankings,
    prior: Prior | str | None = None,
    *,
    instances: int | None = None,
    replicates: int = 100,
    seed: int = 0,
    times: ArrayLike | None = None,
    **options: Any,
) -> Calibration:
    """Check by resampling whether posteriors of data like these are calibrated.

    The instances of the data are treated as the population. Data sets are drawn from them with
    replacement and fitted, and the claims of the posteriors are counted against the truth: the
    first places in all of the data, or the Plackett-Luce model that is nearest to these if
    :func:`fit` does not count ratings, as with temporal priors.

    Parameters
    ----------
    data, prior, times, options
        As in :func:`fit`.
    instances
        The number of instances of each data set; by default that of the data.
    replicates
        The number of data sets. Each figure is given with its standard error.
    seed
        The same seed gives the same result.

    Returns
    -------
    Calibration
        How often claims were true, with a verdict.

    Raises
    ------
    DataError
        If the data are not runs or rankings, or ``replicates`` is below 2.

    Examples
    --------
    >>> import polarbear as pb
    >>> runs = pb.example("cma-variants")
    >>> calibration = pb.calibrate(runs, times=pb.grid.from_runs(runs, 4), replicates=10)
    >>> calibration.verdict
    'calibrated'
    >>> calibration.tally.coverage.value > 0.8
    True
    """
    own = ("method", "evidence")
    check_keywords(calibrate, options, options.get("method", "laplace"), own=own)
    rankings = as_rankings(data, times, "calibrate")
    pool = len(rankings.instances)
    if pool < MIN_POOL_INSTANCES:
        raise DataError(f"calibrate needs at least {MIN_POOL_INSTANCES} instances, got {pool}")
    if len(rankings.algorithms) < 2:
        raise DataError("calibrate needs at least 2 algorithms to compare, got 1")
    if rankings.ties == "partial":
        raise DataError("calibrate needs orders, not partial orders: rank by one indicator instead")
    drawn = pool if instances is None else instances
    for name, value in (("instances", drawn), ("replicates", replicates)):
        if not (isinstance(value, int | np.integer) and value >= 2):
            raise DataError("expected a whole number of at least 2", **{name: value})
    prior = make_prior(prior)
    tallies, truths, counted = [], {}, False
    with warnings.catch_warnings():
        # Diagnostics are counted in the tally, and fit warns of gaps in the data once.
        warnings.simplefilter("ignore", FitWarning)
        warnings.simplefilter("ignore", DataWarning)
        for replicate in range(replicates):
            chosen = np.random.default_rng([seed, replicate]).integers(pool, size=drawn)
            posterior = fit(rankings.take(chosen), prior=prior, seed=replicate, **options)
            counted = posterior.counted
            if counted not in truths:
                truths[counted] = (Truth.of_counts if counted else Truth.of_model)(rankings)
            tallies.append(tally_claims(posterior, truths[counted]))
    return Calibration(
        algorithms=rankings.algorithms,
        times=rankings.times,
        clock=rankings.clock,
        instances=pool,
        drawn=int(drawn),
        tally=Tally.concat(tallies),
        thirds=check_irrelevant_alternatives(rankings, seed),
        rates=check_win_rates(rankings, seed),
        prior=repr(prior),
        counted=counted,
    )


def _format_percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _format_estimate(share: Estimate) -> str:
    return f"{_format_percent(share.value)} (±{100 * np.nan_to_num(share.error):.1f})"
