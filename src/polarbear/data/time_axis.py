"""Whether an axis is logarithmic: one rule for figures, reports and ``select``."""

import numpy as np
from numpy.typing import NDArray

MIN_LOG_RATIO = 100
"""An axis is logarithmic if its last value is at least this multiple of its first."""


def is_log_axis(times: NDArray[np.float64]) -> bool:
    """Return whether figures, reports and ``select`` take these times on a log scale.

    They do from a factor of 100 on, and if the times are more evenly spaced on that scale.

    >>> is_log_axis(np.geomspace(5, 50, 9)), is_log_axis(np.linspace(5, 50, 9))
    (True, False)
    >>> is_log_axis(np.linspace(1, 1000, 9)), is_log_axis(np.linspace(0, 1000, 9))
    (True, False)
    """
    if not times[0] > 0 or times[-1] >= MIN_LOG_RATIO * times[0] or len(times) < 3:
        return bool(times[0] > 0 and times[-1] >= MIN_LOG_RATIO * times[0])
    even = np.linspace(0, 1, len(times))

    def unevenness(position: NDArray[np.float64]) -> float:
        return float(np.abs((position - position[0]) / (position[-1] - position[0]) - even).max())

    return unevenness(np.log(times)) < 0.25 * unevenness(times)
