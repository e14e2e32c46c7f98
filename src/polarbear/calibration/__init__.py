"""Calibration: is what a posterior claims as often true as it says?"""

from polarbear.calibration.pool import nearest_utilities
from polarbear.calibration.tally import Tally, judge

__all__ = ["Tally", "judge", "nearest_utilities"]
