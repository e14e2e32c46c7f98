"""``report``: write the report as one HTML file."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Mapping
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any

from polarbear.data.losses import Losses
from polarbear.errors import DataError
from polarbear.inference.instance_posterior import InstancePosterior
from polarbear.plots.arguments import PosteriorSource
from polarbear.racing.questions.question import Question
from polarbear.reporting.content import make_document
from polarbear.selection.more_time import ValueOfTime

SCRIPT_NAMES = (
    "data",
    "words",
    "selecting",
    "drawing",
    "ribbon",
    "ratings",
    "budget",
    "answer",
    "table",
    "pairs",
    "race",
    "facts",
    "page",
)
"""Scripts of the page, in the order of their dependencies."""

MAX_REFITS = 30
"""The most rounds of a race whose posterior a report fits again."""


def report(
    subject: PosteriorSource | InstancePosterior,
    path: str | PathLike[str],
    *,
    question: Question | None = None,
    certainty: float | None = None,
    title: str | None = None,
    provenance: Mapping[str, str] | None = None,
    losses: Losses | None = None,
    more_time: ValueOfTime | None = None,
) -> Path:
    """Write a report: one HTML file that needs only a browser, and no network.

    It begins with what to run, how certain that is, and the ribbon of what to run if you stop
    earlier. Set when you will stop, and the page selects an algorithm as :func:`select` does, from
    the draws that it contains.

    Parameters
    ----------
    subject
        A posterior, a :class:`Race`, or a result of :func:`race` or :func:`replay`. A posterior by
        class or by features is shown for the instances in the data together, and has a section on
        its classes or features.
    path
        The file; an older one is replaced when the new one is complete.
    question
        By which rule statements are made, such as ``PaperParetoSet()``; by default that of the
        race, or ``ParetoSet()``.
    certainty
        The required certainty of statements; by default that of the question.
    title
        The title of the page.
    provenance
        More lines for the last section: the origin of the data, the command.
    losses
        How much is lost, for a section of its own: what :func:`polarbear.selection.losses` returns.
    more_time
        When more time stops paying, for a sentence below the answer: what
        :func:`polarbear.selection.value_of_time` returns.

    Returns
    -------
    Path
        The file, which is overwritten if it exists.

    Raises
    ------
    DataError
        If it is neither a posterior nor a race, or the folder does not exist.

    Examples
    --------
    >>> import numpy as np
    >>> import polarbear as pb
    >>> posterior = pb.fit(pb.simulation.simulate_rankings(np.eye(3), 40))
    >>> path = pb.report(posterior, "report.html", title="Three algorithms")
    >>> path.read_text("utf-8")[:15]
    '<!doctype html>'
    >>> path.unlink()
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise DataError(f"{path}: there is no folder {path.parent}; create it first")
    page = render_page(
        subject,
        question=question,
        certainty=certainty,
        title=title,
        provenance=provenance,
        losses=losses,
        more_time=more_time,
    )
    partial = path.with_name(path.name + ".partial")
    partial.write_text(page, "utf-8")
    partial.replace(path)
    return path


def render_page(
    subject: PosteriorSource | InstancePosterior,
    *,
    question: Question | None = None,
    certainty: float | None = None,
    title: str | None = None,
    provenance: Mapping[str, str] | None = None,
    losses: Losses | None = None,
    more_time: ValueOfTime | None = None,
) -> str:
    """Render the report of a posterior or a race as HTML."""
    content = make_document(
        subject,
        question=question,
        certainty=certainty,
        title=title,
        provenance=provenance,
        losses=losses,
        more_time=more_time,
        refits=MAX_REFITS,
    )
    return render_document(content)


def render_document(content: Mapping[str, Any], *, live: bool = False) -> str:
    """Render the content of a report, as data, to HTML.

    A ``live`` page loads ``status.json`` every second, and ``data.json``, the same content with the
    fields ``stage`` and ``rounds``, after a decision. It keeps the settings of its reader.
    """
    style = _read_asset("page.css")
    names = [*SCRIPT_NAMES, "live"] if live else SCRIPT_NAMES
    script = "\n".join(
        ["'use strict';", "(() => {", *(_read_asset(f"{n}.js") for n in names), "})();"]
    )
    rules = [
        "default-src 'none'",
        f"style-src '{_hash_for_policy(style)}'",
        f"script-src '{_hash_for_policy(script)}'",
        "connect-src 'self'" if live else "connect-src 'none'",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    # Names reach the page only as JSON in which no tag can begin, and as escaped text.
    data = json.dumps(content, ensure_ascii=True, allow_nan=False).replace("<", "\\u003c")
    verdict, classes = content["verdict"], (content["classes"] or {"each": ()})["each"]
    sentences = [
        *verdict["cautions"],
        *(one["warning"] for one in content["rows"] if one["warning"]),
        verdict["summary"],
        *filter(None, [verdict["more_time"]]),
        *(one["text"] for one in content["rows"]),
        *content["by_instance"],
        *(f"{one['name']}: run {one['ribbons']['linear']['says']}" for one in classes),
    ]
    parts = {
        "policy": "; ".join(rules),
        "title": html.escape(content["title"]),
        "style": style,
        "words": "".join(f"<p>{html.escape(text)}</p>" for text in sentences),
        "data": data,
        "script": script,
    }
    # In one pass, so that placeholders inside of inserted text are not replaced.
    head, *rest = _read_asset("page.html").split("{{")
    pieces = (piece.split("}}", 1) for piece in rest)
    return head + "".join(parts[name] + after for name, after in pieces)


def _read_asset(name: str) -> str:
    """Return the text of a file in the folder ``assets``."""
    return (files("polarbear.reporting") / "assets" / name).read_text("utf-8")


def _hash_for_policy(text: str) -> str:
    """Return the hash of a style or script, for the page's content security policy."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"
