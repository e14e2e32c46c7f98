"""Arrays as text that a page can read back, and draws of ratings in one byte each.

A page of a few hundred kilobytes holds some hundred thousand bytes of draws. What is left out are
draws, evenly, and algorithms that nobody would ever choose; what is kept is moved so that each
rating has the mean and the spread that it has in all draws. Expected values are therefore exact,
and quantiles far closer than by thinning alone.
"""

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarbear.selection.ratings import thin_draws

MOST_BYTES = 300_000
"""The most bytes of draws in a page; as text they are a third more."""

LEAST_DRAWS = 100

_TYPES = {"f4": "<f4", "u2": "<u2", "u1": "u1"}


def packed(values: NDArray[Any], kind: str = "f4") -> dict[str, Any]:
    """An array as JSON: its shape, and its numbers in base64, little-endian.

    >>> packed(np.array([[1.0, 2.0]]))
    {'shape': [1, 2], 'kind': 'f4', 'base64': 'AACAPwAAAEA='}
    """
    plain = np.ascontiguousarray(values, dtype=_TYPES[kind])
    text = base64.b64encode(plain.tobytes()).decode("ascii")
    return {"shape": list(plain.shape), "kind": kind, "base64": text}


def shares(values: NDArray[Any]) -> dict[str, Any]:
    """Numbers between 0 and 1, in two bytes each: 65535 stands for 1.

    >>> shares(np.array([0.0, 1.0]))
    {'shape': [2], 'kind': 'u2', 'base64': 'AAD//w=='}
    """
    return packed(np.round(np.clip(values, 0, 1) * 65535), "u2")


def candidates(ratings: NDArray[Any], everywhere: NDArray[Any]) -> list[int]:
    """Who may be chosen: all but those that some other one is ahead of, always and in every draw.

    Whatever the weights on times and whatever the risk, that other one is worth more. ``ratings``
    (D, T, n), and P(row ahead of column at all times), which says whom to compare.
    """
    n = ratings.shape[2]
    rival = np.argmax(everywhere, axis=0) if n > 1 else np.zeros(n, dtype=np.intp)
    beaten = [
        bool(everywhere[rival[k], k] > 0.99)
        and bool(np.all(ratings[:, :, rival[k]] > ratings[:, :, k]))
        for k in range(n)
    ]
    return [k for k in range(n) if not beaten[k]]


def packed_draws(ratings: NDArray[Any], codes: list[int]) -> dict[str, Any]:
    """Some draws (D, T, n) of these algorithms: offset + step * byte, for each algorithm and time.

    Bytes are of shape (algorithms, T, draws).
    """
    size = max(1, len(codes) * ratings.shape[1])
    some = thin_draws(ratings, max(LEAST_DRAWS, MOST_BYTES // size))
    curves = np.moveaxis(some[..., codes], 0, -1).swapaxes(0, 1).astype(np.float64)
    low, high = curves.min(axis=-1, keepdims=True), curves.max(axis=-1, keepdims=True)
    wide = np.where(high > low, high - low, 1.0)
    level = np.round((curves - low) / wide * 255)
    everything = ratings[..., codes]
    mean = everything.mean(axis=0, dtype=np.float64).T
    spread = everything.std(axis=0, dtype=np.float64).T
    uneven = level.std(axis=-1)
    step = np.where(uneven > 0, spread / np.where(uneven > 0, uneven, 1.0), 0.0)
    offset = mean - step * level.mean(axis=-1)
    return {
        "algorithms": codes,
        "offset": packed(offset),
        "step": packed(step),
        "levels": packed(level, "u1"),
        "of": len(ratings),
    }
