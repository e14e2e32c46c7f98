"""Runs of algorithms, grids of times, and the rankings of runs at these times.

``Runs`` are made of tables and records; ``rank`` makes ``Rankings`` of them. May import _text.
"""
