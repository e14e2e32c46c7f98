"""From ratings to a choice: a preference over time, an attitude to risk, a number of parallel runs.

``preferences`` says what a rating curve is worth, ``portfolios`` finds the best multiset of
algorithms, ``choices`` is the answer, ``decision`` has ``select``, and ``ratings`` the small file
from which the same code answers elsewhere. None of it needs more than numpy.
"""
