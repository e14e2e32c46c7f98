"""Running solvers: ``solvers`` is what users write, ``workers`` contain it, ``backends`` place it.

May import racing (jobs and events), data, inference.threads and inference.versions.
"""
