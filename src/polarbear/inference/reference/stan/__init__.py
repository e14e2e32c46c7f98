"""The reference engine in Stan itself: models, a driver in C++, and what compiles and runs them.

The models are those of :mod:`polarbear.inference.reference.pymc_model`, written again and sampled
by another program, so that an error would have to be made twice to go unnoticed.
"""
