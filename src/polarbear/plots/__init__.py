"""Figures: each function draws on matplotlib axes; its ``_data`` twin returns what is drawn.

``ax = pb.plots.ratings(posterior)`` draws, ``ax.figure.savefig("ratings.png", dpi=200)`` saves,
and ``pb.plots.ratings_data(posterior)`` returns the numbers in the figure.
"""

from polarbear.data.colours import Cast, Style, set_colours
from polarbear.inference.ribbon import Lead, Ribbon
from polarbear.plots.canvas import figsize, save_figure
from polarbear.plots.classical import (
    Aocc,
    Attainment,
    Ecdf,
    aocc,
    aocc_data,
    eaf_difference,
    eaf_difference_data,
    ecdf,
    ecdf_data,
)
from polarbear.plots.crossings import CrossingMap, crossings, crossings_data
from polarbear.plots.evolution import Evolution, evolution, evolution_data
from polarbear.plots.gap import Bounds, Gaps, bounds, bounds_data, gaps, gaps_data
from polarbear.plots.instance_figures import (
    BestMap,
    ClassTable,
    FeatureCurve,
    best_map,
    best_map_data,
    class_table,
    class_table_data,
    feature_curve,
    feature_curve_data,
)
from polarbear.plots.pair_matrix import Pairs, pairs, pairs_data
from polarbear.plots.rating_curves import RatingCurves, rating_panels, ratings, ratings_data
from polarbear.plots.reliability import CalibrationCurve, calibration, calibration_data
from polarbear.plots.ribbon_figure import ribbon, ribbon_data
from polarbear.plots.run_allocation import Allocation, allocation, allocation_data
from polarbear.plots.time_values import TimeValues, time_values, time_values_data
from polarbear.plots.values import Values, values, values_data

__all__ = [
    "Allocation",
    "Aocc",
    "Attainment",
    "BestMap",
    "Bounds",
    "CalibrationCurve",
    "Cast",
    "ClassTable",
    "CrossingMap",
    "Ecdf",
    "Evolution",
    "FeatureCurve",
    "Gaps",
    "Lead",
    "Pairs",
    "RatingCurves",
    "Ribbon",
    "Style",
    "TimeValues",
    "Values",
    "allocation",
    "allocation_data",
    "aocc",
    "aocc_data",
    "best_map",
    "best_map_data",
    "bounds",
    "bounds_data",
    "calibration",
    "calibration_data",
    "class_table",
    "class_table_data",
    "crossings",
    "crossings_data",
    "eaf_difference",
    "eaf_difference_data",
    "ecdf",
    "ecdf_data",
    "evolution",
    "evolution_data",
    "feature_curve",
    "feature_curve_data",
    "figsize",
    "gaps",
    "gaps_data",
    "pairs",
    "pairs_data",
    "rating_panels",
    "ratings",
    "ratings_data",
    "ribbon",
    "ribbon_data",
    "save_figure",
    "set_colours",
    "time_values",
    "time_values_data",
    "values",
    "values_data",
]
