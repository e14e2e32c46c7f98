"""Selection of algorithms to run, by a preference over time and a risk criterion.

``preferences`` define the value of a rating curve, ``portfolios`` searches the best multiset of
algorithms, ``decision`` has ``select``, ``result`` has ``Selection``, and ``ratings`` the small
file from which ``select`` works elsewhere. Needs numpy only; may import data and _text.
"""
