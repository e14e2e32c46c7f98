"""The fast engine against nutpie and Pathfinder at full size, and how its cost grows.

    python benchmarks/inference.py                      # everything, about an hour
    python benchmarks/inference.py speed dirichlet      # some parts
    python benchmarks/inference.py --quick              # small sizes

Needs the extras [pymc] and, for pictures, matplotlib. CPU seconds are those of one process with one
thread, imports excluded; the two sides take turns in one run, and ratios are what counts. NUTS is
nutpie on the PyMC model, 4 chains of 1000 + 2000; its compilation is measured apart.
"""

import json
import statistics
import tempfile
from pathlib import Path
from typing import Any

import growth as growing
import samplers
from measuring import RESULTS, Figures, apart, machine, make_parser, medians, table

QUICK_CPU_SECONDS = 40
NEEDS = ("choix",)

TEMPORAL = ["BSpline", "RandomWalk", "SparseGP", "HSGP", "GP"]
TUNE, DRAWS = 1000, 2000
FIGURES = ("cpu", "wall", "trusted", "k", "memory")


def median(
    prior: str, n: int, instances: int, times: int, each: int = 0, *, rounds: int
) -> Figures:
    """Ours, in processes of their own."""
    runs = [apart(samplers.ours, prior, n, instances, times, each) for _ in range(rounds)]
    return medians([{name: run[name] for name in FIGURES} for run in runs])


def speed(quick: bool) -> dict[str, Figures]:
    found = {}
    chains = (50, 50) if quick else (TUNE, DRAWS)
    for prior in TEMPORAL[: 1 if quick else None]:
        size = (prior, 5, 30, 10 if quick else 100)
        ours = [apart(samplers.ours, *size) for _ in range(3)]
        sampled = apart(samplers.nuts, "nutpie", *size, *chains)
        ours += [apart(samplers.ours, *size) for _ in range(3)]
        found[prior] = {
            "ours": statistics.median(run["cpu"] for run in ours),
            "trusted": min(run["trusted"] for run in ours),
            **{key: value for key, value in sampled.items() if key != "ahead"},
        }
        print("speed", prior, found[prior], flush=True)
    return found


def dirichlet(quick: bool) -> Figures:
    size = ("Dirichlet", 7, 100 if quick else 1000, 200)
    ours = median(*size, rounds=1 if quick else 5)
    theirs = [apart(samplers.pathfinder, *size, t) for t in ((0,) if quick else (0, 100, 199))]
    found = {
        "ours": ours["cpu"],
        "cpu": 200 * statistics.mean(run["cpu"] for run in theirs),
        "computing": 200 * statistics.mean(run["sampling"] for run in theirs),
        "k": max(run["k"] for run in theirs),
    }
    print("dirichlet", found, flush=True)
    return found


AXES = {
    "T": ("GP RandomWalk Dirichlet", [(5, 30, t) for t in (10, 30, 100, 300, 1000)]),
    "P": ("GP RandomWalk Dirichlet", [(5, p, 20) for p in (10, 100, 1000, 10_000, 100_000)]),
    "n": ("Dirichlet", [(n, 30, 1) for n in (4, 8, 12, 13, 32, 100, 316)]),
}


def growth(quick: bool) -> dict[str, list[list[float]]]:
    found = {}
    for axis, (priors, sizes) in AXES.items():
        sizes = sizes[:2] if quick else sizes
        for prior in priors.split():
            runs = [median(prior, *size, rounds=1 if quick else 3) for size in sizes]
            found[f"{axis} {prior}"] = [
                [size["nPT".index(axis)], run["cpu"]] for size, run in zip(sizes, runs, strict=True)
            ]
            print("growth", axis, prior, found[f"{axis} {prior}"], flush=True)
    return found


def large(quick: bool) -> dict[str, Figures]:
    n, instances = (50, 100) if quick else (1000, 10_000)
    rounds = 1 if quick else 3
    found = {
        "all": median("Dirichlet", n, 200, 1, rounds=rounds),
        "some": median("Dirichlet", n, instances, 1, 20, rounds=rounds),
        "choix": {"cpu": apart(samplers.choix, n, instances, 1, 20)["cpu"]},
    }
    print("large", found, flush=True)
    return found


# The report


def report(found: dict[str, dict]) -> str:
    said = machine("numpy", "scipy", "pymc", "nutpie", "pymc-extras", "choix")
    parts = ["# The fast engine against PyMC"]
    parts += [f"`python benchmarks/inference.py` on {said}; one thread, CPU seconds."]
    for name, words in (("speed", of_speed), ("dirichlet", of_dirichlet)):
        parts += words(found[name]) if name in found else []
    for name, words in (("growth", of_growth), ("large", of_large)):
        parts += words(found[name]) if name in found else []
    return "\n\n".join(parts) + "\n"


def of_speed(found: dict[str, Figures]) -> list[str]:
    head = ["prior", "ours", "NUTS sampling", "ratio", "with compiling", "R-hat", "ESS", "diverged"]
    rows = [
        [
            prior,
            f"{row['ours']:.2f}",
            f"{row['sampling']:.0f}",
            f"**{row['sampling'] / row['ours']:.0f}**",
            f"{(row['sampling'] + row['compiling']) / row['ours']:.0f}",
            f"{row['rhat']:.3f}",
            f"{row['ess']:.0f}",
            f"{row['divergences']:.0f}",
        ]
        for prior, row in found.items()
    ]
    return ["## Temporal priors at n=5, P=30, T=100", table(head, rows)]


def of_dirichlet(row: Figures) -> list[str]:
    said = (
        f"Ours {row['ours']:.2f}; Pathfinder of pymc-extras, at three times, summed over 200: "
        f"{row['cpu']:.0f} in all, {row['computing']:.0f} without compiling. Ratios "
        f"**{row['cpu'] / row['ours']:.0f}** and **{row['computing'] / row['ours']:.0f}**."
    )
    return ["## Independent Dirichlet at n=7, P=1000, T=200, against Pathfinder per time", said]


def of_growth(found: dict[str, list]) -> list[str]:
    rows = []
    for key, points in found.items():
        cells = ", ".join(f"{size:,}: {cpu:.2f}" for size, cpu in points)
        rows.append([*key.split(), cells, f"{growing.slope(points):.2f}"])
    return [
        "## Growth",
        "![growth](inference-growth.png)",
        table(["along", "prior", "CPU by size", "exponent, last decade"], rows),
        "The others are n=5, P=30, T=20; along n, P=30 and T=1.",
    ]


def of_large(found: dict[str, Figures]) -> list[str]:
    whole, some, peer = (found[key] for key in ("all", "some", "choix"))
    said = (
        f"All on 200 instances: {whole['cpu']:.1f} CPU seconds, {whole['memory']:.0f} MB, "
        f"k-hat {whole['k']:.2f}. Twenty on each of 10,000: {some['cpu']:.1f}, "
        f"{some['memory']:.0f} MB, k-hat {some['k']:.2f}; the point estimate of choix "
        f"(ilsr_rankings) takes {peer['cpu']:.1f} there, **{peer['cpu'] / some['cpu']:.1f}** "
        "times that."
    )
    return ["## A thousand algorithms, one time", said]


def draw_growth(found: dict[str, Any], path: Path) -> None:
    """Draw how the time of fits grows, from what is in inference.json."""
    points = {axis: {} for axis in AXES}
    for key, values in found["growth"].items():
        axis, prior = key.split()
        points[axis][prior] = values
    growing.draw(points, path)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("parts", nargs="*", help="speed, dirichlet, growth, large; or nothing: all")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) if wanted.quick else RESULTS
        kept = folder / "inference.json"
        found = json.loads(kept.read_text()) if kept.exists() else {}
        for part in (speed, dirichlet, growth, large):
            if not wanted.parts or part.__name__ in wanted.parts:
                found[part.__name__] = part(wanted.quick)
                kept.write_text(json.dumps(found, indent=1) + "\n")
        if "growth" in found:
            draw_growth(found, folder / "inference-growth.png")
        (folder / "inference.md").write_text(report(found))
        print(report(found))


if __name__ == "__main__":
    main()
