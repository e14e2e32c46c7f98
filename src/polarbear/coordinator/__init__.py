"""Race and gate for real: the race decides, the store keeps its events, a backend makes the runs.

May import racing, store and running.
"""
