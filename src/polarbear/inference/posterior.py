"""``Posterior``: what the rankings say about the ratings, with uncertainty, labelled."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from polarbear._text import escape_text, format_count, format_list, format_range, render_card
from polarbear.data.frozen import FrozenRecord
from polarbear.data.names import find_indices
from polarbear.errors import DataError, require
from polarbear.inference.algorithm_status import AlgorithmStatus, Claims, statuses_of
from polarbear.inference.archive import write_arrays
from polarbear.inference.diagnostics import Diagnostics
from polarbear.inference.dominance import (
    Elimination,
    Resolution,
    crossings,
    dominates,
    eliminate,
    everywhere_matrix,
    margin,
    not_dominated,
)
from polarbear.inference.draws import compute_moments, match_moments, systematic_resample
from polarbear.inference.pair_probabilities import Mixture, Weighted
from polarbear.inference.posterior_file import KIND, MIXTURE, VERSION, read_posterior
from polarbear.inference.threads import one_thread
from polarbear.inference.verdict import Crossing, Facts, pair_table, sentences, summary, verdict

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

Evidence = Literal["instances", "rankings"]


@dataclass(frozen=True, eq=False, repr=False)
class Posterior(FrozenRecord):
    """The ratings of algorithms over time, given rankings and a prior. Made by :func:`fit`.

    A rating theta is the probability to come first among all the algorithms; ratings at a time sum
    to one. Its logarithm, centred, is the (log-)utility mu.

    Attributes
    ----------
    algorithms, times, clock
        As in the rankings.
    draws
        Shape (D, T, n): draws of the log-utilities, that count by ``weight``. ``utilities`` and
        ``ratings`` are draws that all weigh the same.
    weight
        Shape (D, T) or (D, 1): how much each draw counts at each time.
    mixture
        The Gaussians behind the draws, where the engine has them.
    hyper
        Draws of the hyperparameters by name, each of shape (D,); they all weigh the same.
    diagnostics
        Whether to trust it.
    prior, method
        How it was made.
    chains
        How many chains the draws are from, one after the other.
    independent
        Whether the times do not know of each other.
    evidence
        What was counted as new evidence: "instances", or "rankings" at every time, as in the paper.
    instances
        On how many instances it rests.

    Examples
    --------
    >>> import polarbear as pb
    >>> truth = np.array([[2.0, 0.0, 0.0], [2.0, 1.0, 0.0], [2.0, 3.0, 0.0]])
    >>> posterior = pb.fit(pb.simulation.simulate_rankings(truth, 200))
    >>> posterior.better("a1", "a2").round(1)            # P(a1 has the higher rating), at each time
    array([1., 1., 0.])
    >>> chance, interval = posterior.win_probability("a1", "a2")
    >>> chance.round(1)                                  # that a1 beats a2 on a new instance
    array([0.9, 0.7, 0.3])
    >>> posterior.pareto(), posterior.better_everywhere("a1", "a3") > 0.99
    (('a1', 'a2'), True)
    >>> [round(p, 1) for p in posterior.in_pareto().values()], posterior.mistaken() < 0.01
    ([1.0, 1.0, 0.0], True)
    >>> posterior.mean("a1").round(1), posterior.best().argmax(axis=1)
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

    @cached_property
    def utilities(self) -> Singles:
        """Draws of the log-utilities that all weigh the same: shape (D, T, n).

        A row is one curve: it goes together over time as the posterior does.
        """
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
        # To take others at some times would tear the curves apart: they are moved a little instead.
        with one_thread():
            return match_moments(
                self.draws, compute_moments(self.draws), compute_moments(self.draws, self.weight)
            )

    @property
    def ratings(self) -> Singles:
        """Draws of the ratings that all weigh the same: shape (D, T, n), each time summing to 1."""
        rating = np.exp(self.utilities - self.utilities.max(axis=-1, keepdims=True))
        return rating / rating.sum(axis=-1, keepdims=True)

    def mean(self, algorithm: str | None = None) -> Floats:
        """Mean ratings: shape (T,) of an algorithm, or (T, n) of all."""
        return self._of(self.ratings, algorithm).mean(axis=0, dtype=np.float64)

    def interval(self, algorithm: str | None = None, level: float = 0.95) -> Floats:
        """Central interval of the ratings: shape (2, T) of an algorithm, or (2, T, n) of all."""
        _check_level(level)
        ends = [0.5 - level / 2, 0.5 + level / 2]
        return np.quantile(self._of(self.ratings, algorithm), ends, axis=0).astype(np.float64)

    def better(self, a: str, b: str) -> Floats:
        """P(the rating of ``a`` is above that of ``b``) at each time: shape (T,).

        Where the engine has Gaussians, their closed form is corrected by the weights of the draws,
        which is far more precise than counting draws.
        """
        first, second = find_indices([a, b], self.algorithms, "algorithm")
        return self._ahead[:, first, second].copy()

    def better_matrix(self) -> Floats:
        """P(row ahead of column) at each time: shape (T, n, n), with 1/2 on the diagonal."""
        return self._ahead.copy()

    def better_everywhere(self, a: str, b: str) -> float:
        """P(the rating of ``a`` is above that of ``b`` at all times).

        Curves are counted, except that the share of those ahead at a time is what :meth:`better`
        says. With ``evidence="rankings"`` and independent times it is a product, as in the paper.
        """
        first, second = find_indices([a, b], self.algorithms, "algorithm")
        return float(self._everywhere[first, second])

    def better_everywhere_matrix(self) -> Floats:
        """P(row ahead of column at all times): shape (n, n), with 0 on the diagonal."""
        return self._everywhere.copy()

    def equivalent(self, a: str, b: str, epsilon: float = 0.05) -> Floats:
        """P(the chance of ``a`` to beat ``b`` is within epsilon of one half) at each time: (T,)."""
        first, second = find_indices([a, b], self.algorithms, "algorithm")
        return self._alike(epsilon)[:, first, second]

    def equivalent_matrix(self, epsilon: float = 0.05) -> Floats:
        """P(row and column practically the same) at each time: (T, n, n), 1 on the diagonal."""
        return self._alike(epsilon)

    def pareto(self, alpha: float = 0.99, elimination: Elimination = "joint") -> tuple[str, ...]:
        """The anytime Pareto set: all but those that are dominated, with certainty alpha.

        An algorithm is dominated if another one is ahead at all times ("joint"), or, taken one by
        one, at each time ("pointwise"; then the certainty is that of the worst time alone).

        The certainty is that of one look at the data. For data that you keep adding to until the
        answer is clear, use :func:`polarbear.assess`, whose error rate holds under optional
        stopping.

        >>> import polarbear as pb
        >>> truth = np.array([[2.0, 0.0, 0.0], [2.0, 1.0, 0.0], [2.0, 3.0, 0.0]])
        >>> pb.fit(pb.simulation.simulate_rankings(truth, 200)).pareto()
        ('a1', 'a2')
        """
        beaten = self._eliminated(alpha, elimination).tolist()
        return tuple(name for name, out in zip(self.algorithms, beaten, strict=True) if not out)

    def dominators(
        self, algorithm: str, alpha: float = 0.99, elimination: Elimination = "joint"
    ) -> dict[str, float]:
        """Who dominates an algorithm, and P(ahead at all times), the most certain first."""
        (code,) = find_indices([algorithm], self.algorithms, "algorithm")
        found = np.flatnonzero(self._dominates(alpha, elimination)[:, code])
        order = found[np.argsort(-self._everywhere[found, code], kind="stable")]
        return {self.algorithms[k]: float(self._everywhere[k, code]) for k in order}

    def crossings(self, a: str, b: str, alpha: float = 0.99) -> list[Crossing]:
        """Where the lead of two changes hands, each time with certainty alpha; in order of time."""
        first, second = find_indices([a, b], self.algorithms, "algorithm")
        check_alpha(alpha)
        ahead = self._ahead[:, first, second]
        lead = self.utilities[..., first] - self.utilities[..., second]
        return [
            Crossing((a, b)[up], (b, a)[up], float(self.times[s]), float(self.times[t]), sure)
            for s, t, up, sure in crossings(ahead, lead, alpha, product=self.independent)
        ]

    def in_pareto(self) -> dict[str, float]:
        """P(no algorithm is ahead of it at all times), of each."""
        share = self._free.mean(axis=0)
        return dict(zip(self.algorithms, share.tolist(), strict=True))

    def mistaken(self, alpha: float = 0.99, elimination: Elimination = "joint") -> float:
        """P(at least one algorithm that is not in ``pareto(alpha)`` should be)."""
        beaten = self._eliminated(alpha, elimination)
        return float(self._free[:, beaten].any(axis=1).mean())

    def pairs(self, alpha: float = 0.99, epsilon: float = 0.05) -> dict[str, list[Any]]:
        """All pairs in long form, with the relation the data are certain of, if any.

        Columns: first, second, relation ("dominates", "is dominated by", "crosses", "equals",
        "undecided"), everywhere and everywhere_reversed (P(ahead at all times)), least and most
        (P(first ahead) over time), equal (P(equivalent) at the time it is least so), and error,
        the standard error of everywhere from counting draws.
        """
        alike = self._alike(epsilon)
        draws = len(self.draws)
        check_alpha(alpha)
        return pair_table(self.algorithms, self._ahead, alike, self._everywhere, alpha, draws)

    def statuses(
        self,
        alpha: float = 0.99,
        epsilon: float = 0.05,
        *,
        elimination: Elimination = "joint",
        resolution: Resolution = "at_par",
    ) -> tuple[AlgorithmStatus, ...]:
        """Return the status of each algorithm: member, equivalent, dominated or undecided.

        A race decides by the same definition (:mod:`polarbear.inference.algorithm_status`), so that
        its statuses are those of its posterior.

        >>> import polarbear as pb
        >>> truth = np.array([[2.0, 0.0, 0.0], [2.0, 1.0, 0.0], [2.0, 3.0, 0.0]])
        >>> posterior = pb.fit(pb.simulation.simulate_rankings(truth, 200))
        >>> [one.status for one in posterior.statuses()]
        ['member', 'member', 'dominated']
        """
        beats, alike = self._dominates(alpha, elimination), self._alike(epsilon)
        sure = self._everywhere if elimination == "joint" else self._ahead.min(axis=0)
        claims = Claims.from_probabilities(
            self.algorithms,
            self.times,
            self.clock,
            ahead=self._ahead,
            alike=alike,
            prob_in_pareto=self._free.mean(axis=0),
            beats=beats,
            sure=sure,
            alpha=alpha,
            resolution=resolution,
        )
        return tuple(statuses_of(claims, epsilon))

    def verdict(self, alpha: float = 0.99, epsilon: float = 0.05) -> str:
        """One sentence for each algorithm, and how sure they are taken together.

        >>> import polarbear as pb
        >>> truth = np.array([[2.0, 0.0, 0.0], [2.0, 1.0, 0.0], [2.0, 3.0, 0.0]])
        >>> print(pb.fit(pb.simulation.simulate_rankings(truth, 200)).verdict())
        a1 is a member of the Pareto set (P > 0.999): most likely the best from 0 to 0.5.
        a2 is a member of the Pareto set (P > 0.999): most likely the best at 1.
        a3 is dominated by a1 at all 3 times from 0 to 1 (P > 0.999).
        2 of 3 algorithms stay in the anytime Pareto set. Probability that any exclusion is wrong:
        < 0.001.
        """
        return verdict(self.facts(alpha, epsilon))

    def facts(
        self, alpha: float = 0.99, epsilon: float = 0.05, resolution: Resolution = "at_par"
    ) -> Facts:
        """What a verdict is made from, for whoever puts it into other words or on a page.

        >>> import polarbear as pb
        >>> posterior = pb.fit(pb.simulation.simulate_rankings(np.zeros((2, 3)), 9))
        >>> posterior.facts(alpha=0.95).dominates.any()
        np.False_
        """
        return Facts(
            self.algorithms,
            self.times,
            self.clock,
            self._everywhere,
            self._dominates(alpha, "joint"),
            self.best(),
            self.statuses(alpha, epsilon, resolution=resolution),
            self.mistaken(alpha),
        )

    def best(self) -> Floats:
        """P(an algorithm has the highest rating) at each time: shape (T, n)."""
        leader = self.utilities.argmax(axis=-1)
        return np.stack([(leader == k).mean(axis=0) for k in range(len(self.algorithms))], axis=1)

    def win_probability(self, a: str, b: str, level: float = 0.95) -> tuple[Floats, Floats]:
        """How likely ``a`` is to beat ``b`` on a new instance: mean (T,) and interval (2, T)."""
        first, second = find_indices([a, b], self.algorithms, "algorithm")
        _check_level(level)
        odds = 1 / (1 + np.exp(self.utilities[..., second] - self.utilities[..., first]))
        ends = np.quantile(odds, [0.5 - level / 2, 0.5 + level / 2], axis=0)
        return odds.mean(axis=0, dtype=np.float64), ends.astype(np.float64)

    def table(self, level: float = 0.95) -> dict[str, list[Any]]:
        """Ratings in long form: columns time, algorithm, mean, lower, upper, best.

        Pass it to the data frame of your choice: ``pandas.DataFrame(posterior.table())``.
        """
        lower, upper = self.interval(level=level)
        n = len(self.algorithms)
        return {
            "time": np.repeat(self.times, n).tolist(),
            "algorithm": list(self.algorithms) * len(self.times),
            "mean": self.mean().ravel().tolist(),
            "lower": lower.ravel().tolist(),
            "upper": upper.ravel().tolist(),
            "best": self.best().ravel().tolist(),
        }

    def save(self, path: str | Path) -> None:
        """Write it to one file, without pickle; docs/reference/posterior-file.md says what is in.

        >>> import polarbear as pb
        >>> posterior = pb.fit(pb.simulation.simulate_rankings(np.zeros((2, 3)), 9))
        >>> posterior.save("posterior.pb.zip")
        >>> pb.Posterior.load("posterior.pb.zip") == posterior
        True
        >>> Path("posterior.pb.zip").unlink()
        """
        said = self.diagnostics
        header = {
            "kind": KIND,
            "version": VERSION,
            "algorithms": list(self.algorithms),
            "clock": self.clock,
            "prior": self.prior,
            "method": self.method,
            "chains": self.chains,
            "independent": self.independent,
            "evidence": self.evidence,
            "instances": self.instances,
            "hyper": list(self.hyper),
            "diagnostics": {
                # Written as text, for JSON has no infinities.
                "measured": {name: repr(float(value)) for name, value in said.measured.items()},
                "problems": list(said.problems),
                "notes": list(said.notes),
            },
        }
        arrays = {"times": self.times, "draws": self.draws, "weight": self.weight}
        arrays |= {f"hyper_{k}": values for k, values in enumerate(self.hyper.values())}
        if self.mixture is not None:
            arrays |= {f"mixture_{name}": getattr(self.mixture, name) for name in MIXTURE}
        write_arrays(path, header, arrays)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what :meth:`save` wrote."""
        return cls(**read_posterior(path))

    def to_xarray(self) -> Any:
        """Draws as an ``xarray.Dataset`` with dimensions chain, draw, time, algorithm."""
        xarray = require("xarray", extra="arviz")
        dims = ("chain", "draw", "time", "algorithm")
        shape = (self.chains, -1, len(self.times), len(self.algorithms))
        found = {
            "utility": (dims, self.utilities.reshape(shape)),
            "rating": (dims, self.ratings.reshape(shape)),
        }
        coords = {"time": self.times, "algorithm": list(self.algorithms)}
        return xarray.Dataset(found, coords, {"prior": self.prior, "method": self.method})

    def to_arviz(self) -> Any:
        """Draws for ArviZ: ``InferenceData`` with ArviZ 0.x, ``DataTree`` with 1.x."""
        arviz = require("arviz", extra="arviz")
        data = self.to_xarray()
        if arviz.__version__.startswith("0."):
            return arviz.InferenceData(posterior=data)
        return require("xarray", extra="arviz").DataTree.from_dict({"posterior": data})

    def __str__(self) -> str:
        final = self.mean()[-1]
        k = int(np.argmax(final))
        leader = escape_text(self.algorithms[k])
        where = f"{len(self.times)} times" if len(self.times) > 1 else "one time"
        return (
            f"posterior of {len(self.algorithms)} algorithms at {where}, "
            f"{format_range(self.times[0], self.times[-1], self.clock)}, "
            f"from {format_count(self.instances, 'instance')}\n"
            f"  algorithms  {format_list(self.algorithms)}\n"
            f"  made by     {self.method}, {self.prior}, {self.evidence} as evidence, "
            f"{len(self.draws)} draws\n"
            f"  at the end  {leader} leads with a rating of {final[k]:.2f}\n"
            f"  numerics    {self.diagnostics}"
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        facts, curve = self.facts(), dict(zip(self.algorithms, self.mean().T, strict=True))
        rows = [[s.algorithm, s.status, curve[s.algorithm], s.text] for s in sentences(facts)]
        head = ["algorithm", "status", "rating over time", "verdict"]
        return render_card(str(self), head, rows, summary(facts))

    @cached_property
    def _ahead(self) -> Floats:
        """P(row ahead of column) at each time, 1/2 on the diagonal."""
        (above,) = self._exceeds(0.0)
        return self._of_pairs(above, 1 - above, 0.5)

    @cached_property
    def _everywhere(self) -> Floats:
        """P(row ahead of column at all times), 0 on the diagonal."""
        if not self.independent:
            count = self.weight.shape[1] == 1
            return everywhere_matrix(self.utilities, self._ahead, count=count)
        found = np.prod(self._ahead, axis=0)
        np.fill_diagonal(found, 0.0)
        return found

    @cached_property
    def _free(self) -> NDArray[np.bool_]:
        """Whether no algorithm is ahead of another at all times, in each draw: (D, n)."""
        return not_dominated(self.utilities, self._ahead)

    def undominated(self, algorithms: Sequence[str]) -> NDArray[np.bool_]:
        """Whether none of these is ahead of another of them at all times, in each draw: (D, k).

        >>> import polarbear as pb
        >>> posterior = pb.fit(pb.simulation.simulate_rankings(np.array([[3.0, 0.0, -3.0]]), 50))
        >>> posterior.undominated(["a2", "a3"]).mean(axis=0).round(1)
        array([1., 0.])
        """
        if tuple(algorithms) == self.algorithms:
            return self._free
        chosen = find_indices(list(algorithms), self.algorithms, "algorithm")
        ahead = self._ahead[:, chosen[:, None], chosen]
        return not_dominated(self.utilities[..., chosen], ahead)

    def _alike(self, epsilon: float) -> Floats:
        """P(win probability within epsilon of one half) at each time, 1 on the diagonal."""
        if not 0 <= epsilon < 0.5:
            raise DataError(f"epsilon={epsilon!r}: expected at least 0 and below 0.5")
        above, at_least = self._exceeds(margin(epsilon), -margin(epsilon))
        alike = np.clip(at_least - above, 0.0, 1.0)
        return self._of_pairs(alike, alike, 1.0)

    def _exceeds(self, *margins: float) -> Floats:
        """P(the first of a pair above the second by a margin), for each margin: (margins, T, K)."""
        first, second = np.triu_indices(len(self.algorithms), 1)
        return Weighted(self.draws, self.weight, self.mixture).exceeds(first, second, margins)

    def _of_pairs(self, forth: Floats, back: Floats, same: float) -> Floats:
        """What is known of pairs (T, K), of the same the other way round, and of one and itself."""
        n = len(self.algorithms)
        first, second = np.triu_indices(n, 1)
        found = np.full((len(self.times), n, n), same)
        found[:, first, second], found[:, second, first] = forth, back
        return found

    def _dominates(self, alpha: float, elimination: Elimination) -> NDArray[np.bool_]:
        check_alpha(alpha)
        if elimination not in ("joint", "pointwise"):
            raise DataError(f"elimination={elimination!r}: expected 'joint' or 'pointwise'")
        return dominates(self._ahead, self._everywhere, alpha, elimination)

    def _eliminated(self, alpha: float, elimination: Elimination) -> NDArray[np.bool_]:
        """Which algorithms are dominated by one that is not: (n,)."""
        sure = self._everywhere if elimination == "joint" else self._ahead.min(axis=0)
        return eliminate(self._dominates(alpha, elimination), sure)

    def _of(self, values: NDArray[Any], algorithm: str | None) -> NDArray[Any]:
        if algorithm is None:
            return values
        (code,) = find_indices([algorithm], self.algorithms, "algorithm")
        return values[..., code]


def check_alpha(alpha: float) -> None:
    """Refuse a certainty at which two could dominate each other."""
    if not (isinstance(alpha, Real) and 0.5 < alpha <= 1):
        raise DataError(f"alpha={alpha!r}: expected a probability between 0.5 and 1, such as 0.95")


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise DataError(f"level={level!r}: expected a probability between 0 and 1")
