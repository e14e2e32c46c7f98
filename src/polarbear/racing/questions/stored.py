"""Questions in files: each by its kind and its fields; nothing in a file is imported or run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields, replace
from typing import Any, NoReturn

from polarbear._text import format_list
from polarbear.data.names import suggest_name
from polarbear.errors import DataError
from polarbear.racing.questions.choice import Choice
from polarbear.racing.questions.no_worse import NoWorse
from polarbear.racing.questions.paper_pareto_set import PaperParetoSet
from polarbear.racing.questions.pareto_set import ParetoSet, StrictParetoSet
from polarbear.racing.questions.question import Question
from polarbear.selection.preferences import Linear, parse_preference

PARETO_SETS = (ParetoSet, StrictParetoSet, PaperParetoSet)
"""The questions that a posterior answers for all algorithms."""

BY_NAME: dict[str, type[Question]] = {
    kind.__name__: kind for kind in (ParetoSet, StrictParetoSet, Choice, NoWorse, PaperParetoSet)
}


@dataclass(frozen=True)
class UnknownQuestion(Question):
    """A question of the user's own, read from a store: its name, fields and words.

    It shows what was decided. To go on, the race needs the question itself: pass ``question=``.

    >>> UnknownQuestion("mine.First", {}, "it is wrong seldom").describe_test()
    'After every round the race decided the question First.'
    """

    name: str
    content: Mapping[str, Any]
    words: str

    def describe(self) -> str:
        """Return the words of the question, as it was stored."""
        return self.words

    def describe_test(self) -> str:
        """Return a sentence on how the race decides, for the methods section of a paper."""
        return f"After every round the race decided the question {self.name.rsplit('.', 1)[-1]}."

    def decide(self, *_: Any, **__: Any) -> NoReturn:
        """Raise an error that says how to go on."""
        raise DataError(
            f"the race was started with a question of your own, {self.name}: pass it again with "
            f"question={self.name.rsplit('.', 1)[-1]}(...)"
        )


def recognise(known: Question, question: Question | None) -> Question:
    """Return the user's question if that is what a store knows by its name and fields.

    Otherwise return what the store knows, with the user's fit.

    >>> recognise(ParetoSet(), None)
    ParetoSet(certainty=0.95, margin=0.1, width=0.1, errors='per_member', classes=())
    """
    if question is None:
        return known
    recognised = known
    if isinstance(known, UnknownQuestion):
        stored = json.loads(json.dumps(question_to_plain(question)))
        recognised = question if stored == question_to_plain(known) else known
    return replace(recognised, fit=known.fit if question.fit is None else question.fit)


def question_to_plain(question: Question) -> dict[str, Any]:
    """Return a question as its kind and its fields, for a file.

    >>> question_to_plain(ParetoSet(certainty=0.99))["certainty"]
    0.99
    """
    if isinstance(question, UnknownQuestion):
        words = {"words": question.words}
        return {"kind": question.name, **question.content, **words}
    if isinstance(getattr(question, "preference", None), Linear):
        raise DataError("a preference can be stored only as weights: call at(times, clock) first")
    kind = type(question)
    if BY_NAME.get(kind.__name__) is kind:
        return {"kind": kind.__name__, **_list_fields(question)}
    name = f"{kind.__module__}.{kind.__qualname__}"
    return {"kind": name, **_list_fields(question), "words": question.describe()}


def _list_fields(question: Question) -> dict[str, Any]:
    """Return the fields of a question as plain values; its model is stored beside it."""
    plain = asdict(replace(question, fit=None))
    del plain["fit"]
    return plain


def check_storable(question: Question) -> Question:
    """Return a question that a race is to store; raise an error if a field of it cannot be."""
    try:
        json.dumps(question_to_plain(question))
    except TypeError as error:
        raise DataError(
            f"a field of {type(question).__name__} cannot be stored ({error}): use numbers, texts, "
            "lists and dictionaries"
        ) from None
    return question


def question_from_plain(plain: Mapping[str, Any]) -> Question:
    """Return the question from what :func:`question_to_plain` returned.

    >>> question_from_plain({"kind": "PaperParetoSet", "certainty": 0.95}).resolution
    'crossing'
    >>> question_from_plain({"certanty": 0.95})
    Traceback (most recent call last):
    polarbear.errors.DataError: certanty=0.95: ParetoSet has no 'certanty'; did you mean ...
    """
    content = dict(plain)
    name = content.pop("kind", "ParetoSet")
    words = content.pop("words", None)
    if name not in BY_NAME:
        if words is None:
            raise DataError(f"no question {name!r}: expected one of {', '.join(BY_NAME)}")
        certainty = content.get("certainty", 0.95)
        return UnknownQuestion(name, content, words, certainty=certainty)
    kind = BY_NAME[name]
    known = [field.name for field in fields(kind) if field.name != "fit"]
    for unknown in sorted(set(content) - set(known)):
        own = {other: {one.name for one in fields(kind)} for other, kind in BY_NAME.items()}
        of = [other for other, names in own.items() if unknown in names - {"fit"}]
        hint = f"{format_list(of)} has it" if of else suggest_name(unknown, known)
        raise DataError(f"{unknown}={content[unknown]!r}: {name} has no {unknown!r}; {hint}")
    for one in fields(kind):
        if one.default is MISSING and one.name not in content:
            raise DataError(f"{name} needs the key {one.name}")
    if "preference" in content:
        content["preference"] = parse_preference(content["preference"])
    return kind(**content)
