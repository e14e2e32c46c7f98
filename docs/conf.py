"""The site: `sphinx-build -W docs site` makes it, and a warning is an error.

What the project says elsewhere (ARCHITECTURE.md, tables of studies and benchmarks) is part of it.
It is copied into ``docs`` when the site is built, with links that lead to pages.
"""

import inspect
import json
import os
import re
import runpy
import tomllib
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from docutils import nodes
from matplotlib import pyplot

import polarbear

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent

project = "PolarBear"
author = "The PolarBear developers"
copyright = author  # noqa: A001, what Sphinx calls it
version = release = polarbear.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
suppress_warnings = ["config.cache"]  # of the gallery, which has functions
exclude_patterns = ["_static", "_templates"]
templates_path = ["_templates"]

highlight_language = "none"  # of blocks that do not say what they are
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints = "none"  # docstrings say in words what to pass
napoleon_google_docstring = False
napoleon_attr_annotations = False
napoleon_custom_sections = [("Attributes", "params_style")]  # several in a line, as we write them
napoleon_use_param = False  # parameters that are described together stay together
napoleon_use_rtype = False
python_maximum_signature_line_length = 120

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = "PolarBear"
html_logo = html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "PolarBear"},
    "navbar_start": ["navbar-logo", "version"],
    "navbar_align": "left",
    "header_links_before_dropdown": 8,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": ["version"],
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
}
html_sidebars = {"index": []}

STRICT = ExitStack()


def strictly(_: object, __: object, when: str) -> None:
    """An example that warns fails, as one that raises does."""
    if when == "before":
        STRICT.enter_context(warnings.catch_warnings())
        warnings.simplefilter("error")
        pyplot.rcParams["figure.dpi"] = 130
    else:
        STRICT.close()


# In this order: from what one has to what one does.
EXAMPLES = """
    read_and_rank rate pairs instances choose plan_and_race race replay solvers_python
    solvers_programs
    design_loop calibrate known_truth usual_figures
"""
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",  # all are run, here and nowhere else
    "within_subsection_order": [f"{name}.py" for name in EXAMPLES.split()].index,
    "reset_modules": ("matplotlib", strictly),
    "reset_modules_order": "both",
    "capture_repr": (),
    "image_srcset": ["2x"],
    "thumbnail_size": (400, 290),
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 0,
    "reference_url": {},
}

LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#|/)([^)#\s]+)")
"""Where a link of a Markdown file leads, unless that is elsewhere."""

PATTERN = re.compile(r"^[\w/-]*\*[\w/-]*$", re.MULTILINE)
"""A line of a list of pages that stands for all pages of such a name, also those yet to come."""


TITLES = {
    "accuracy": "Does the fast engine agree with long NUTS runs?",
    "sbc": "Does the engine find again what it assumes? (simulation-based calibration)",
    "racing": "What a round of a race costs",
    "read_and_rank": "Reading and ranking millions of rows",
    "store": "How fast runs are stored",
    "store_kills": "Coordinators that are killed at random moments",
    "faults": "Everything killed at random moments: workers, schedulers, jobs, power",
}
"""Of tables that have none of their own."""

NOT_RUN = """
:::{note}
Not run at full size yet: there is no table, and no figure of these pages comes from here.
:::
"""


def brought_in() -> Iterator[tuple[Path, str, str]]:
    """Files of the project that are pages: the file, the page, and a title if it has none."""
    yield ROOT / "ARCHITECTURE.md", "design/architecture", ""
    yield ROOT / "CONTRIBUTING.md", "design/contributing", ""
    yield ROOT / "AGENTS.md", "design/agents", ""
    yield ROOT / "CHANGELOG.md", "design/changelog", ""
    yield ROOT / "SECURITY.md", "design/security", ""
    yield ROOT / "GOVERNANCE.md", "design/governance", ""
    yield ROOT / "CODE_OF_CONDUCT.md", "design/conduct", ""
    yield ROOT / "tests/faults/results.md", "measured/faults", TITLES["faults"]
    yield ROOT / "tests/faults/soak.md", "measured/soak", ""
    yield ROOT / "studies/README.md", "measured/studies", "Studies"
    for study in sorted(ROOT.glob("studies/*/")):
        for page in (study / "table.md", study / "README.md"):
            if page.exists():
                yield page, f"measured/{study.name}", TITLES.get(study.name, f"Study: {study.name}")
                break
        for table in sorted({*study.glob("*.md")} - {study / "table.md", study / "README.md"}):
            title = f"{study.name}: {table.stem.replace('_', ' ')}"
            yield table, f"measured/{study.name}-{table.stem}", title
    yield ROOT / "benchmarks/README.md", "measured/benchmarks", ""
    for table in sorted(ROOT.glob("benchmarks/results/*.md")):
        title = TITLES.get(table.stem, f"Benchmark: {table.stem.replace('_', ' ')}")
        yield table, f"measured/benchmark-{table.stem}", title


PAGES = {path: page for path, page, _ in brought_in()}


def page_of(path: Path) -> str | None:
    """The page that a file or folder of the project is."""
    beside = [path.parent / "table.md"] if path.name == "README.md" else []
    for candidate in (path, path / "table.md", path / "README.md", *beside):
        if candidate in PAGES:
            return f"/{PAGES[candidate]}.md"
    if path.suffix == ".md" and DOCS in path.parents:
        return f"/{path.relative_to(DOCS).as_posix()}"
    return None


def linked(text: str, folder: Path, page: str) -> str:
    """The text of a folder's file as a page: links lead to pages, or from there to files."""

    def there(link: re.Match[str]) -> str:
        target = (folder / link[0]).resolve()
        if not target.exists():
            return link[0]
        return page_of(target) or Path(os.path.relpath(target, (DOCS / page).parent)).as_posix()

    return LINK.sub(there, text)


def bring_in(_: object) -> None:
    """Copy what is said elsewhere in the project; what has not changed is left alone."""
    for path, page, title in brought_in():
        # A study says in its README what its tables show.
        parts = [path.with_name("README.md"), path] if path.name == "table.md" else [path]
        text = "\n".join(part.read_text("utf-8") for part in parts if part.exists())
        text = linked(text, path.parent, page)
        is_study = path.name == "README.md" and path.parent.parent.name == "studies"
        if is_study and not (path.parent / "results").exists():
            text += NOT_RUN
        if not text.startswith("# "):
            text = f"# {title}\n\n{text}"
        copy = DOCS / f"{page}.md"
        copy.parent.mkdir(exist_ok=True)
        if not copy.exists() or copy.read_text("utf-8") != text:
            copy.write_text(text, "utf-8")


def listed(text: str, folder: Path) -> str:
    """A page whose lists of pages have patterns: those that are there and not yet in a list."""

    def there(pattern: re.Match[str]) -> str:
        found = sorted(folder.glob(f"{pattern[0]}.md"))
        names = [path.relative_to(folder).with_suffix("").as_posix() for path in found]
        fresh = [name for name in names if name not in taken]
        taken.update(fresh)
        return "\n".join(fresh)

    taken = {"index", *text.splitlines()}
    return PATTERN.sub(there, text)


def read_page(_: object, page: str, source: list[str]) -> None:
    """Links that lead out of ``docs`` lead to the pages that are made of what is there."""
    folder = (DOCS / page).parent
    source[0] = mark_searched(linked(listed(source[0], folder), folder, page), page)


def mark_searched(text: str, page: str) -> str:
    """Enter the words that this page is to be found by in the index, which search names first."""
    for word, first in json.loads((DOCS / "search.json").read_text("utf-8")).items():
        if first == page:
            heading = re.search(rf"(?im)^#+ .*\b{word}.*$", text) or re.search(r"(?m)^# .*$", text)
            end = heading.end() if heading else 0
            text = f"{text[:end]}\n\n```{{index}} ! {word}\n```\n{text[end:]}"
    return text


def skipped(*about: object) -> bool | None:
    """Whether a member is left out: fields of records are described with the record."""
    return True if str(about[3].__doc__).startswith("Alias for field number") else None


def without_last_lines(_: object, page: nodes.document) -> None:
    """Blocks of code do not end with the empty line that doctest needs."""
    for block in page.findall(nodes.literal_block):
        text = block.astext()
        if block.rawsource == text:  # else it has markup of its own
            block.rawsource = text.rstrip("\n")
            block[:] = [nodes.Text(block.rawsource)]


def pictures_open(_: object, page: nodes.document) -> None:
    """A picture leads to itself in full size, for phones (Sphinx links all that have a scale)."""
    for picture in page.findall(nodes.image):
        if picture["uri"].endswith(".png") and "sphx_glr" not in picture["uri"]:
            picture.setdefault("scale", 100)


def options_stay(_: object, page: nodes.document) -> None:
    """Options of commands are known to be such, so that lines do not break after their dashes."""
    for code in page.findall(nodes.literal):
        if code.astext().startswith("-"):
            code["classes"].append("option")


def write_reports(app: Any, error: Exception | None) -> None:
    """Write a report of the example and one of a race beside the pages, to be looked at."""
    if error is not None or app.builder.name != "html":
        return
    folder = Path(app.outdir) / "reports"
    folder.mkdir(exist_ok=True)
    posterior = polarbear.fit(polarbear.example())
    title = "Six optimisers on the BBOB functions"
    polarbear.report(posterior, folder / "example.html", title=title, certainty=0.95)
    solvers = runpy.run_path(str(ROOT / "examples" / "race.py"))
    names = ("random_search", "climber", "walker")
    result = polarbear.race(
        [solvers[name] for name in names],
        solvers["valley"],
        times=polarbear.grid.log(30, 1_000, 6, whole=True),
        direction="minimize",
        question=polarbear.ParetoSet(certainty=0.95),
        executor=ThreadPoolExecutor(1),  # to fork a process as large as this one takes long
    )
    polarbear.report(result, folder / "race.html", title="A race of three optimisers")


def write_try_page(app: Any, error: Exception | None) -> None:
    """Write the page that analyses results in the browser, and its wheel."""
    if error is None and app.builder.name == "html":
        runpy.run_path(str(DOCS / "try" / "make.py"))["make"](Path(app.outdir) / "try")


PREVIEW = re.compile(r'<meta content="([^"]+)" property="og:image" ?/>')
"""The picture that others show of a link, which they find only by its whole address."""


def find_preview(
    _: object, __: str, ___: str, context: dict[str, Any], ____: nodes.document | None
) -> None:
    """Give the picture of links its whole address; leave it out while the site has none."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["polarbear"]
    site = settings["documentation"].rstrip("/")
    whole = rf'<meta content="{site}/\1" property="og:image" />' if site else ""
    context["metatags"] = PREVIEW.sub(whole, context.get("metatags") or "")


def say_result(*about: object) -> None:
    """Say what a function returns by its annotation, if its docstring does not say it."""
    what, function, lines = about[1], about[3], about[5]
    if what not in ("function", "method") or "Returns" in lines or "Yields" in lines:
        return
    result = inspect.signature(function).return_annotation
    name = result if isinstance(result, str) else getattr(result, "__name__", "")
    name = re.sub(r"\b(Bools|Floats|Ints)\b", lambda kind: f"array of {kind[0].lower()}", name)
    if name not in ("", "None", "Self", "_empty"):
        lines += ["Returns", "-------", name, ""]


COLON = "\N{RATIO}"
"""Stands for a colon of the first line of a property while Napoleon reads it."""


def hide_colons(*about: object) -> None:
    """Napoleon takes what is before a colon for a type, and properties here speak in sentences."""
    what, lines = about[1], about[5]
    if what in ("property", "attribute"):
        lines[:1] = [line.replace(":", COLON) for line in lines[:1]]


def show_colons(*about: object) -> None:
    """The colons again, when Napoleon is done."""
    about[5][:] = [line.replace(COLON, ":") for line in about[5]]


def setup(app) -> None:
    """What Sphinx calls."""
    app.connect("autodoc-process-docstring", say_result, priority=300)
    app.connect("autodoc-process-docstring", hide_colons, priority=400)  # Napoleon has 500
    app.connect("autodoc-process-docstring", show_colons, priority=600)
    app.connect("autodoc-skip-member", skipped)
    app.connect("build-finished", write_reports)
    app.connect("build-finished", write_try_page)
    app.connect("builder-inited", bring_in)
    app.connect("doctree-read", without_last_lines)
    app.connect("doctree-read", pictures_open)
    app.connect("doctree-read", options_stay)
    app.connect("html-page-context", find_preview)
    app.connect("source-read", read_page)
