"""What users write: solvers, commands, instances, limits, race files; and what a solver sees.

May import racing and data.
"""
