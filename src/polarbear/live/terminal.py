"""``Screen``: show a race in a terminal, drawn again for each status and each change of size.

There is no thread, because a race forks, and threads and forks do not go together. The race calls
the screen several times a second, and a signal calls it when the size of the window changes.
"""

import signal
import time
import warnings
from collections import deque
from types import FrameType, TracebackType
from typing import Any, Self

from polarbear._text import escape_text, format_count, format_list, format_unit
from polarbear.errors import require
from polarbear.live.pace import Pace, Remaining, format_seconds
from polarbear.racing.status import RaceStatus

MAX_NEWS = 100
"""The number of news lines kept; as many are shown as there is space for."""

KINDS = (
    *("undecided", "chosen", "member", "passed", "equivalent", "baseline"),
    *("not chosen", "dominated", "failed", "removed"),
)
"""Kinds of status, in the order in which they are shown."""

MARKS, PLAIN = (
    dict(zip(KINDS, "●◆◆◆◇◇·✗✗-", strict=True)),
    dict(zip(KINDS, "*+++==.xx-", strict=True)),
)
"""The mark of each kind, for terminals with and without Unicode."""

STYLES = {
    kind: "bold cyan" if k == 0 else "bold green" if k < KINDS.index("not chosen") else "dim"
    for k, kind in enumerate(KINDS)
}

FAILED_STYLE = "bold red"

LABEL_WIDTH = 12
"""The columns of the label before a fact or a news line."""

MAX_BAR_WIDTH = 60
"""The most columns of the progress bar."""

MIN_HEIGHT_FOR_BLANKS = 20
"""The least height in lines at which there are empty lines."""


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
        self._table = require("rich.table", extra="live").Table
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._warning_filter.__exit__(kind, error, trace)
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

    def picture(self, status: RaceStatus, height: int) -> Any:
        """Return a status as text of ``height`` lines: algorithms, facts and latest news."""
        rows = self._rows(status)
        n_lines = height - 3  # without the first line, the header of the table, and the last line
        facts = self._facts(status, n_lines)
        blank = [self._text("")] if height >= MIN_HEIGHT_FOR_BLANKS else []
        free = n_lines - len(facts) - 3 * len(blank)
        most = max(min(len(rows), max(free - 3, free // 2 + 1)), 1)
        news = self._latest_news(free - most)
        lines = [
            self._head(status),
            *blank,
            self._algorithms(status, rows, most),
            *blank,
            *facts,
            *blank,
            *news,
            self._line(self._hint, "dim"),
        ]
        return self._group(*lines)

    def _head(self, status: RaceStatus) -> Any:
        head = self._line()
        head.append(f"polarbear {escape_text(self._title)}", style="bold")
        head.append(f"  round {status.counts.rounds + 1}" if not status.ended else "  ended")
        head.append(f"  {format_seconds(time.monotonic() - self._start)}", style="dim")
        return head

    def _algorithms(self, status: RaceStatus, rows: list[tuple[str, str, str]], most: int) -> Any:
        """Return the table of algorithms, candidates first; a last line counts those left out."""
        table = self._table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=True)
        for name in ("algorithm", "status"):
            table.add_column(name, overflow="ellipsis", header_style="dim")
        numbers = ("runs", "requested", *(("failed",) if any(status.runs.failed.values()) else ()))
        for name in numbers:
            table.add_column(name, justify="right", no_wrap=True, header_style="dim")
        shown = rows if len(rows) <= most else rows[: most - 1]
        for name, words, style in shown:
            wanted, failed = status.runs.wanted.get(name, 0), status.runs.failed.get(name, 0)
            cells = [
                self._text(f"{status.runs.made.get(name, 0):,}", style=style),
                self._text(f"{wanted:,}" if wanted else "", style=style),
                self._text(f"{failed:,}" if failed else "", style=FAILED_STYLE),
            ]
            table.add_row(
                self._line(escape_text(name), style),
                self._line(escape_text(words), style),
                *cells[: len(numbers)],
            )
        if len(shown) < len(rows):
            table.add_row(self._line(f"and {len(rows) - len(shown)} more", "dim"))
        return table

    def _line(self, text: str = "", style: str = "") -> Any:
        """Return a text as one line, cut at the width of the window."""
        return self._text(text, style=style, no_wrap=True, overflow="ellipsis")

    def _rows(self, status: RaceStatus) -> list[tuple[str, str, str]]:
        """Return name, status and style of candidates, then of eliminated ones, latest first."""
        marks = MARKS if self._console.encoding.startswith("utf") else PLAIN
        others = [one for one in reversed(status.verdicts) if not one.is_candidate]
        candidates = [one for one in status.verdicts if one.is_candidate]
        ordered = sorted([*candidates, *others], key=lambda one: KINDS.index(one.kind))
        return [
            (one.algorithm, f"{marks[one.kind]} {one.brief()}", STYLES[one.kind]) for one in ordered
        ]

    def _facts(self, status: RaceStatus, n_lines: int) -> list[Any]:
        """Return lines with facts about the race; long ones are wrapped if there is room."""
        facts = {
            "Pareto set": format_list([escape_text(name) for name in status.pareto]),
            "open": f"{format_count(status.counts.open_pairs, 'pair')} not settled yet",
            "runs": f"{status.n_runs:,} made, {status.n_wanted:,} requested and not in yet",
            "failed": self._text(_describe_failed(status), style=FAILED_STYLE),
            "progress": self._progress_bar(self._pace.remaining(status), status),
            "to go": _describe_remaining(self._pace.remaining(status), status),
            "spent": _describe_spent(status),
        }
        facts = {label: fact for label, fact in facts.items() if fact}
        wrapped = [line for fact in facts.items() for line in self._wrap(*fact)]
        if len(wrapped) <= n_lines // 2:
            return wrapped
        return [self._labelled(*fact) for fact in facts.items()][-max(n_lines - 2, 1) :]

    def _progress_bar(self, remaining: Remaining | None, status: RaceStatus) -> str:
        """Return a bar that shows the share of runs made, of all runs made and forecast."""
        share = compute_progress(remaining, status)
        if share is None:
            return "unknown until the first forecast"
        n_cells = max(min(self._console.width - LABEL_WIDTH - 6, MAX_BAR_WIDTH), 1)
        full, empty = "█░" if self._console.encoding.startswith("utf") else "#."
        n_full = int(share * n_cells)
        return f"{full * n_full}{empty * (n_cells - n_full)} {100 * share:3.0f} %"

    def _latest_news(self, n_lines: int) -> list[Any]:
        """Return the latest news in a number of lines; messages that are too long are cut."""
        lines: list[Any] = []
        for entry in reversed(self._news if n_lines > 0 else ()):
            wrapped = self._wrap(*entry)
            if lines and len(lines) + len(wrapped) > n_lines:
                break
            lines = [*wrapped, *lines]
        if len(lines) > n_lines:
            lines[n_lines - 1].append(" ...")
        return lines[: max(n_lines, 0)]

    def _wrap(self, label: str, text: Any) -> list[Any]:
        """Return a text wrapped to the width of the window, with a label before its first line."""
        width = max(self._console.width - LABEL_WIDTH, 1)
        lines = (self._text(text) if isinstance(text, str) else text).wrap(self._console, width)
        labels = [label, *[""] * (len(lines) - 1)]
        return [self._labelled(*line) for line in zip(labels, lines, strict=True)]

    def _labelled(self, label: str, text: Any) -> Any:
        """Return a label and a text as one line, cut at the width of the window."""
        line = self._line()
        line.append(f"{label:<{LABEL_WIDTH}}", style="dim")
        line.append(text)
        return line


def compute_progress(remaining: Remaining | None, status: RaceStatus) -> float | None:
    """Return the share of runs made, of all runs made and forecast; None without a forecast.

    >>> from polarbear import Race
    >>> status = Race(["a", "b"], [1], direction="minimize").status
    >>> compute_progress(None, status) is None
    True
    >>> compute_progress(Remaining(0.0, 0.0, 10.0, None), status)
    0.0
    """
    if status.ended and not status.counts.open_pairs:
        return 1.0
    if remaining is None or not remaining.runs < float("inf"):
        return None
    return status.n_runs / max(status.n_runs + remaining.runs, 1.0)


def _describe_failed(status: RaceStatus) -> str:
    """Return how many runs of which algorithms failed; "" if none did."""
    failed = sorted(status.runs.failed.items(), key=lambda item: -item[1])
    names = [f"{name} ({number:,})" for name, number in failed if number]
    total = format_count(sum(status.runs.failed.values()), "run")
    return f"{total}: {format_list(names, 6)}" if names else ""


def _describe_remaining(remaining: Remaining | None, status: RaceStatus) -> str:
    """Return how many more runs, and how much time, the race is expected to take."""
    if status.ended and status.counts.open_pairs:
        return f"the race ended ({status.ended}) before all pairs were settled"
    if status.ended or not status.counts.open_pairs:
        return "nothing" if status.ended else "the last runs of this round"
    if remaining is None:
        return "that can be told after the first rounds"
    when = (
        ""
        if remaining.seconds is None
        else f", about {format_seconds(remaining.seconds)} at this pace"
    )
    if remaining.limit == "budget":
        left = f"{_format_runs(remaining.runs)} runs{when}"
        return f"{left}, until the budget is spent; more would settle more"
    interval = f"{_format_runs(remaining.least)} to {_format_runs(remaining.most)}"
    runs = f"about {_format_runs(remaining.runs)} runs ({interval})"
    few = "; there may be too few instances to settle it" if remaining.limit else ""
    return f"{runs}{when}{few}"


def _format_runs(number: float) -> str:
    return f"{number:,.0f}" if number < 1e9 else "endlessly many"


def _describe_spent(status: RaceStatus) -> str:
    """Return the runs and the time spent, their limits, and the time until the deadline."""
    unit = f" {format_unit(status.setup.clock, 'time')}"
    budget, spent = status.setup.budget, status.spent
    parts = [
        _format_share(spent.runs, budget.runs, " runs"),
        _format_share(spent.time, budget.time, unit),
    ]
    if isinstance(budget.deadline, float):
        parts.append(f"{format_seconds(max(budget.deadline - time.time(), 0))} until the deadline")
    return ", ".join(parts)


def _format_share(value: float, limit: float | None, unit: str) -> str:
    """Format a value; if there is a limit, add the limit and the percentage of it."""
    if limit is None:
        return f"{_format_number(value)}{unit}"
    share = f"{100 * value / limit if limit else 100:.0f} %"
    return f"{_format_number(value)} of {_format_number(limit)}{unit} ({share})"


def _format_number(value: float) -> str:
    """Format a number: without decimals from 1000 on, else with five significant digits.

    >>> _format_number(1e6), _format_number(12.3456), _format_number(0.0123)
    ('1,000,000', '12.346', '0.0123')
    """
    return f"{value:,.0f}" if value >= 1000 else f"{value:.5g}"
