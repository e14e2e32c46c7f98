"""
Optimisers of well-known packages as solvers
============================================

scipy, cma, modcma, nevergrad, optuna and a class of your own each become a solver in a few lines.
The problems come from ioh. Packages that are not installed are left out.
"""

import warnings
from importlib.util import find_spec

import numpy as np
from matplotlib import pyplot

import polarbear as pb


def differential_evolution(job):
    """A function that minimises: scipy."""
    from scipy.optimize import differential_evolution

    f = job.track(job.instance)
    differential_evolution(f, _box(f), rng=job.rng, maxiter=10**9, tol=0, polish=False)


def nelder_mead(job):
    """The same, with restarts."""
    from scipy.optimize import minimize

    f = job.track(job.instance)
    while True:
        minimize(f, job.rng.uniform(-5, 5, f.meta_data.n_variables), method="Nelder-Mead")


def cma_es(job):
    """Ask and tell: cma."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # cma warns if it cannot import matplotlib
        import cma

    f = job.track(job.instance)
    start = job.rng.uniform(-5, 5, f.meta_data.n_variables)
    options = {"seed": job.seed + 1, "verbose": -9, "maxiter": 10**9}
    cma.fmin2(f, start, 2.0, options, restarts=9)


def modular_cma_es(job):
    """A C++ optimiser that calls back: modcma."""
    from modcma import c_maes

    f = job.track(job.instance)
    dim = f.meta_data.n_variables
    c_maes.utils.set_seed(job.seed)
    settings = c_maes.parameters.Settings(dim, budget=10**9, sigma0=2.0)
    c_maes.ModularCMAES(settings)(lambda x: float(f(x)))


def nevergrad_de(job):
    """Ask and tell with a parameter object: nevergrad."""
    import nevergrad

    f = job.track(job.instance)
    box = nevergrad.p.Array(shape=(f.meta_data.n_variables,), lower=-5, upper=5)
    box.random_state.seed(job.seed)
    optimiser = nevergrad.optimizers.TwoPointsDE(box, budget=int(job.horizon))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        optimiser.minimize(lambda x: float(f(x)))


def optuna_tpe(job):
    """A study of trials: optuna."""
    import optuna

    f = job.track(job.instance)
    names = [f"x{k}" for k in range(f.meta_data.n_variables)]
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=job.seed))
    while True:
        trial = study.ask()
        study.tell(trial, f([trial.suggest_float(name, -5, 5) for name in names]))


class RandomSearch:
    """A class with a budget, as written by programs that generate algorithms (LLaMEA)."""

    def __init__(self, budget, dim):
        self.budget, self.dim = budget, dim

    def __call__(self, func):
        """Sample uniformly until the budget is used."""
        for _ in range(self.budget):
            # The global generator, which is seeded for each run.
            func(np.random.uniform(func.bounds.lb, func.bounds.ub))  # noqa: NPY002


def random_search(job):
    """Run the class on the instance of a job, with the budget that it is configured for."""
    dim = job.instance.meta_data.n_variables
    RandomSearch(budget=200, dim=dim)(job.track(job.instance))


def build(name):
    """Build a BBOB problem in the worker, because it cannot be sent to another process."""
    import ioh

    function, instance = name.split("-")
    return ioh.get_problem(int(function), int(instance), 5, ioh.ProblemClass.BBOB)


def _box(f):
    return list(zip(f.bounds.lb, f.bounds.ub, strict=True))


def draw(checked, label, unit):
    """Draw best-so-far values over time, one line for each solver."""
    _, ax = pyplot.subplots(figsize=pb.plots.figsize(1), layout="constrained")
    for name, outcome in checked.outcomes.items():
        run = outcome.run
        ax.step([*run.time, run.until], [*run.value, run.value[-1]], where="post", label=name)
    ax.set(xlabel=unit, ylabel=label)
    ax.legend(frameon=False, loc="upper right", fontsize="small")


def main():
    """Run each solver once, briefly."""
    if find_spec("ioh") is None:
        print("the problems come from ioh, which is not installed")
        return
    needs = {
        cma_es: "cma",
        modular_cma_es: "modcma",
        nevergrad_de: "nevergrad",
        optuna_tpe: "optuna",
    }
    missing = [name for name in needs.values() if find_spec(name) is None]
    solvers = {f.__name__: f for f, name in needs.items() if name not in missing}
    solvers |= {"differential_evolution": differential_evolution, "nelder_mead": nelder_mead}
    solvers["random_search"] = random_search
    if missing:
        print(f"not installed, left out: {', '.join(missing)}")
    checked = pb.check(
        solvers,
        pb.Instances([f"{k}-1" for k in range(1, 25)], build),
        times=pb.grid.log(10, 200, 10),
        direction="minimize",
        seconds=60,
    )
    print(checked)
    if checked.problems:
        raise SystemExit("some solvers failed")
    draw(checked, "Best value so far", "Evaluations")


if __name__ == "__main__":
    main()
