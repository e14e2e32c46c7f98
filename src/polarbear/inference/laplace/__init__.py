"""The default engine: Gaussian approximations, importance weights and checks of both.

May import priors, the likelihood and what a Posterior is made of.
"""
