"""``ParetoSet``: which algorithms are worth running at all? Decided by e-values.

A race with this question eliminates an algorithm when e-values show that another one is ahead of
it at all times. E-values need no model, and keep their error however often the race looks.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from polarbear.errors import DataError
from polarbear.inference.decisive import find_decisive_instances
from polarbear.inference.dominance import Resolution, eliminate, equivalence_margin
from polarbear.inference.e_values import Evidence, count_by_class, count_outcomes
from polarbear.inference.verdicts import Claims, derive_verdicts, pick_dominator
from polarbear.racing.budget import check_fields, is_margin
from polarbear.racing.decisions import Decision, Open, all_pairs
from polarbear.racing.forecast import RequiredZ
from polarbear.racing.questions.outlook import add_outlook, find_open_pairs
from polarbear.racing.questions.question import Question, View

if TYPE_CHECKING:
    from polarbear.data.rankings import Rankings
    from polarbear.inference.dominance import Floats
    from polarbear.inference.posterior import Posterior
    from polarbear.inference.verdicts import Verdict
    from polarbear.racing.forecast import LeadDraws

Errors = Literal["per_member", "whole_race"]
Classes = Mapping[str, str] | tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class ParetoSet(Question):
    """Which algorithms are worth running at all: the anytime Pareto set.

    Attributes
    ----------
    certainty
        A member of the Pareto set is ever eliminated with probability at most 1 - certainty.
    epsilon
        Two algorithms are equivalent if each beats the other with a probability within epsilon of
        one half.
    resolution
        When a pair of algorithms is settled. "at_par": each is certain to lead or tie somewhere.
        "crossing": and one of them to lead. "strict": its relation is certain at every time.
    errors
        Whether the certainty is about a given member ("per_member") or about any ("whole_race").
    classes
        The class of each instance, such as ``{"i1": "easy", "i2": "hard"}``: an algorithm is
        eliminated only if it is dominated in every class, perhaps by another algorithm in each.
        Instances that are not named do not count, and all algorithms with an undecided pair run on
        new instances.

    Examples
    --------
    >>> print(ParetoSet(certainty=0.99).guarantee)
    A given member of the Pareto set is ever eliminated with probability at most 0.01, however
    often the race looks, at however many times and against however many rivals.
    >>> ParetoSet(certainty=0.4)
    Traceback (most recent call last):
    polarbear.errors.DataError: certainty=0.4: expected a probability above 0.5 and below 1
    """

    epsilon: float = 0.05
    resolution: Resolution = "at_par"
    errors: Errors = "per_member"
    classes: Classes | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", _check_classes(self.classes))
        super().__post_init__()
        check_fields(
            self,
            {
                "epsilon": (is_margin(self.epsilon), "at least 0 and below 0.5"),
                "resolution": check_choice(self.resolution, Resolution),
                "errors": check_choice(self.errors, Errors),
            },
        )

    def describe(self) -> str:
        """Return which error has probability at most 1 - certainty, as a clause."""
        which = "any" if self.errors == "whole_race" else "a given"
        where = "the Pareto set of a class" if self.classes else "the Pareto set"
        error = f"{1 - self.certainty:.6g}"
        return f"{which} member of {where} is ever eliminated with probability at most {error}"

    @property
    def guarantee(self) -> str:
        """One sentence on the error probability that follows from the certainty."""
        rest = ", at however many times and against however many rivals."
        return super().guarantee.removesuffix(".") + rest

    def describe_test(self) -> str:
        """Return a sentence on how the race decides, for the methods section of a paper."""
        return (
            "After every round an algorithm was eliminated if e-values showed with the required "
            "certainty that another one is ahead of it at all times."
        )

    def decide(self, view: View, rankings: Rankings, posterior: Posterior | None) -> Decision:
        """Return eliminations and undecided pairs; the posterior adds the forecast and the plan."""
        claims = self._find_claims(view, rankings, posterior)
        verdicts = derive_verdicts(claims, self.epsilon)
        names = tuple(one.algorithm for one in verdicts)
        open_pairs = find_open_pairs(
            view,
            names,
            claims.open_at,
            {one.algorithm for one in verdicts if one.kind == "dominated"},
            before=dict.fromkeys(all_pairs(view.members), self.asked_times(len(view.times))),
        )
        # A pair of which one algorithm has not run yet could not be resolved in this round.
        n_rated = sum(a in names and b in names for a, b in view.open)
        resolved = len(view.open) - len(open_pairs)
        decision = Decision(
            Open.list_all(open_pairs, {}),
            view.budget.next_batch(view.batch, resolved, n_rated),
            verdicts=tuple(self._add_decisive(view, one, rankings) for one in verdicts),
        )
        if posterior is None or self.classes:  # a forecast would be that of all classes together
            return decision
        return add_outlook(
            decision,
            view,
            posterior,
            rankings,
            required=lambda leads: self._required_z(view, posterior.algorithms, leads),
            resolution=self.resolution,
            focuses=self.focuses,
        )

    def keeps_elimination(self, before: Question, probability: float | None) -> bool:
        """Return whether an elimination stays: not if errors or classes are others."""
        return (
            super().keeps_elimination(before, probability)
            and isinstance(before, ParetoSet)
            and (self.errors, self.classes) == (before.errors, before.classes)
        )

    def log_thresholds(self, view: View, names: Any) -> Floats:
        """Return log e-values at which row eliminates column, for all pairs of algorithms."""
        whole_race = self.errors == "whole_race"
        return view.entries.log_thresholds(names, self.certainty, whole_race=whole_race)

    def _find_claims(self, view: View, rankings: Rankings, posterior: Posterior | None) -> Claims:
        """Return the claims that e-values support, with probabilities if there is a posterior."""
        columns = [k for k, name in enumerate(rankings.algorithms) if name in view.members]
        names, pairs = tuple(rankings.algorithms[k] for k in columns), np.ix_(columns, columns)
        if self.classes:
            return self._find_claims_by_class(view, rankings, columns)
        outcomes = count_outcomes(rankings, view.heaviest or 1.0).among(columns)
        claims = Claims.from_e_values(
            names,
            rankings.times,
            rankings.clock,
            Evidence.from_outcomes(outcomes, self.epsilon),
            log_k=self.log_thresholds(view, names),
            certainty=self.certainty,
            resolution=self.resolution,
        )
        if posterior is None:
            return claims
        return claims._replace(
            prob_in_pareto=posterior.undominated(names).mean(axis=0),
            prob_dominates=posterior.prob_dominates_matrix()[pairs] if claims.beats.any() else None,
        )

    def _find_claims_by_class(self, view: View, rankings: Rankings, columns: list[int]) -> Claims:
        """Return the claims that e-values support in classes of instances.

        An algorithm is eliminated if a rival, perhaps another one in each class, dominates it in
        every class. A member of the Pareto set of some class is eliminated only if a rival reaches
        the threshold in that class. So thresholds need no correction for the number of classes. A
        pair is settled as over times, with a time of a class in the place of a time.
        """
        names = tuple(rankings.algorithms[k] for k in columns)
        log_k, n, n_times = self.log_thresholds(view, names), len(names), len(rankings.times)
        by_class = count_by_class(rankings, dict(self.classes or ()), view.heaviest or 1.0)
        evidence = [
            Evidence.from_outcomes(outcomes.among(columns), self.epsilon)
            for outcomes in by_class.values()
        ]
        claims = Claims.from_e_values(
            names,
            np.tile(rankings.times, len(evidence)),
            rankings.clock,
            Evidence(*map(np.concatenate, zip(*evidence, strict=True))),
            log_k=log_k,
            certainty=self.certainty,
            resolution=self.resolution,
        )
        in_class = [(one.dominates(log_k), one.lead.min(axis=0) - log_k) for one in evidence]
        out_in_class = [eliminate(beats, strength) for beats, strength in in_class]
        beats, strength = np.zeros((n, n), dtype=bool), np.full((n, n), -np.inf)
        for k in np.flatnonzero(np.all(out_in_class, axis=0)).tolist():
            for (own, sure), out in zip(in_class, out_in_class, strict=True):
                by = pick_dominator(own, sure, out, k)
                beats[by, k], strength[by, k] = True, max(strength[by, k], sure[by, k])
        shape = (len(evidence), n_times, n, n)
        return claims._replace(
            times=rankings.times,
            beats=beats,
            strength=strength,
            ties=claims.ties.reshape(shape).all(axis=0),
            open_at=claims.open_at.reshape(shape).any(axis=0),
        )

    def _add_decisive(self, view: View, verdict: Verdict, rankings: Rankings) -> Verdict:
        """Add to an elimination the fewest instances without which there would be none.

        These are not found if instances have weights or classes.
        """
        if verdict.kind != "dominated" or view.heaviest is not None or self.classes:
            return verdict
        name, rival = verdict.algorithm, verdict.rival or ""
        log_k = self.log_thresholds(view, [rival, name])[0, 1]
        decisive = find_decisive_instances(rankings, rival, name, "leads", log_k, self.epsilon)
        return verdict._replace(decisive=decisive)

    def _required_z(self, view: View, names: Any, leads: LeadDraws) -> RequiredZ:
        """Return the z-score of the lead that each claim about a pair requires.

        For an e-value that has to reach K these are about sqrt(2 (ln K + 1)).
        """
        log_k = self.log_thresholds(view, names)
        # The e-value for "at some time" is a mean over times: one time has to reach K times T.
        times = 1 if self.resolution == "strict" else len(view.times)
        first, second = log_k[leads.first, leads.second], log_k[leads.second, leads.first]
        return RequiredZ(
            np.sqrt(2 * (first + 1)),
            np.sqrt(2 * (second + 1)),
            float(np.sqrt(2 * (1 + np.log(times) - np.log1p(-self.certainty)))),
            equivalence_margin(self.epsilon),
            one_sided=True,
        )


def check_question(question: object) -> Question:
    """Return the question, by default the Pareto set; raise an error if it is none."""
    if isinstance(question, type):
        raise DataError(f"question={question.__name__} is a class: write {question.__name__}(...)")
    if question is None:
        return ParetoSet()
    if not isinstance(question, Question):
        raise DataError(f"question={question!r}: expected a question such as ParetoSet(...)")
    return question


def check_choice(value: object, choices: object) -> tuple[bool, str]:
    """Return whether a value is one of the literals of a type, and which these are."""
    names = get_args(choices)
    return value in names, " or ".join(map(repr, names))


def _check_classes(classes: Any) -> tuple[tuple[str, str], ...]:
    """Return pairs of an instance and its class, sorted; raise an error if they are no texts."""
    pairs: list[tuple[Any, Any]] = [(classes, None)]  # refused below
    with suppress(TypeError, ValueError):
        pairs = sorted(dict(classes or {}).items())
    if not all(isinstance(text, str) for pair in pairs for text in pair):
        raise DataError(
            f"classes={classes!r}: expected a mapping from instances to classes, such as "
            "{'i1': 'easy'}"
        )
    return tuple(pairs)
