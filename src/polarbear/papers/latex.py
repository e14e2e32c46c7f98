"""LaTeX tables for papers: one row per algorithm, for the packages booktabs and siunitx."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polarbear._text import choose_precision, escape_text, format_time, format_unit
from polarbear.errors import DataError
from polarbear.inference.findings import find_best_times
from polarbear.inference.posterior import Posterior
from polarbear.inference.verdicts import Verdict
from polarbear.papers.methods_text import CERTAINTY, refuse_certainty
from polarbear.racing.race import Race

Floats = NDArray[np.float64]

ESCAPES = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"{\char34}",  # active in some languages of babel
    "[": "{[}",  # after a line break it would begin an argument
    "*": "{*}",  # and this would forbid a page break there
    **{character: f"\\{character}" for character in "&%$#_{}"},
}
"""How LaTeX writes the characters that have a meaning in it, or another shape without T1 fonts."""

NO_NUMBER = "{--}"
"""The cell of a number that is not known; braces protect it from siunitx."""


class RatedAlgorithms(NamedTuple):
    """The ratings of algorithms over time that a LaTeX table shows."""

    algorithms: tuple[str, ...]
    times: Floats
    clock: str
    mean: Floats  # (T, n)
    deviation: Floats  # (T, n): posterior standard deviation
    best: Floats  # (T, n): P(has the highest rating)

    @classmethod
    def of(cls, posterior: Posterior) -> Self:
        """Return the mean, standard deviation and P(best) of a posterior's ratings."""
        ratings = posterior.ratings
        deviation = ratings.std(axis=0, dtype=np.float64)
        return cls(
            algorithms=posterior.algorithms,
            times=posterior.times,
            clock=posterior.clock,
            mean=posterior.mean(),
            deviation=deviation,
            best=posterior.prob_best(),
        )


def to_latex(
    source: Posterior | Race,
    at: ArrayLike | None = None,
    *,
    certainty: float | None = None,
    margin: float = 0.1,
    width: float = 0.1,
) -> str:
    r"""Return a LaTeX table of a posterior or a race, a row per algorithm: booktabs and siunitx.

    Columns: status, P(worth running), when it is most likely the best, and the mean
    rating at the times ``at`` (by default the first, the middle and the last). The number in
    parentheses is the posterior standard deviation in units of the last digit. For a time that
    is not on the grid, the rating is that of the grid's last time before, and the last line of
    the table says so. The ratings of a race are of its last decision, so eliminated algorithms have
    none. ``certainty`` (by default 0.95), ``margin`` and ``width`` are for a posterior; a race has
    its own.

    >>> import polarbear as pb
    >>> truth = np.array([[2.0, 0.0, 0.0], [2.0, 1.0, 0.0], [2.0, 3.0, 0.0]])
    >>> posterior = pb.fit(pb.simulation.simulate_rankings(truth, 200))
    >>> print(to_latex(posterior, at=[0, 1]).splitlines()[-4].split("&")[:2])
    ['a2 ', ' worth running ']
    >>> table = to_latex(pb.replay(pb.simulation.simulate_runs(truth, 60)))
    >>> "a3 & replaceable by a1" in table, r"\toprule" in table
    (True, True)
    """
    if isinstance(source, Race):
        refuse_certainty(certainty)
        note = f"A race with PolarBear: {source.question.describe()}."
        posterior = source.posterior
        rated = None if posterior is None else RatedAlgorithms.of(posterior)
        return render_table(source.status.verdicts, rated, at, note)
    certainty = CERTAINTY if certainty is None else certainty
    note = f"Made by PolarBear: {source.method}, {source.prior}, certainty {certainty:g}."
    verdicts = source.verdicts(certainty, margin=margin, width=width)
    return render_table(verdicts, RatedAlgorithms.of(source), at, note)


def render_table(
    verdicts: Sequence[Verdict],
    rated: RatedAlgorithms | None,
    at: ArrayLike | None = None,
    note: str = "",
) -> str:
    """Return a LaTeX ``tabular`` with the verdict and the ratings of each algorithm.

    Columns: the name, the verdict, P(in the Pareto set), when it is most likely the best, and the
    rating at the times ``at``. Without ratings the table has the first three. ``note`` is a
    comment in the first lines. A column is headed by the time that was asked for. If that is not a
    time of the grid, the last one before it is used, and a line below the table says so.
    """
    wanted = {} if rated is None else _choose_times(rated, at)
    shown = list(wanted.values())
    unit = "" if rated is None else format_unit(rated.clock)
    columns = ["l", "l", "S[table-format=>1.3]"] + ["l"] * (rated is not None)
    if rated is not None:
        digits = len(_format_rating(0.0, float(rated.deviation[shown].max()))) - len("0.000()")
        columns += [f"S[table-format=1.3({digits})]"] * len(shown)
    head = ["Algorithm", "Status", "{$P$(member)}"]
    lines = [f"% {line}" for line in note.splitlines()]
    lines += [
        r"% \usepackage{booktabs,siunitx}   siunitx: version 3 or newer",
        rf"\begin{{tabular}}{{{' '.join(columns)}}}",
        r"\toprule",
    ]
    if rated is not None:
        ratings = f"Rating at time{f' ({escape_latex(unit)})' if unit else ''}"
        lines += [
            rf"& & & & \multicolumn{{{len(shown)}}}{{c}}{{{ratings}}} \\",
            rf"\cmidrule(lr){{5-{4 + len(shown)}}}",
        ]
        head += ["Most likely best", *(f"{{{_format_time(rated, time)}}}" for time in wanted)]
    ordered = sorted(verdicts, key=lambda one: not one.is_candidate)
    rows = [_make_row(verdict, rated, shown) for verdict in ordered]
    lines += [_join_cells(head), r"\midrule", *map(_join_cells, rows), r"\bottomrule"]
    if rated is not None:
        lines += _describe_other_times(rated, wanted, len(columns))
    return "\n".join([*lines, r"\end{tabular}", ""])


def escape_latex(text: str) -> str:
    r"""Escape the characters of a name that have a meaning in LaTeX.

    >>> print(escape_latex("CMA_2 & 50 %"), escape_latex("a\\b"))
    CMA\_2 \& 50 \% a\textbackslash{}b
    """
    return "".join(ESCAPES.get(character, character) for character in escape_text(text))


def _choose_times(rated: RatedAlgorithms, at: ArrayLike | None) -> dict[float, int]:
    """Return the times to show, and for each the index of the last time of the grid up to it."""
    times = rated.times
    if at is None:
        return {float(times[k]): k for k in sorted({0, len(times) // 2, len(times) - 1})}
    try:
        wanted = np.atleast_1d(np.asarray(at, dtype=np.float64))
    except (TypeError, ValueError):
        wanted = np.array([np.nan])
    is_inside = (wanted >= times[0] * (1 - 1e-9)) & (wanted <= times[-1] * (1 + 1e-9))
    if not len(wanted) or not is_inside.all():
        raise DataError(
            f"expected times from {times[0]:g} to {times[-1]:g}, at which there are ratings", at=at
        )
    wanted = np.unique(wanted)
    indices = np.searchsorted(times, wanted * (1 + 1e-9), side="right") - 1
    return dict(zip(wanted.tolist(), indices.tolist(), strict=True))


def _describe_other_times(
    rated: RatedAlgorithms, wanted: dict[float, int], columns: int
) -> list[str]:
    """Return a row with the times whose ratings are those of an earlier time; none if all agree."""
    pairs = (
        (_format_time(rated, time), _format_time(rated, float(rated.times[k])))
        for time, k in wanted.items()
    )
    other = [f"{grid} for {time}" for time, grid in pairs if time != grid]
    if not other:
        return []
    text = f"Ratings at the last time that was compared: {', '.join(other)}."
    return [rf"\multicolumn{{{columns}}}{{l}}{{\footnotesize {text}}} \\"]


def _make_row(verdict: Verdict, rated: RatedAlgorithms | None, shown: Sequence[int]) -> list[str]:
    """Return the cells of an algorithm's row in a LaTeX table."""
    said = escape_latex(verdict._replace(probability=None).brief())
    row = [escape_latex(verdict.algorithm), said, _format_prob(verdict.prob_worth)]
    if rated is None:
        return row
    if verdict.algorithm not in rated.algorithms:
        return [*row, "", *[NO_NUMBER] * len(shown)]
    code = rated.algorithms.index(verdict.algorithm)
    ranges = [
        _format_time(rated, float(rated.times[start]))
        if start == stop - 1
        else "--".join(_format_time(rated, float(rated.times[k])) for k in (start, stop - 1))
        for start, stop in find_best_times(rated.best, code)
    ]
    ratings = [
        _format_rating(float(rated.mean[t, code]), float(rated.deviation[t, code])) for t in shown
    ]
    return [*row, ", ".join(ranges), *ratings]


def _join_cells(cells: Sequence[str]) -> str:
    return f"{' & '.join(cells)} \\\\"


def _format_prob(probability: float | None) -> str:
    """Format a probability for a siunitx column, which accepts "<" and ">"."""
    if probability is None:
        return NO_NUMBER
    if probability > 0.9995:
        return "> 0.999"
    return "< 0.001" if probability < 0.0005 else f"{probability:.3f}"


def _format_time(rated: RatedAlgorithms, time: float) -> str:
    r"""Return a time for siunitx, which groups its digits: ``\num{10000}``."""
    whole = choose_precision(rated.clock) != "all"
    return rf"\num{{{format_time(time, rated.clock).replace(',', '') if whole else f'{time:g}'}}}"


def _format_rating(mean: float, deviation: float) -> str:
    """Return a rating and its standard deviation in units of the last digit, rounded up.

    >>> _format_rating(0.5234, 0.0406)
    '0.523(41)'
    """
    return f"{mean:.3f}({max(1, int(np.ceil(1000 * deviation)))})"
