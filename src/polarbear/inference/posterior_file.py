"""Reading of a posterior's file, with validation of its content."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarbear.errors import DataError
from polarbear.inference.archive import read_arrays
from polarbear.inference.diagnostics import Diagnostics
from polarbear.inference.pair_probabilities import Mixture

KIND, VERSION = "polarbear posterior", 1
"""The kind of file and the version of its format; older versions are read, newer refused."""

MIXTURE_FIELDS = ("weight", "mean", "covariance", "holds", "bent")
"""Fields of ``Mixture``, each stored with the prefix ``mixture_``."""

HEADER_TYPES: Mapping[str, type] = {
    "clock": str,
    "prior": str,
    "method": str,
    "chains": int,
    "independent": bool,
    "evidence": str,
    "instances": int,
}
"""Types of the header entries that are fields of the posterior."""


def read_posterior(path: str | Path) -> dict[str, Any]:
    """Return the fields of a saved posterior; ``DataError`` if the file is damaged."""
    header, arrays = read_arrays(path, KIND, VERSION)
    try:
        return _check_fields(header, arrays)
    except KeyError as error:
        raise DataError(f"{path} is damaged: {error} is missing") from None
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise DataError(f"{path} is damaged: {error}") from None


def _check_fields(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """Return the fields of a posterior; ValueError, TypeError or KeyError if they are invalid."""
    stored, names = header["diagnostics"], header["algorithms"]
    measured = {name: float(value) for name, value in stored["measured"].items()}
    for name, kind in HEADER_TYPES.items():
        if type(header[name]) is not kind:
            raise ValueError(f"{name} is {header[name]!r}")
    if header["chains"] < 1 or header["instances"] < 0:
        raise ValueError("chains and instances must be counts")
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
        raise ValueError("its arrays do not fit together")
    if np.any(np.diff(times) <= 0) or np.any(weight < 0) or not np.all(weight.sum(axis=0) > 0):
        raise ValueError("times must increase and weights must not be negative")
    return {
        "algorithms": tuple(names),
        "times": times.astype(np.float64, copy=False),
        "draws": draws,
        "weight": weight,
        "mixture": mixture,
        "hyper": {name: arrays[f"hyper_{k}"] for k, name in enumerate(header["hyper"])},
        "diagnostics": Diagnostics(measured, tuple(stored["problems"]), tuple(stored["notes"])),
        **{name: header[name] for name in HEADER_TYPES},
    }


def _check_texts(name: str, texts: Any, *, distinct: bool = False) -> None:
    """Raise ValueError unless texts are a list of strings."""
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"{name} must be a list of texts")
    if distinct and len(set(texts)) < len(texts):
        raise ValueError(f"{name} has a name twice")


def _check_array(name: str, array: NDArray[Any], shapes: list[tuple[int, ...]]) -> None:
    """Raise ValueError unless an array has a type and a shape that are expected."""
    if array.dtype.kind not in ("b" if name == "mixture_holds" else "f"):
        raise ValueError(f"{name} holds {array.dtype}")
    if array.shape not in shapes:
        raise ValueError(f"its arrays do not fit together: {name} has the shape {array.shape}")
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{name} holds numbers that are not finite")
