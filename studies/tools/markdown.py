"""Tables for people."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def quartiles(values: ArrayLike, form: str = ",.0f") -> str:
    """The median, and between what half of the values lie.

    >>> quartiles([1, 2, 3, 4, 5])
    '3 (2 to 4)'
    """
    low, middle, high = np.quantile(np.asarray(values, dtype=float), [0.25, 0.5, 0.75])
    return f"{middle:{form}} ({low:{form}} to {high:{form}})"
