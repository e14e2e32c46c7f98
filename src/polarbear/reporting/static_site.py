"""``write_site``: write a race as a folder of static pages, for any web server.

The pages are an overview with the history of the set, the report, a page for each algorithm and
one on how to take part. ``board.json`` has the same as data, ``feed.json`` and ``feed.atom`` its
news. Events have no date, so an entry of a feed has the date of the first site that had it.
"""

import base64
import hashlib
import html
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

import numpy as np

from polarbear._text import format_count, format_list
from polarbear.data.run import Run
from polarbear.errors import DataError
from polarbear.inference.algorithm_status import AlgorithmStatus
from polarbear.racing.events import (
    Added,
    Decided,
    Event,
    Identified,
    Imported,
    Removed,
    Told,
    Withdrawn,
)
from polarbear.racing.jobs import key_of
from polarbear.racing.race import Race
from polarbear.reporting.content import make_document
from polarbear.reporting.page import render_document

MAX_RUNS = 500
"""The most runs in the table of an algorithm's page; the newest are shown."""

MAX_ENTRIES = 100
"""The most entries of a feed."""

STYLE = """
:root { color-scheme: light dark; --line: #8884; --quiet: #666; --back: #fff; --text: #1a1a1a; }
@media (prefers-color-scheme: dark) { :root { --quiet: #aaa; --back: #16181c; --text: #eee; } }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 0 auto; padding: 1rem;
  background: var(--back); color: var(--text); }
nav a { margin-right: 1rem; white-space: nowrap; display: inline-block; } a { color: #2a6fb0; }
@media (prefers-color-scheme: dark) { a { color: #7db8ee; } }
.wide { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; overflow-wrap: break-word; max-width: 24rem; }
th { white-space: nowrap; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
h1, h2 { line-height: 1.2; overflow-wrap: anywhere; } .quiet { color: var(--quiet); }
pre { overflow-x: auto; padding: .8rem; border: 1px solid var(--line); }
time { white-space: nowrap; } svg { max-width: 100%; height: auto; display: block; }
.set { fill: #2a6fb0; } .rest { fill: #8886; }
"""


JOIN_TEXT = """
<h2>Make runs</h2>
<p>Ask the organisers for a token. Then, with the race's files on your machine:</p>
<pre>pip install polarbear-race
{command}</pre>
<p>The worker runs only the solvers of the file that you pass, and only if they are those of the
race. A random share of its results is made again elsewhere, and those that decide.</p>
<h2>Add an algorithm</h2>
<p>Propose it as a change to the repository of the race: a table in <code>race.toml</code>, its
adapter, and a lock file of its dependencies. Check it first:</p>
<pre>polarbear check race.toml</pre>
<p>It first runs on instances that others have run on. Eliminations that were decided before it
came stay as they are.</p>
"""


class Entry(NamedTuple):
    """A line of the history: an id that stays, the round, a text, and the algorithm it is about."""

    id: str
    round: int
    text: str
    algorithm: str = ""


def write_site(
    events: Sequence[Event],
    folder: Path,
    *,
    title: str,
    url: str = "",
    now: datetime | None = None,
) -> int:
    """Write the site of a race to a folder; return the number of files.

    ``url`` is the address of the race's server, for the page on how to join and for the feeds.
    """
    race = Race.from_events(events)
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder} is a file: pass a folder")
    (folder / "algorithms").mkdir(parents=True, exist_ok=True)
    names = [status.algorithm for status in race.statuses()]
    pages = {name: f"algorithms/{_hash(name)}.html" for name in names}
    entries = list(_list_entries(events))
    moment = (now or datetime.now(UTC)).isoformat(timespec="seconds")
    dates = _read_dates(folder / "feed.json")
    dates = {entry.id: dates.get(entry.id, moment) for entry in entries}
    site = _Site(race, title, url, pages, entries, dates, _collect_runs(events, race))
    texts = {
        "index.html": site.render_overview(),
        "join.html": site.render_join(),
        "board.json": site.render_data(),
        "feed.json": site.render_json_feed(),
        "feed.atom": site.render_atom(moment),
        "report.html": render_document(make_document(race, title=title)),
    }
    texts |= {pages[status.algorithm]: site.render_algorithm(status) for status in race.statuses()}
    for name, text in texts.items():
        partial = folder / f"{name}.partial"
        partial.write_text(text, "utf-8")
        partial.replace(folder / name)
    return len(texts)


class _Site:
    """What all pages of a site share, and how each is rendered."""

    def __init__(
        self,
        race: Race,
        title: str,
        url: str,
        pages: dict[str, str],
        entries: list[Entry],
        dates: dict[str, str],
        runs: dict[str, list[Run]],
    ) -> None:
        self.race, self.title, self.url, self.pages = race, title, url, pages
        self.entries, self.dates, self.runs = entries, dates, runs
        self.status = race.status
        self.by_name = {status.algorithm: status for status in race.statuses()}

    def render_overview(self) -> str:
        rows = [
            (
                self._link(name, self.pages.get(name, "")),
                _text(status.brief()),
                _number(len(self.runs.get(name, ()))),
                _number(len({run.instance for run in self.runs.get(name, ())})),
            )
            for name, status in self.by_name.items()
        ]
        guarantee = self.status.rules.guarantee.rstrip(".")
        facts = f"{_text(guarantee)}. {_text(self.status.describe_spent())}."
        body = [
            f"<p>{_text(self._summarise())}</p>",
            f"<p class=quiet>{facts}</p>",
            _table(("algorithm", "status", "#runs", "#instances"), rows),
            "<h2>History of the set</h2>",
            self._draw_history(),
            self._list_history(self.entries[::-1]),
        ]
        return self._page(self.title, body)

    def render_algorithm(self, status: AlgorithmStatus) -> str:
        name = status.algorithm
        runs = self.runs.get(name, [])
        rows = [
            (
                _text(run.instance),
                _number(run.repetition),
                _text(str(run.status)),
                _number(run.until),
                _number(np.size(run.time)),
                _number(_best(run, self.race.state.direction)),
            )
            for run in runs[::-1][:MAX_RUNS]
        ]
        solver = self.race.state.identity.solvers.get(name, {})
        facts = [f"<p>{_text(str(status))}</p>"]
        if status.rival in self.pages:
            rival = self._link(status.rival, "../" + self.pages[status.rival])
            facts.append(f"<p>Compare with {rival}.</p>")
        if status.decisive:
            decisive = format_list(list(status.decisive), 20)
            facts.append(f"<p>It rests on the instances {_text(decisive)}.</p>")
        if solver:
            words = "; ".join(f"{kind} {content}" for kind, content in solver.items())
            facts.append(f"<p class=quiet>Solver: {_text(words)}</p>")
        own = [entry for entry in self.entries if entry.algorithm == name]
        head = ("instance", "#repetition", "status", "#until", "#improvements", "#best value")
        shown = f"{format_count(len(runs), 'run')}"
        shown += f", the newest {MAX_RUNS}" if len(runs) > MAX_RUNS else ""
        body = [
            *facts,
            "<h2>History</h2>",
            self._list_history(own[::-1]),
            f"<h2>{_text(shown[0].upper() + shown[1:])}</h2>",
            _table(head, rows),
        ]
        return self._page(name, body, up="../")

    def render_join(self) -> str:
        url = self.url or "https://SERVER"
        command = f"polarbear worker {url} --solvers race.toml --token-file mine.token"
        body = JOIN_TEXT.format(command=_text(command))
        return self._page("How to take part", [body])

    def render_data(self) -> str:
        plain = {
            "title": self.title,
            "status": self.status.to_dict(),
            "pages": self.pages,
            "history": [entry._asdict() | {"date": self.dates[entry.id]} for entry in self.entries],
        }
        return json.dumps(plain, indent=1, allow_nan=False)

    def render_json_feed(self) -> str:
        """Render the news as a JSON Feed 1.1."""
        items = [
            {
                "id": entry.id,
                "content_text": entry.text,
                "title": entry.text,
                "date_published": self.dates[entry.id],
            }
            for entry in self.entries[::-1][:MAX_ENTRIES]
        ]
        feed = {"version": "https://jsonfeed.org/version/1.1", "title": self.title, "items": items}
        # The dates of all entries, so that the next site knows those that are no longer listed.
        return json.dumps(feed | {"_dates": self.dates}, indent=1)

    def render_atom(self, moment: str) -> str:
        """Render the news as an Atom feed (RFC 4287)."""
        parts = [
            '<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">',
            f"<title>{_xml(self.title)}</title><id>urn:sha256:{_hash(self.title)}</id>",
            f"<updated>{moment}</updated><author><name>PolarBear</name></author>",
        ]
        for entry in self.entries[::-1][:MAX_ENTRIES]:
            date = self.dates[entry.id]
            parts.append(
                f"<entry><title>{_xml(entry.text)}</title><id>{entry.id}</id>"
                f"<updated>{date}</updated><content>{_xml(entry.text)}</content></entry>"
            )
        return "\n".join([*parts, "</feed>\n"])

    def _summarise(self) -> str:
        n_left, n_all = len(self.status.pareto), len(self.by_name)
        state = "has ended" if self.status.ended else "is under way"
        return (
            f"The race {state}: {n_left} of {format_count(n_all, 'algorithm')} are not dominated "
            f"after {format_count(self.status.n_rounds, 'round')}."
        )

    def _draw_history(self) -> str:
        """Draw the number of algorithms in the set after each round, of those that had joined."""
        sizes = list(_count_sizes(self.race.events))
        if not sizes:
            return "<p>Nothing is decided yet.</p>"
        highest = max(joined for _, joined in sizes)
        width = 600 / len(sizes)
        bars: list[str] = []
        for k, (left, joined) in enumerate(sizes):
            for kind, count in (("rest", joined), ("set", left)):
                height = 110 * count / highest
                place = f'x="{k * width:.2f}" width="{max(width - 1, 0.5):.2f}"'
                bars.append(
                    f'<rect class="{kind}" {place} y="{110 - height:.2f}" height="{height:.2f}"/>'
                )
        label = f"{sizes[0][0]} algorithms in the set after the first round, {sizes[-1][0]} now"
        picture = (
            f'<svg viewBox="0 0 600 110" role="img" aria-label="{label}">{"".join(bars)}</svg>'
        )
        words = "Bars: algorithms that had joined; dark: those not dominated, after each round."
        return f"{picture}<p class=quiet>{words}</p>"

    def _list_history(self, entries: Iterable[Entry]) -> str:
        rows = [
            (f"<time>{_text(self.dates[e.id][:10])}</time>", _number(e.round), _text(e.text))
            for e in entries
        ]
        return _table(("date", "#round", "what happened"), rows) if rows else "<p>None yet.</p>"

    def _link(self, text: str | None, target: str) -> str:
        return f'<a href="{html.escape(target, quote=True)}">{_text(text or "")}</a>'

    def _page(self, heading: str, body: Iterable[str], up: str = "") -> str:
        digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
        policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'"
        links = {"Overview": "index.html", "Report": "report.html", "Take part": "join.html"}
        links |= {"JSON": "board.json", "Atom": "feed.atom"}
        menu = "".join(self._link(text, up + target) for text, target in links.items())
        return (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{_text(heading)}</title>"
            f'<link rel="alternate" type="application/atom+xml" href="{up}feed.atom">'
            f'<link rel="alternate" type="application/feed+json" href="{up}feed.json">'
            f"<style>{STYLE}</style></head><body><nav>{menu}</nav>"
            f"<h1>{_text(heading)}</h1>{''.join(body)}</body></html>\n"
        )


def _list_entries(events: Sequence[Event]) -> Iterable[Entry]:
    """Yield the history of a race: algorithms that join and leave, decisions and withdrawals."""
    n_rounds = 0
    changes = ""
    for number, event in enumerate(events):
        match event:
            case Added(algorithm):
                yield Entry(_name_entry(events, number), n_rounds, f"{algorithm} joins", algorithm)
            case Removed(algorithm, why):
                text = f"{algorithm} is removed{f': {why}' if why else ''}"
                yield Entry(_name_entry(events, number), n_rounds, text, algorithm)
            case Withdrawn(pairs, why):
                text = f"{format_count(len(pairs), 'run')} withdrawn{f': {why}' if why else ''}; "
                yield Entry(_name_entry(events, number), n_rounds, f"{text}all pairs are reopened")
            case Identified() if event.changes:
                changes = "; ".join(event.changes)
                yield Entry(_name_entry(events, number), n_rounds, f"accepted change: {changes}")
            case Decided():
                n_rounds += 1
                for k, one in enumerate(event.eliminated):
                    text = f"{one.algorithm} is eliminated: dominated by {one.by}"
                    yield Entry(_name_entry(events, number, k), n_rounds, text, one.algorithm)
            case _:
                pass


def _count_sizes(events: Sequence[Event]) -> Iterable[tuple[int, int]]:
    """Yield after each decision the number of algorithms in the set, and of those that joined."""
    inside: set[str] = set()
    joined: set[str] = set()
    dominator: dict[str, str] = {}
    for event in events:
        match event:
            case Added(algorithm):
                inside.add(algorithm)
                joined.add(algorithm)
                dominator.pop(algorithm, None)
            case Removed(algorithm):
                inside.discard(algorithm)
                dominator.pop(algorithm, None)
                back = {name for name, by in dominator.items() if by == algorithm}
                inside |= back
                dominator = {name: by for name, by in dominator.items() if name not in back}
            case Withdrawn():
                inside |= joined
                dominator.clear()
            case Decided():
                dominator |= {one.algorithm: one.by for one in event.eliminated}
                inside -= {one.algorithm for one in event.eliminated}
                yield len(inside), len(joined)
            case _:
                pass


def _collect_runs(events: Sequence[Event], race: Race) -> dict[str, list[Run]]:
    """Return the runs of each algorithm that were not withdrawn, in the order of arrival."""
    runs: dict[str, list[Run]] = defaultdict(list)
    for event in events:
        if isinstance(event, Told | Imported) and key_of(event.run) not in race.state.withdrawn:
            runs[event.run.algorithm].append(event.run)
    return runs


def _best(run: Run, direction: str) -> float:
    values = np.asarray(run.value, dtype=float)
    if not values.size:
        return float("nan")
    return float(values.min() if direction == "minimize" else values.max())


def _read_dates(path: Path) -> dict[str, str]:
    """Return the dates of entries in the feed of an earlier site."""
    try:
        dates = json.loads(path.read_text("utf-8"))["_dates"]
        return {
            str(key): str(datetime.fromisoformat(date).isoformat()) for key, date in dates.items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _name_entry(events: Sequence[Event], number: int, part: int = 0) -> str:
    """Return an id of an entry that stays the same as long as the race grows."""
    return f"urn:sha256:{_hash(f'{events[0]!r} {number} {part}')}"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _text(text: str) -> str:
    return html.escape(text, quote=True)


def _xml(text: str) -> str:
    """Escape text for XML, without the control characters that XML does not allow."""
    return escape("".join(c if c.isprintable() else " " for c in text))


def _number(value: float) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return "" if value != value else f"{value:g}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Render a table of escaped cells; a heading that begins with # is of a column of numbers."""
    kinds = [' class="n"' if name.startswith("#") else "" for name in head]
    names = [name.removeprefix("#") for name in head]

    def row(cells: Sequence[str], tag: str) -> str:
        parts = zip(cells, kinds, strict=True)
        return f"<tr>{''.join(f'<{tag}{kind}>{cell}</{tag}>' for cell, kind in parts)}</tr>"

    lines = "".join(row(cells, "td") for cells in rows)
    return f"<div class=wide><table>{row(names, 'th')}{lines}</table></div>"
