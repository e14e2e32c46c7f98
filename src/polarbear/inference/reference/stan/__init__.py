"""The reference engine in Stan: models, a driver in C++, their compilation and execution.

The models are those of :mod:`polarbear.inference.reference.pymc_model`, written again and sampled
by another program, as an independent check.
"""
