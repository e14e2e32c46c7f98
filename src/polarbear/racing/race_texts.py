"""``RaceTexts``: a race as text, as a LaTeX table, and as the methods paragraph of a paper."""

from __future__ import annotations

from typing import Protocol

from numpy.typing import ArrayLike

from polarbear._text import escape_text, format_count, format_duration, format_list
from polarbear.inference.latex import RatedAlgorithms, render_table
from polarbear.inference.methods_text import (
    MAX_NAMES,
    describe_comparison,
    describe_equivalence,
    describe_model,
    describe_result,
)
from polarbear.inference.posterior import Posterior
from polarbear.racing.status import RaceStatus, render_race


class _RaceLike(Protocol):
    """What the texts need of a race."""

    @property
    def status(self) -> RaceStatus: ...

    @property
    def times(self) -> tuple[float, ...]: ...

    @property
    def posterior(self) -> Posterior | None: ...


class RaceTexts:
    """The methods of a race that return texts: status, table, methods paragraph."""

    def __str__(self: _RaceLike) -> str:
        return str(self.status.with_best(self.posterior))

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self: _RaceLike) -> str:
        return render_race(str(self), self.status.with_best(self.posterior).ribbon)

    def to_latex(self: _RaceLike, at: ArrayLike | None = None) -> str:
        r"""Return a LaTeX table of the race: one row per algorithm, for booktabs and siunitx.

        The columns are those of :meth:`Posterior.to_latex`. Ratings are of the last decision, so
        eliminated algorithms have none. ``at``: the times of the ratings; by default the first,
        the middle and the last.

        >>> import numpy as np, polarbear as pb
        >>> runs = pb.simulation.simulate_runs(np.array([[2.0, 0.0, -2.0]] * 3), 60)
        >>> table = pb.replay(runs).to_latex()
        >>> "a2 & replaceable by a1" in table, r"\toprule" in table
        (True, True)
        """
        status, posterior = self.status, self.posterior
        note = f"A race with PolarBear: {status.setup.question.describe()}."
        if posterior is None:
            return render_table(status.verdicts, None, None, note)
        return render_table(status.verdicts, RatedAlgorithms.of(posterior), at, note)

    def describe_methods(self: _RaceLike) -> str:
        """Return a paragraph for the methods section of a paper, with the numbers of the race.

        >>> import numpy as np, polarbear as pb
        >>> runs = pb.simulation.simulate_runs(np.array([[2.0, 0.0, -2.0]] * 3), 60)
        >>> print(pb.replay(runs).describe_methods())
        We raced 3 algorithms on 24 instances at 3 times from 0 to 1 with PolarBear ...
        """
        status, posterior = self.status, self.posterior
        question = status.setup.question
        epsilon = getattr(question, "epsilon", None)
        model = ""
        if posterior is not None:
            described = describe_model(posterior.prior, posterior.evidence, posterior.method)
            model = f"Ratings, probabilities and forecasts are those of a model. {described}"
        sentences = [
            describe_comparison(
                "raced",
                len(status.verdicts),
                status.counts.instances,
                self.times,
                status.setup.clock,
            ),
            question.describe_test(),
            "" if epsilon is None else describe_equivalence(epsilon),
            question.guarantee,
            model,
            _describe_course(status),
            _describe_outcome(status),
        ]
        return " ".join(filter(None, sentences))


def _describe_course(status: RaceStatus) -> str:
    """Return sentences on the cost of the race and on why it ended."""
    time = format_duration(status.spent.time, status.setup.clock)
    runs, rounds = format_count(status.n_runs, "run"), format_count(status.counts.rounds, "round")
    sentences = [f"The race made {runs} in {rounds} (total time {time})."]
    if status.ended == "resolved":
        known = "the relation of every pair was known" if status.is_about_set else "it was settled"
        sentences.append(f"It ended when {known}.")
    elif status.ended:
        n_open = status.counts.open_pairs
        stayed = f": {format_count(n_open, 'pair')} stayed open" if n_open else ""
        sentences.append(
            f"It ended before all pairs were settled ({escape_text(status.ended)}){stayed}."
        )
    else:
        sentences.append("It has not ended.")
    if status.counts.withdrawn:
        sentences.append(f"{format_count(status.counts.withdrawn, 'run')} were withdrawn.")
    return " ".join(sentences)


def _describe_outcome(status: RaceStatus) -> str:
    """Return sentences on the result of the race, in the terms of its question."""
    if status.is_about_set:
        return describe_result(status.verdicts)
    kinds = ("chosen", "not chosen", "passed", "failed", "undecided", "removed")
    named = {kind: [one.algorithm for one in status.verdicts if one.kind == kind] for kind in kinds}
    sentences = [
        f"{kind.capitalize()}: {format_list(names, MAX_NAMES)}."
        for kind, names in named.items()
        if names
    ]
    if status.chosen and not named["chosen"]:
        chosen = format_list(status.chosen, MAX_NAMES)
        sentences.insert(0, f"The choice so far, without the required certainty: {chosen}.")
    return " ".join(sentences)
