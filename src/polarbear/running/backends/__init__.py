"""Where runs are made: local processes, executors, Dask, a shared folder.

May import running.workers and running.solvers.
"""
