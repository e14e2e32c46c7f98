"""``ParetoSet``: which algorithms are worth running at all?

An algorithm is dropped when a rival **replaces** it: better on average over all times, and on no
tenth of the time axis worse by more than the margin (:mod:`polarbear.inference.replacing`). A pair
of algorithms is settled when

1. one replaces the other, which has to be proven: a wrong drop may cost the best algorithm;
2. the two are tied: neither is worse by more than the margin anywhere, which is proven too;
3. each is likely ahead of the other somewhere: a wrong keep costs only runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np

from polarbear.data.names import natural_sort_key
from polarbear.errors import DataError
from polarbear.inference.replacing import compare_on_stretches, find_chances, find_stretches
from polarbear.inference.verdicts import Verdict
from polarbear.racing.budget import check_fields, check_width, is_margin
from polarbear.racing.decisions import Decision, Open, Pair, pair
from polarbear.racing.forecast import SHIFTS, forecast_pairs
from polarbear.racing.questions.question import PosteriorUse, Question, View
from polarbear.racing.questions.replacements import Shown, drop_replaceable, mark_times

if TYPE_CHECKING:
    from polarbear.data.rankings import Rankings
    from polarbear.inference.findings import Findings
    from polarbear.inference.posterior import Posterior

Errors = Literal["per_member", "whole_race"]
Classes = Mapping[str, str] | tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class ParetoSet(Question):
    """Which algorithms are worth running at all: those that no other one replaces.

    Attributes
    ----------
    certainty
        An algorithm that you would miss is wrongly dropped with probability at most 1 - certainty.
        You would miss it if no rival replaces it: against each, it is ahead by more than the margin
        on some stretch, or at least as good on average.
    margin
        A rival that loses at most 1/2 + margin of the decided duels on a stretch of time, or whose
        losses exceed its wins by at most this share of the instances, is not much worse there.
    width
        The length of a stretch, as a share of the time axis (logarithmic if it spans a factor of
        100). With 0 each time is a stretch.
    errors
        Whether the certainty is about a given algorithm ("per_member") or about any
        ("whole_race").
    classes
        The class of each instance, such as ``{"i1": "easy", "i2": "hard"}``: an algorithm is
        dropped only if it is replaced in every class, perhaps by another algorithm in each.
        Instances that are not named do not count.

    Examples
    --------
    >>> print(ParetoSet(certainty=0.99).guarantee)
    An algorithm that you would miss is wrongly dropped with probability at most 0.01, however often
    the race looks, at however many times and against however many rivals.
    >>> ParetoSet(certainty=0.4)
    Traceback (most recent call last):
    polarbear.errors.DataError: certainty=0.4: expected a probability above 0.5 and below 1
    """

    margin: float = 0.1
    width: float = 0.1
    errors: Errors = "per_member"
    classes: Classes | None = None

    posterior_for: ClassVar[PosteriorUse] = "nothing"
    hands_over: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", _check_classes(self.classes))
        super().__post_init__()
        check_fields(
            self,
            {
                "margin": (is_margin(self.margin), "at least 0 and below 0.5"),
                "width": check_width(self.width),
                "errors": check_choice(self.errors, Errors),
            },
        )

    def describe(self) -> str:
        """Return which error has probability at most 1 - certainty, as a clause."""
        which = "any" if self.errors == "whole_race" else "an"
        where = " in some class" if self.classes else ""
        error = f"{1 - self.certainty:.6g}"
        return (
            f"{which} algorithm that you would miss{where} is wrongly dropped with probability at "
            f"most {error}"
        )

    @property
    def guarantee(self) -> str:
        """One sentence on the error probability that follows from the certainty."""
        rest = ", at however many times and against however many rivals."
        return super().guarantee.removesuffix(".") + rest

    def describe_test(self) -> str:
        """Return a sentence on how the race decides, for the methods section of a paper."""
        return (
            "After every round an algorithm was dropped if another one was shown to be better on "
            f"average over all times, and worse by more than a margin of {self.margin:g} on no "
            f"stretch of {100 * self.width:g}% of the time axis."
        )

    def read_posterior(self, posterior: Posterior) -> Findings:
        """Return what a posterior says of all algorithms: the same claims, with probabilities."""
        return posterior.verdict(self.certainty, margin=self.margin, width=self.width)

    def keeps_elimination(self, before: Question, probability: float | None) -> bool:
        """Return whether an elimination stays: not if margins, errors or classes are others."""
        if not isinstance(before, ParetoSet) or not super().keeps_elimination(before, probability):
            return False
        names = ("margin", "width", "errors", "classes")
        return all(getattr(self, name) == getattr(before, name) for name in names)

    def decide(self, view: View, rankings: Rankings, posterior: Posterior | None) -> Decision:  # noqa: ARG002
        """Return who is dropped and which pairs are open, and how likely the rest is."""
        names, shown = rankings.algorithms, self._find_shown(view, rankings)
        code = {name: k for k, name in enumerate(names)}
        racing = np.array([name in view.members for name in names])
        before = {code[k]: code.get(rival, -1) for k, rival in view.dropped.items() if k in code}
        heirs = drop_replaceable(shown, racing, before)
        open_pairs = self._find_open_pairs(view, code, shown, heirs)
        forecast, needed = forecast_pairs(open_pairs, names, map(shown.find_routes, SHIFTS))
        verdicts = self._list_verdicts(view, names, shown, heirs, open_pairs)
        if not self.classes:
            present = [name for name in names if name in view.members]
            chances = find_chances(rankings.among(present), self.margin, self.width)
            verdicts = [chances.add_to(one) for one in verdicts]
        return Decision(
            Open.list_all(open_pairs, needed),
            view.budget.batch_after(len(rankings.instances)),
            verdicts=tuple(verdicts),
            forecast=forecast if len(needed) == len(open_pairs) else None,
            returning=tuple(names[k] for k in before if k not in heirs),
        )

    def _find_shown(self, view: View, rankings: Rankings) -> Shown:
        """Return what is shown of each pair of algorithms, in each class if there are classes."""
        parts = [rankings]
        if self.classes:
            class_of = dict(self.classes)
            parts = [
                rankings.take([k for k, i in enumerate(rankings.instances) if class_of.get(i) == c])
                for c in sorted(set(class_of.values()), key=natural_sort_key)
            ]
        log_k = view.entries.log_thresholds(
            rankings.algorithms, self.certainty, whole_race=self.errors == "whole_race"
        )
        heaviest, shares = view.heaviest or 1.0, view.find_shares(plain=not self.classes)
        return Shown.of(
            [compare_on_stretches(one, self.margin, self.width, heaviest) for one in parts],
            log_k,
            self.certainty,
            shares,
            n_used=view.n_used if shares.on_the_way else None,
        )

    def _find_open_pairs(
        self, view: View, code: Mapping[str, int], shown: Shown, heirs: Mapping[int, int]
    ) -> dict[Pair, int]:
        """Return the pairs that stay open, each with the times at which more runs may settle it.

        A pair that was settled stays so. Runs are as long as the direction that is closer to its
        proof needs: complete until the average over all times is shown, which needs all times.
        """
        stretches = find_stretches(np.array(view.times), self.width)
        settled, proof = shown.settled, shown.proof
        all_times, open_pairs = self.asked_times(len(view.times)), dict[Pair, int]()
        for (a, b), times in view.open.items():
            if a not in code or b not in code:
                open_pairs[a, b] = times
                continue
            i, j = code[a], code[b]
            if i in heirs or j in heirs or settled[i, j]:
                continue
            i, j = (i, j) if proof[i, j] >= proof[j, i] else (j, i)
            bits = 0 if shown.better[:, i, j].all() else all_times
            bits |= mark_times(stretches, np.all(shown.no_worse[:, :, i, j], axis=0))
            open_pairs[a, b] = bits or all_times
        return open_pairs

    def _list_verdicts(
        self,
        view: View,
        names: Sequence[str],
        shown: Shown,
        heirs: Mapping[int, int],
        open_pairs: Mapping[Pair, int],
    ) -> list[Verdict]:
        """Return verdicts about the racing algorithms, and about dropped ones with a new heir."""
        tied, proof = np.asarray(shown.tied.all(axis=0)), shown.proof
        stays = [k for k, name in enumerate(names) if name in view.members and k not in heirs]
        verdicts: list[Verdict] = []
        for k, name in enumerate(names):
            one = Verdict(name, "member", margin=self.margin)
            rivals = [j for j in stays if j != k and pair(name, names[j]) in open_pairs]
            equals = [j for j in stays if tied[k, j]]
            if k in heirs:
                one = one._replace(kind="dominated", rival=names[heirs[k]])
                if name not in view.members and view.dropped[name] == one.rival:
                    continue
            elif name not in view.members:
                continue
            elif rivals:
                closest = max(rivals, key=lambda j: proof[j, k])
                one = one._replace(kind="undecided", rival=names[closest])
                if view.error_shares.on_the_way:
                    one = one._replace(proof=float(proof[closest, k]))
            elif equals:
                closest = max(equals, key=lambda j: proof[j, k])
                one = one._replace(kind="equivalent", rival=names[closest])
            verdicts.append(one)
        return verdicts


@dataclass(frozen=True)
class StrictParetoSet(ParetoSet):
    """The Pareto set by single times and without a margin: a lead at every time drops a rival.

    It takes three to twenty times as many instances as :class:`ParetoSet`, and two algorithms that
    are equal at some time are never settled.

    >>> StrictParetoSet().margin, StrictParetoSet().width
    (0.0, 0.0)
    """

    margin: float = 0.0
    width: float = 0.0


def check_question(question: object) -> Question:
    """Return the question, by default the Pareto set; raise an error if it is none."""
    if isinstance(question, type):
        raise DataError(f"question={question.__name__} is a class: write {question.__name__}(...)")
    if question is None:
        return ParetoSet()
    if not isinstance(question, Question):
        raise DataError("expected a question such as ParetoSet(...)", question=question)
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
            "expected a mapping from instances to classes, such as {'i1': 'easy'}", classes=classes
        )
    return tuple(pairs)
