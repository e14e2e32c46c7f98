"""``Screen``: show a race in a terminal, drawn again for each status and each change of size.

There is no thread, because a race forks, and threads and forks do not go together. The race calls
the screen several times a second, and a signal calls it when the size of the window changes.
"""

import signal
import time
import warnings
from collections import deque
from types import FrameType
from typing import Any, NamedTuple, Self

from polarbear._text import (
    escape_text,
    format_count,
    format_list,
    format_share,
    format_time,
    format_unit,
)
from polarbear.data.colours import Cast
from polarbear.errors import require
from polarbear.inference.ribbon_pictures import render_ribbon_text
from polarbear.inference.verdicts import Verdict
from polarbear.live.pace import Pace, Remaining, format_seconds
from polarbear.racing.decisions import MAX_FORECAST
from polarbear.racing.status import RaceStatus

MAX_NEWS = 100
"""The number of news lines kept; as many are shown as there is space for."""

FAILED_STYLE, OUT_STYLE = "bold red", "dim"

LABEL_WIDTH = 20
"""The columns of the label before the ribbon."""

TIME_WIDTH = 10
"""The columns of the time of day before a news line."""

BAR_WIDTH, MAX_RIBBON_WIDTH = 20, 100

MAX_LETTERS = 20
"""The most letters of a name in the table."""

WIDE = 100
"""The width in columns from which on bars are longer."""

MAX_SECONDS = 99 * 86_400.0
"""The longest time of a forecast: nobody waits longer."""

MIN_WIDTHS = {"bar": 70, "best": 60, "ribbon": 50}
"""The least width in columns at which the bars, the times and the ribbon are shown."""

MIN_HEIGHTS = {"blank": 22, "ribbon": 14, "left": 8}
"""The least height in lines for empty lines, the ribbon, and a line with the time to go."""


class Row(NamedTuple):
    """What is shown of one algorithm."""

    name: str
    words: str  # how likely it is worth running, or another verdict in a word
    share: float | None  # of the bar
    best: str
    open: tuple[str, str]  # a long and a short form
    style: str


class Screen:
    """Shows a race in the terminal: a context manager, called with each status of the race.

    Parameters
    ----------
    title
        The name of the race.
    hint
        The last line: how to stop the race, and other commands.
    console
        Where to draw, if not on standard error.
    """

    def __init__(self, title: str, hint: str, console: Any = None) -> None:
        self._live_module = require("rich.live", extra="live")
        self._text = require("rich.text", extra="live").Text
        self._group = require("rich.console", extra="live").Group
        make_console = require("rich.console", extra="live").Console
        self._console = make_console(stderr=True) if console is None else console
        self._title, self._hint = title, hint
        self._pace = Pace()
        self._start = time.monotonic()
        self._news: deque[tuple[str, str]] = deque(maxlen=MAX_NEWS)
        self._last: RaceStatus | None = None
        self._warnings: dict[str, tuple[Any, ...]] = {}
        self._drawing = False
        self._previous_handler: Any = None

    def __enter__(self) -> Self:
        self._live = self._live_module.Live(
            self._text("starting"), console=self._console, screen=True, auto_refresh=False
        )
        self._live.start()
        if hasattr(signal, "SIGWINCH"):  # not on Windows
            self._previous_handler = signal.signal(signal.SIGWINCH, self._on_resize)
        self._warning_filter = warnings.catch_warnings()
        self._warning_filter.__enter__()
        warnings.showwarning = self._on_warning
        return self

    def __exit__(self, *_: object) -> None:
        self._warning_filter.__exit__(None, None, None)
        if hasattr(signal, "SIGWINCH"):
            signal.signal(signal.SIGWINCH, self._previous_handler)
        self._live.stop()
        for warning in self._warnings.values():  # they vanished with the screen
            warnings.showwarning(*warning)

    def __call__(self, status: RaceStatus) -> None:
        """Show a status of the race."""
        self._pace.record(time.monotonic(), status.n_runs)
        for line in status.news:
            self.note(line)
        self._last = status
        self._draw()

    def note(self, line: str) -> None:
        """Add a line of news to the screen, with the time of day."""
        self._news.append((time.strftime("%H:%M:%S"), escape_text(line)))

    def _on_warning(self, message: Any, *more: Any) -> None:
        if str(message) not in self._warnings:
            self._warnings[str(message)] = (message, *more)
            self.note(str(message))

    def _on_resize(self, _signal: int, _frame: FrameType | None) -> None:
        # A picture that is being drawn has the old size; ``_draw`` itself draws it again.
        if not self._drawing:
            self._draw()

    def _draw(self) -> None:
        """Draw the last status; draw it again if the size of the window changed meanwhile."""
        self._drawing = True
        try:
            size = self._console.size
            if self._last is not None:
                self._live.update(self.picture(self._last, size.height), refresh=True)
                if self._console.size != size:
                    self._live.update(self.picture(self._last, self._console.height), refresh=True)
        finally:
            self._drawing = False

    @property
    def _is_unicode(self) -> bool:
        return self._console.encoding.startswith("utf")

    @property
    def _is_coloured(self) -> bool:
        return bool(self._console.color_system) and not self._console.no_color and self._is_unicode

    def picture(self, status: RaceStatus, height: int) -> Any:
        """Return a status as text of ``height`` lines: progress, ribbon, algorithms, news."""
        rows = list_rows(status)
        blank = [self._line()] if height >= MIN_HEIGHTS["blank"] else []
        head = self._head(status)
        above = [*(head if height >= MIN_HEIGHTS["left"] else head[:2]), *blank]
        if height >= MIN_HEIGHTS["ribbon"] and self._console.width >= MIN_WIDTHS["ribbon"]:
            above += [*self._ribbon(status), *blank]
        free = height - len(above) - len(blank) - 2  # the header of the table, and the last line
        most = max(min(len(rows), max(free - 3, free // 2 + 1)), 1)
        table = self._algorithms(status, rows, most)
        news = self._latest_news(free - most)
        return self._group(*above, *table, *blank, *news, self._line(self._hint, "dim"))

    def _line(self, text: str = "", style: str = "") -> Any:
        """Return a text as one line, cut at the width of the window."""
        return self._text(text, style=style, no_wrap=True, overflow="ellipsis")

    def _head(self, status: RaceStatus) -> list[Any]:
        """Return the lines with round, time and runs, and with the pairs settled and to settle."""
        first, second = self._line(), self._line()
        first.append(escape_text(self._title), style="bold")
        round_ = f"round {status.counts.rounds + 1}"
        first.append(f"  {round_ if status.ended is None else 'ended'}")
        first.append(f"  {format_seconds(time.monotonic() - self._start)}", style="dim")
        speed = self._pace.per_second
        pace = f", {speed:.3g} runs/s" if speed and status.ended is None else ""
        first.append(f"   {describe_cost(status)}{pace}")
        n_pairs, n_open = status.n_pairs, status.counts.open_pairs
        share = (n_pairs - n_open) / n_pairs if n_pairs else 1.0
        second.append("settled  ", style="dim")
        second.append(self._bar(share, BAR_WIDTH), "green")
        second.append(f" {n_pairs - n_open:,} of {format_count(n_pairs, 'pair')}")
        left = describe_left(self._pace.remaining(status), self._pace.per_second, status)
        third = self._line(f"{'left' if status.ended is None else 'ended':<9}", "dim")
        third.append(left, "not dim")
        if second.cell_len + third.cell_len + 3 > self._console.width:
            return [first, second, third]
        second.append("   ")
        second.append(third)
        return [first, second]

    def _bar(self, share: float, width: int) -> str:
        full, empty = "█░" if self._is_unicode else "#."
        n_full = int(share * width + 1e-9)
        return f"{full * n_full}{empty * (width - n_full)}"

    def _ribbon(self, status: RaceStatus) -> list[Any]:
        """Return what to run if you stopped now: as blocks, or as letters without colour."""
        label = "If you stopped now" if status.ended is None else "Run"
        ribbon = status.ribbon
        if ribbon is None:
            text = status.describe_run() or "known after the first round"
            return [self._labelled(label, text)]
        unit = len(format_unit(ribbon.clock)) + 1
        width = min(self._console.width - LABEL_WIDTH - unit, MAX_RIBBON_WIDTH)
        drawn = render_ribbon_text(ribbon, max(width, 10), is_coloured=self._is_coloured)
        ticks, *others = drawn.split("\n")[1:]
        lines = [self._labelled(label, ticks), *(self._labelled("", line) for line in others)]
        if status.ended is not None:
            run = self._text(f"run {status.describe_run()}", style="bold")
            lines += run.wrap(self._console, max(self._console.width, 1))
        return lines

    def _labelled(self, label: str, text: str) -> Any:
        line = self._line()
        line.append(f"{label:<{LABEL_WIDTH}}", style="bold")
        line.append(self._text.from_ansi(text))
        return line

    def _algorithms(self, status: RaceStatus, rows: list[Row], most: int) -> list[Any]:
        """Return the table of algorithms, leaders first; a last line counts those left out."""
        shown = rows if len(rows) <= most else rows[: most - 1]
        styles = Cast.of([row.name for row in rows]).styles()
        cells = [self._cells(status, row) for row in shown]
        heads = [*(cells[0] if cells else ())]
        widths = {head: max(len(head), *(len(row[head]) for row in cells)) for head in heads}
        header = "  ".join(_fit(head, width) for head, width in widths.items())
        lines = [self._line(f" {header}  still open", "dim")]
        room = self._console.width - len(header) - 3
        for row, own in zip(shown, cells, strict=True):
            line = self._line(style=row.style)
            line.append("▌" if self._is_unicode else " ", styles[row.name].on_dark)
            for head, width in widths.items():
                is_failed = head == "failed" and own[head] != "-"
                line.append(_fit(own[head], width), FAILED_STYLE if is_failed else "")
                line.append("  ")
            line.append(row.open[len(row.open[0]) > room], "dim")
            lines.append(line)
        if len(shown) < len(rows):
            lines.append(self._line(f"and {len(rows) - len(shown)} more", "dim"))
        return lines

    def _cells(self, status: RaceStatus, row: Row) -> dict[str, str]:
        """Return the cells of an algorithm by the heads of their columns."""
        name, words, width = escape_text(row.name), row.words, self._console.width
        if row.share is not None and width >= MIN_WIDTHS["bar"]:
            bar = self._bar(row.share, BAR_WIDTH // 2 if width >= WIDE else BAR_WIDTH // 3)
            words = f"{row.words:>6} {bar}"
        cells = {
            "algorithm": name if len(name) <= MAX_LETTERS else f"{name[: MAX_LETTERS - 1]}…",
            "worth running" if status.is_about_set else "verdict": words,
            "best at": row.best,
            "runs": f"{status.runs.made.get(row.name, 0):,}",
            "failed": f"{status.runs.failed.get(row.name, 0) or '-'}",
        }
        if width < MIN_WIDTHS["best"] or status.ribbon is None:
            del cells["best at"]
        return cells

    def _latest_news(self, n_lines: int) -> list[Any]:
        """Return the latest news in a number of lines; messages that are too long are cut."""
        lines: list[Any] = []
        width = max(self._console.width - TIME_WIDTH, 1)
        for when, news in reversed(self._news if n_lines > 0 else ()):
            wrapped = self._text(news).wrap(self._console, width)
            if lines and len(lines) + len(wrapped) > n_lines:
                break
            own = [self._line(f"{'' if k else when:<{TIME_WIDTH}}") for k in range(len(wrapped))]
            for line, text in zip(own, wrapped, strict=True):
                line.append(text)
            lines = [*own, *lines]
        if len(lines) > n_lines:
            lines[n_lines - 1].append(" ...")
        return lines[: max(n_lines, 0)]


def list_rows(status: RaceStatus) -> list[Row]:
    """Return what is shown of each algorithm: who leads first, in order of time, and who left last.

    >>> from polarbear import Race
    >>> [row.name for row in list_rows(Race(["b", "a"], [1], direction="minimize").status)]
    ['a', 'b']
    """
    ribbon = status.ribbon
    spans: dict[str, tuple[float, float]] = {}  # from when to when each leads
    for one in ribbon.leads if ribbon else ():
        name = ribbon.algorithms[one.algorithm] if ribbon else ""
        spans[name] = spans.get(name, (one.start, 0.0))[0], one.stop
    leads = [*spans]

    def order(verdict: Verdict) -> tuple[bool, int, float]:
        place = leads.index(verdict.algorithm) if verdict.algorithm in leads else len(leads)
        return not verdict.is_candidate, place, -(verdict.probability or 0.0)

    rows: list[Row] = []
    for one in sorted(status.verdicts, key=order):
        share, words = None, escape_text(one.brief())
        if not one.is_candidate:
            words = "dropped" if one.kind == "dominated" else one.kind
        elif status.is_about_set:
            share = one.probability
            words = "not known yet" if share is None else format_share(share)
        span = [format_time(at, status.setup.clock) for at in spans.get(one.algorithm, ())]
        rows.append(
            Row(
                name=one.algorithm,
                words=words,
                share=share,
                best="" if not one.is_candidate else " – ".join(span) or "never",  # noqa: RUF001
                open=describe_open(one),
                style="" if one.is_candidate else OUT_STYLE,
            )
        )
    return rows


def describe_open(verdict: Verdict) -> tuple[str, str]:
    """Return what is still open about an algorithm, in a long and a short form; why it left.

    >>> from polarbear.inference.verdicts import Unsettled
    >>> describe_open(Verdict("a", "undecided", 0.4, unsettled=Unsettled({"b": 1.0}, 520.2)))
    ('b: about 520 more instances', 'b: 520 more')
    >>> describe_open(Verdict("a", "undecided", 0.04, rival="b", proof=0.62, margin=0.1))
    ('likely replaceable by b (96 %), proof 62 %', 'b: proof 62 %')
    """
    rival, unsettled, sure = (
        escape_text(verdict.rival or ""),
        verdict.unsettled,
        verdict.probability,
    )
    text = escape_text(verdict.why).split("\n")[0]
    if verdict.kind == "dominated":
        text = f"{rival} {'is always ahead' if verdict.margin is None else 'replaces it'}"
    elif verdict.kind == "equivalent":
        text = f"tied with {rival}"
    elif verdict.kind == "undecided" and not text:
        if verdict.proof is not None and sure is not None and sure < 0.2:
            proof = f"proof {100 * verdict.proof:.0f} %"
            likely = f"likely replaceable by {rival} ({format_share(1 - sure)})"
            return f"{likely}, {proof}", f"{rival}: {proof}"
        if unsettled is not None:
            names = [*unsettled.rivals]
            text = format_list(names) if len(names) <= 2 else f"{len(names)} pairs"
        if unsettled is not None and unsettled.instances is not None:
            more = max(1, round(unsettled.instances))
            about = f"about {format_count(more, 'more instance')}"
            return f"{text}: {about}", f"{text}: {more:,} more"
    return text, text


def _fit(text: str, width: int) -> str:
    """Return a text with ``width`` letters; a number, or nothing in its place, on the right."""
    is_number = text.replace(",", "").isdigit() or text in ("-", "runs", "failed")
    return text.rjust(width) if is_number else text.ljust(width)


def describe_left(remaining: Remaining | None, per_second: float, status: RaceStatus) -> str:
    """Return how much longer a race is expected to take, as a range; why it ended, if it did.

    >>> from polarbear import Race
    >>> status = Race(["a", "b"], [1], direction="minimize").status
    >>> describe_left(None, 0.0, status)
    'known after the first rounds'
    >>> describe_left(Remaining(90.0, 30.0, 600.0, 45.0), 2.0, status)
    'about 45 s (15 s to 5 min 0 s)'
    """
    if status.ended is not None:
        return status.ended
    if not status.counts.open_pairs:
        return "the last runs of this round"
    if remaining is None:
        return "known after the first rounds"
    first = {"budget": "; the budget ends first", "instances": "; too few instances"}
    more = first.get(remaining.limit or "", "")
    low, middle, high = remaining.least, remaining.runs, remaining.most
    if not per_second:
        low, middle, high = (f"{min(n, MAX_FORECAST):,.0f}" for n in (low, middle, high))
        return f"about {middle} runs ({low} to {high}){more}"
    low, middle, high = (
        format_seconds(min(runs / per_second, MAX_SECONDS)) for runs in (low, middle, high)
    )
    return f"about {middle} ({low} to {high}){more}"


def describe_cost(status: RaceStatus) -> str:
    """Return the runs made and their time, with their limits, and the time until the deadline."""
    budget = status.setup.budget
    parts = [_format_share(status.n_runs, budget.runs, "runs")]
    if budget.time is not None:
        unit = format_unit(status.setup.clock, "time")
        parts.append(_format_share(status.spent.time, budget.time, unit))
    if isinstance(budget.deadline, float):
        parts.append(f"{format_seconds(max(budget.deadline - time.time(), 0))} until the deadline")
    return ", ".join(parts)


def _format_share(value: float, limit: float | None, unit: str) -> str:
    """Format a value, with its limit if there is one."""
    numbers = [one for one in (value, limit) if one is not None]
    parts = [f"{one:,.0f}" if one >= 1000 else f"{one:.5g}" for one in numbers]
    return f"{' of '.join(parts)} {unit}"
