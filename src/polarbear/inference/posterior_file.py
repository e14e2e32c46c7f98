"""Writing of a posterior, and reading of a saved one, with validation of its content."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarbear.data.array_files import read_arrays, write_arrays
from polarbear.data.run import Status
from polarbear.data.run_ends import RunEnds
from polarbear.errors import DataError
from polarbear.inference.diagnostics import Diagnostics
from polarbear.inference.pair_probabilities import Mixture
from polarbear.inference.replacing import Places

KIND, VERSION = "polarbear posterior", 1
"""The kind of file and the version of its format; older versions are read, newer refused."""

OTHER_PREFIX = "if_cut_"
"""The prefix of the arrays of the posterior with unstated ends of runs read as cut."""

MIXTURE_FIELDS = ("weight", "mean", "covariance", "holds", "bent")
"""Fields of ``Mixture``, each stored with the prefix ``mixture_``."""

HEADER_TYPES: Mapping[str, type] = {
    "clock": str,
    "prior": str,
    "method": str,
    "chains": int,
    "independent": bool,
    "averaged": bool,
    "counted": bool,
    "evidence": str,
    "instances": int,
}
"""Types of the header entries that are fields of the posterior."""

OPTIONAL_ARRAYS = ("curves", "wins", "decided")
INTEGER_ARRAYS = ("places_position", "places_instance")

PLACES_FIELDS = ("position", "instance", "weight")
"""Fields of ``Places``, each stored with the prefix ``places_``."""


def write_posterior(path: str | Path, posterior: Any) -> None:
    """Write the fields of a ``Posterior`` to one file."""
    header, arrays = _pack(posterior)
    if posterior.if_cut is not None:
        header["if_cut"], others = _pack(posterior.if_cut)
        arrays |= {f"{OTHER_PREFIX}{name}": values for name, values in others.items()}
    write_arrays(path, {"kind": KIND, "version": VERSION, **header}, arrays)


def _pack(posterior: Any) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header and the arrays of a posterior, without those of its other reading."""
    diagnostics = posterior.diagnostics
    header = {
        "algorithms": list(posterior.algorithms),
        **{name: getattr(posterior, name) for name in HEADER_TYPES},
        "ends": [one._asdict() for one in posterior.ends],
        "hyper": list(posterior.hyper),
        "diagnostics": {
            # As text, because JSON has no infinities.
            "measured": {name: repr(float(value)) for name, value in diagnostics.measured.items()},
            "problems": list(diagnostics.problems),
            "notes": list(diagnostics.notes),
        },
    }
    arrays = {"times": posterior.times, "draws": posterior.draws, "weight": posterior.weight}
    optional = {name: getattr(posterior, name) for name in OPTIONAL_ARRAYS}
    arrays |= {name: values for name, values in optional.items() if values is not None}
    if posterior.places is not None:
        arrays |= {f"places_{name}": getattr(posterior.places, name) for name in PLACES_FIELDS}
    arrays |= {f"hyper_{k}": values for k, values in enumerate(posterior.hyper.values())}
    if posterior.mixture is not None:
        arrays |= {f"mixture_{name}": getattr(posterior.mixture, name) for name in MIXTURE_FIELDS}
    return header, arrays


def read_posterior(path: str | Path) -> dict[str, Any]:
    """Return the fields of a saved posterior; ``DataError`` if the file is damaged."""
    header, arrays = read_arrays(path, KIND, VERSION)
    others = {k: v for k, v in arrays.items() if k.startswith(OTHER_PREFIX)}
    try:
        fields = _check_fields(header, {k: v for k, v in arrays.items() if k not in others})
        other = header.get("if_cut")
        own = {k.removeprefix(OTHER_PREFIX): v for k, v in others.items()}
        return {**fields, "if_cut": None if other is None else _check_fields(other, own)}
    except KeyError as error:
        raise DataError(
            f"{path} is damaged: its entry {error} is missing; save the posterior again"
        ) from None
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise DataError(f"{path} is damaged: {error}; save the posterior again") from None


def _check_fields(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """Return the fields of a posterior; ValueError, TypeError or KeyError if they are invalid."""
    stored, names = header["diagnostics"], header["algorithms"]
    measured = {name: float(value) for name, value in stored["measured"].items()}
    for name, kind in HEADER_TYPES.items():
        if type(header[name]) is not kind:
            raise ValueError(
                f"the entry {name!r} of the header must be of type {kind.__name__}, got "
                f"{header[name]!r}"
            )
    if header["chains"] < 1 or header["instances"] < 0:
        raise ValueError(
            "a posterior needs at least 1 chain, and a number of instances that is not negative"
        )
    _check_texts("algorithms", names, distinct=True)
    _check_texts("hyper", header["hyper"], distinct=True)
    _check_texts("problems", stored["problems"])
    _check_texts("notes", stored["notes"])
    times, draws, weight = arrays["times"], arrays["draws"], arrays["weight"]
    size, n_times, n = len(draws), len(times), len(names)
    expected = {
        "times": [(n_times,)],
        "draws": [(size, n_times, n)],
        "weight": [(size, n_times), (size, 1)],
        **{f"hyper_{k}": [(size,)] for k in range(len(header["hyper"]))},
    }
    n_pairs = n * (n - 1) // 2
    for name, shape in (("curves", (n_times, n)), ("wins", (n_times, n_pairs))):
        if name in arrays:
            expected[name] = [(max(1, len(arrays[name])), *shape)]
    if "decided" in arrays:
        expected["decided"] = [(n_times, n_pairs)]
    places = None
    if "places_position" in arrays:
        places = Places(*(arrays[f"places_{name}"] for name in PLACES_FIELDS))
        c = len(places.instance)
        shapes = ((n_times, c, n), (c,), (c,))
        expected |= {f"places_{k}": [s] for k, s in zip(PLACES_FIELDS, shapes, strict=True)}
    mixture = None
    if "mixture_weight" in arrays:
        parts = [arrays[f"mixture_{name}"] for name in MIXTURE_FIELDS]
        g = len(parts[0])
        shapes = [(g,), (g, n_times, n), (g, n_times, n, n), (n_times,)]
        expected |= {
            f"mixture_{name}": [s] for name, s in zip(MIXTURE_FIELDS, shapes, strict=False)
        }
        expected["mixture_bent"] = [(size, n_times, n), (1, 1, 1)]
        mixture = Mixture(*parts)
    for name, shapes in expected.items():
        _check_array(name, arrays[name], shapes)
    if not (size and n_times and n) or size % header["chains"]:
        raise ValueError(
            f"the arrays of the posterior do not fit together: {size} draws of {header['chains']} "
            f"chains, {n_times} times, {n} algorithms"
        )
    share = arrays.get("decided", times * 0)
    if (places and not places.are_possible()) or np.any((share < 0) | (share > 1)):
        raise ValueError("the places of the algorithms, or shares of decided duels, are impossible")
    if np.any(np.diff(times) <= 0) or np.any(weight < 0) or not np.all(weight.sum(axis=0) > 0):
        raise ValueError(
            "the times of a posterior must increase, and its weights must not be negative"
        )
    return {
        "algorithms": tuple(names),
        "times": times.astype(np.float64, copy=False),
        "draws": draws,
        "weight": weight,
        "mixture": mixture,
        "places": places,
        **{name: arrays.get(name) for name in OPTIONAL_ARRAYS},
        "ends": tuple(_read_ends(one, names) for one in header["ends"]),
        "hyper": {name: arrays[f"hyper_{k}"] for k, name in enumerate(header["hyper"])},
        "diagnostics": Diagnostics(measured, tuple(stored["problems"]), tuple(stored["notes"])),
        **{name: header[name] for name in HEADER_TYPES},
    }


def _read_ends(plain: Any, names: list[str]) -> RunEnds:
    """Return how the runs of an algorithm ended; ValueError, TypeError or KeyError if invalid."""
    ends = RunEnds(**plain)
    numbers = [ends.instances, *ends.counts.values()]
    shares = [ends.failed_ahead, ends.others_ahead]
    if (
        ends.algorithm not in names
        or not all(type(n) is int and n >= 0 for n in numbers)
        or not all(how in [*Status] for how in ends.counts)
        or not all(x is None or (type(x) is float and 0 <= x <= 1) for x in shares)
    ):
        raise ValueError(f"the entry 'ends' of the header is wrong for {ends.algorithm!r}")
    return ends


def _check_texts(name: str, texts: Any, *, distinct: bool = False) -> None:
    """Raise ValueError unless a field is a list of texts, all different if ``distinct``."""
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError(
            f"the entry {name!r} of a posterior must be a list of texts, got {texts!r}"
        )
    if distinct and len(set(texts)) < len(texts):
        raise ValueError(f"a name occurs twice in the list {name!r} of the posterior")


def _check_array(name: str, array: NDArray[Any], shapes: list[tuple[int, ...]]) -> None:
    """Raise ValueError unless an array holds finite numbers in one of the expected shapes."""
    kind = "b" if name == "mixture_holds" else "i" if name in INTEGER_ARRAYS else "f"
    if array.dtype.kind != kind:
        raise ValueError(f"the array {name!r} must hold numbers, got the type {array.dtype}")
    if array.shape not in shapes:
        raise ValueError(
            f"the arrays of the posterior do not fit together: {name!r} has the shape "
            f"{array.shape}, expected "
            f"{shapes[0]}"
        )
    if not np.all(np.isfinite(array)):
        raise ValueError(
            f"the array {name!r} must hold finite numbers, but has nan or infinite ones"
        )
