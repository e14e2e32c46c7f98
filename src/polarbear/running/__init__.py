"""Solvers run for real: what they see, how they are contained, and where they run."""
