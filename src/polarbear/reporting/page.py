"""``report``: the page as one file, that opens anywhere and asks nobody for anything."""

import base64
import hashlib
import html
import json
from collections.abc import Mapping
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any

from polarbear.errors import DataError
from polarbear.plots.arguments import PosteriorSource
from polarbear.reporting.content import document

SCRIPTS = (
    "data",
    "words",
    "selecting",
    "drawing",
    "ratings",
    "budget",
    "choice",
    "pairs",
    "race",
    "facts",
    "page",
)
"""Joined in this order: each uses those before it."""

REFITS = 30
"""The number of rounds, evenly chosen, of which a report shows how close elimination was."""


def report(
    subject: PosteriorSource,
    path: str | PathLike[str],
    *,
    alpha: float | None = None,
    title: str | None = None,
    provenance: Mapping[str, str] | None = None,
) -> Path:
    """Write a report: one HTML file that needs no network and nothing installed but a browser.

    It begins with the verdict in words. Its pictures answer: say when you will stop and what to
    look at, and the page selects as :func:`select` does, from the draws it carries along.

    Parameters
    ----------
    subject
        A posterior, or a race: what :func:`race` and :func:`replay` return, or a :class:`Race`.
    path
        The file; an older one is replaced when the new one is complete.
    alpha
        How sure to be of what is said; by default what the race's rules say, or 0.99.
    title
        What the page is called.
    provenance
        More lines for the last section: where the data are from, which command made this.

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
        raise DataError(f"{path}: there is no folder {path.parent}")
    written = render(subject, alpha=alpha, title=title, provenance=provenance)
    partial = path.with_name(path.name + ".partial")
    partial.write_text(written, "utf-8")
    partial.replace(path)
    return path


def render(
    subject: PosteriorSource,
    *,
    live: bool = False,
    alpha: float | None = None,
    title: str | None = None,
    provenance: Mapping[str, str] | None = None,
) -> str:
    """The page as text.

    ``live``: it asks for ``data.json`` beside it every other second, which is :func:`document` as
    JSON, and draws itself anew when that has changed; what the reader has set stays.
    """
    refits = 0 if live else REFITS
    content = document(subject, alpha=alpha, title=title, provenance=provenance, refits=refits)
    return page_of(content, live=live)


def page_of(content: Mapping[str, Any], *, live: bool = False) -> str:
    """The page of a document."""
    style = _asset("page.css")
    script = "\n".join(
        ["'use strict';", "(() => {", *(_asset(f"{n}.js") for n in SCRIPTS), "})();"]
    )
    rules = [
        "default-src 'none'",
        f"style-src '{_hash(style)}'",
        f"script-src '{_hash(script)}'",
        "connect-src 'self'" if live else "connect-src 'none'",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    # Names are data: they reach the page as JSON in which no tag can begin, and as escaped text.
    data = json.dumps(content, ensure_ascii=True, allow_nan=False).replace("<", "\\u003c")
    verdict = content["verdict"]
    said = [
        verdict["summary"],
        *(one["text"] for one in verdict["sentences"]),
        *verdict["close"],
    ]
    parts = {
        "policy": "; ".join(rules),
        "title": html.escape(content["title"]),
        "style": style,
        "words": "".join(f"<p>{html.escape(text)}</p>" for text in said),
        "live": "live" if live else "still",
        "data": data,
        "script": script,
    }
    # In one go: what was put in is never looked at again, whatever it says.
    head, *rest = _asset("page.html").split("{{")
    pieces = (piece.split("}}", 1) for piece in rest)
    return head + "".join(parts[name] + after for name, after in pieces)


def _asset(name: str) -> str:
    return (files("polarbear.reporting") / "assets" / name).read_text("utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"
