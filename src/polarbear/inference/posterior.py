"""``Posterior``: the distribution of ratings over time, given rankings and a prior."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from polarbear._text import (
    escape_text,
    format_count,
    format_list,
    format_range,
    name_point,
    render_card,
)
from polarbear.data.frozen import FrozenRecord
from polarbear.data.names import find_indices
from polarbear.data.run_ends import RunEnds, format_counts, sum_counts
from polarbear.data.table import make_frame
from polarbear.errors import DataError, require
from polarbear.inference.diagnostics import Diagnostics
from polarbear.inference.dominance import (
    MAX_FULL_ALGORITHMS,
    Elimination,
    Resolution,
    check_certainty,
    dominates,
    eliminate,
    equivalence_margin,
    is_undominated_in_draws,
    prob_ahead_everywhere_matrix,
)
from polarbear.inference.draws import compute_moments, match_moments, systematic_resample
from polarbear.inference.findings import (
    Findings,
    describe_algorithms,
    summarise,
)
from polarbear.inference.pair_probabilities import Mixture, PairProbabilities
from polarbear.inference.posterior_file import read_posterior, write_posterior
from polarbear.inference.replacing import Chances, Places, count_chances, find_chances_of_curves
from polarbear.inference.threads import one_thread
from polarbear.inference.verdicts import (
    Claims,
    Verdict,
    compare_readings,
    derive_verdicts,
)

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

Evidence = Literal["instances", "rankings"]


@dataclass(frozen=True, eq=False, repr=False)
class Posterior(FrozenRecord):
    """The posterior distribution of the ratings of algorithms over time; made by :func:`fit`.

    A rating theta is the probability to come first among all the algorithms; ratings at a time sum
    to one. Its logarithm, centred, is the (log-)utility mu.

    Attributes
    ----------
    algorithms, times, clock
        As in the rankings.
    draws
        Shape (D, T, n): draws of the log-utilities, with importance weights ``weight``.
        ``utilities`` and ``ratings`` are draws of equal weight.
    weight
        Shape (D, T) or (D, 1): the importance weight of each draw at each time.
    mixture
        The Gaussian mixture behind the draws, if the engine has one.
    hyper
        Draws of the hyperparameters by name, each of shape (D,), with equal weights.
    diagnostics
        Whether the numerics can be trusted.
    prior, method
        The prior and the engine, as text.
    chains
        The number of chains, whose draws follow each other.
    independent
        Whether times are independent.
    evidence
        The units of evidence: "instances", or "rankings" at every time, as in the paper.
    instances
        The number of instances in the data.
    ends
        How the runs of each algorithm ended; empty if that is not known.
    if_cut
        The posterior with unstated ends of runs read as cut instead of finished, if the rankings
        differ (see :attr:`Runs.ended`). :meth:`verdict` says first where the two disagree.
    curves
        Shape (C, T, n): ``utilities``, if there are more of them than draws with weights.
    wins
        Shape (W, T, n (n - 1) / 2): draws of the probability that the first of a pair beats the
        second on a new instance, of equal weight. None if it follows from the utilities; it does
        not if they are counted, or on a mix of instances (:meth:`InstancePosterior.population`).
    decided
        Shape (T, n (n - 1) / 2): the share of duels of a pair that do not tie; None without ties.
    averaged
        Whether a tie is half a win in the ratings (``ties="averaged"``).
    counted
        Whether ratings and wins are counted, with a model of rankings as their prior.
    places
        The places of all algorithms on each instance, if the probabilities of verdicts are counted
        from their duels, as in races. None if they follow from the model, as with temporal priors.

    Examples
    --------
    >>> import polarbear as pb
    >>> truth = np.array([[2.0, 0.0, 0.0], [2.0, 1.0, 0.0], [2.0, 3.0, 0.0]])
    >>> posterior = pb.fit(pb.simulation.simulate_rankings(truth, 200))
    >>> posterior.prob_better("a1", "a2").round(1)    # P(a1 has the higher rating), at each time
    array([1., 1., 0.])
    >>> chance, interval = posterior.win_probability("a1", "a2")
    >>> chance.round(1)                                  # that a1 beats a2 on a new instance
    array([0.9, 0.7, 0.3])
    >>> posterior.pareto(), posterior.prob_replaces("a1", "a3") > 0.99
    (('a1', 'a2'), True)
    >>> [round(p, 1) for p in posterior.prob_in_pareto().values()]
    [1.0, 1.0, 0.0]
    >>> posterior.verdict().mistaken < 0.01              # P(any exclusion is wrong)
    True
    >>> posterior.mean("a1").round(1), posterior.prob_best().argmax(axis=1)
    (array([0.8, 0.6, 0.3]), array([0, 0, 1]))
    """

    algorithms: tuple[str, ...]
    times: Floats
    draws: Singles
    weight: Singles
    mixture: Mixture | None = None
    hyper: Mapping[str, Floats] = field(default_factory=dict)
    diagnostics: Diagnostics = field(default_factory=Diagnostics)
    prior: str = ""
    method: str = ""
    clock: str = "time"
    chains: int = 1
    independent: bool = False
    evidence: Evidence = "rankings"
    instances: int = 0
    ends: tuple[RunEnds, ...] = ()
    if_cut: Posterior | None = None
    curves: Singles | None = None
    wins: Singles | None = None
    decided: Floats | None = None
    averaged: bool = False
    counted: bool = False
    places: Places | None = None

    @cached_property
    def utilities(self) -> Singles:
        """Equally weighted draws of the log-utilities (draws, times, algorithms).

        A draw is one curve over time, with the posterior's correlation between times.
        """
        if self.curves is not None:
            return self.curves
        blocks = self.weight.shape[1]
        if np.ptp(self.weight) == 0:
            return self.draws
        if blocks == 1:
            return self.draws[systematic_resample(self.weight[:, 0])]
        if self.independent:
            return np.stack(
                [self.draws[systematic_resample(self.weight[:, b]), b] for b in range(blocks)],
                axis=1,
            )
        # Resampling each time separately would break the correlation between times, so the
        # draws are shifted to the weighted moments.
        with one_thread():
            return match_moments(
                self.draws, compute_moments(self.draws), compute_moments(self.draws, self.weight)
            )

    @property
    def ratings(self) -> Singles:
        """Equally weighted draws of the ratings, which sum to 1 at each time."""
        rating = np.exp(self.utilities - self.utilities.max(axis=-1, keepdims=True))
        return rating / rating.sum(axis=-1, keepdims=True)

    def mean(self, algorithm: str | None = None) -> Floats:
        """Return mean ratings: (times,) of one algorithm, or (times, algorithms) of all."""
        return self._select(self.ratings, algorithm).mean(axis=0, dtype=np.float64)

    def interval(self, algorithm: str | None = None, level: float = 0.95) -> Floats:
        """Return lower and upper ends of central credible intervals of the ratings at each time."""
        _check_level(level)
        ends = [0.5 - level / 2, 0.5 + level / 2]
        return np.quantile(self._select(self.ratings, algorithm), ends, axis=0).astype(np.float64)

    def prob_better(self, a: str | None = None, b: str | None = None) -> Floats:
        """Return P(the rating of ``a`` is above that of ``b``) at each time (T,).

        Without names, of all pairs (T, n, n), rows ahead of columns, with 1/2 on the diagonal. If
        the engine has a Gaussian mixture, its closed form is corrected by the weighted draws. That
        is far more precise than the share of draws.
        """
        return self._of_pair(self._ahead, a, b)

    def prob_dominates(self, a: str | None = None, b: str | None = None) -> Any:
        """Return P(the rating of ``a`` is above that of ``b`` at all times); without names (n, n).

        It is the share of curves that are ahead at all times, where the share at each time is
        calibrated to :meth:`prob_better`. With ``evidence="rankings"`` and independent times it
        is the product over times, as in the paper.
        """
        return self._of_pair(self._everywhere, a, b)

    def prob_equivalent(
        self, a: str | None = None, b: str | None = None, epsilon: float = 0.05
    ) -> Floats:
        """Return P(``a`` beats ``b`` with probability within epsilon of 1/2) at each time.

        Without names, of all pairs (T, n, n).
        """
        return self._of_pair(self._alike(epsilon), a, b)

    def prob_replaces(
        self,
        a: str | None = None,
        b: str | None = None,
        *,
        margin: float = 0.1,
        width: float = 0.1,
    ) -> Any:
        """Return P(``a`` replaces ``b``): better on average, and nowhere much worse.

        That is, it wins more duels than it loses over all times, and on no stretch of a ``width``
        of the time axis it is worse by more than the ``margin``, as for
        :class:`polarbear.ParetoSet`. Without names, of all pairs (n, n): row replaces column.
        """
        return self._of_pair(self._chances(margin, width).replaces, a, b)

    def _of_pair(self, values: Floats, a: str | None, b: str | None) -> Any:
        """Return what matrices (..., n, n) say of one pair, or a copy of all if none is named."""
        if a is None and b is None:
            return values.copy()
        if a is None or b is None:
            raise DataError("expected the names of two algorithms, or none", a=a, b=b)
        first, second = find_indices([a, b], self.algorithms, "algorithm")
        chosen = values[..., first, second]
        return chosen.copy() if chosen.ndim else float(chosen)

    def pareto(
        self, certainty: float = 0.95, *, margin: float = 0.1, width: float = 0.1
    ) -> tuple[str, ...]:
        """Return the anytime Pareto set: the algorithms that no other one is certain to replace.

        Margin and width are those of :class:`polarbear.ParetoSet`, whose rule this is. Without
        them (0 and 0, as in :class:`polarbear.StrictParetoSet`) an algorithm is left out only if
        another one is ahead at all times jointly.

        The certainty holds for data that are analysed once. For data that you keep adding to until
        the answer is clear, use a race, whose error rate holds under optional stopping.

        >>> import polarbear as pb
        >>> truth = np.array([[2.0, 0.0, 0.0], [2.0, 1.0, 0.0], [2.0, 3.0, 0.0]])
        >>> pb.fit(pb.simulation.simulate_rankings(truth, 200)).pareto()
        ('a1', 'a2')
        """
        out = self._find_replaced(certainty, margin, width).tolist()
        return tuple(name for name, is_out in zip(self.algorithms, out, strict=True) if not is_out)

    def prob_in_pareto(self, *, margin: float = 0.1, width: float = 0.1) -> dict[str, float]:
        """Return for each algorithm P(it is worth running): no other algorithm replaces it."""
        share = self._chances(margin, width).worth_running
        return dict(zip(self.algorithms, share.tolist(), strict=True))

    def verdicts(
        self, certainty: float = 0.95, *, margin: float = 0.1, width: float = 0.1
    ) -> tuple[Verdict, ...]:
        """Return the verdict about each algorithm: worth running, replaceable, tied or undecided.

        The claims are those of a race (:class:`polarbear.ParetoSet`), with their posterior
        probabilities. With margin and width 0 they are about single times.

        >>> import polarbear as pb
        >>> truth = np.array([[2.0, 0.0, 0.0], [2.0, 1.0, 0.0], [2.0, 3.0, 0.0]])
        >>> posterior = pb.fit(pb.simulation.simulate_rankings(truth, 200))
        >>> [one.kind for one in posterior.verdicts()]
        ['member', 'member', 'dominated']
        """
        check_certainty(certainty)
        said = margin if margin or width else None
        verdicts = self._chances(margin, width).state_verdicts(certainty, said)
        return tuple(one._replace(clock=self.clock) for one in verdicts)

    def verdict(
        self, certainty: float = 0.95, *, margin: float = 0.1, width: float = 0.1
    ) -> Findings:
        """Return what is known of all algorithms: text if printed, a table in a notebook.

        The arguments are those of :meth:`verdicts`.

        >>> import polarbear as pb
        >>> truth = np.array([[2.0, 0.0, 0.0], [2.0, 1.0, 0.0], [2.0, 3.0, 0.0]])
        >>> print(pb.fit(pb.simulation.simulate_rankings(truth, 200)).verdict())
        a1 is worth running (> 99 %): most likely the best from 0 to 0.5.
        a2 is worth running (> 99 %): most likely the best at 1.
        a3 is replaceable by a1 (> 99 %).
        2 of 3 algorithms stay in the anytime Pareto set. Probability that any exclusion is wrong:
        < 1 %.
        """

        def state(posterior: Posterior) -> tuple[Verdict, ...]:
            return posterior.verdicts(certainty, margin=margin, width=width)

        chances = self._chances(margin, width)
        out = self._find_replaced(certainty, margin, width)
        mistaken = float(chances.is_worth[:, out].any(axis=1).mean())
        return self._find(state, chances, chances.replaces >= certainty, mistaken, certainty)

    def paper_verdict(
        self,
        certainty: float = 0.99,
        epsilon: float = 0.05,
        *,
        elimination: Elimination = "joint",
        resolution: Resolution = "crossing",
    ) -> Findings:
        """Return what the paper's dominance says: ahead at all times, without a margin.

        The arguments are those of :class:`polarbear.PaperParetoSet`, which decides by it.

        >>> import polarbear as pb
        >>> posterior = pb.fit(pb.simulation.simulate_rankings(np.array([[3.0, 0.0]] * 2), 40))
        >>> print(posterior.paper_verdict())
        a1 is a member of the Pareto set (> 99 %): most likely the best at both times, 0 and 1.
        a2 is dominated by a1 at both times, 0 and 1 (> 99 %).
        1 of 2 algorithms stays in the anytime Pareto set. Probability that any exclusion is wrong:
        < 1 %.
        """

        def state(posterior: Posterior) -> tuple[Verdict, ...]:
            claims = Claims.from_probabilities(
                posterior.algorithms,
                posterior.times,
                posterior.clock,
                ahead=posterior._ahead,
                alike=posterior._alike(epsilon),
                prob_in_pareto=posterior._is_undominated.mean(axis=0),
                beats=posterior._dominates(certainty, elimination),
                sure=posterior._prob_dominates(elimination),
                certainty=certainty,
                resolution=resolution,
            )
            return tuple(derive_verdicts(claims, epsilon))

        beats = self._dominates(certainty, elimination)
        sure = self._prob_dominates(elimination)
        chances = self._chances(0, 0)._replace(replaces=sure)
        mistaken = float(chances.is_worth[:, eliminate(beats, sure)].any(axis=1).mean())
        return self._find(state, chances, beats, mistaken, certainty)

    def _find(
        self,
        state: Callable[[Posterior], tuple[Verdict, ...]],
        chances: Chances,
        beats: NDArray[np.bool_],
        mistaken: float,
        certainty: float,
    ) -> Findings:
        """Return findings from what states the verdicts, and P(row replaces column)."""
        verdicts = state(self)
        return Findings(
            algorithms=self.algorithms,
            times=self.times,
            clock=self.clock,
            replaces=chances.replaces,
            is_replaced=beats,
            worth=chances.worth_running,
            best=self.prob_best(),
            verdicts=verdicts,
            mistaken=mistaken,
            certainty=certainty,
            cautions=self._describe_cautions(verdicts, state),
            notes=tuple(self.diagnostics.verdict_notes),
        )

    def _describe_cautions(
        self, verdicts: Sequence[Verdict], state: Callable[[Posterior], tuple[Verdict, ...]]
    ) -> tuple[str, ...]:
        """Return what a reader must know first: what hangs on how runs ended, and failed runs."""
        cautions = []
        if self.if_cut is not None:
            first, second = (one.prob_best()[-1].argmax() for one in (self, self.if_cut))
            leaders = self.algorithms[first], self.if_cut.algorithms[second]
            others = state(self.if_cut)
            cautions.append(compare_readings(self.ends, verdicts, others, leaders))
        failing = {one.algorithm: one for one in self.ends if one.fails_often}
        kept = [one.algorithm for one in verdicts if one.is_candidate and one.algorithm in failing]
        cautions += self.diagnostics.contradictions
        return (*cautions, *(f"{failing[name].describe_failures()}." for name in kept))

    def prob_best(self) -> Floats:
        """Return P(an algorithm has the highest rating) at each time (times, algorithms)."""
        leader = self.utilities.argmax(axis=-1)
        return np.stack([(leader == k).mean(axis=0) for k in range(len(self.algorithms))], axis=1)

    def win_probability(self, a: str, b: str, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return mean (T,) and interval (2, T) of P(``a`` beats ``b`` on a new instance)."""
        first, second = find_indices([a, b], self.algorithms, "algorithm")
        _check_level(level)
        if self.wins is None or first == second:
            wins = 1 / (1 + np.exp(self.utilities[..., second] - self.utilities[..., first]))
        else:
            rows, columns = np.triu_indices(len(self.algorithms), 1)
            low, high = min(first, second), max(first, second)
            wins = self.wins[..., np.flatnonzero((rows == low) & (columns == high))[0]]
            wins = wins if first < second else 1 - wins
        ends = np.quantile(wins, [0.5 - level / 2, 0.5 + level / 2], axis=0)
        return wins.mean(axis=0, dtype=np.float64), ends.astype(np.float64)

    def to_frame(self, backend: Any = "pandas", *, level: float = 0.95) -> Any:
        """Return the ratings as a data frame of "pandas", "polars" or "pyarrow".

        Columns: time, algorithm, mean, lower, upper and best (P of the highest rating).
        """
        lower, upper = self.interval(level=level)
        columns = {
            "time": np.repeat(self.times, len(self.algorithms)).tolist(),
            "algorithm": list(self.algorithms) * len(self.times),
            "mean": self.mean().ravel().tolist(),
            "lower": lower.ravel().tolist(),
            "upper": upper.ravel().tolist(),
            "best": self.prob_best().ravel().tolist(),
        }
        return make_frame(columns, backend)

    def save(self, path: str | Path) -> None:
        """Write the posterior to one file, in the format of docs/reference/posterior-file.md.

        >>> import polarbear as pb
        >>> posterior = pb.fit(pb.simulation.simulate_rankings(np.zeros((2, 3)), 9))
        >>> posterior.save("posterior.pb.zip")
        >>> pb.Posterior.load("posterior.pb.zip") == posterior
        True
        >>> Path("posterior.pb.zip").unlink()
        """
        write_posterior(path, self)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a posterior from a file that :meth:`save` wrote."""
        fields = read_posterior(path)
        if (other := fields.pop("if_cut")) is not None:
            fields["if_cut"] = cls(**other)
        return cls(**fields)

    def to_arviz(self) -> Any:
        """Return the draws as ArviZ's ``InferenceData`` (version 0) or ``DataTree`` (version 1).

        Dimensions: chain, draw, time, algorithm. The group "posterior" is an xarray dataset.
        """
        xarray, arviz = require("xarray", extra="arviz"), require("arviz", extra="arviz")
        dims = ("chain", "draw", "time", "algorithm")
        shape = (self.chains, -1, len(self.times), len(self.algorithms))
        variables = {
            "utility": (dims, self.utilities.reshape(shape)),
            "rating": (dims, self.ratings.reshape(shape)),
        }
        coords = {"time": self.times, "algorithm": list(self.algorithms)}
        data = xarray.Dataset(variables, coords, {"prior": self.prior, "method": self.method})
        if arviz.__version__.startswith("0."):
            return arviz.InferenceData(posterior=data)
        return xarray.DataTree.from_dict({"posterior": data})

    def __str__(self) -> str:
        final = self.mean()[-1]
        k = int(np.argmax(final))
        leader = escape_text(self.algorithms[k])
        point = name_point(self.clock)
        where = f"{len(self.times)} {point}s" if len(self.times) > 1 else f"one {point}"
        return (
            f"posterior of {len(self.algorithms)} algorithms at {where}, "
            f"{format_range(self.times[0], self.times[-1], self.clock)}, "
            f"from {format_count(self.instances, 'instance')}\n"
            f"  algorithms  {format_list(self.algorithms)}\n"
            f"  made by     {self.method}, {self.prior}, {self.evidence} as evidence, "
            f"{'counted, ' if self.counted else ''}"
            f"{len(self.utilities)} draws\n"
            f"  at the end  {leader} leads with a rating of {final[k]:.2f}\n"
            + (f"  runs        {format_counts(sum_counts(self.ends))}\n" if self.ends else "")
            + f"  numerics    {self.diagnostics}"
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        found, curve = self.verdict(), dict(zip(self.algorithms, self.mean().T, strict=True))
        described = describe_algorithms(found)
        rows = [[one.algorithm, one.kind, curve[one.algorithm], one.text] for one in described]
        head = ["algorithm", "verdict", "rating over time", "why"]
        return render_card(str(self), head, rows, summarise(found))

    @cached_property
    def _ahead(self) -> Floats:
        """P(row ahead of column) at each time, with 1/2 on the diagonal."""
        (above,) = self._prob_exceeds(0.0)
        return self._fill_matrix(above, 1 - above, 0.5)

    @cached_property
    def _everywhere(self) -> Floats:
        """P(row ahead of column at all times), with 0 on the diagonal."""
        return self._everywhere_from(0.0)

    def _everywhere_from(self, least: float) -> Floats:
        """Return P(row ahead of column at all times), perhaps 0 where it is below ``least``."""
        if "_everywhere" in vars(self):
            return self._everywhere
        if not self.independent:
            count, data = self.weight.shape[1] == 1, (self.utilities, self._ahead)
            return prob_ahead_everywhere_matrix(*data, count=count, least=least)
        return np.prod(self._ahead, axis=0) * (1 - np.eye(len(self.algorithms)))

    @cached_property
    def _is_undominated(self) -> NDArray[np.bool_]:
        """A mask (draws, algorithms): true where no rival is ahead at all times in the draw."""
        return is_undominated_in_draws(self.utilities, self._ahead)

    def _alike(self, epsilon: float) -> Floats:
        """Return P(win probability within epsilon of 1/2) of all pairs at each time."""
        if not 0 <= epsilon < 0.5:
            raise DataError("expected at least 0 and below 0.5", epsilon=epsilon)
        latest = vars(self).get("_latest_alike")  # verdicts and tables of pairs ask for the same
        if latest is None or latest[0] != epsilon:
            if self.wins is None:
                margin = equivalence_margin(epsilon)
                above, at_least = self._prob_exceeds(margin, -margin)
                alike = np.clip(at_least - above, 0.0, 1.0)
            else:
                alike = np.mean(np.abs(self.wins - 0.5) <= epsilon, axis=0)
            latest = vars(self)["_latest_alike"] = epsilon, self._fill_matrix(alike, alike, 1.0)
        return latest[1]

    def _prob_exceeds(self, *margins: float) -> Floats:
        """Return P(the first of a pair exceeds the second by a margin) (margins, times, pairs)."""
        first, second = np.triu_indices(len(self.algorithms), 1)
        pairs = PairProbabilities(self.draws, self.weight, self.mixture)
        return pairs.prob_exceeds(first, second, margins)

    def _fill_matrix(self, upper: Floats, lower: Floats, diagonal: float) -> Floats:
        """Return matrices of all pairs at each time, from values of pairs and of reversed pairs."""
        n = len(self.algorithms)
        first, second = np.triu_indices(n, 1)
        matrix = np.full((len(self.times), n, n), diagonal)
        matrix[:, first, second], matrix[:, second, first] = upper, lower
        return matrix

    def _chances(self, margin: float, width: float) -> Chances:
        """Return P(row replaces column), and P(worth running), from duels or draws."""
        if not (0 <= margin < 0.5 and 0 <= width < 1):
            raise DataError("expected at least 0, and below 0.5 and 1", margin=margin, width=width)
        if not (margin or width):
            no_ties = np.zeros((len(self.algorithms),) * 2)
            return Chances(self.algorithms, self._everywhere, no_ties, self._is_undominated)
        latest = vars(self).get("_latest_chances")  # verdicts and tables ask for the same
        if latest is None or latest[0] != (margin, width):
            chances = self._find_chances(margin, width)
            latest = vars(self)["_latest_chances"] = (margin, width), chances
        return latest[1]

    def _find_chances(self, margin: float, width: float) -> Chances:
        if self.places is not None:
            return count_chances(self.algorithms, self.times, self.places, margin, width)
        return find_chances_of_curves(
            self.algorithms,
            self.times,
            self.utilities if self.wins is None else None,  # they take long
            self.wins,
            self.decided,
            margin,
            width,
            averaged=self.averaged,
        )

    def _find_replaced(self, certainty: float, margin: float, width: float) -> NDArray[np.bool_]:
        """Return a mask of the algorithms that a remaining algorithm replaces."""
        check_certainty(certainty)
        if len(self.algorithms) > MAX_FULL_ALGORITHMS and not (margin or width):
            return eliminate((sure := self._everywhere_from(certainty)) >= certainty, sure)
        return self._chances(margin, width).find_replaced(certainty)

    def _dominates(self, certainty: float, elimination: Elimination) -> NDArray[np.bool_]:
        """Return a matrix: true where row dominates column with the given certainty."""
        check_certainty(certainty)
        if elimination not in ("joint", "pointwise"):
            raise DataError("expected 'joint' or 'pointwise'", elimination=elimination)
        return dominates(self._ahead, self._everywhere, certainty, elimination)

    def _prob_dominates(self, elimination: Elimination) -> Floats:
        """Return P(row dominates column): at all times, or at the worst one if pointwise."""
        if elimination == "joint":
            return self._everywhere
        return self._ahead.min(axis=0) * ~np.eye(len(self.algorithms), dtype=bool)

    def _select(self, values: NDArray[Any], algorithm: str | None) -> NDArray[Any]:
        """Return the values of one algorithm, or of all if the algorithm is None."""
        if algorithm is None:
            return values
        (code,) = find_indices([algorithm], self.algorithms, "algorithm")
        return values[..., code]


def _check_level(level: float) -> None:
    """Raise DataError unless the level of a credible interval is a probability."""
    if not 0 < level < 1:
        raise DataError("expected a probability between 0 and 1", level=level)
