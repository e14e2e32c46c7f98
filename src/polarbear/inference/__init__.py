"""Inference of ratings from rankings: fit, Posterior, dominance, verdicts and e-values.

May import data, priors and _text. ``laplace`` is the fast engine, ``reference`` has the samplers it
is compared with, ``plackett_luce`` is the likelihood.
"""
