"""Calibration: is what a posterior claims as often true as it says?

``calibrate`` asks it of your own data; ``judge`` counts the claims of one posterior against a known
truth; ``check_thirds`` and ``check_rates`` ask whether odds depend on who else takes part.
"""

from polarbear.calibration.odds import Change, Check, check_rates, check_thirds
from polarbear.calibration.population import nearest_utilities
from polarbear.calibration.resampling import Calibration, calibrate
from polarbear.calibration.tally import Tally, judge

__all__ = [
    "Calibration",
    "Change",
    "Check",
    "Tally",
    "calibrate",
    "check_rates",
    "check_thirds",
    "judge",
    "nearest_utilities",
]
