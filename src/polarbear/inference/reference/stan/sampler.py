"""Fit by Stan: NUTS as a reference, Pathfinder and Laplace as the baselines of the paper."""

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
from polarbear.inference.posterior import Posterior
from polarbear.inference.psis import MAX_K_HAT, smooth_weights
from polarbear.inference.reference.chains import from_chains, judge
from polarbear.inference.reference.stan.compiler import program
from polarbear.priors.base import scale_times
from polarbear.priors.dirichlet import Dirichlet, HierarchicalDirichlet
from polarbear.priors.gp import GP
from polarbear.priors.hyper import Exponential, Hyper, InverseGamma, LogNormal
from polarbear.priors.prior import Prior

Floats = NDArray[np.float64]
Algorithm = Literal["nuts", "pathfinder", "laplace"]

KERNELS = {"matern32": 1, "matern52": 2, "squared-exponential": 3}  # as in gp.stan
# Stan's message for a step that led out of the range of numbers: usual while tuning, and harmless.
REJECTION = (
    "Informational Message: The current Metropolis",
    "Exception: ",
    "If this warning occurs sporadically",
    "but if this warning occurs often",
)


def stan(
    rankings: Rankings,
    prior: Prior,
    *,
    seed: int = 0,
    algorithm: Algorithm = "nuts",
    chains: int = 4,
    tune: int = 1000,
    draws: int = 2000,
) -> Posterior:
    """Fit by Stan; the first fit of a model compiles it, which takes one or two minutes.

    Parameters
    ----------
    rankings
        Of at most 12 algorithms.
    prior
        ``Dirichlet``, ``HierarchicalDirichlet`` or ``GP``: those that the paper provides in Stan.
    seed
        The same seed gives the same draws.
    algorithm
        "nuts" samples the posterior. "pathfinder" and "laplace" approximate it; with a
        ``Dirichlet`` prior they do so at each time by itself, since times are independent.
    chains
        How many chains of NUTS, or paths of Pathfinder.
    tune, draws
        How many steps a chain of NUTS is tuned, and how many draws it gives. The other algorithms
        give so many draws in all.
    """
    settings = _settings(algorithm, chains, tune, draws)
    model, data = _described(rankings, prior)
    executable = program(model)
    apart = model == "dirichlet" and algorithm != "nuts"
    parts = [_at(data, t) for t in range(data["T"])] if apart else [data]
    # Any whole number is a seed; Stan's have 32 bits.
    seeds = np.random.SeedSequence(seed).generate_state(len(parts))
    runs = [
        _run(executable, part, settings, int(each)) for part, each in zip(parts, seeds, strict=True)
    ]
    # Shape (chain, draw, time, algorithm).
    utilities = np.concatenate([run.utilities for run in runs], axis=2)
    diagnostics = _diagnostics(algorithm, runs, utilities)
    found = {"mu": utilities, **runs[0].hyper}
    return from_chains(rankings, prior, found, diagnostics, f"stan-{algorithm}")


def log_density(rankings: Rankings, prior: Prior, points: Floats) -> Floats:
    """What Stan's model makes of unconstrained values, one point a row, with all constants.

    A point holds the logarithms of the hyperparameters, then the coordinates of the utilities
    column by column: those of the first direction at all times, and so on.
    """
    model, data = _described(rankings, prior)
    values = " ".join(repr(float(x)) for x in np.ravel(points))
    with tempfile.TemporaryDirectory() as folder:
        settings = _Settings("log_prob", 1, 1, 1)
        said = _call(program(model), data, Path(folder), settings, 0, values)
    return np.array(said.stdout.split(), dtype=np.float64)


class _Settings(NamedTuple):
    algorithm: str
    chains: int
    tune: int
    draws: int


class _Run(NamedTuple):
    """What the program wrote: arrays begin with (chain, draw)."""

    utilities: Floats
    hyper: Mapping[str, Floats]
    divergences: int
    log_ratio: Floats  # of the target to what was drawn from; empty if that is the target
    warnings: tuple[str, ...]


def _settings(algorithm: str, chains: int, tune: int, draws: int) -> _Settings:
    if algorithm not in get_args(Algorithm):
        known = ", ".join(repr(name) for name in get_args(Algorithm))
        raise DataError(f"algorithm={algorithm!r}: expected one of {known}")
    for name, value, least in (("chains", chains, 1), ("tune", tune, 0), ("draws", draws, 8)):
        if value < least:
            raise DataError(f"{name}={value!r}: expected at least {least}")
    return _Settings(algorithm, chains, tune, draws)


def _described(rankings: Rankings, prior: Prior) -> tuple[str, dict[str, Any]]:
    """The name of Stan's model for a prior, and its data."""
    n = len(rankings.algorithms)
    if not 2 <= n <= MAX_SUBSET_ALGORITHMS:
        raise DataError(
            f"{n} algorithms: the models in Stan count the sets that were chosen from, which is "
            f"for 2 to {MAX_SUBSET_ALGORITHMS} algorithms; use the default engine"
        )
    if isinstance(prior, Dirichlet):
        model, special = "dirichlet", {"alpha": float(prior.alpha)}
    elif isinstance(prior, HierarchicalDirichlet):
        model, special = "hierarchical", _hyper("kappa", prior.kappa)
    elif isinstance(prior, GP):
        times = scale_times(rankings.times, prior.warp).tolist()
        special = {"times": times, "kernel": KERNELS[prior.kernel]}
        special |= _hyper("scale", prior.scale) | _hyper("length", prior.length)
        model = "gp"
    else:
        raise FitError(
            f"there is no model in Stan for the prior {prior!r}, only for Dirichlet, "
            "HierarchicalDirichlet and GP; use the default engine"
        )
    table = SubsetLikelihood.from_rankings(rankings)
    member, count = table.member, table.count
    if len(member) == 0:  # nobody was compared: a set that was never chosen from says the same
        member, count = np.ones((1, n)), np.zeros((len(rankings.times), 1))
    return model, {
        "T": len(rankings.times),
        "n": n,
        "S": len(member),
        "wins": table.wins.tolist(),
        "count": count.tolist(),
        "member": member.tolist(),
        **special,
    }


def _hyper(name: str, prior: Hyper) -> dict[str, Any]:
    """A hyperparameter's distribution, as ``log_hyper`` in shared.stan wants it."""
    match prior:
        case LogNormal(mean, sd):
            family, parameter = 1, [mean, sd]
        case InverseGamma(shape, scale):
            family, parameter = 2, [shape, scale]
        case Exponential(rate):
            family, parameter = 3, [rate, 0.0]
    return {f"{name}_family": family, f"{name}_parameter": [float(x) for x in parameter]}


def _at(data: Mapping[str, Any], time: int) -> dict[str, Any]:
    """The data at one time."""
    one = {name: [data[name][time]] for name in ("wins", "count")}
    return {**data, "T": 1, **one}


def _run(executable: Path, data: Mapping[str, Any], settings: _Settings, seed: int) -> _Run:
    """Run the program and read what it wrote."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        said = _call(executable, data, folder, settings, seed)
        chains = settings.chains if settings.algorithm == "nuts" else 1
        tables = [_read(folder / f"chain{c + 1}.csv") for c in range(chains)]
        paths = [_read(path) for path in sorted(folder.glob("path*.csv"))]
    columns = {key: np.stack([table[key] for table in tables]) for key in tables[0]}
    utilities = np.stack([v for key, v in columns.items() if key.startswith("mu.")], axis=-1)
    # Stan writes matrices column by column.
    utilities = utilities.reshape(*utilities.shape[:2], data["n"], data["T"]).swapaxes(2, 3)
    if not np.isfinite(utilities).all():
        raise FitError(
            f"Stan's {settings.algorithm} gave draws that are no numbers: the approximation failed;"
            " try algorithm='nuts' or the default engine"
        )
    log_ratio = np.empty(0)
    if settings.algorithm == "laplace":
        log_ratio = tables[0]["log_p__"] - tables[0]["log_q__"]
    elif paths:
        log_ratio = np.concatenate([path["lp__"] - path["lp_approx__"] for path in paths if path])
    scalars = [key for key in columns if "." not in key and not key.endswith("__")]
    return _Run(
        utilities,
        {key: columns[key] for key in scalars},
        int(columns["divergent__"].sum()) if "divergent__" in columns else 0,
        log_ratio,
        _warnings(said.stderr),
    )


def _call(
    executable: Path,
    data: Mapping[str, Any],
    folder: Path,
    settings: _Settings,
    seed: int,
    values: str = "",
) -> subprocess.CompletedProcess[str]:
    (folder / "data.json").write_text(json.dumps(data))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    numbers = [seed, *settings[1:], min(settings.chains, cores or 1)]
    command = [str(executable), settings.algorithm, str(folder / "data.json"), str(folder)]
    command += [str(number) for number in numbers]
    # No shell; the program is ours, and its words are numbers and places that we made.
    done = subprocess.run(command, input=values, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        said = " / ".join(done.stderr.strip().splitlines()[-5:]) or "nothing"
        raise FitError(
            f"Stan's {settings.algorithm} failed with code {done.returncode} and said: {said}; "
            "try another seed or the default engine"
        )
    return done


def _read(path: Path) -> dict[str, Floats]:
    """The columns of a file; none if it has no rows, which is what a path that failed leaves."""
    with path.open() as file:
        names, rows = file.readline().strip().split(","), file.readlines()
    if not rows:
        return {}
    return dict(zip(names, np.loadtxt(rows, delimiter=",", ndmin=2).T, strict=True))


def _warnings(said: str) -> tuple[str, ...]:
    """What Stan warned of, each thing once; what it says of rejected proposals is only counted."""
    rejected = said.count(REJECTION[0])
    lines = [line for line in said.splitlines() if line.strip() and not line.startswith(REJECTION)]
    note = [f"numbers out of range made Stan reject {rejected} steps"] if rejected else []
    return tuple(dict.fromkeys(note + lines))


def _diagnostics(algorithm: str, runs: list[_Run], utilities: Floats) -> Diagnostics:
    warnings = tuple(dict.fromkeys(line for run in runs for line in run.warnings))[:3]
    if algorithm == "nuts":
        (run,) = runs
        found = judge({"mu": utilities, **run.hyper}, run.divergences)
        return Diagnostics(found.measured, found.problems, (*found.notes, *warnings))
    ratios = [run.log_ratio for run in runs]
    finite = [np.where(np.isfinite(ratio), ratio, -np.inf) for ratio in ratios]
    k = max(float(smooth_weights(ratio[:, None]).k_hat[0]) for ratio in finite)
    problems = []
    if k > MAX_K_HAT:
        problems.append(
            f"k-hat is above {MAX_K_HAT}: the approximation is poor, try algorithm='nuts'"
        )
    # Out of range, the weight of a draw can be none; Stan's resampling takes that for the highest.
    lost = sum(int(np.isnan(ratio).sum()) for ratio in ratios)
    if lost:
        problems.append(f"{lost} draws have a weight that is no number, try another seed")
    return Diagnostics({"k-hat": k}, tuple(problems), warnings)
