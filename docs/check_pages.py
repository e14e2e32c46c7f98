"""Check pages in a browser: overflow, dead links, missing pictures, errors of scripts, search.

Run it as ``PYTHONPATH=tests/support python docs/check_pages.py site`` after ``sphinx-build docs
site``. It opens every page of the folder, and HTML files that are named, at the widths of a desk
and of a phone, light and dark. ``--pictures FOLDER`` also takes a picture of each. It ends with
code 1 if something is wrong. It needs Chromium; links to other sites are not followed.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import browsers

WIDTHS_PX = (1440, 390)
THEMES = ("light", "dark")
LEFT_OUT = ("genindex.html", "py-modindex.html", "search.html")
"""Pages that the builder of the site makes by itself."""

SEARCHED = Path(__file__).with_name("search.json")
"""Words that people search for, and the page that is to come first."""

SETTLE_MS = 50
"""The time for scripts to draw a page again."""

OVERFLOW = """() => {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) return null;
  const clips = (e) => ["auto", "scroll", "hidden"].includes(getComputedStyle(e).overflowX);
  const scrolls = (e) => e && e !== document.documentElement &&
    (clips(e) || scrolls(e.parentElement));
  const wide = [...document.querySelectorAll("body *")].filter((e) => {
    const box = e.getBoundingClientRect();
    return box.width && box.right > width + 1 && !scrolls(e.parentElement);
  });
  const e = wide.at(-1);
  return `${document.documentElement.scrollWidth} px wide` +
    (e ? `: <${e.tagName.toLowerCase()}> ${e.textContent.trim().slice(0, 60)}` : "");
}"""

PICTURES = """() => [...document.images].filter((i) => i.complete && !i.naturalWidth)
  .map((i) => i.getAttribute("src"))"""

LINKS = """() => [...document.querySelectorAll("a[href]")].map((a) => a.href)"""

NAMES = """() => [...document.querySelectorAll("[id], a[name]")].map((e) => e.id || e.name)"""


def find_pages(paths: list[str]) -> list[Path]:
    """Return all HTML files of folders, and those that are named."""
    pages: list[Path] = []
    for path in map(Path, paths):
        inside = sorted(path.rglob("*.html")) if path.is_dir() else [path]
        pages += [page.resolve() for page in inside if page.name not in LEFT_OUT]
    return [page for page in pages if "_static" not in page.parts]


def check_page(page: Any, path: Path, pictures: Path | None) -> Iterator[str]:
    """Yield missing pictures, and overflow at each width and in each theme."""
    page.goto(path.as_uri())
    yield from (f"{path.name}: no picture {source}" for source in page.evaluate(PICTURES))
    for width in WIDTHS_PX:
        page.set_viewport_size({"width": width, "height": 900})
        for theme in THEMES:
            page.emulate_media(color_scheme=theme)
            page.wait_for_timeout(SETTLE_MS)
            overflow = page.evaluate(OVERFLOW)
            if overflow:
                yield f"{path.name} at {width} px, {theme}: {overflow}"
            if pictures is not None:
                name = f"{path.parent.name}-{path.stem}-{width}-{theme}.png"
                page.screenshot(path=pictures / name, full_page=True)


def check_pages(browser: Any, pages: list[Path], pictures: Path | None) -> Iterator[str]:
    """Yield what is wrong with pages, errors of their scripts, and dead links."""
    page = browser.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    names: dict[Path, set[str]] = {}
    links: list[tuple[Path, str]] = []
    for path in pages:
        yield from check_page(page, path, pictures)
        yield from (f"{path.name}: {error}" for error in errors)
        errors.clear()
        names[path] = {*page.evaluate(NAMES)}
        links += [(path, link) for link in page.evaluate(LINKS)]
    for path, link in dict.fromkeys(links):
        parts = urlsplit(link)
        if parts.scheme != "file":
            continue
        target = Path(unquote(parts.path))
        if not target.exists():
            yield f"{path.name}: dead link {link}"
        elif parts.fragment and target in names and unquote(parts.fragment) not in names[target]:
            yield f"{path.name}: no place {parts.fragment!r} in {target.name}"


def check_search(browser: Any, site: Path) -> Iterator[str]:
    """Yield words that the search of the site finds first on another page than it should."""
    page = browser.new_page()
    for word, wanted in json.loads(SEARCHED.read_text("utf-8")).items():
        page.goto(f"{(site / 'search.html').resolve().as_uri()}?q={word}")
        first = page.locator("#search-results li a").first.get_attribute("href") or ""
        if not urlsplit(first).path.endswith(f"{wanted}.html"):
            yield f"search for {word!r}: {first} comes first, not {wanted}"


def main() -> int:
    """Check the pages that the command line names; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("paths", nargs="+", help="folders of pages, or HTML files")
    parser.add_argument("--pictures", type=Path, help="a folder for pictures of all pages")
    arguments = parser.parse_args()
    if arguments.pictures is not None:
        arguments.pictures.mkdir(parents=True, exist_ok=True)
    pages = find_pages(arguments.paths)
    n_problems = 0
    sites = [path for path in map(Path, arguments.paths) if (path / "search.html").exists()]
    with browsers.opened() as browser:
        searches = (check_search(browser, site) for site in sites)
        for problem in chain(check_pages(browser, pages, arguments.pictures), *searches):
            print(problem, flush=True)
            n_problems += 1
    print(f"{len(pages)} pages, {n_problems} problems")
    return 1 if n_problems or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
