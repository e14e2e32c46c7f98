"""One run in a process of its own, with limits on time, memory and processes.

May import running.solvers.
"""
