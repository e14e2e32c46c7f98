"""``InstanceRatings``: a small file that rates algorithms on an instance, given its attributes.

It needs numpy alone, and no training data. ``value_of_selection`` says what it is worth.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polarbear._text import format_list
from polarbear.data.array_files import read_arrays, write_arrays
from polarbear.data.frozen import FrozenRecord
from polarbear.data.instance_basis import ClassBasis, FeatureBasis, draw_utilities
from polarbear.errors import DataError
from polarbear.selection.preferences import Linear, evaluate_curves, to_preference
from polarbear.selection.ratings import Ratings

Floats = NDArray[np.float64]

FILE_KIND, FILE_VERSION = "polarbear instance ratings", 1
"""The type and the format version in the file."""

BASIS_ARRAYS = (
    *("knots", "scores", "indicators", "indicator_moments", "inducing", "projection"),
    "indicator_of",
)


@dataclass(frozen=True, eq=False, repr=False)
class InstanceRatings(FrozenRecord):
    """Thinned draws of an :class:`InstancePosterior`, which suffice for :func:`select`.

    Attributes
    ----------
    algorithms, times, clock, basis
        As in the posterior.
    coefficients, tau
        Draws, as in the posterior.

    Examples
    --------
    >>> import polarbear as pb
    >>> rankings = pb.simulation.simulate_rankings(np.array([[1.0, 0.0]]), 30)
    >>> size = {"instance": rankings.instances, "size": range(30)}
    >>> posterior = pb.fit(rankings, features=size)
    >>> pb.selection.InstanceRatings.of(posterior, draws=200).save("selector.npz")

    and where the choice is made, with numpy alone:

    >>> selector = pb.selection.InstanceRatings.load("selector.npz")
    >>> pb.select(selector.on({"size": 12})).algorithms
    ('a1',)
    >>> Path("selector.npz").unlink()
    """

    algorithms: tuple[str, ...]
    times: Floats
    basis: ClassBasis | FeatureBasis
    coefficients: NDArray[np.float32]
    tau: NDArray[np.float32]
    clock: str = "time"

    @classmethod
    def of(cls, posterior: Any, *, draws: int = 300) -> Self:
        """Take evenly spaced draws of the posterior; fewer make a smaller file."""
        if not hasattr(posterior, "coefficients"):
            raise DataError(
                f"expected the posterior of fit(classes=) or fit(features=), got "
                f"{type(posterior).__name__}"
            )
        if posterior.scores is not None:
            raise DataError("a posterior with scores needs their method: deploy one without scores")
        step = max(1, len(posterior.coefficients) // max(1, draws))
        coefficients = posterior.coefficients[::step].astype(np.float16).astype(np.float32)
        names, times = posterior.algorithms, posterior.times
        tau = posterior.tau[::step]
        return cls(
            algorithms=names,
            times=times,
            basis=posterior.basis,
            coefficients=coefficients,
            tau=tau,
            clock=posterior.clock,
        )

    def on(self, where: str | Mapping[str, Any] | None = None, /, **attributes: Any) -> Ratings:
        """Return the ratings on a class, or with given features (:meth:`InstancePosterior.on`)."""
        if where is not None and not isinstance(where, Mapping):
            where = {self.basis.names[0]: where}
        given = {**(where or {}), **attributes}
        unknown = [name for name in given if name not in self.basis.accepted_names]
        if unknown or not given:
            raise DataError(
                f"on() takes {format_list(self.basis.names)}, got {format_list(unknown) or 'none'}"
            )
        located = self.basis.locate({name: [value] for name, value in given.items()})
        utilities = draw_utilities(
            self.coefficients,
            self.tau,
            located.phi[0],
            float(located.residual[0]),
            np.random.default_rng(0),
        )
        rating = np.exp(utilities - utilities.max(axis=-1, keepdims=True))
        rating /= rating.sum(axis=-1, keepdims=True)
        return Ratings(self.algorithms, self.times, rating, self.clock)

    def save(self, path: str | Path) -> None:
        """Write a compressed file of arrays, which ``numpy.load`` opens too."""
        basis = self.basis
        header = {
            "kind": FILE_KIND,
            "version": FILE_VERSION,
            "algorithms": list(self.algorithms),
            "clock": self.clock,
            "names": list(basis.names),
            "classes": list(basis.classes) if isinstance(basis, ClassBasis) else None,
            "length": None if isinstance(basis, ClassBasis) else basis.length,
            "constants": {} if isinstance(basis, ClassBasis) else dict(basis.constants),
        }
        arrays = {
            "times": self.times,
            "coefficients": self.coefficients.astype(np.float16),
            "tau": self.tau.astype(np.float16),
        }
        if isinstance(basis, FeatureBasis):
            arrays |= {name: getattr(basis, name) for name in BASIS_ARRAYS}
        write_arrays(path, header, arrays)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file that :meth:`save` wrote. Nothing in it is executed or unpickled."""
        header, arrays = read_arrays(path, FILE_KIND, FILE_VERSION)
        try:
            names = tuple(map(str, header["names"]))
            if header["classes"] is not None:
                basis = ClassBasis(names, tuple(map(str, header["classes"])))
                n_functions = len(basis.classes)
            else:
                parts: dict[str, Any] = {name: arrays[name] for name in BASIS_ARRAYS}
                parts["constants"] = {str(k): float(v) for k, v in header["constants"].items()}
                basis = FeatureBasis(names=names, length=float(header["length"]), **parts)
                n_functions = basis.projection.shape[1]
            algorithms, times = tuple(map(str, header["algorithms"])), arrays["times"]
            shape = (len(times), len(algorithms), 1 + n_functions)
            coefficients = arrays["coefficients"].astype(np.float32)
            tau = arrays["tau"].astype(np.float32)
            if coefficients.shape[1:] != shape or tau.shape != coefficients.shape[:2]:
                raise ValueError("its arrays do not fit together")
            return cls(
                algorithms=algorithms,
                times=times,
                basis=basis,
                coefficients=coefficients,
                tau=tau,
                clock=str(header["clock"]),
            )
        except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            raise DataError(f"{path} is damaged: {error}; save the selector again") from None

    def __str__(self) -> str:
        return (
            f"ratings of {len(self.algorithms)} algorithms by {format_list(self.basis.names, 4)}, "
            f"{len(self.coefficients):,} draws"
        )

    __repr__ = __str__


@dataclass(frozen=True)
class SelectionValue:
    """What selection per instance gains over one choice for all instances.

    Attributes
    ----------
    single
        The best single choice.
    single_value, selected_value
        The expected values of the single choice and of the selection per instance: mean ratings.
    gain, interval
        The expected difference, and its 95 % credible interval.
    share
        The share of instances on which the selection differs from the single choice.
    """

    single: str
    single_value: float
    selected_value: float
    gain: float
    interval: tuple[float, float]
    share: float

    @property
    def is_worth_it(self) -> bool:
        """Whether the gain is above 0 with a probability of at least 97.5 %."""
        return self.interval[0] > 0

    def __str__(self) -> str:
        worth = "is worth it" if self.is_worth_it else "is not shown to be worth it"
        low, high = self.interval
        return (
            f"Selection per instance {worth}: the probability to come first is "
            f"{self.selected_value:.3f}, against {self.single_value:.3f} with {self.single} on "
            f"all instances. The gain is {self.gain:.3f} (95 % interval {low:.3f} to {high:.3f}); "
            f"the choice differs on {100 * self.share:.0f} % of the instances."
        )


def value_of_selection(
    posterior: Any, preference: Any = None, *, columns: Mapping[str, ArrayLike] | None = None
) -> SelectionValue:
    """Return what is gained if an algorithm is selected for each instance instead of one for all.

    Parameters
    ----------
    posterior
        An :class:`InstancePosterior`.
    preference
        As in :func:`select`.
    columns
        Attributes of the instances that selection is for; by default those in the data.

    Examples
    --------
    >>> import polarbear as pb
    >>> rankings = pb.simulation.simulate_rankings(np.array([[1.0, 0.0]]), 30)
    >>> size = {"instance": rankings.instances, "size": range(30)}
    >>> posterior = pb.fit(rankings, features=size)
    >>> print(pb.selection.value_of_selection(posterior))
    Selection per instance is not shown to be worth it: ...
    """
    if not hasattr(posterior, "iterate_ratings"):
        raise DataError(
            "value_of_selection takes the posterior of fit(classes=) or fit(features=), not "
            f"{type(posterior).__name__}"
        )
    times = np.asarray(posterior.times, dtype=np.float64)
    wanted = to_preference(preference, times)

    def iterate_values() -> Iterator[Floats]:
        for ratings in posterior.iterate_ratings(columns):
            if isinstance(wanted, Linear):
                weights = wanted.weights(times, posterior.clock)
                yield np.einsum("dtn,t->dn", ratings.astype(np.float64), weights)
            else:
                curves = np.moveaxis(ratings.astype(np.float64), 2, 0)
                yield np.stack([evaluate_curves(wanted.function, one) for one in curves], axis=1)

    values = np.stack(list(iterate_values()))  # (instances, draws, algorithms)
    mean = values.mean(axis=1)
    weight = np.ones(len(values)) if columns is not None else posterior.weight
    weight = weight / weight.sum()
    single, chosen = int(np.argmax(weight @ mean)), mean.argmax(axis=1)
    selected = np.take_along_axis(values, chosen[:, None, None], axis=2)[..., 0]
    gain = weight @ (selected - values[..., single])  # (draws,)
    low, high = np.quantile(gain, [0.025, 0.975])
    return SelectionValue(
        single=posterior.algorithms[single],
        single_value=float(weight @ mean[:, single]),
        selected_value=float((weight @ selected).mean()),
        gain=float(gain.mean()),
        interval=(float(low), float(high)),
        share=float(weight @ (chosen != single)),
    )
