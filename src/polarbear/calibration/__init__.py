"""Calibration: are the claims of a posterior true as often as their probabilities say?

``calibrate`` answers it for given data by resampling; ``tally_claims`` counts the claims of one
posterior against a known truth. ``check_irrelevant_alternatives`` and ``check_win_rates`` test the
assumption of the Plackett-Luce model. May import data, priors, inference and _text.
"""

from polarbear.calibration.odds import (
    OddsCheck,
    OddsDifference,
    check_irrelevant_alternatives,
    check_win_rates,
)
from polarbear.calibration.population import fit_utilities
from polarbear.calibration.resampling import Calibration, calibrate
from polarbear.calibration.tally import Tally, tally_claims

__all__ = [
    "Calibration",
    "OddsCheck",
    "OddsDifference",
    "Tally",
    "calibrate",
    "check_irrelevant_alternatives",
    "check_win_rates",
    "fit_utilities",
    "tally_claims",
]
