"""Selection of algorithms to run, by a preference over time and a risk criterion.

``preferences`` define the value of a rating curve, ``portfolios`` searches the best multiset of
algorithms, ``decision`` has ``select``, ``result`` has ``Selection``, and ``ratings`` the small
file from which ``select`` works elsewhere. These need numpy only. ``schedules``,
``more_time`` and ``board`` work from runs. May import data and _text.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from polarbear.selection.instance_ratings import InstanceRatings, value_of_selection
from polarbear.selection.ratings import Ratings
from polarbear.selection.worst_case import worst_case_regret

if TYPE_CHECKING:
    from polarbear.data.losses import losses
    from polarbear.selection.board import audit
    from polarbear.selection.more_time import value_of_time
    from polarbear.selection.schedules import schedule

# What works from runs needs more than numpy, so it is imported when first used.
_FROM_RUNS = {
    "audit": "polarbear.selection.board",
    "losses": "polarbear.data.losses",
    "schedule": "polarbear.selection.schedules",
    "value_of_time": "polarbear.selection.more_time",
}

__all__ = [
    "InstanceRatings",
    "Ratings",
    "audit",
    "losses",
    "schedule",
    "value_of_selection",
    "value_of_time",
    "worst_case_regret",
]


def __getattr__(name: str) -> Any:
    if name not in _FROM_RUNS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_FROM_RUNS[name]), name)
