"""Where runs are made: local processes, executors, Dask, a shared folder.

May import running.workers and running.solvers.
"""

from polarbear.running.backends.local_processes import LocalProcesses
from polarbear.running.backends.shared_folder import SharedFolder

__all__ = ["LocalProcesses", "SharedFolder"]
