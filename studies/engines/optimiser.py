"""Which width ADVI's optimiser ends at, for a posterior that is exactly Gaussian in one dimension.

PyMC's ADVI moves by ``adagrad_window``: a gradient is divided by the root of the summed squares of
the last ten gradients, which include itself. So rare, large gradients count less than many small
ones. The gradient of the width is skewed, and the width at which steps cancel is too large.
"""

import numpy as np

RATE, WINDOW, EPSILON = 0.001, 10, 0.1
"""The defaults of PyMC."""


def final_width(samples: int, sd: float = 0.3, steps: int = 20_000, copies: int = 16) -> float:
    """Return the width at which ADVI ends, over that of the posterior, N(0, sd^2).

    It is the mean over the second half of the steps, and over copies with other random numbers;
    ``samples`` are drawn for each gradient (PyMC: 1).

    >>> 0.9 < final_width(1, steps=2000) < 2
    True
    """
    rng = np.random.default_rng(0)
    mean, rho = np.zeros(copies), np.full(copies, np.log(np.expm1(1.0)))
    squares = np.zeros((2, WINDOW, copies))
    total = 0.0
    for step in range(steps):
        width = np.log1p(np.exp(rho))
        noise = rng.standard_normal((samples, copies))
        slope = (mean + width * noise) / sd**2  # of the negative log-density
        of_width = (slope * noise).mean(axis=0) - 1 / width
        gradients = np.stack([slope.mean(axis=0), of_width / (1 + np.exp(-rho))])
        squares[:, step % WINDOW] = gradients**2
        moves = RATE * gradients / np.sqrt(squares.sum(axis=1) + EPSILON)
        mean, rho = mean - moves[0], rho - moves[1]
        if step >= steps // 2:
            total += np.log1p(np.exp(rho)).mean() / sd
    return total / (steps - steps // 2)
