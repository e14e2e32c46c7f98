"""How to cite PolarBear: the one source of ``polarbear cite`` and of CITATION.cff."""

from typing import NamedTuple

import polarbear


class Author(NamedTuple):
    """An author of the PolarBear paper."""

    given: str
    family: str


PAPER_TITLE = "Pareto-Optimal Anytime Algorithms via Bayesian Racing"
PAPER_AUTHORS = (
    Author("Jonathan", "Wurth"),
    Author("Helena", "Stegherr"),
    Author("Neele", "Kemper"),
    Author("Michael", "Heider"),
    Author("Jörg", "Hähner"),
)
PAPER_YEAR = 2026
PAPER_NOTE = "Manuscript, University of Augsburg"

SOFTWARE_TITLE = "PolarBear: Pareto-optimal anytime algorithms via Bayesian racing"
SOFTWARE_AUTHOR = "The PolarBear developers"
SOFTWARE_LICENCE = "BSD-3-Clause"
KEYWORDS = ("anytime optimisation", "benchmarking", "Plackett-Luce", "racing algorithms")

TEX_LETTERS = {"ö": r"{\"o}", "ä": r"{\"a}", "ü": r"{\"u}", "ß": r"{\ss}"}
"""Letters that BibTeX sorts and prints right only in this form."""


def render_bibtex() -> str:
    r"""Return BibTeX entries for the PolarBear paper and for this version of the software.

    >>> print(render_bibtex().splitlines()[0])
    @unpublished{wurth2026pareto,
    """
    authors = " and ".join(f"{family}, {given}" for given, family in PAPER_AUTHORS)
    for letter, tex in TEX_LETTERS.items():
        authors = authors.replace(letter, tex)
    paper = {
        "author": authors,
        "title": f"{{{PAPER_TITLE}}}",
        "year": str(PAPER_YEAR),
        "note": PAPER_NOTE,
    }
    software = {
        "author": f"{{{SOFTWARE_AUTHOR}}}",
        "title": f"{{{SOFTWARE_TITLE}}}",
        "year": str(PAPER_YEAR),
        "note": f"Software, version {polarbear.__version__}",
    }
    entries = {"unpublished{wurth2026pareto": paper, "misc{polarbear": software}
    return "\n".join(
        "\n".join([f"@{key},", *(f"  {name} = {{{text}}}," for name, text in fields.items()), "}"])
        for key, fields in entries.items()
    )


def render_cff() -> str:
    """Return the content of CITATION.cff, which a test compares with the file.

    >>> render_cff().splitlines()[0]
    'cff-version: 1.2.0'
    """
    authors = [
        f"      - {{family-names: {family}, given-names: {given}}}"
        for given, family in PAPER_AUTHORS
    ]
    lines = [
        "cff-version: 1.2.0",
        "message: If you use this software, please cite it.",
        f'title: "{SOFTWARE_TITLE}"',
        "type: software",
        "authors:",
        f"  - name: {SOFTWARE_AUTHOR}",
        f"version: {polarbear.__version__}",
        f"license: {SOFTWARE_LICENCE}",
        "references:",
        "  - type: unpublished",
        f'    title: "{PAPER_TITLE}"',
        "    authors:",
        *authors,
        f"    year: {PAPER_YEAR}",
        "keywords:",
        *(f"  - {keyword}" for keyword in KEYWORDS),
    ]
    return "\n".join([*lines, ""])
