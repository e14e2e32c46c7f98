"""Samplers that the default engine is compared with: NUTS, variational inference, Stan.

May import priors, the likelihood and what a Posterior is made of; PyMC and Stan are extras.
"""
