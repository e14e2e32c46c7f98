"""``Posterior``: what the rankings say about the ratings, with uncertainty, labelled."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from polarbear.archive import read_arrays, write_arrays
from polarbear.data.frozen import Frozen
from polarbear.data.names import indices, listing, span
from polarbear.errors import DataError, require

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

KIND, VERSION = "polarbear posterior", 1
"""What a saved posterior says it is, and the format; older formats are read, newer refused."""

_MIXTURE = ("weight", "mean", "covariance", "holds", "bent")


@dataclass(frozen=True)
class Diagnostics:
    """Whether to trust a posterior: what was measured, and what is wrong, in words.

    Attributes
    ----------
    measured
        Figures by name, such as "k-hat" or "R-hat".
    problems
        What speaks against the posterior; empty if nothing does.
    notes
        What happened on the way and is no reason for concern.
    """

    measured: Mapping[str, float] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def trusted(self) -> bool:
        """Whether nothing speaks against the posterior."""
        return not self.problems

    def __str__(self) -> str:
        figures = ", ".join(f"{name} {value:.3g}" for name, value in self.measured.items())
        verdict = "trust it" if self.trusted else f"do not trust it: {'; '.join(self.problems)}"
        said = [verdict, *([f"({figures})"] if figures else []), *self.notes]
        return " ".join(said)


@dataclass(frozen=True, eq=False)
class Mixture(Frozen):
    """Gaussians of which the draws were made, in closed form at each time.

    Attributes
    ----------
    weight
        Shape (G,): the share of draws from each.
    mean, covariance
        Shapes (G, T, n) and (G, T, n, n), of the log-utilities.
    holds
        Shape (T,): whether the draws at a time still go with those of the Gaussians.
    bent
        Shape (D, T, n), or (1, 1, 1) for not at all: by how much the draws were moved away from
        those of the Gaussians, where the posterior is skewed.
    """

    weight: Floats
    mean: Floats
    covariance: Floats
    holds: NDArray[np.bool_]
    bent: Singles


@dataclass(frozen=True, eq=False, repr=False)
class Posterior(Frozen):
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

    @cached_property
    def utilities(self) -> Singles:
        """Draws of the log-utilities that all weigh the same: shape (D, T, n)."""
        blocks = self.weight.shape[1]
        if np.ptp(self.weight) == 0:
            return self.draws
        if blocks == 1:
            return self.draws[even(self.weight[:, 0])]
        return np.stack([self.draws[even(self.weight[:, b]), b] for b in range(blocks)], axis=1)

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
        first, second = indices([a, b], self.algorithms, "algorithm")
        if first == second:
            return np.full(len(self.times), 0.5)
        return self._better(np.array([first]), np.array([second]))[:, 0]

    def better_everywhere(self, a: str, b: str) -> float:
        """P(the rating of ``a`` is above that of ``b`` at all times), as the model has it.

        This is the model's own answer: with a temporal prior it counts every time as new evidence,
        with an independent one it multiplies over times.
        """
        if self.independent:
            return float(np.prod(self.better(a, b)))
        first, second = indices([a, b], self.algorithms, "algorithm")
        ahead = (self.utilities[..., first] > self.utilities[..., second]).all(axis=1)
        return float(ahead.mean())

    def better_matrix(self) -> Floats:
        """P(row ahead of column) at each time: shape (T, n, n), with 1/2 on the diagonal."""
        n = len(self.algorithms)
        rows, columns = np.triu_indices(n, 1)
        found = np.full((len(self.times), n, n), 0.5)
        step = max(1, 2_000_000 // max(1, len(self.draws)))
        for k in range(0, len(rows), step):
            row, column = rows[k : k + step], columns[k : k + step]
            ahead = self._better(row, column)
            found[:, row, column], found[:, column, row] = ahead, 1 - ahead
        return found

    def best(self) -> Floats:
        """P(an algorithm has the highest rating) at each time: shape (T, n)."""
        leader = self.utilities.argmax(axis=-1)
        return np.stack([(leader == k).mean(axis=0) for k in range(len(self.algorithms))], axis=1)

    def win_probability(self, a: str, b: str, level: float = 0.95) -> tuple[Floats, Floats]:
        """How likely ``a`` is to beat ``b`` on a new instance: mean (T,) and interval (2, T)."""
        first, second = indices([a, b], self.algorithms, "algorithm")
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
        >>> posterior = pb.fit(pb.testing.simulate_rankings(np.zeros((2, 3)), 9))
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
            arrays |= {f"mixture_{name}": getattr(self.mixture, name) for name in _MIXTURE}
        write_arrays(path, header, arrays)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what :meth:`save` wrote."""
        header, arrays = read_arrays(path, KIND, VERSION)
        try:
            said = header["diagnostics"]
            measured = {name: float(value) for name, value in said["measured"].items()}
            mixture = None
            if "mixture_weight" in arrays:
                mixture = Mixture(*(arrays[f"mixture_{name}"] for name in _MIXTURE))
            found = cls(
                tuple(header["algorithms"]),
                arrays["times"],
                arrays["draws"],
                arrays["weight"],
                mixture,
                {name: arrays[f"hyper_{k}"] for k, name in enumerate(header["hyper"])},
                Diagnostics(measured, tuple(said["problems"]), tuple(said["notes"])),
                header["prior"],
                header["method"],
                header["clock"],
                header["chains"],
                header["independent"],
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise DataError(
                f"{path} is damaged: {error!r} is missing or not as it should be"
            ) from None
        shape = (len(found.times), len(found.algorithms))
        if found.draws.shape[1:] != shape or len(found.weight) != len(found.draws):
            raise DataError(f"{path} is damaged: its arrays do not fit together")
        return found

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
        leader = int(np.argmax(final))
        where = f"{len(self.times)} times" if len(self.times) > 1 else "one time"
        return (
            f"posterior of {len(self.algorithms)} algorithms at {where}, "
            f"{span(self.times[0], self.times[-1], self.clock)}\n"
            f"  algorithms  {listing(self.algorithms)}\n"
            f"  made by     {self.method}, {self.prior}, {len(self.draws)} draws\n"
            f"  at the end  {self.algorithms[leader]} leads with a rating of {final[leader]:.2f}\n"
            f"  verdict     {self.diagnostics}"
        )

    __repr__ = __str__

    def _of(self, values: NDArray[Any], algorithm: str | None) -> NDArray[Any]:
        if algorithm is None:
            return values
        (code,) = indices([algorithm], self.algorithms, "algorithm")
        return values[..., code]

    def _better(self, row: NDArray[np.intp], column: NDArray[np.intp]) -> Floats:
        """P(row ahead of column) for pairs: shape (T, pairs)."""
        found = np.empty((len(self.times), len(row)))
        for t in range(len(self.times)):
            at = self.draws[:, t]
            ahead = at[:, row] > at[:, column]
            weight = self.weight[:, t if self.weight.shape[1] > 1 else 0].astype(np.float64)
            weight /= weight.sum()
            if self.mixture is None or not self.mixture.holds[t]:
                found[t] = weight @ ahead
                continue
            mean, cov = self.mixture.mean[:, t], self.mixture.covariance[:, t]
            spread = cov[:, row, row] + cov[:, column, column] - 2 * cov[:, row, column]
            score = (mean[:, row] - mean[:, column]) / np.sqrt(np.maximum(spread, 1e-300))
            twin = ahead
            if self.mixture.bent.size > 1:
                plain = at - self.mixture.bent[:, t]
                twin = plain[:, row] > plain[:, column]
            exact = self.mixture.weight @ ndtr(score)
            # Draws cannot tell less than half of one in so many from never.
            least = 0.5 * np.minimum(np.minimum(exact, 1 - exact), 1 / len(at))
            corrected = exact + _correction(weight, ahead, twin, exact)
            found[t] = np.clip(corrected, least, 1 - least)
        return found


def even(weight: NDArray[Any], draws: int | None = None, offset: float = 0.5) -> NDArray[np.intp]:
    """Which draws to take, some of them more than once, so that all weigh the same.

    Systematic resampling, by default of as many draws as there are.

    >>> even(np.array([0.5, 0.25, 0.25, 0.0]))
    array([0, 0, 1, 2])
    """
    edges = np.cumsum(weight, dtype=np.float64)
    draws = len(weight) if draws is None else draws
    places = (np.arange(draws) + offset) / draws * edges[-1]
    return np.minimum(np.searchsorted(edges, places), len(weight) - 1)


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise DataError(f"level={level!r}: expected a probability between 0 and 1")


def _correction(
    weight: Floats, ahead: NDArray[np.bool_], twin: NDArray[np.bool_], exact: Floats
) -> Floats:
    """What weighted draws (D, pairs) add to the exact shares (pairs,) of their Gaussian twins.

    A control variate: how far the twins are off their exact share is taken off the draws, as far as
    the two go together. Then shrunk by its own noise, for in many dimensions a correction can be
    noisier than what it corrects.
    """
    counted, twins = weight @ ahead, twin.mean(axis=0)
    off, twin_off = len(weight) * weight[:, None] * (ahead - counted), twin - twins
    spread = np.sum(twin_off**2, axis=0)
    share = np.clip(np.sum(off * twin_off, axis=0) / np.maximum(spread, 1e-300), 0.0, 1.0)
    change = counted - exact - share * (twins - exact)
    noise = np.sum((off - share * twin_off) ** 2, axis=0) / len(weight) ** 2
    return change * np.maximum(0.0, 1.0 - noise / np.maximum(change**2, 1e-300))
