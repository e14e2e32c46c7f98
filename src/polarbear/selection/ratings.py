"""``Ratings``: posterior draws of ratings in a small file, which suffice for ``select``.

docs/reference/ratings-file.md defines the file format.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from polarbear.data.array_files import check_header, pack_array, unpack_array
from polarbear.data.frozen import FrozenRecord
from polarbear.data.names import find_indices
from polarbear.errors import DataError

FILE_KIND, FILE_VERSION = "polarbear ratings", 1
"""The type and the format version in the file; older versions are read, newer ones refused."""

_MIN_RATING = 2.0**-24  # the smallest positive float16: the logarithm of a rating must exist


class RatingSource(Protocol):
    """The interface of objects from which ``select`` chooses: ``Posterior`` and ``Ratings``."""

    @property
    def algorithms(self) -> tuple[str, ...]:
        """The names of the algorithms."""
        ...

    @property
    def times(self) -> NDArray[np.float64]:
        """The increasing times at which algorithms are rated."""
        ...

    @property
    def ratings(self) -> NDArray[np.float32]:
        """Equally weighted draws of the ratings (draws, times, algorithms), joint over times."""
        ...

    @property
    def clock(self) -> str:
        """The name of the clock by which times are measured."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class Ratings(FrozenRecord):
    """Thinned and rounded posterior draws of ratings, which suffice for :func:`select`.

    Attributes
    ----------
    algorithms, times, clock
        As in the posterior.
    ratings
        Shape (D, T, n): equally weighted draws of the ratings.

    Examples
    --------
    >>> import polarbear as pb
    >>> posterior = pb.fit(pb.simulation.simulate_rankings(np.eye(2), 9))
    >>> pb.selection.Ratings.of(posterior, draws=200).save("ratings.json")

    and where the choice is made, with numpy alone:

    >>> pb.select(pb.selection.Ratings.load("ratings.json"), pb.preferences.final()).algorithms
    ('a2',)
    >>> Path("ratings.json").unlink()
    """

    algorithms: tuple[str, ...]
    times: NDArray[np.float64]
    ratings: NDArray[np.float32]
    clock: str = "time"

    @classmethod
    def of(
        cls, posterior: RatingSource, *, draws: int = 1000, among: Iterable[str] | None = None
    ) -> Self:
        """Take evenly spaced draws of a posterior's ratings, rounded to three digits.

        ``among`` keeps only these algorithms, such as those that are not dominated.
        """
        if draws < 1:
            raise DataError("expected at least 1", draws=draws)
        names = posterior.algorithms
        codes = np.arange(len(names)) if among is None else find_indices(among, names, "algorithm")
        ratings = thin_draws(posterior.ratings, draws)[..., codes]
        rounded = np.maximum(ratings, _MIN_RATING).astype(np.float16).astype(np.float32)
        return cls(tuple(names[k] for k in codes), posterior.times, rounded, posterior.clock)

    def save(self, path: str | Path) -> None:
        """Write the ratings to a JSON file."""
        content = {
            "kind": FILE_KIND,
            "version": FILE_VERSION,
            "algorithms": list(self.algorithms),
            "clock": self.clock,
            "times": self.times.tolist(),
            "ratings": pack_array(self.ratings, "f2"),
        }
        Path(path).write_text(json.dumps(content, indent=1, ensure_ascii=False), "utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read ratings from a JSON file that :meth:`save` wrote."""
        try:
            content: Any = json.loads(Path(path).read_text("utf-8"))
        except (ValueError, RecursionError) as error:
            raise DataError(
                f"{path} does not hold ratings, because it is not JSON: {error}"
            ) from None
        check_header(path, content, FILE_KIND, FILE_VERSION)
        try:
            names = content["algorithms"]
            if not isinstance(names, list) or not names or len({*map(str, names)}) < len(names):
                raise ValueError("the algorithms must be a list of different names")
            names = tuple(map(str, names))
            times = np.array(content["times"], dtype=np.float64)
            if times.ndim != 1 or not np.all(np.isfinite(times)) or np.any(np.diff(times) <= 0):
                raise ValueError("the times of the ratings must be finite and increase")
            ratings = unpack_array(content["ratings"]).astype(np.float32)
            if (
                ratings.ndim != 3
                or ratings.shape[1:] != (len(times), len(names))
                or not ratings.size
            ):
                raise ValueError(f"the ratings have the shape {ratings.shape}, so some are missing")
            clock = str(content["clock"])
        except KeyError as error:
            raise DataError(f"{path} is damaged: its entry {error} is missing") from None
        except (TypeError, ValueError, OverflowError) as error:
            raise DataError(f"{path} is damaged: {error}") from None
        if not np.all(np.isfinite(ratings) & (ratings >= 0)):
            raise DataError(f"{path} is damaged: ratings must be finite and not negative")
        return cls(names, times, ratings, clock)

    def __str__(self) -> str:
        return f"ratings of {len(self.algorithms)} algorithms, {len(self.ratings):,} draws"

    __repr__ = __str__


def thin_draws(draws: NDArray[Any], limit: int) -> NDArray[Any]:
    """Return at most ``limit`` draws, evenly spaced.

    >>> thin_draws(np.arange(10), 4)
    array([0, 2, 5, 7])
    """
    if len(draws) <= limit:
        return draws
    return draws[np.arange(limit) * len(draws) // limit]
