"""Race and gate: a race decides, a store keeps its events, and a backend executes the runs.

May import racing, store and running.
"""
