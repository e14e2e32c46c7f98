"""``Selection``: the result of ``select``, with the value and the uncertainty of each choice."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from polarbear._text import escape_text, format_list, render_card
from polarbear.selection.portfolios import Risk

SHOWN_LINES = (
    "run ",
    "caution: ",
    "preference: ",
    "times used: ",
    "sure: ",
    "a portfolio ",
    "found by ",
)
"""The beginnings of the lines of a selection that a notebook shows above the table."""

CLOSE = 0.8
"""Another choice is about as likely the best if its probability is at least this share of it."""


@dataclass(frozen=True)
class Option:
    """One algorithm, or several to run in parallel, with their value and probabilities.

    Attributes
    ----------
    algorithms
        Their names; an algorithm that is to run twice occurs twice.
    score
        The value by the risk criterion: larger is better.
    expected
        The expected value.
    best
        The probability that no other choice has a higher value.
    regret
        The expected loss of value against the choice that is best in each draw.
    """

    algorithms: tuple[str, ...]
    score: float
    expected: float
    best: float
    regret: float

    def __str__(self) -> str:
        counts = Counter(map(escape_text, self.algorithms))
        return " + ".join(f"{k} x {name}" if k > 1 else name for name, k in counts.items())


@dataclass(frozen=True, repr=False)
class Selection:
    """The result of :func:`select`: the best choice, its runners-up, and their probabilities.

    Attributes
    ----------
    choices
        Best first: all algorithms, or the best portfolios that were evaluated.
    preference
        A description of the preference.
    risk
        "expected", "best", or the level of the quantile.
    draws
        The number of draws that the figures are computed from.
    limit
        An upper bound of the score of all choices; the score itself if all were compared.
    asked
        The first and the last time of the preference; None where it has none.
    used
        The first and the last time that counted: a range is clipped where the ratings end.
    sure
        The required probability that no other choice is better; None if none was given.
    cautions
        What to know before the choice is run: that its runs fail, or that it hangs on how runs
        ended (see :attr:`Runs.ended`).
    """

    choices: tuple[Option, ...]
    preference: str
    risk: Risk
    draws: int
    limit: float
    asked: tuple[float | None, float | None]
    used: tuple[float, float]
    sure: float | None = None
    cautions: tuple[str, ...] = ()

    @property
    def met(self) -> bool | None:
        """Whether the choice is best with the probability ``sure``; None if ``sure`` is None."""
        return None if self.sure is None else self.choice.best >= self.sure

    @property
    def choice(self) -> Option:
        """The best choice: an algorithm, or several to run in parallel."""
        return self.choices[0]

    @property
    def algorithms(self) -> tuple[str, ...]:
        """The algorithms of the best choice."""
        return self.choice.algorithms

    @property
    def exact(self) -> bool:
        """Whether the best choice is proved to be optimal for these draws."""
        return self.gap == 0

    @property
    def gap(self) -> float:
        """An upper bound on how much better a choice that was not evaluated could score."""
        return self.limit - self.choice.score

    def columns(self) -> dict[str, list[Any]]:
        """Return a table of all choices, with the columns choice, score, expected, best, regret."""
        return {
            "choice": [str(choice) for choice in self.choices],
            "score": [choice.score for choice in self.choices],
            "expected": [choice.expected for choice in self.choices],
            "best": [choice.best for choice in self.choices],
            "regret": [choice.regret for choice in self.choices],
        }

    def __str__(self) -> str:
        by = {"expected": "expected value", "best": "the probability of being best"}
        quantile = None if isinstance(self.risk, str) else f"{self.risk:.3g} quantile"
        lines = [f"run {self.choice}: best by {quantile or by[str(self.risk)]}{self._list_close()}"]
        lines += [f"  caution: {text}" for text in self.cautions]
        lines.append(f"  preference: {self.preference}")
        if self._is_clipped():
            low, high = self.used
            lines.append(f"  times used: {low:,g} to {high:,g}, which is as far as ratings go")
        head = [*([quantile] if quantile else []), "expected", "P(best)", "regret"]
        rows = [[*([c.score] if quantile else []), c.expected, c.best, c.regret] for c in self._few]
        lines += _align_table(["", *head], [str(choice) for choice in self._few], rows)
        if len(self._few) < len(self.choices):
            lines.append(f"  and {len(self.choices) - len(self._few):,} more")
        if self.sure is not None:
            lines.append(self._describe_sure())
        if len(self.algorithms) > 1:
            lines.append("a portfolio is rated as the best of its runs, which are independent")
        if not self.exact:
            lines.append(f"found by search: no portfolio is above {self.limit:.3g}")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = ["choice", "expected", "P(best)", "regret"]
        rows = [
            [str(choice), *map(_format_figure, (choice.expected, choice.best, choice.regret))]
            for choice in self.choices
        ]
        # The text has the same table for a terminal, so only its first lines are shown.
        lines = [line for line in str(self).split("\n") if line.lstrip().startswith(SHOWN_LINES)]
        return render_card("\n".join(lines), head, rows)

    def _describe_sure(self) -> str:
        best, loss = self.choice.best, _format_figure(self.choice.regret)
        if self.met:
            return f"sure: met, P(best) = {best:.3f} is at least {self.sure:g}"
        others = sorted(self.choices[1:], key=lambda choice: -choice.best)[:1]
        closest = "".join(f"; next is {other} with {other.best:.3f}" for other in others)
        return (
            f"sure: not met, P(best) = {best:.3f} is below {self.sure:g}{closest}. "
            f"To run {self.choice} all the same costs {loss} on average (regret)"
        )

    def _list_close(self) -> str:
        """Return which other choices are about as likely the best; "" if there are none."""
        close = [str(one) for one in self.choices[1:] if one.best >= CLOSE * self.choice.best]
        are = "is" if len(close) == 1 else "are"
        return f", but {format_list(close, 3)} {are} as likely the best" if close else ""

    def _is_clipped(self) -> bool:
        """Return whether the preference gives weight to times without ratings."""
        pairs = zip(self.asked, self.used, strict=True)
        return any(time is not None and isfinite(time) and time != used for time, used in pairs)

    @property
    def _few(self) -> tuple[Option, ...]:
        return self.choices[:6]


def _align_table(
    head: Sequence[str], names: Sequence[str], rows: Sequence[Sequence[float]]
) -> list[str]:
    cells = [
        head,
        *([name, *map(_format_figure, row)] for name, row in zip(names, rows, strict=True)),
    ]
    wide = [max(len(row[k]) for row in cells) for k in range(len(head))]
    return [
        f"  {row[0]:<{wide[0]}}  "
        + "  ".join(f"{c:>{w}}" for c, w in zip(row[1:], wide[1:], strict=True))
        for row in cells
    ]


def _format_figure(value: float) -> str:
    """Format a number with three decimals, or with two significant digits if it is small.

    >>> _format_figure(0.31234), _format_figure(0.00021), _format_figure(0.0)
    ('0.312', '0.00021', '0')
    """
    if value == 0 or not isfinite(value):
        return f"{value:g}"
    return f"{value:.2g}" if abs(value) < 0.001 else f"{value:.3f}"
