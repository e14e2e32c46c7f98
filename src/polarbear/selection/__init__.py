"""Selection of algorithms to run, by a preference over time and a risk criterion.

``preferences`` define the value of a rating curve, ``portfolios`` searches the best multiset of
algorithms, ``decision`` has ``select``, ``result`` has ``Selection``, and ``ratings`` the small
file from which ``select`` works elsewhere. These need numpy only. ``schedules`` and
``value_of_time`` work from runs. May import data and _text.
"""

from polarbear.selection.instance_ratings import InstanceRatings, value_of_selection
from polarbear.selection.ratings import Ratings
from polarbear.selection.worst_case import worst_case_regret

__all__ = [
    "InstanceRatings",
    "Ratings",
    "value_of_selection",
    "worst_case_regret",
]
