"""Preferences: functions that turn the rating curve of an algorithm into one value.

A preference must be monotone: a higher rating curve must not have a lower value. Most are
*linear*: weights on times that sum to one, so that V is a mean rating. Between the times of the
posterior, ratings are interpolated linearly (over log time if the preference has a log scale).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polarbear._text import choose_precision, format_range
from polarbear.data.time_axis import is_log_axis
from polarbear.errors import DataError, warn

Floats = NDArray[np.float64]
Scale = Literal["linear", "log"]

PIECES_PER_STEP = 64
"""Numerical integration divides each step of the grid into this number of pieces."""

MAX_SILENT_SHARE = 0.01
"""Above this share of the preference outside of the grid there is a warning."""


@dataclass(frozen=True)
class Linear:
    """A linear preference: the value is a weighted mean of the ratings over time.

    Attributes
    ----------
    says
        A description.
    weights
        A function from the grid and its clock to a weight for each time; they sum to one.
    asked
        The first and the last time that counts; None for the end of the grid.

    Examples
    --------
    >>> first = Linear("at the first time", lambda times, clock: np.eye(len(times))[0])
    """

    says: str
    weights: Callable[[Floats, str], Floats]
    asked: tuple[float | None, float | None] = (None, None)

    def used(self, times: Floats) -> tuple[float, float]:
        """Return the first and the last time with a weight, within the given times.

        >>> between(2, 9).used(np.array([1.0, 3.0]))
        (2.0, 3.0)
        """
        ends = (times[0], times[-1])
        low, high = (
            end if wanted is None else np.clip(wanted, *ends)
            for wanted, end in zip(self.asked, ends, strict=True)
        )
        return float(low), float(high)


@dataclass(frozen=True)
class Weights:
    """The weights of a linear preference at the times of a race; they sum to one.

    >>> Weights.of(between(2, 4), np.array([1.0, 2.0, 3.0, 4.0]), "time").values
    (0.0, 0.25, 0.5, 0.25)
    """

    says: str
    values: tuple[float, ...]

    @classmethod
    def of(cls, preference: Linear, times: Floats, clock: str) -> Weights:
        """Return the weights of a linear preference at the times of a race."""
        values = preference.weights(times, clock)
        return cls(preference.says, tuple(np.asarray(values, dtype=float).tolist()))


@dataclass(frozen=True)
class Increasing:
    """A preference by any increasing function from rating curves (..., times) to values.

    >>> Increasing("the worst time", lambda curves: curves.min(axis=-1)).says
    'the worst time'
    """

    says: str
    function: Callable[[Floats], ArrayLike]


Preference = Linear | Increasing


def between(
    start: float | None = None, stop: float | None = None, *, scale: Scale = "linear"
) -> Linear:
    """Prefer a high mean rating over a range of times, within which the stopping time is uniform.

    V = 1 / (stop - start) * integral of theta(t) dt. Without ends the range is the whole grid. On
    ``scale="log"`` the integral is over log t: the range from 10 to 100 has the same weight as the
    one from 100 to 1000.

    >>> between(2, 4).weights(np.array([1.0, 2.0, 3.0, 4.0]), "time")
    array([0.  , 0.25, 0.5 , 0.25])
    >>> between(scale="log").weights(np.array([1.0, 10.0, 100.0]), "time")
    array([0.25, 0.5 , 0.25])
    """
    scale = _check_scale(scale)
    ends = [end for end in (start, stop) if end is not None]
    _check_numbers("between", *ends)
    if not np.all(np.isfinite(ends)):
        raise DataError(
            f"between({start}, {stop}): the ends must be finite; for an open end pass None"
        )
    if len(ends) == 2 and ends[0] > ends[1]:
        raise DataError(f"between({start:g}, {stop:g}): the range is empty; swap its ends")

    def weights(times: Floats, clock: str) -> Floats:
        low = times[0] if start is None else max(start, times[0])
        high = times[-1] if stop is None else min(stop, times[-1])
        asked = (times[0] if start is None else start, times[-1] if stop is None else stop)
        if low > high:
            raise _outside_grid_error(
                f"the range {format_range(*asked, clock)}", times, clock, *asked
            )
        unknown = 1 - (high - low) / (asked[1] - asked[0]) if asked[1] > asked[0] else 0.0
        if unknown > MAX_SILENT_SHARE:
            warn(
                f"the range {format_range(*asked, clock)} is only known from "
                f"{format_range(low, high, clock)}: only that part counts"
            )
        if low == high or len(times) == 1:
            return _distribute_mass(np.array([low]), np.ones(1), times)
        place = _scale_transform(scale, times, low, clock)
        edges = place(np.concatenate([[low], times[(times > low) & (times < high)], [high]]))
        # Log time has no zero: what is known of it stands for the start of the range.
        first = times[0] if scale == "linear" or times[0] > 0 else min(low, times[1] / 2)
        grid = place(np.concatenate([[first], times[1:]]))
        # The middle of a straight line is its mean, so this is exact.
        return _distribute_mass((edges[1:] + edges[:-1]) / 2, np.diff(edges), grid)

    if not ends:
        alike = "every unit of time" if scale == "linear" else "every budget"
        alike += " counts the same"
        return Linear(f"{alike}{_describe_scale(scale)}", weights)
    words = [f"{word} {end:,g}" for word, end in (("from", start), ("to", stop)) if end is not None]
    return Linear(" ".join(words) + _describe_scale(scale), weights, (start, stop))


def weighted(weight: Callable[[Floats], ArrayLike], *, scale: Scale = "linear") -> Linear:
    """Prefer a high mean rating, weighted over time by a function.

    V = integral of w(t) theta(t) dt, with w normalised. ``weight`` takes an array of times and
    returns a weight for each, none of them negative.
    ``select(posterior, weight)`` does this with a plain function. On ``scale="log"`` the integral
    is over log t, which is a weight of w(t) / t.

    >>> early = weighted(lambda t: np.exp(-t / 60))
    >>> early.weights(np.array([0.0, 60.0, 120.0]), "seconds").round(2)
    array([0.43, 0.46, 0.11])
    """
    scale = _check_scale(scale)
    if not callable(weight):
        raise DataError(
            f"weighted({weight!r}): expected a function of time; for weights at given times use "
            "preferences.distribution(times, weights)"
        )

    def weights(times: Floats, clock: str) -> Floats:
        if len(times) == 1:
            return _distribute_mass(times, _evaluate_weights(weight, times, times, clock), times)
        place = _scale_transform(scale, times, times[0], clock)
        grid = place(times)
        edges = _refine_grid(grid)
        middles = (edges[1:] + edges[:-1]) / 2
        asked = np.exp(middles) if scale == "log" else middles
        return _distribute_mass(
            middles, _evaluate_weights(weight, asked, times, clock) * np.diff(edges), grid
        )

    return Linear(f"weights on times{_describe_scale(scale)}", weights)


def at(time: float) -> Linear:
    """Prefer a high rating at one known stopping time.

    V = theta(time).

    >>> at(2.5).weights(np.array([1.0, 2.0, 3.0]), "time")
    array([0. , 0.5, 0.5])
    """
    _check_numbers("at", time)

    def weights(times: Floats, clock: str) -> Floats:
        if not times[0] <= time <= times[-1]:
            raise _outside_grid_error(f"the time {time:,g}", times, clock, time)
        return _distribute_mass(np.array([float(time)]), np.ones(1), times)

    return Linear(f"at {time:,g}", weights, (time, time))


def final() -> Linear:
    """Prefer a high rating at the last time of the posterior.

    >>> final().weights(np.array([1.0, 2.0, 3.0]), "time")
    array([0., 0., 1.])
    """
    return Linear("at the last time", lambda times, _: np.eye(len(times))[-1], (np.inf, np.inf))


def distribution(stops: Any, weights: ArrayLike | None = None) -> Linear:
    """Prefer a high expected rating at a random stopping time.

    V = E[theta(t)].

    Parameters
    ----------
    stops
        A distribution with a method ``cdf``, such as the frozen ones of ``scipy.stats``, or a
        sample of stopping times.
    weights
        The weight of each time of the sample; by default equal.

    Examples
    --------
    >>> past = distribution([1.0, 2.0, 2.0, 3.0])
    >>> past.weights(np.array([1.0, 2.0, 3.0]), "time")
    array([0.25, 0.5 , 0.25])
    """
    if hasattr(stops, "cdf"):
        if weights is not None:
            raise DataError(
                "weights= is for a list of stopping times: leave it out with a distribution"
            )
        return Linear(
            "a distribution of stopping times", lambda *grid: _weights_from_cdf(stops.cdf, *grid)
        )
    where = np.atleast_1d(np.asarray(stops, dtype=np.float64))
    mass = np.ones(len(where)) if weights is None else np.asarray(weights, dtype=np.float64)
    if where.ndim != 1 or not len(where) or mass.shape != where.shape:
        raise DataError(
            f"stopping times of shape {where.shape} with weights of shape {mass.shape}: expected "
            "two lists of the same length, of at least one time"
        )
    if not np.all(np.isfinite(where)):
        raise DataError(
            f"the stopping time at position {int(np.argmin(np.isfinite(where)))} is not finite"
        )
    if not np.all(np.isfinite(mass) & (mass >= 0)) or not mass.any():
        raise DataError("the weights of stopping times must be finite, not negative, not all 0")
    mass = mass / mass.max()  # only ratios count, and a sum of large weights overflows

    def on_grid(times: Floats, clock: str) -> Floats:
        outside = mass[(where < times[0]) | (where > times[-1])].sum() / mass.sum()
        _check_share_outside(outside, times, clock)
        return _distribute_mass(np.clip(where, times[0], times[-1]), mass, times)

    return Linear(
        f"{len(where):,} stopping times", on_grid, (float(where.min()), float(where.max()))
    )


def parse_preference(plain: Any) -> Linear | Weights:
    """Make a preference from the value of a race file, such as ``{"between": [60, 300]}``.

    >>> parse_preference({"at": 60}).says
    'at 60'
    >>> parse_preference({"around": 60})
    Traceback (most recent call last):
    polarbear.errors.DataError: preference = { around = 60 }: expected { at = 60 }, ...
    """
    given = dict(plain) if isinstance(plain, Mapping) else {}
    scale = given.pop("scale", "linear")
    try:
        match given:
            case {"says": str(says), "values": values}:
                return Weights(says, tuple(map(float, values)))
            case {"between": [start, stop]} if len(given) == 1:
                return between(start, stop, scale=scale)
            case {"at": time} if len(given) == 1:
                return at(time)
            case {"final": True} if len(given) == 1:
                return final()
            case _:
                pass
    except DataError as error:
        raise DataError(f"preference = {_format_toml(plain)}: {error}") from None
    raise DataError(
        f"preference = {_format_toml(plain)}: expected {{ at = 60 }}, {{ final = true }} or "
        '{ between = [60, 300] }, which may also have scale = "log"'
    )


def _format_toml(value: Any) -> str:
    """Format a value as in a TOML file, tables in one line."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{key} = {_format_toml(one)}' for key, one in value.items())} }}"
    return json.dumps(value, default=str)


def increasing(function: Callable[[Floats], ArrayLike]) -> Increasing:
    """Prefer by any function of the rating curve that does not fall when all ratings rise.

    ``function`` takes curves (..., T), one rating for each of ``posterior.times``, and returns
    their values (...). Only such a preference can choose an algorithm that is never the best and
    never far behind.

    >>> worst = increasing(lambda curves: curves.min(axis=-1))    # be good at all times
    """
    if not callable(function):
        raise DataError(
            f"increasing({function!r}): expected a function from rating curves to values"
        )
    return Increasing("an increasing function of ratings", function)


def to_preference(preference: Any, times: Floats) -> Preference:
    """Convert an argument of ``select`` to a preference; a function gives weights of times.

    None stands for any budget between the first and the last time, each as likely on the scale on
    which figures draw these times.

    >>> to_preference(None, np.geomspace(1, 1000, 4)).says
    'every budget counts the same on log time'
    >>> to_preference((3600, 7200), np.arange(3.0))
    Traceback (most recent call last):
    polarbear.errors.DataError: preference=(3600, 7200): expected a function of time that gives
    weights, or one of polarbear.preferences, such as preferences.between(3600, 7200)
    """
    if preference is None:
        return between(scale="log" if is_log_axis(times) else "linear")
    if isinstance(preference, Linear | Increasing):
        return preference
    if callable(preference):
        function: Any = preference
        return weighted(function)
    hint = "preferences.between(3600, 7200)"
    if hasattr(preference, "cdf"):
        hint = "preferences.distribution(...)"
    elif isinstance(preference, int | float):
        hint = f"preferences.at({preference})"
    elif isinstance(preference, tuple | list) and len(preference) == 2:
        hint = f"preferences.between({preference[0]}, {preference[1]})"
    raise DataError(
        f"expected a function of time that gives weights, or one of "
        f"polarbear.preferences, such as {hint}",
        preference=preference,
    )


def evaluate_curves(function: Callable[[Floats], ArrayLike], curves: Floats) -> Floats:
    """Apply a user's function to rating curves (..., times), and check the values it returns.

    >>> evaluate_curves(lambda curves: curves.min(axis=-1), np.array([[0.2, 0.5], [0.4, 0.3]]))
    array([0.2, 0.3])
    """
    values = np.asarray(function(curves), dtype=np.float64)
    if values.shape != curves.shape[:-1]:
        raise DataError(
            f"the preference gave shape {values.shape} for curves of shape {curves.shape}: it must "
            "give one value for each curve, as in lambda curves: curves.min(axis=-1)"
        )
    if not np.isfinite(values).all():
        bad = values[~np.isfinite(values)][0]
        raise DataError(f"the preference gave {bad} for a rating curve: values must be finite")
    return values


def check_increasing(function: Callable[[Floats], ArrayLike], curves: Floats) -> None:
    """Raise an error if a preference gives a lower value to some curve when it is raised.

    >>> check_increasing(lambda curves: -curves.mean(axis=-1), np.full((1, 2), 0.5))
    Traceback (most recent call last):
    polarbear.errors.DataError: the preference falls from -0.5 to ... when all ratings of a curve
    rise: better algorithms would be worth less
    """
    before = evaluate_curves(function, curves)
    rise = np.linspace(0.001, 0.1, curves.shape[-1])
    for more in (rise, rise[::-1]):
        after = evaluate_curves(function, curves + more)
        falls = after < before - 1e-9 * np.abs(before)
        if falls.any():
            at_worst = int(np.argmax(falls))
            raise DataError(
                f"the preference falls from {before[at_worst]:g} to {after[at_worst]:g} when all "
                "ratings of a curve rise: better algorithms would be worth less"
            )


def _distribute_mass(points: Floats, mass: Floats, grid: Floats) -> Floats:
    """Distribute masses at points to the two nearest grid times, by linear interpolation."""
    if len(grid) == 1:
        return np.ones(1)
    right = np.clip(np.searchsorted(grid, points), 1, len(grid) - 1)
    share = (points - grid[right - 1]) / (grid[right] - grid[right - 1])
    mass = mass / mass.sum()
    weights = np.zeros(len(grid))
    np.add.at(weights, right, mass * share)
    np.add.at(weights, right - 1, mass * (1 - share))
    return weights


def _refine_grid(grid: Floats) -> Floats:
    """Divide each step of a time grid into ``PIECES_PER_STEP`` pieces."""
    return np.interp(
        np.arange(PIECES_PER_STEP * (len(grid) - 1) + 1) / PIECES_PER_STEP,
        np.arange(len(grid)),
        grid,
    )


def _weights_from_cdf(cdf: Callable[[Floats], ArrayLike], times: Floats, clock: str) -> Floats:
    """Return weights at grid times for stopping times with a cumulative distribution function."""
    edges = _refine_grid(times) if len(times) > 1 else times
    below = np.asarray(cdf(edges), dtype=np.float64)
    if below.shape != edges.shape or not np.all(np.diff(below, prepend=0, append=1) >= -1e-12):
        raise DataError("the function cdf must return a value for each time, and rise from 0 to 1")
    _check_share_outside(below[0] + 1 - below[-1], times, clock)
    points = np.concatenate([times[:1], (edges[1:] + edges[:-1]) / 2, times[-1:]])
    return _distribute_mass(points, np.diff(below, prepend=0, append=1).clip(0), times)


def _evaluate_weights(
    weight: Callable[[Floats], ArrayLike], times: Floats, grid: Floats, clock: str
) -> Floats:
    """Apply a user's weight function to times, and check the weights that it returns."""
    weights = np.asarray(weight(times), dtype=np.float64)
    if weights.shape != times.shape:
        raise DataError(
            f"the preference gave shape {weights.shape} for {len(times):,} times: it must give a "
            "weight for each; for a function of rating curves use preferences.increasing(function)"
        )
    bad = ~np.isfinite(weights) | (weights < 0)
    if bad.any():
        first = int(np.argmax(bad))
        raise DataError(
            f"the preference gave {weights[first]:g} at {times[first]:g}: weights must be finite "
            "and not negative"
        )
    if not weights.any():
        raise DataError(
            f"the preference is 0 everywhere in {format_range(grid[0], grid[-1], clock)}; for a "
            "short "
            "range use preferences.between(start, stop), for a single time preferences.at(time)"
        )
    return weights / weights.max()  # only ratios count, and a sum of large weights overflows


def _scale_transform(
    scale: Scale, times: Floats, low: float, clock: str
) -> Callable[[Floats], Floats]:
    """Return the function from times to a scale: the identity, or the logarithm."""
    if scale == "linear":
        return lambda values: values
    if not low > 0:
        raise DataError(
            f"scale='log' cannot include {format_range(low, low, clock)}: start later, as in "
            f"preferences.between({times[min(1, len(times) - 1)]:g}, {times[-1]:g}, scale='log')"
        )
    return np.log


def _check_share_outside(share: float, times: Floats, clock: str) -> None:
    if share > 1 - 1e-9:
        raise _outside_grid_error("every stopping time", times, clock)
    if share > MAX_SILENT_SHARE:
        warn(
            f"{share:.0%} of the stopping times lie outside of the times of the posterior, "
            f"{format_range(times[0], times[-1], clock)}: the rating at the nearer end stands for "
            "them"
        )


def _outside_grid_error(what: str, times: Floats, clock: str, *asked: float) -> DataError:
    hint = ""
    for unit, seconds in (
        (("minutes", 60), ("hours", 3600)) if choose_precision(clock) == "seconds" else ()
    ):
        if asked and times[0] <= seconds * min(asked) and seconds * max(asked) <= times[-1]:
            meant = format_range(seconds * min(asked), seconds * max(asked), clock)
            hint = f"; did you mean {unit}? These are {meant}"
    return DataError(
        f"{what} lies outside of the times of the posterior, "
        f"{format_range(times[0], times[-1], clock)}{hint}"
    )


def _check_numbers(what: str, *times: object) -> None:
    for time in times:
        if not isinstance(time, Real):
            raise DataError(
                f"{what}({time!r}): times are numbers in the clock of the data; with a clock in "
                "seconds an hour is 3600"
            )


def _check_scale(scale: Scale) -> Scale:
    if scale not in ("linear", "log"):
        raise DataError("expected 'linear' or 'log'", scale=scale)
    return scale


def _describe_scale(scale: Scale) -> str:
    return " on log time" if scale == "log" else ""
