"""The reference engine in Stan itself: models, a driver in C++, and what compiles and runs them.

The models are those of :mod:`polarbear.engines.pymc_model`, in a language of their own and sampled
by a program of others, so that an error would have to be made twice to go unnoticed.
"""
