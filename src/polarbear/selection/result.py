"""``Selection``: what to run, and what speaks for it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from polarbear._text import escape_text
from polarbear.selection.portfolios import Risk


@dataclass(frozen=True)
class Choice:
    """One algorithm, or several to run in parallel, and what it is worth.

    Attributes
    ----------
    algorithms
        Their names; one that is to run twice is there twice.
    score
        The value by the risk that was asked for: larger is better.
    expected
        The expected value.
    best
        The probability that no other choice has a higher value.
    regret
        The expected loss against the choice that is best, if one knew the ratings.
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
    """What :func:`select` answers: the choice, its runners-up, and how sure that is.

    Attributes
    ----------
    choices
        Best first: all algorithms, or the best portfolios that were seen.
    preference
        In words.
    risk
        "expected", "best", or the level of the quantile.
    draws
        How many draws the figures rest on.
    limit
        What the score of no choice can exceed. The score itself where all choices were compared.
    asked
        The first and the last time that was asked for; None where none was.
    used
        The first and the last time that counted: a range is clipped where the ratings end.
    sure
        How probable it had to be that no other choice is better; None if that was not asked.
    """

    choices: tuple[Choice, ...]
    preference: str
    risk: Risk
    draws: int
    limit: float
    asked: tuple[float | None, float | None]
    used: tuple[float, float]
    sure: float | None = None

    @property
    def met(self) -> bool | None:
        """Whether the choice is as probably the best as was asked for; None if it was not."""
        return None if self.sure is None else self.choice.best >= self.sure

    @property
    def choice(self) -> Choice:
        """What was chosen."""
        return self.choices[0]

    @property
    def algorithms(self) -> tuple[str, ...]:
        """What was chosen: the algorithms to run."""
        return self.choice.algorithms

    @property
    def exact(self) -> bool:
        """Whether no choice is better for certain, given the draws."""
        return self.gap == 0

    @property
    def gap(self) -> float:
        """How much better a choice that was not seen could be at most."""
        return self.limit - self.choice.score

    def table(self) -> dict[str, list[Any]]:
        """All choices: columns choice, score, expected, best, regret, for a data frame."""
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
        lines = [f"run {self.choice}: best by {quantile or by[str(self.risk)]}"]
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
            lines.append(self._says_sure())
        if len(self.algorithms) > 1:
            lines.append("a portfolio is rated as the best of its runs, which are independent")
        if not self.exact:
            lines.append(f"found by search: no portfolio is above {self.limit:.3g}")
        return "\n".join(lines)

    __repr__ = __str__

    def _says_sure(self) -> str:
        best, loss = self.choice.best, _format_figure(self.choice.regret)
        if self.met:
            return f"sure: met, P(best) = {best:.3f} is at least {self.sure:g}"
        others = sorted(self.choices[1:], key=lambda choice: -choice.best)[:1]
        closest = "".join(f"; next is {other} with {other.best:.3f}" for other in others)
        return (
            f"sure: not met, P(best) = {best:.3f} is below {self.sure:g}{closest}. "
            f"To run {self.choice} all the same costs {loss} on average (regret)"
        )

    def _is_clipped(self) -> bool:
        """Whether a time that was asked for lies outside of those that the ratings have."""
        pairs = zip(self.asked, self.used, strict=True)
        return any(time is not None and isfinite(time) and time != used for time, used in pairs)

    @property
    def _few(self) -> tuple[Choice, ...]:
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
    """A figure with three places; small ones with two digits, so that 0 is 0.

    >>> _figure(0.31234), _figure(0.00021), _figure(0.0)
    ('0.312', '0.00021', '0')
    """
    if value == 0 or not isfinite(value):
        return f"{value:g}"
    return f"{value:.2g}" if abs(value) < 0.001 else f"{value:.3f}"
