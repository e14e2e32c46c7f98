"""``Scores``: predictions of algorithms' success on instances, made by another method."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarbear._text import format_list
from polarbear.data.instance_data import find_attribute, join_table
from polarbear.data.rankings import Rankings
from polarbear.data.table import to_table
from polarbear.errors import DataError

Floats = NDArray[np.float64]
Predictor = Callable[[Mapping[str, Any]], Floats]


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of algorithms on instances, of which more is better; for ``fit(scores=)``.

    The score of an instance must not be made with the results of that instance (cross-fitting), or
    certainty is too high.

    Attributes
    ----------
    algorithms, instances
        The names.
    values
        Shape (instances, times or 1, algorithms): centred on each instance, with a standard
        deviation of 1 in total.
    scale
        The standard deviation before.
    predictor
        A function from columns of features to scores of new instances, if there is one.
    features
        The features that the predictor takes.
    """

    algorithms: tuple[str, ...]
    instances: tuple[str, ...]
    values: Floats
    scale: float
    predictor: Predictor | None = None
    features: tuple[str, ...] = ()

    @classmethod
    def build(
        cls,
        algorithms: Sequence[str],
        instances: Sequence[str],
        values: Floats,
        predictor: Predictor | None = None,
        features: Sequence[str] = (),
    ) -> "Scores":
        """Centre and scale raw scores (instances, times or 1, algorithms)."""
        centred = values - values.mean(axis=2, keepdims=True)
        scale = float(np.std(centred)) or 1.0
        return cls(
            algorithms=tuple(algorithms),
            instances=tuple(instances),
            values=centred / scale,
            scale=scale,
            predictor=predictor,
            features=tuple(features),
        )

    @classmethod
    def from_table(cls, table: object, rankings: Rankings) -> "Scores":
        """Read a table with a row for each instance and a column for each algorithm."""
        data = join_table(to_table(table), "instance", rankings.instances)
        columns = [find_attribute(data, name) for name in rankings.algorithms]
        values = np.stack(columns, axis=1)
        if values.dtype.kind != "f" or not np.all(np.isfinite(values)):
            raise DataError("scores: expected a number for each algorithm on each instance")
        return cls.build(rankings.algorithms, rankings.instances, values[:, None])

    def of_instances(self, rankings: Rankings) -> Floats:
        """Return the scores (times, instances, algorithms) of the instances of rankings."""
        if (self.algorithms, self.instances) != (rankings.algorithms, rankings.instances):
            raise DataError("the scores are of other algorithms or instances than the rankings")
        n_times = len(rankings.times)
        if self.values.shape[1] not in (1, n_times):
            raise DataError(f"scores at {self.values.shape[1]} times, expected 1 or {n_times}")
        shape = (len(self.instances), n_times, len(self.algorithms))
        return np.broadcast_to(self.values, shape).swapaxes(0, 1)

    def predict(self, columns: Mapping[str, Any]) -> Floats:
        """Return the scores (instances, times or 1, algorithms) of new instances."""
        if self.predictor is None:
            raise DataError(
                "these scores come from a table: give those of a new instance to on(scores=)"
            )
        raw = self.predictor(columns)
        return (raw - raw.mean(axis=2, keepdims=True)) / self.scale

    def at(self, columns: Mapping[str, Any], given: Mapping[str, float] | None) -> Floats:
        """Return the scores (times or 1, algorithms) of one instance, perhaps given by name."""
        if given is None:
            return self.predict(columns)[0]
        lacking = [name for name in self.algorithms if name not in given]
        if lacking:
            raise DataError(f"scores= lacks {format_list(lacking)}")
        raw = np.array([[given[name] for name in self.algorithms]], dtype=np.float64)
        return (raw - raw.mean(axis=1, keepdims=True)) / self.scale
