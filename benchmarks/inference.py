"""The fast engine against PyMC, and how its cost grows.

    python benchmarks/inference.py                      # everything, about an hour
    python benchmarks/inference.py speed dirichlet      # some parts
    python benchmarks/inference.py growth --quick --no-write    # a quick look

Needs the extras [pymc] and, for pictures, matplotlib. CPU seconds are those of one process with one
thread, imports excluded; the two sides take turns in one run, and ratios are what counts. NUTS is
nutpie on the PyMC model, 4 chains of 1000 + 2000; its compilation is measured apart.
"""

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
SINGLE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
TEMPORAL = ["BSpline", "RandomWalk", "SparseGP", "HSGP", "GP"]
ROUNDS = 5


# What a child process does: each returns figures for the parent.


def curves(n: int, times: int):
    import numpy as np

    phase = np.random.default_rng(1).uniform(0, 2 * np.pi, n)
    return np.sin(3 * np.linspace(0, 1, times)[:, None] + phase)


def simulated(n: int, instances: int, times: int):
    from polarbear.testing import simulate_rankings

    return simulate_rankings(curves(n, times), instances, 2)


def some_of_many(n: int, each: int, instances: int):
    """Rankings of a few of many algorithms, at one time."""
    import numpy as np

    from polarbear.data.rankings import Rankings, positions_of

    rng = np.random.default_rng(3)
    strength = rng.normal(size=n)
    who = np.stack([rng.choice(n, each, replace=False) for _ in range(instances)])
    costs = -(strength[who] + rng.gumbel(size=who.shape))
    return Rankings(
        tuple(f"a{k}" for k in range(n)),
        tuple(f"i{k}" for k in range(instances)),
        np.zeros(1),
        positions_of(costs).reshape(1, -1),
        who.ravel().astype(np.int32),
        np.arange(instances + 1, dtype=np.int64) * each,
        np.arange(instances, dtype=np.int32),
        np.ones(instances),
    )


def used() -> float:
    spent = resource.getrusage(resource.RUSAGE_SELF)
    return spent.ru_utime + spent.ru_stime


def fast(prior: str, n: int, instances: int, times: int, each: int = 0) -> dict[str, float]:
    import polarbear as pb
    from polarbear.engines.laplace import laplace  # so that imports are not measured

    rankings = some_of_many(n, each, instances) if each else simulated(n, instances, times)
    before, wall = used(), time.perf_counter()
    # The same posterior as that of the peers: every ranking is evidence.
    found = laplace(rankings, getattr(pb.priors, prior)(), evidence="rankings")
    spent, waited = used() - before, time.perf_counter() - wall
    return {
        "cpu": spent,
        "wall": waited,
        "trusted": float(found.diagnostics.trusted),
        "k": found.diagnostics.measured["k-hat"],
        "draws": float(len(found.draws)),
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def nuts(prior: str, n: int, instances: int, times: int, tune: int, draws: int) -> dict[str, float]:
    import pymc  # noqa: F401

    import polarbear as pb
    from polarbear.engines.nuts import nuts as sample

    rankings = simulated(n, instances, times)
    before = used()
    found = sample(rankings, getattr(pb.priors, prior)(), tune=tune, draws=draws, cores=1)
    measured = found.diagnostics.measured
    return {
        "cpu": used() - before,
        "rhat": measured["R-hat"],
        "ess": measured["ESS"],
        "divergences": measured["divergences"],
    }


def pathfinder(time_index: int) -> dict[str, float]:
    from dataclasses import replace

    import pymc  # noqa: F401
    import pymc_extras

    from polarbear.engines.pymc_model import pymc_model
    from polarbear.priors.dirichlet import Dirichlet

    rankings = simulated(7, 1000, 200)
    pick = slice(time_index, time_index + 1)
    one = replace(rankings, times=rankings.times[pick], position=rankings.position[pick])
    model = pymc_model(one, Dirichlet())
    before = used()
    trace = pymc_extras.fit_pathfinder(
        model=model, concurrent=None, progressbar=False, display_summary=False, random_seed=1
    )
    return {
        "cpu": used() - before,
        "computing": float(trace["sample_stats"]["compute_time"]),
        "k": float(trace["sample_stats"]["pareto_k"]),
    }


def choix(each: int, instances: int) -> dict[str, float]:
    """The maximum of the likelihood by the package choix: a point, without uncertainty."""
    import choix as peer

    rankings = some_of_many(1000, each, instances)
    order = [
        rankings.algorithm[a:b][rankings.position[0, a:b].argsort()].tolist()
        for a, b in zip(rankings.offset[:-1], rankings.offset[1:], strict=True)
    ]
    before = used()
    peer.ilsr_rankings(1000, order, alpha=1e-3)
    return {"cpu": used() - before}


# What the parent does


def child(name: str, *arguments: object) -> dict[str, float]:
    command = [sys.executable, __file__, "--child", name, json.dumps(arguments)]
    done = subprocess.run(
        command, env={**os.environ, **SINGLE}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{name}{arguments} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def median(name: str, *arguments: object, rounds: int = ROUNDS) -> dict[str, float]:
    runs = [child(name, *arguments) for _ in range(rounds)]
    return {key: statistics.median(run[key] for run in runs) for key in runs[0]}


def speed(quick: bool) -> dict[str, object]:
    times = 20 if quick else 100
    found = {}
    for prior in TEMPORAL:
        ours = [child("fast", prior, 5, 30, times) for _ in range(3)]
        sampled = child("nuts", prior, 5, 30, times, 1000, 2000)
        compiled = child("nuts", prior, 5, 30, times, 20, 20)
        ours += [child("fast", prior, 5, 30, times) for _ in range(3)]
        cpu = statistics.median(run["cpu"] for run in ours)
        found[prior] = {
            "ours": cpu,
            "trusted": min(run["trusted"] for run in ours),
            "sampling": sampled["cpu"] - compiled["cpu"],
            "compiling": compiled["cpu"],
            **{key: sampled[key] for key in ("rhat", "ess", "divergences")},
        }
        print("speed", prior, found[prior], flush=True)
    return found


def dirichlet(quick: bool) -> dict[str, object]:
    ours = median("fast", "Dirichlet", 7, 1000, 200)
    theirs = [child("pathfinder", t) for t in ((0,) if quick else (0, 100, 199))]
    found = {
        "ours": ours["cpu"],
        "cpu": 200 * statistics.mean(run["cpu"] for run in theirs),
        "computing": 200 * statistics.mean(run["computing"] for run in theirs),
        "k": max(run["k"] for run in theirs),
    }
    print("dirichlet", found, flush=True)
    return found


AXES = {
    "T": ("GP RandomWalk Dirichlet", [(5, 30, t) for t in (10, 30, 100, 300, 1000)]),
    "P": ("GP RandomWalk Dirichlet", [(5, p, 20) for p in (10, 100, 1000, 10_000, 100_000)]),
    "n": ("Dirichlet", [(n, 30, 1) for n in (4, 8, 12, 13, 32, 100, 316)]),
}


def growth(quick: bool) -> dict[str, object]:
    found = {}
    for axis, (priors, sizes) in AXES.items():
        sizes = sizes[:3] if quick else sizes
        for prior in priors.split():
            runs = [median("fast", prior, *size, rounds=1 if quick else 3) for size in sizes]
            found[f"{axis} {prior}"] = [
                [size["nPT".index(axis)], run["cpu"]] for size, run in zip(sizes, runs, strict=True)
            ]
            print("growth", axis, prior, found[f"{axis} {prior}"], flush=True)
    return found


def large(quick: bool) -> dict[str, object]:
    n = 300 if quick else 1000
    found = {
        "all": median("fast", "Dirichlet", n, 200, 1, rounds=3),
        "some": median("fast", "Dirichlet", n, 10_000, 1, 20, rounds=3),
    }
    if not quick:
        found["choix"] = child("choix", 20, 10_000)
    print("large", found, flush=True)
    return found


# The report


def slope(points: list[list[float]]) -> float:
    """The exponent of the growth over the last decade."""
    import numpy as np

    size, cpu = np.log(np.array(points)).T
    late = size >= size[-1] - np.log(10) - 1e-9
    return float(np.polyfit(size[late], cpu[late], 1)[0])


def report(found: dict[str, dict]) -> str:
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("numpy", "scipy", "pymc"))
    lines = ["# The fast engine against PyMC", "", f"`python benchmarks/inference.py`, {versions},"]
    lines += [f"Python {platform.python_version()}, one thread, CPU seconds.", ""]
    if "speed" in found:
        lines += [
            "## Temporal priors at n=5, P=30, T=100",
            "",
            "| prior | ours | NUTS sampling | ratio | with compiling | R-hat | ESS | diverged |",
            "|---|---|---|---|---|---|---|---|",
        ]
        for prior, row in found["speed"].items():
            total = row["sampling"] + row["compiling"]
            lines.append(
                f"| {prior} | {row['ours']:.2f} | {row['sampling']:.0f} | "
                f"**{row['sampling'] / row['ours']:.0f}** | {total / row['ours']:.0f} | "
                f"{row['rhat']:.3f} | {row['ess']:.0f} | {row['divergences']:.0f} |"
            )
        lines.append("")
    if "dirichlet" in found:
        row = found["dirichlet"]
        text = (
            f"Ours {row['ours']:.2f}; Pathfinder of pymc-extras, at three times, summed "
            f"over 200: {row['cpu']:.0f} in all, {row['computing']:.0f} without compiling. Ratios "
            f"**{row['cpu'] / row['ours']:.0f}** and **{row['computing'] / row['ours']:.0f}**."
        )
        title = "## Independent Dirichlet at n=7, P=1000, T=200, against Pathfinder per time"
        lines += [title, "", text, ""]
    if "growth" in found:
        lines += ["## Growth", "", "![growth](inference-growth.png)", ""]
        lines += ["| along | prior | CPU by size | exponent, last decade |", "|---|---|---|---|"]
        for key, points in found["growth"].items():
            axis, prior = key.split()
            cells = ", ".join(f"{size:,}: {cpu:.2f}" for size, cpu in points)
            lines.append(f"| {axis} | {prior} | {cells} | {slope(points):.2f} |")
        lines += ["", "The others are n=5, P=30, T=20; along n, P=30 and T=1.", ""]
    if "large" in found:
        whole, some, peer = (found["large"][key] for key in ("all", "some", "choix"))
        text = (
            f"All on 200 instances: {whole['cpu']:.1f} CPU seconds, {whole['memory']:.0f} MB, "
            f"k-hat {whole['k']:.2f}. Twenty on each of 10,000: {some['cpu']:.1f}, "
            f"{some['memory']:.0f} MB, k-hat {some['k']:.2f}; the point estimate of choix "
            f"(ilsr_rankings) takes {peer['cpu']:.1f} there, **{peer['cpu'] / some['cpu']:.1f}** "
            "times that."
        )
        lines += ["## A thousand algorithms, one time", "", text, ""]
    return "\n".join(lines)


def picture(points: dict[str, list]) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), sharey=True, layout="constrained")
    names = {"T": "times T", "P": "instances P", "n": "algorithms n"}
    colours = {"GP": "#0072B2", "RandomWalk": "#D55E00", "Dirichlet": "#009E73"}
    for axis, panel in zip(AXES, axes, strict=True):
        for key, values in points.items():
            along, prior = key.split()
            if along == axis:
                size, cpu = zip(*values, strict=True)
                text = f"{prior}, slope {slope(values):.1f}"
                panel.loglog(size, cpu, "o-", color=colours[prior], ms=4, label=text)
        panel.legend(frameon=False, loc="upper left", fontsize=8)
        panel.set_xlabel(names[axis])
        panel.grid(alpha=0.3, which="major")
        panel.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("CPU seconds")
    figure.savefig(RESULTS / "inference-growth.png", dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help="speed, dirichlet, growth, large; or nothing: all")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--no-write", action="store_true")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.child:
        name, arguments = wanted.child
        print(json.dumps(globals()[name](*json.loads(arguments))))
        return
    kept = RESULTS / "inference.json"
    found = json.loads(kept.read_text()) if kept.exists() else {}
    for part in (speed, dirichlet, growth, large):
        if not wanted.parts or part.__name__ in wanted.parts:
            found[part.__name__] = part(wanted.quick)
            if not wanted.no_write:
                kept.write_text(json.dumps(found, indent=1) + "\n")
    if not wanted.no_write:
        if "growth" in found:
            picture(found["growth"])
        (RESULTS / "inference.md").write_text(report(found))


if __name__ == "__main__":
    main()
