"""Packing of shares and draws for a page: of shares in two bytes, of draws in one byte each.

The number of bytes is limited: draws are thinned, and algorithms that no preference would choose
are left out. The remaining draws are matched to the mean and standard deviation over all draws.
Expected values are therefore exact, and quantiles far closer than with thinning alone.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarbear.data.array_files import pack_array
from polarbear.selection.ratings import thin_draws

MAX_DRAW_BYTES = 280_000
"""The most bytes of draws in a page; base64 adds a third."""

MIN_DRAWS = 100


def pack_shares(values: NDArray[Any]) -> dict[str, Any]:
    """Pack numbers between 0 and 1 in two bytes each: 65535 stands for 1.

    >>> pack_shares(np.array([0.0, 1.0]))
    {'shape': [2], 'kind': 'u2', 'base64': 'AAD//w=='}
    """
    return pack_array(np.round(np.clip(values, 0, 1) * 65535), "u2")


def find_candidates(ratings: NDArray[Any], everywhere: NDArray[Any]) -> list[int]:
    """Return the indices of the algorithms that some preference may choose.

    An algorithm is left out if another one is ahead at all times in every draw: then that one has
    a higher value under all weights and risks. ``ratings`` has shape (D, T, n); ``everywhere``
    (n, n) is P(row ahead of column at all times), which picks the one to compare with.
    """
    n = ratings.shape[2]
    rival = np.argmax(everywhere, axis=0) if n > 1 else np.zeros(n, dtype=np.intp)
    is_beaten = [
        bool(everywhere[rival[k], k] > 0.99)
        and bool(np.all(ratings[:, :, rival[k]] > ratings[:, :, k]))
        for k in range(n)
    ]
    return [k for k in range(n) if not is_beaten[k]]


def pack_draws(ratings: NDArray[Any], codes: list[int]) -> dict[str, Any]:
    """Pack draws of selected algorithms' ratings in one byte each, with offset and step.

    Offset and step are for each algorithm and time; bytes have shape (algorithms, T, draws).
    """
    size = max(1, len(codes) * ratings.shape[1])
    kept_draws = thin_draws(ratings, max(MIN_DRAWS, MAX_DRAW_BYTES // size))
    curves = np.moveaxis(kept_draws[..., codes], 0, -1).swapaxes(0, 1).astype(np.float64)
    low, high = curves.min(axis=-1, keepdims=True), curves.max(axis=-1, keepdims=True)
    width = np.where(high > low, high - low, 1.0)
    level = np.round((curves - low) / width * 255)
    all_draws = ratings[..., codes]
    mean = all_draws.mean(axis=0, dtype=np.float64).T
    spread = all_draws.std(axis=0, dtype=np.float64).T
    level_spread = level.std(axis=-1)
    step = np.where(level_spread > 0, spread / np.where(level_spread > 0, level_spread, 1.0), 0.0)
    offset = mean - step * level.mean(axis=-1)
    return {
        "algorithms": codes,
        "offset": pack_array(offset),
        "step": pack_array(step),
        "levels": pack_array(level, "u1"),
        "of": len(ratings),
    }
