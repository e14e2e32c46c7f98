"""The default engine: nested Laplace approximations with importance sampling and diagnostics.

May import priors, the likelihood and the parts of a Posterior.
"""
