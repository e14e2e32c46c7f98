"""Fit by Stan: NUTS as a reference, Pathfinder and Laplace as approximations to compare with."""

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from polarbear.data.rankings import Rankings
from polarbear.errors import DataError, FitError
from polarbear.inference.diagnostics import Diagnostics
from polarbear.inference.plackett_luce.likelihood import MAX_SUBSET_ALGORITHMS
from polarbear.inference.plackett_luce.subset_likelihood import SubsetLikelihood
from polarbear.inference.plackett_luce.unordered_ties import collect_tied_groups
from polarbear.inference.posterior import Posterior
from polarbear.inference.psis import MAX_K_HAT, smooth_weights
from polarbear.inference.reference.chains import diagnose_chains, posterior_from_chains
from polarbear.inference.reference.stan.compiler import compile_program
from polarbear.priors.base import scale_times
from polarbear.priors.dirichlet import Dirichlet, HierarchicalDirichlet
from polarbear.priors.gp import GP
from polarbear.priors.hyper import Exponential, Hyper, InverseGamma, LogNormal
from polarbear.priors.prior import Prior

Floats = NDArray[np.float64]
Algorithm = Literal["nuts", "pathfinder", "laplace"]

KERNEL_CODES = {"matern32": 1, "matern52": 2, "squared-exponential": 3}  # as in gp.stan
# Stan's message about a step with numerical overflow: usual while tuning, and harmless.
REJECTION_LINES = (
    "Informational Message: The current Metropolis",
    "Exception: ",
    "If this warning occurs sporadically",
    "but if this warning occurs often",
)


def fit_stan(
    rankings: Rankings,
    prior: Prior,
    *,
    seed: int = 0,
    algorithm: Algorithm = "nuts",
    chains: int = 4,
    tune: int = 1000,
    draws: int = 2000,
) -> Posterior:
    """Fit by Stan; the first fit of a model takes one or two minutes longer, to compile it.

    Parameters
    ----------
    rankings
        Rankings of at most 12 algorithms.
    prior
        ``Dirichlet``, ``HierarchicalDirichlet`` or ``GP``: those that the paper provides in Stan.
    seed
        The same seed gives the same draws.
    algorithm
        "nuts" samples the posterior. "pathfinder" and "laplace" approximate it; with a
        ``Dirichlet`` prior they treat each time separately, since times are independent.
    chains
        The number of chains of NUTS, or of paths of Pathfinder.
    tune, draws
        The numbers of tuning steps and of draws of each chain of NUTS. The other algorithms return
        ``draws`` draws in all.
    """
    settings = _check_settings(algorithm, chains, tune, draws)
    model, data = _describe_model(rankings, prior)
    executable = compile_program(model)
    separate_times = model == "dirichlet" and algorithm != "nuts"
    parts = [_select_time(data, t) for t in range(data["T"])] if separate_times else [data]
    # Stan's seeds have 32 bits.
    seeds = np.random.SeedSequence(seed).generate_state(len(parts))
    runs = [
        _run_program(executable, part, settings, int(part_seed))
        for part, part_seed in zip(parts, seeds, strict=True)
    ]
    # Shape (chain, draw, time, algorithm).
    utilities = np.concatenate([run.utilities for run in runs], axis=2)
    diagnostics = _diagnose(algorithm, runs, utilities)
    draws_by_chain = {"mu": utilities, **runs[0].hyper}
    return posterior_from_chains(rankings, prior, draws_by_chain, diagnostics, f"stan-{algorithm}")


def stan_log_density(rankings: Rankings, prior: Prior, points: Floats) -> Floats:
    """Return the log-density of Stan's model, with all constants, at unconstrained points (rows).

    A point holds the logarithms of the hyperparameters, then the coordinates of the utilities
    column by column: those of the first direction at all times, and so on.
    """
    model, data = _describe_model(rankings, prior)
    values = " ".join(repr(float(x)) for x in np.ravel(points))
    with tempfile.TemporaryDirectory() as folder:
        settings = _Settings("log_prob", 1, 1, 1)
        done = _call_program(compile_program(model), data, Path(folder), settings, 0, values)
    return np.array(done.stdout.split(), dtype=np.float64)


class _Settings(NamedTuple):
    """The settings of one run of a Stan program."""

    algorithm: str
    chains: int
    tune: int
    draws: int


class _Run(NamedTuple):
    """The output of one run of a Stan program; arrays start with the axes chain and draw."""

    utilities: Floats
    hyper: Mapping[str, Floats]
    divergences: int
    log_ratio: Floats  # of the target to the proposal; empty for exact draws
    warnings: tuple[str, ...]


def _check_settings(algorithm: str, chains: int, tune: int, draws: int) -> _Settings:
    """Return the settings of a Stan program; DataError if one of them is invalid."""
    if algorithm not in get_args(Algorithm):
        known = ", ".join(repr(name) for name in get_args(Algorithm))
        raise DataError(f"expected one of {known}", algorithm=algorithm)
    for name, value, least in (("chains", chains, 1), ("tune", tune, 0), ("draws", draws, 8)):
        if value < least:
            raise DataError(f"expected at least {least}", **{name: value})
    return _Settings(algorithm, chains, tune, draws)


def _describe_model(rankings: Rankings, prior: Prior) -> tuple[str, dict[str, Any]]:
    """Return the name of the Stan model for a prior, and the data that it is given."""
    n = len(rankings.algorithms)
    if not 2 <= n <= MAX_SUBSET_ALGORITHMS:
        raise DataError(
            f"method='stan' takes 2 to {MAX_SUBSET_ALGORITHMS} algorithms, got {n}: use the "
            "default method"
        )
    if isinstance(prior, Dirichlet):
        model, special = "dirichlet", {"alpha": float(prior.alpha)}
    elif isinstance(prior, HierarchicalDirichlet):
        model, special = "hierarchical", _encode_hyper("kappa", prior.kappa)
    elif isinstance(prior, GP):
        times = scale_times(rankings.times, prior.warp).tolist()
        special = {"times": times, "kernel": KERNEL_CODES[prior.kernel]}
        special |= _encode_hyper("scale", prior.scale) | _encode_hyper("length", prior.length)
        model = "gp"
    else:
        raise FitError(
            f"there is no model in Stan for the prior {prior!r}, only for Dirichlet, "
            "HierarchicalDirichlet and GP; use the default engine"
        )
    if rankings.ties == "unordered" and collect_tied_groups(rankings, merge=True):
        raise DataError(
            "the models in Stan average over the orders of tied algorithms: pass ties='averaged', "
            "or use the default engine"
        )
    likelihood = SubsetLikelihood.from_rankings(rankings)
    member, count = likelihood.member, likelihood.count
    if len(member) == 0:  # without comparisons: a subset without choices is equivalent
        member, count = np.ones((1, n)), np.zeros((len(rankings.times), 1))
    return model, {
        "T": len(rankings.times),
        "n": n,
        "S": len(member),
        "wins": likelihood.wins.tolist(),
        "count": count.tolist(),
        "member": member.tolist(),
        **special,
    }


def _encode_hyper(name: str, prior: Hyper) -> dict[str, Any]:
    """Return a hyperparameter's distribution as data for ``log_hyper`` in shared.stan."""
    match prior:
        case LogNormal(mean, sd):
            family, parameter = 1, [mean, sd]
        case InverseGamma(shape, scale):
            family, parameter = 2, [shape, scale]
        case Exponential(rate):
            family, parameter = 3, [rate, 0.0]
    return {f"{name}_family": family, f"{name}_parameter": [float(x) for x in parameter]}


def _select_time(data: Mapping[str, Any], time: int) -> dict[str, Any]:
    """Return a Stan model's data restricted to one time."""
    one = {name: [data[name][time]] for name in ("wins", "count")}
    return {**data, "T": 1, **one}


def _run_program(executable: Path, data: Mapping[str, Any], settings: _Settings, seed: int) -> _Run:
    """Run a Stan program and read its output files."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        done = _call_program(executable, data, folder, settings, seed)
        chains = settings.chains if settings.algorithm == "nuts" else 1
        tables = [_read_columns(folder / f"chain{c + 1}.csv") for c in range(chains)]
        paths = [_read_columns(path) for path in sorted(folder.glob("path*.csv"))]
    columns = {key: np.stack([table[key] for table in tables]) for key in tables[0]}
    utilities = np.stack([v for key, v in columns.items() if key.startswith("mu.")], axis=-1)
    # Stan writes matrices column by column.
    utilities = utilities.reshape(*utilities.shape[:2], data["n"], data["T"]).swapaxes(2, 3)
    if not np.isfinite(utilities).all():
        raise FitError(
            f"Stan's {settings.algorithm} returned draws that are not numbers: the approximation "
            "failed;"
            " try algorithm='nuts' or the default engine"
        )
    log_ratio = np.empty(0)
    if settings.algorithm == "laplace":
        log_ratio = tables[0]["log_p__"] - tables[0]["log_q__"]
    elif paths:
        log_ratio = np.concatenate([path["lp__"] - path["lp_approx__"] for path in paths if path])
    scalars = [key for key in columns if "." not in key and not key.endswith("__")]
    return _Run(
        utilities=utilities,
        hyper={key: columns[key] for key in scalars},
        divergences=int(columns["divergent__"].sum()) if "divergent__" in columns else 0,
        log_ratio=log_ratio,
        warnings=_collect_warnings(done.stderr),
    )


def _call_program(
    executable: Path,
    data: Mapping[str, Any],
    folder: Path,
    settings: _Settings,
    seed: int,
    values: str = "",
) -> subprocess.CompletedProcess[str]:
    """Run a Stan program in a folder; raise FitError if it fails."""
    (folder / "data.json").write_text(json.dumps(data))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    numbers = [seed, *settings[1:], min(settings.chains, cores or 1)]
    command = [str(executable), settings.algorithm, str(folder / "data.json"), str(folder)]
    command += [str(number) for number in numbers]
    # No shell; all arguments are numbers and paths that this function made.
    done = subprocess.run(command, input=values, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        message = " / ".join(done.stderr.strip().splitlines()[-5:]) or "nothing"
        raise FitError(
            f"Stan's {settings.algorithm} failed with code {done.returncode} and said: {message}; "
            "try another seed or the default engine"
        )
    return done


def _read_columns(path: Path) -> dict[str, Floats]:
    """Return the columns of a CSV file by name; an empty dict if it has no rows."""
    with path.open() as file:
        names, rows = file.readline().strip().split(","), file.readlines()
    if not rows:
        return {}
    return dict(zip(names, np.loadtxt(rows, delimiter=",", ndmin=2).T, strict=True))


def _collect_warnings(output: str) -> tuple[str, ...]:
    """Return the distinct warnings of Stan; messages about rejected proposals are only counted."""
    rejected = output.count(REJECTION_LINES[0])
    lines = [
        line
        for line in output.splitlines()
        if line.strip() and not line.startswith(REJECTION_LINES)
    ]
    note = [f"numbers out of range made Stan reject {rejected} steps"] if rejected else []
    return tuple(dict.fromkeys(note + lines))


def _diagnose(algorithm: str, runs: list[_Run], utilities: Floats) -> Diagnostics:
    """Return diagnostics: by Markov chains for NUTS, by k-hat for approximations."""
    warnings = tuple(dict.fromkeys(line for run in runs for line in run.warnings))[:3]
    if algorithm == "nuts":
        (run,) = runs
        chains = diagnose_chains({"mu": utilities, **run.hyper}, run.divergences)
        return Diagnostics(chains.measured, chains.problems, (*chains.notes, *warnings))
    ratios = [run.log_ratio for run in runs]
    finite = [np.where(np.isfinite(ratio), ratio, -np.inf) for ratio in ratios]
    k = max(float(smooth_weights(ratio[:, None]).k_hat[0]) for ratio in finite)
    problems = []
    if k > MAX_K_HAT:
        problems.append(
            f"k-hat is above {MAX_K_HAT}: the approximation is poor, try algorithm='nuts'"
        )
    # Overflow makes a weight nan, which Stan's resampling treats as the highest weight.
    n_invalid = sum(int(np.isnan(ratio).sum()) for ratio in ratios)
    if n_invalid:
        problems.append(f"{n_invalid} draws have a weight that is no number, try another seed")
    return Diagnostics({"k-hat": k}, tuple(problems), warnings)
