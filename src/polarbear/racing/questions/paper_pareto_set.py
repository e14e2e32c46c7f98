"""``PaperParetoSet``: algorithm 1 of the PolarBear paper, decided by the posterior at each look."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

import numpy as np
from scipy.special import ndtri

from polarbear.inference.dominance import (
    Elimination,
    Resolution,
    dominates,
    equivalence_margin,
    is_resolved,
    is_undominated_in_draws,
)
from polarbear.inference.verdicts import Claims, derive_verdicts
from polarbear.priors.dirichlet import Dirichlet
from polarbear.priors.gp import GP
from polarbear.racing.budget import check_fields, is_margin
from polarbear.racing.decisions import Decision, Open, Pair
from polarbear.racing.forecast import Leads, Routes, count_more, forecast_pairs
from polarbear.racing.model import Model
from polarbear.racing.questions.pareto_set import check_choice
from polarbear.racing.questions.question import PosteriorUse, Question, View

if TYPE_CHECKING:
    from polarbear.data.rankings import Rankings
    from polarbear.inference.dominance import Bools, Floats
    from polarbear.inference.findings import Findings
    from polarbear.inference.posterior import Posterior

OverTime = Literal["temporal", "independent"]


@dataclass(frozen=True)
class PaperParetoSet(Question):
    """The anytime Pareto set by the method of the paper: posterior probabilities at each look.

    Every algorithm with an open pair runs on new instances until its last open time. A settled
    time of a pair stays settled, and the posterior rates the eliminated algorithms too. Every
    ranking is evidence, ties are averaged over their orders, and time is not transformed.

    Attributes
    ----------
    over_time
        The paper has two configurations. "temporal": a Gaussian process over time, so that an
        algorithm is dominated at all times jointly, and a pair is settled when the two certainly
        cross (its examples, and GP-BBOB with ``fit={"prior": "BSpline"}``). "independent": a
        Dirichlet prior at each time, so that dominance and settling are about each time by itself
        (MA-BBOB).
    certainty
        The posterior probability that an elimination requires, at each look: alpha in the paper.
        Looking after every round makes errors more frequent than 1 - certainty.
    epsilon
        Two algorithms are equivalent if each beats the other with a probability within epsilon of
        one half.
    elimination
        Whether an algorithm is dominated at all times at once ("joint") or at each time separately
        ("pointwise"). By default as the configuration says.
    resolution
        When a pair is settled. "crossing": each is certain to lead or tie somewhere, and one of
        them to lead (eq. 31). "strict": its relation is certain at every time. By default as the
        configuration says.

    Examples
    --------
    >>> PaperParetoSet().certainty, PaperParetoSet("independent").resolution
    (0.99, 'strict')
    >>> print(PaperParetoSet().model.prior)
    GP(kernel='matern32', ..., warp='linear')
    """

    over_time: OverTime = "temporal"
    certainty: float = field(default=0.99, kw_only=True)
    epsilon: float = field(default=0.05, kw_only=True)
    # None is replaced at once by what the configuration says.
    elimination: Elimination = field(default=cast(Any, None), kw_only=True)
    resolution: Resolution = field(default=cast(Any, None), kw_only=True)

    posterior_for: ClassVar[PosteriorUse] = "decision"
    rates_eliminated: ClassVar[bool] = True
    focuses: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, {"over_time": check_choice(self.over_time, OverTime)})
        is_temporal = self.over_time == "temporal"
        default = ("joint", "crossing") if is_temporal else ("pointwise", "strict")
        for name, value in zip(("elimination", "resolution"), default, strict=True):
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        check_fields(
            self,
            {
                "epsilon": (is_margin(self.epsilon), "at least 0 and below 0.5"),
                "elimination": check_choice(self.elimination, Elimination),
                "resolution": check_choice(self.resolution, Resolution),
            },
        )

    @property
    def fit_options(self) -> Mapping[str, Any]:
        """The paper's model: every ranking, averaged ties, and a prior on time as it is."""
        prior = GP(warp="linear") if self.over_time == "temporal" else Dirichlet()
        return {"prior": prior, "evidence": "rankings", "ties": "averaged"}

    @property
    def model(self) -> Model:
        """The paper's model: in a prior that is given without its warp, time is as it is."""
        model = super().model
        if getattr(model.prior, "warp", None) == "auto":
            model = replace(model, prior=replace(cast(Any, model.prior), warp="linear"))
        return model

    def describe(self) -> str:
        """Return which error has posterior probability at most 1 - certainty, as a clause."""
        error = f"{1 - self.certainty:.6g}"
        return f"at each look an elimination is wrong with posterior probability {error} at most"

    @property
    def guarantee(self) -> str:
        """Two sentences on the error probability that follows from the certainty."""
        return f"{super().guarantee} Looking again after every round makes errors more frequent."

    def describe_test(self) -> str:
        """Return a sentence on how the race decides, for the methods section of a paper."""
        when = "all times jointly" if self.elimination == "joint" else "each time"
        return (
            "After every round an algorithm was eliminated if another one had the higher rating at "
            f"{when} with posterior probability {self.certainty:g} or more."
        )

    def decide(self, view: View, rankings: Rankings, posterior: Posterior | None) -> Decision:
        """Return eliminations and undecided pairs; none without a trusted posterior."""
        if posterior is None:
            return replace(view.unchanged(), batch=view.budget.next_batch(view.batch, 0, 0))
        claims, open_at = self._find_claims(view, posterior)
        verdicts = tuple(derive_verdicts(claims, self.epsilon))
        names = tuple(one.algorithm for one in verdicts)
        gone = {one.algorithm for one in verdicts if one.kind == "dominated"}
        open_pairs = find_open_pairs(view, names, open_at, gone)
        # Two algorithms that have reached their own limits stay undecided.
        closable = [both for both in open_pairs if not view.exhausted.issuperset(both)]
        leads, forecast, needed = Leads.of(posterior, rankings), None, dict[Pair, float]()
        if leads is not None:
            routes = (self._find_routes(lead, leads) for lead in leads.each())
            forecast, needed = forecast_pairs(closable, posterior.algorithms, routes)
        return Decision(
            Open.list_all(open_pairs, needed),
            self._choose_batch(view, open_pairs),
            verdicts=verdicts,
            forecast=forecast,
        )

    def _find_routes(self, lead: Floats, leads: Leads) -> Routes:
        """Return how many more instances make certain who is ahead, or that two are equivalent."""
        z, distance = float(ndtri(self.certainty)), equivalence_margin(self.epsilon) - np.abs(lead)
        ahead = count_more(lead / leads.spread, leads.instances, z)
        at_par = np.minimum(ahead, count_more(distance / leads.spread, leads.instances, z))
        behind, not_behind = ahead.swapaxes(1, 2), at_par.swapaxes(1, 2)
        settled = np.minimum(at_par, behind).max(axis=0)
        # Each of a pair leads or ties somewhere; if they cross, one of them leads.
        routes = {
            "at_par": [(at_par, not_behind)],
            "crossing": [(ahead, not_behind), (at_par, behind)],
            "strict": [],
        }
        for one, other in routes[self.resolution]:
            settled = np.minimum(settled, np.maximum(one.min(axis=0), other.min(axis=0)))
        replaced = ahead.max(axis=0)
        np.fill_diagonal(replaced, np.inf)
        return Routes(replaced, settled)

    def _choose_batch(self, view: View, open_pairs: Mapping[Pair, int]) -> int:
        """Return the next batch size by the share of all (pair, time) that this round settled.

        These are of all algorithms that ever took part: the paper's own counts of instances, such
        as 168 after 21 rounds of MA-BBOB, need both.
        """
        n = len(view.entries.numbers)
        before, after = (sum(map(int.bit_count, one.values())) for one in (view.open, open_pairs))
        every = n * (n - 1) // 2 * len(view.times)
        return view.budget.next_batch(view.batch, before - after, every)

    def read_posterior(self, posterior: Posterior) -> Findings:
        """Return what a posterior says of all algorithms, by the paper's dominance."""
        found = posterior.paper_verdict(
            self.certainty,
            self.epsilon,
            elimination=self.elimination,
            resolution=self.resolution,
        )
        if posterior.evidence == "rankings":
            return found
        said = "This posterior has instances as evidence, not every ranking, as in the paper."
        return replace(found, cautions=(said, *found.cautions))

    def keeps_elimination(self, before: Question, probability: float | None) -> bool:
        """Return whether an elimination stays: if its probability reaches the certainty."""
        return isinstance(before, PaperParetoSet) and (probability or 0.0) >= self.certainty

    def _find_claims(self, view: View, posterior: Posterior) -> tuple[Claims, Bools]:
        """Return the claims that the posterior makes certain, and when pairs are undecided."""
        columns = [k for k, name in enumerate(posterior.algorithms) if name in view.members]
        names = tuple(posterior.algorithms[k] for k in columns)
        rows = np.ix_(columns, columns)
        ahead = posterior.prob_better()[:, rows[0], rows[1]]
        alike = posterior.prob_equivalent(epsilon=self.epsilon)[:, rows[0], rows[1]]
        undominated = is_undominated_in_draws(posterior.utilities[..., columns], ahead)
        sure = ahead.min(axis=0)
        beats = dominates(ahead, sure, self.certainty, "pointwise")
        # Joint dominance implies pointwise dominance, which is cheaper to compute.
        if self.elimination == "joint" and beats.any():
            jointly = posterior.prob_dominates()[rows]
            beats = jointly >= self.certainty
            sure = jointly if beats.any() else sure
        claims = Claims.from_probabilities(
            names,
            posterior.times,
            posterior.clock,
            ahead=ahead,
            alike=alike,
            prob_in_pareto=undominated.mean(axis=0),
            beats=beats,
            sure=sure,
            certainty=self.certainty,
            resolution=self.resolution,
        )
        return claims, ~is_resolved(ahead, alike, self.certainty, resolution=self.resolution)


def find_open_pairs(
    view: View, names: tuple[str, ...], open_at: Bools, eliminated: Collection[str]
) -> dict[Pair, int]:
    """Return the undecided pairs, each with a bit set for every time at which it is undecided.

    Pairs of algorithms without rating stay as they are; the others close time by time, for good.
    """
    packed = np.packbits(open_at, axis=0, bitorder="little")
    code = {name: k for k, name in enumerate(names)}
    open_pairs: dict[Pair, int] = {}
    for (a, b), times in view.open.items():
        if a in eliminated or b in eliminated:
            continue
        if a in code and b in code:
            times &= int.from_bytes(packed[:, code[a], code[b]].tobytes(), "little")
        if times:
            open_pairs[a, b] = times
    return open_pairs
