"""Figures: each takes and returns axes of matplotlib, and has its data in a function of its own.

``pb.plots.ratings(posterior)`` draws, ``pb.plots.ratings_data(posterior)`` gives what is drawn.
"""

from polarbear.plots.allocation import Allocation, allocation_data
from polarbear.plots.calibration import CalibrationCurve, calibration_data
from polarbear.plots.classical import (
    Aocc,
    Attainment,
    Ecdf,
    aocc_data,
    eaf_difference_data,
    ecdf_data,
)
from polarbear.plots.colours import Cast, Style
from polarbear.plots.crossings import CrossingMap, crossings_data
from polarbear.plots.evolution import Evolution, evolution_data
from polarbear.plots.pairs import Pairs, pairs_data
from polarbear.plots.ratings import RatingCurves, ratings_data
from polarbear.plots.values import Values, values_data

__all__ = [
    "Allocation",
    "Aocc",
    "Attainment",
    "CalibrationCurve",
    "Cast",
    "CrossingMap",
    "Ecdf",
    "Evolution",
    "Pairs",
    "RatingCurves",
    "Style",
    "Values",
    "allocation_data",
    "aocc_data",
    "calibration_data",
    "crossings_data",
    "eaf_difference_data",
    "ecdf_data",
    "evolution_data",
    "pairs_data",
    "ratings_data",
    "values_data",
]
