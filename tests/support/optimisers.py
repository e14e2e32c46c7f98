"""Real optimisers on shifted test functions, some of which stop by themselves; every evaluation."""

import math

import cma
import numpy as np
import scipy.optimize as so

DIMENSION, BUDGET = 4, 800

OPTIMISERS = ("NelderMead", "LBFGSB", "CMA", "DE", "RandomSearch")
"""Nelder-Mead and pycma stop when they have converged; the others use the whole budget."""


class _BudgetSpentError(Exception):
    pass


def _function(kind, rng):
    shift = rng.uniform(-3, 3, DIMENSION)
    rotation = np.linalg.qr(rng.normal(size=(DIMENSION, DIMENSION)))[0]
    scale = 10.0 ** (3 * np.arange(DIMENSION) / (DIMENSION - 1))

    def value(x):
        z = rotation @ (np.asarray(x) - shift)
        if kind == 0:
            return float(z @ z)
        if kind == 1:
            return float(scale @ z**2)
        return float(z @ z + 10 * np.sum(1 - np.cos(2 * math.pi * z)))

    return value


def evaluate(optimiser, instance):
    """Return the values of all evaluations of one run."""
    rng = np.random.default_rng([instance, OPTIMISERS.index(optimiser)])
    function, values = _function(instance % 3, np.random.default_rng(instance)), []

    def count(x):
        if len(values) >= BUDGET:
            raise _BudgetSpentError
        values.append(function(x))
        return values[-1]

    def start():
        return rng.uniform(-4, 4, DIMENSION)

    try:
        if optimiser == "NelderMead":
            options = {"maxfev": BUDGET, "xatol": 1e-3, "fatol": 1e-3}
            so.minimize(count, start(), method="Nelder-Mead", options=options)
        elif optimiser == "CMA":
            options = {"seed": instance + 1, "verbose": -9, "maxfevals": BUDGET, "tolfun": 1e-2}
            cma.fmin2(count, start(), 2.0, options)
        elif optimiser == "LBFGSB":
            while True:
                so.minimize(count, start(), method="L-BFGS-B", bounds=[(-4, 4)] * DIMENSION)
        elif optimiser == "DE":
            bounds = [(-4, 4)] * DIMENSION
            while True:
                so.differential_evolution(count, bounds, rng=rng, polish=False, maxiter=50)
        else:
            while True:
                count(start())
    except _BudgetSpentError:
        pass
    return values
