"""``Screen``: a race in a terminal, drawn anew when something happens or the window changes.

Nothing here has a thread of its own: a race forks, and threads and forks do not go together. The
race calls several times a second, and the system calls when the window changes.
"""

import signal
import time
import warnings
from collections import deque
from types import FrameType, TracebackType
from typing import Any, Self

from polarbear._text import escape_text, format_count, format_list, format_unit
from polarbear.errors import require
from polarbear.live.pace import Pace, Remaining, duration
from polarbear.racing.status import RaceStatus

EVENTS = 100
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
"""The mark of each kind, for terminals of any age."""

STYLES = {
    kind: "bold cyan" if k == 0 else "bold green" if k < KINDS.index("not chosen") else "dim"
    for k, kind in enumerate(KINDS)
}

LABEL = 12
"""Columns before the text of a fact or an event."""

ROOMY = 20
"""The least height in lines at which some may be empty."""


class Screen:
    """Shows a race in the terminal: a context, called with each status of the race.

    Parameters
    ----------
    title
        What is raced.
    hint
        How to stop, and what else one can do meanwhile.
    console
        Where to draw, if not on standard error.
    """

    def __init__(self, title: str, hint: str, console: Any = None) -> None:
        self._live_module = require("rich.live", extra="live")
        self._text = require("rich.text", extra="live").Text
        self._table = require("rich.table", extra="live").Table
        self._group = require("rich.console", extra="live").Group
        made = require("rich.console", extra="live").Console
        self._console = made(stderr=True) if console is None else console
        self._title, self._hint = title, hint
        self._pace = Pace()
        self._start = time.monotonic()
        self._events: deque[tuple[str, str]] = deque(maxlen=EVENTS)
        self._last: RaceStatus | None = None
        self._warnings: dict[str, tuple[Any, ...]] = {}
        self._drawing = False
        self._before: Any = None

    def __enter__(self) -> Self:
        self._live = self._live_module.Live(
            self._text("starting"), console=self._console, screen=True, auto_refresh=False
        )
        self._live.start()
        if hasattr(signal, "SIGWINCH"):  # not on Windows
            self._before = signal.signal(signal.SIGWINCH, self._resized)
        self._caught = warnings.catch_warnings()
        self._caught.__enter__()
        warnings.showwarning = self._warned
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._caught.__exit__(kind, error, trace)
        if hasattr(signal, "SIGWINCH"):
            signal.signal(signal.SIGWINCH, self._before)
        self._live.stop()
        for told in self._warnings.values():  # they are gone with the screen
            warnings.showwarning(*told)

    def __call__(self, status: RaceStatus) -> None:
        """Show this."""
        self._pace.seen(time.monotonic(), status.n_runs)
        for line in status.news:
            self.note(line)
        self._last = status
        self._draw()

    def note(self, line: str) -> None:
        """Something happened."""
        self._events.append((time.strftime("%H:%M:%S"), escape_text(line)))

    def _warned(self, message: Any, *more: Any) -> None:
        if str(message) not in self._warnings:
            self._warnings[str(message)] = (message, *more)
            self.note(str(message))

    def _resized(self, _signal: int, _frame: FrameType | None) -> None:
        # In the middle of drawing: what is being drawn is the old size, and is drawn again at once.
        if not self._drawing:
            self._draw()

    def _draw(self) -> None:
        self._drawing = True
        try:
            size = self._console.size
            if self._last is not None:
                self._live.update(self.picture(self._last, size.height), refresh=True)
                if self._console.size != size:
                    self._live.update(self.picture(self._last, self._console.height), refresh=True)
        finally:
            self._drawing = False

    # What is drawn

    def picture(self, status: RaceStatus, height: int) -> Any:
        """Everything in a number of lines: algorithms first, then the latest news."""
        rows = self._rows(status)
        room = height - 3  # without the first line, that of columns, and the last
        facts = self._facts(status, room)
        blank = [self._text("")] if height >= ROOMY else []
        free = room - len(facts) - 3 * len(blank)
        most = max(min(len(rows), max(free - 3, free // 2 + 1)), 1)
        events = self._latest(free - most)
        lines = [
            self._head(status),
            *blank,
            self._algorithms(status, rows, most),
            *blank,
            *facts,
            *blank,
            *events,
            self._line(self._hint, "dim"),
        ]
        return self._group(*lines)

    def _head(self, status: RaceStatus) -> Any:
        head = self._line()
        head.append(f"polarbear {escape_text(self._title)}", style="bold")
        head.append(f"  round {status.n_rounds + 1}" if not status.ended else "  ended")
        head.append(f"  {duration(time.monotonic() - self._start)}", style="dim")
        return head

    def _algorithms(self, status: RaceStatus, rows: list[tuple[str, str, str]], most: int) -> Any:
        """A line for each, those that still race first; the last line tells of those left out."""
        table = self._table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=True)
        for name in ("algorithm", "status"):
            table.add_column(name, overflow="ellipsis", header_style="dim")
        for name in ("runs", "asked for"):
            table.add_column(name, justify="right", no_wrap=True, header_style="dim")
        kept = rows if len(rows) <= most else rows[: most - 1]
        for name, words, style in kept:
            wanted = status.wanted.get(name, 0)
            table.add_row(
                self._line(escape_text(name), style),
                self._line(escape_text(words), style),
                self._text(f"{status.runs.get(name, 0):,}", style=style),
                self._text(f"{wanted:,}" if wanted else "", style=style),
            )
        if len(kept) < len(rows):
            table.add_row(self._line(f"and {len(rows) - len(kept)} more", "dim"))
        return table

    def _line(self, text: str = "", style: str = "") -> Any:
        """Text that is cut and not wrapped: a line is a line."""
        return self._text(text, style=style, no_wrap=True, overflow="ellipsis")

    def _rows(self, status: RaceStatus) -> list[tuple[str, str, str]]:
        """Name, status, style: candidates, then eliminated ones with the latest first."""
        marks = MARKS if self._console.encoding.startswith("utf") else PLAIN
        latest_out = [one for one in reversed(status.statuses) if not one.is_candidate]
        candidates = [one for one in status.statuses if one.is_candidate]
        ordered = sorted([*candidates, *latest_out], key=lambda one: KINDS.index(one.status))
        return [
            (one.algorithm, f"{marks[one.status]} {one.brief()}", STYLES[one.status])
            for one in ordered
        ]

    def _facts(self, status: RaceStatus, room: int) -> list[Any]:
        """What is known of the race as a whole: long lines are wrapped if there is room for it."""
        facts = {
            "Pareto set": format_list([escape_text(name) for name in status.pareto]),
            "open": f"{format_count(status.n_open_pairs, 'pair')} not settled yet",
            "runs": f"{status.n_runs:,} made, {status.n_wanted:,} asked for and not in yet",
            "to go": _to_go(self._pace.remaining(status), status),
            "spent": _spent(status),
        }
        wrapped = [line for fact in facts.items() for line in self._wrapped(*fact)]
        if len(wrapped) <= room // 2:
            return wrapped
        return [self._labelled(*fact) for fact in facts.items()][-max(room - 2, 1) :]

    def _latest(self, room: int) -> list[Any]:
        """The last events, whole, as far as there is room; of a long one its start."""
        lines: list[Any] = []
        for event in reversed(self._events if room > 0 else ()):
            more = self._wrapped(*event)
            if lines and len(lines) + len(more) > room:
                break
            lines = [*more, *lines]
        if len(lines) > room:
            lines[room - 1].append(" ...")
        return lines[: max(room, 0)]

    def _wrapped(self, label: str, text: str) -> list[Any]:
        """A text of one or more lines, with its label before the first."""
        width = max(self._console.width - LABEL, 1)
        lines = self._text(text).wrap(self._console, width)
        labels = [label, *[""] * (len(lines) - 1)]
        return [self._labelled(*line) for line in zip(labels, lines, strict=True)]

    def _labelled(self, label: str, text: Any) -> Any:
        """A text that is cut and not wrapped, with its label."""
        line = self._line()
        line.append(f"{label:<{LABEL}}", style="dim")
        line.append(text)
        return line


def _to_go(left: Remaining | None, status: RaceStatus) -> str:
    if status.ended and status.n_open_pairs:
        return f"the race ended ({status.ended}) before all pairs were settled"
    if status.ended or not status.n_open_pairs:
        return "nothing" if status.ended else "the last runs of this round"
    if left is None:
        return "that can be told after the first rounds"
    when = "" if left.seconds is None else f", about {duration(left.seconds)} at this pace"
    if left.limit == "max_runs":
        return f"{_many(left.runs)} runs{when}, until max_runs; more would settle more"
    runs = f"about {_many(left.runs)} runs ({_many(left.least)} to {_many(left.most)})"
    few = "; there may be too few instances to settle it" if left.limit else ""
    return f"{runs}{when}{few}"


def _many(number: float) -> str:
    return f"{number:,.0f}" if number < 1e9 else "endlessly many"


def _spent(status: RaceStatus) -> str:
    unit = f" {format_unit(status.clock, 'time')}"
    rules, spent = status.rules, status.spent
    parts = [_of(spent.runs, rules.max_runs, " runs"), _of(spent.time, rules.max_time, unit)]
    if isinstance(rules.deadline, float):
        parts.append(f"{duration(max(rules.deadline - time.time(), 0))} until the deadline")
    return ", ".join(parts)


def _of(value: float, limit: float | None, unit: str) -> str:
    if limit is None:
        return f"{_number(value)}{unit}"
    share = f"{100 * value / limit if limit else 100:.0f} %"
    return f"{_number(value)} of {_number(limit)}{unit} ({share})"


def _number(value: float) -> str:
    """With three digits after the point at most.

    >>> _number(1e6), _number(12.3456), _number(0.0123)
    ('1,000,000', '12.346', '0.0123')
    """
    return f"{value:,.0f}" if value >= 1000 else f"{value:.5g}"
