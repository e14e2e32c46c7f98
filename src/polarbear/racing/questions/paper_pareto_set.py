"""``PaperParetoSet``: algorithm 1 of the PolarBear paper, decided by the posterior at each look."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import ndtri

from polarbear.inference.dominance import (
    Elimination,
    Resolution,
    dominates,
    equivalence_margin,
    is_resolved,
)
from polarbear.inference.verdicts import Claims, derive_verdicts
from polarbear.racing.budget import check_fields, is_between
from polarbear.racing.decisions import Decision, Open
from polarbear.racing.forecast import RequiredZ
from polarbear.racing.questions.outlook import add_outlook, find_open_pairs
from polarbear.racing.questions.pareto_set import check_choice
from polarbear.racing.questions.question import PosteriorUse, Question, View

if TYPE_CHECKING:
    from polarbear.data.rankings import Rankings
    from polarbear.inference.dominance import Bools
    from polarbear.inference.posterior import Posterior


@dataclass(frozen=True)
class PaperParetoSet(Question):
    """The anytime Pareto set by the method of the paper: posterior probabilities at each look.

    Every algorithm with an open pair runs on new instances until its last open time. A settled
    time of a pair stays settled, and the posterior rates the eliminated algorithms too.

    Attributes
    ----------
    certainty
        The posterior probability that an elimination requires, at each look: alpha in the paper.
        Looking after every round makes errors more frequent than 1 - certainty.
    epsilon
        Two algorithms are equivalent if each beats the other with a probability within epsilon of
        one half.
    elimination
        Whether an algorithm is dominated at all times at once ("joint") or at each time separately
        ("pointwise").
    resolution
        When a pair is settled. "crossing": each is certain to lead or tie somewhere, and one of
        them to lead (eq. 31). "strict": its relation is certain at every time.

    Examples
    --------
    >>> PaperParetoSet().certainty, PaperParetoSet(elimination="pointwise").resolution
    (0.99, 'crossing')
    """

    certainty: float = field(default=0.99, kw_only=True)
    epsilon: float = 0.05
    elimination: Elimination = "joint"
    resolution: Resolution = "crossing"

    posterior_for: ClassVar[PosteriorUse] = "decision"
    rates_eliminated: ClassVar[bool] = True
    focuses: ClassVar[bool] = False
    fit_options: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {"evidence": "rankings", "ties": "averaged"}
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        in_range = self.epsilon == 0 or is_between(self.epsilon, 0, 0.5)
        check_fields(
            self,
            {
                "epsilon": (in_range, "at least 0 and below 0.5"),
                "elimination": check_choice(self.elimination, Elimination),
                "resolution": check_choice(self.resolution, Resolution),
            },
        )

    def describe(self) -> str:
        """Return which error has posterior probability at most 1 - certainty, as a clause."""
        error = f"{1 - self.certainty:.6g}"
        return f"at each look an elimination is wrong with posterior probability {error} at most"

    @property
    def guarantee(self) -> str:
        """Two sentences on the error probability that follows from the certainty."""
        text = self.describe()
        return (
            f"{text[0].upper()}{text[1:]}. Looking again after every round makes errors more "
            "frequent."
        )

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
            batch = view.budget.next_batch(view.batch, 0, 0)
            return Decision(Open.list_all(dict(view.open), {}), batch)
        claims, open_at = self._find_claims(view, posterior)
        verdicts = tuple(derive_verdicts(claims, self.epsilon))
        names = tuple(one.algorithm for one in verdicts)
        gone = {one.algorithm for one in verdicts if one.kind == "dominated"}
        open_pairs = find_open_pairs(view, names, open_at, gone, before=view.open)
        n_rated = sum(a in names and b in names for a, b in view.open)
        resolved = len(view.open) - len(open_pairs)
        decision = Decision(
            Open.list_all(open_pairs, {}),
            view.budget.next_batch(view.batch, resolved, n_rated),
            verdicts=verdicts,
        )
        z = float(ndtri(self.certainty))
        required = RequiredZ(z, z, z, equivalence_margin(self.epsilon), one_sided=False)
        return add_outlook(
            decision,
            view,
            posterior,
            rankings,
            required=lambda _: required,
            resolution=self.resolution,
            focuses=self.focuses,
            by_e_values=False,
        )

    def keeps_elimination(self, before: Question, probability: float | None) -> bool:
        """Return whether an elimination stays: if its probability reaches the certainty."""
        return isinstance(before, PaperParetoSet) and (probability or 0.0) >= self.certainty

    def may_eliminate(self, view: View, posterior: Posterior, slack: float) -> bool:
        """Return whether the posterior eliminates a candidate at the certainty less some slack.

        >>> import polarbear as pb
        >>> runs = pb.simulation.simulate_runs(np.array([[2.0, 0.0]] * 3), 40)
        >>> view = pb.Race(runs.algorithms, [1, 2, 3], direction="minimize").state.view()
        >>> PaperParetoSet().may_eliminate(view, pb.fit(pb.rank(runs)), slack=0.01)
        True
        """
        racing = [name in view.members for name in posterior.algorithms]
        is_dominant = self._find_dominance(posterior, self.certainty - slack)
        return bool(is_dominant[np.ix_(racing, racing)].any())

    def _find_claims(self, view: View, posterior: Posterior) -> tuple[Claims, Bools]:
        """Return the claims that the posterior makes certain, and when pairs are undecided."""
        columns = [k for k, name in enumerate(posterior.algorithms) if name in view.members]
        names = tuple(posterior.algorithms[k] for k in columns)
        rows = np.ix_(columns, columns)
        ahead = posterior.prob_better_matrix()[:, rows[0], rows[1]]
        alike = posterior.prob_equivalent_matrix(self.epsilon)[:, rows[0], rows[1]]
        beats, sure = self._find_dominance(posterior, self.certainty)[rows], ahead.min(axis=0)
        if self.elimination == "joint" and beats.any():
            sure = posterior.prob_dominates_matrix()[rows]
        claims = Claims.from_probabilities(
            names,
            posterior.times,
            posterior.clock,
            ahead=ahead,
            alike=alike,
            prob_in_pareto=posterior.undominated(names).mean(axis=0),
            beats=beats,
            sure=sure,
            certainty=self.certainty,
            resolution=self.resolution,
        )
        return claims, ~is_resolved(ahead, alike, self.certainty, resolution=self.resolution)

    def _find_dominance(self, posterior: Posterior, certainty: float) -> Bools:
        """Return a matrix: true where row dominates column, by the posterior alone."""
        ahead = posterior.prob_better_matrix()
        is_dominant = dominates(ahead, ahead.min(axis=0), certainty, "pointwise")
        # Joint dominance implies pointwise dominance, which is cheaper to compute.
        if self.elimination == "joint" and is_dominant.any():
            is_dominant = posterior.prob_dominates_matrix() >= certainty
        return is_dominant
