"""Reference engines to compare the default engine with: NUTS, variational inference, Stan.

May import priors, the likelihood and the parts of a Posterior; PyMC and Stan are extras.
"""
