"""Which coding model, if the budget in dollars is not known? Writes table.md and figures/.

python studies/agents/run.py BOARD     # your copy of the results: README.md says which
python studies/agents/run.py --quick   # a simulated board: does it run at all?
"""

import argparse
import re
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from tools.figures import possible
from tools.markdown import table

import polarbear as pb

QUICK_CPU_SECONDS = 6

HERE = Path(__file__).parent
BUDGETS = np.geomspace(0.01, 3.0, 16)
ASKED = (0.05, 0.3, 2.0)
"""Three budgets in dollars, for which a model is chosen."""

DOUBT = 0.02
"""A model that may be the best with at least this probability is named."""

COLOURS = {
    "GPT-5 nano": "#b68e00",
    "GPT-5 mini": "#0033d3",
    "DeepSeek V3.2 Reasoner": "#26a76b",
    "Gemini 3 Pro Preview": "#aa2fb3",
    "Claude 4.5 Opus medium": "#ff3955",
    "GPT-5.1": "#6c8bff",
    "GLM-4.6": "#7e3500",
}


def shorten(runs: pb.Runs) -> pb.Runs:
    """Return the runs with names of models without what is in brackets."""
    records = [run._replace(algorithm=re.sub(r" *\([^)]*\)", "", run.algorithm)) for run in runs]
    short = pb.Runs.from_records(records, direction=runs.direction, clock=runs.clock)
    assert len(short.algorithms) == len(runs.algorithms)
    return short


def simulate(path: Path) -> Path:
    """Write a board of six models on 60 tasks."""
    rng, lines = np.random.default_rng(0), ["model,task,resolved,dollars"]
    for k in range(60):
        hard = rng.normal(0, 2)
        for m in range(6):
            solved = rng.random() < 1 / (1 + np.exp(hard - 0.5 * m))
            lines.append(f"model {m},task-{k},{int(solved)},{0.01 * 2**m * rng.exponential():.6f}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def measure_solved(runs: pb.Runs, budgets: np.ndarray) -> np.ndarray:
    """Return the share of tasks that each model solves within each budget (budgets, models)."""
    is_solved = np.isfinite(runs.at(budgets))
    return np.stack(
        [is_solved[runs.algorithm == k].mean(axis=0) for k in range(len(runs.algorithms))], axis=1
    )


def find_probabilities(runs: pb.Runs, budget: float) -> np.ndarray:
    """Return P(solves most tasks) of each model, by the Bayesian bootstrap of tasks."""
    is_solved = np.isfinite(runs.at([budget])[:, 0])
    each = np.zeros((len(runs.instances), len(runs.algorithms)))
    each[runs.instance, runs.algorithm] = is_solved
    drawn = np.random.default_rng(0).standard_exponential((4000, len(each))) @ each
    most: np.ndarray = (drawn == drawn.max(axis=1, keepdims=True)).mean(axis=0)
    return most


def describe_choices(runs: pb.Runs, posterior: pb.Posterior) -> str:
    """Return what to run at each of three budgets, by the rating and by tasks solved."""
    rows = []
    for budget in ASKED:
        choices = pb.select(posterior, pb.preferences.at(budget)).choices
        rated = [f"{one.algorithms[0]} ({one.best:.2f})" for one in choices if one.best >= DOUBT]
        share = measure_solved(runs, np.array([budget]))[0]
        most = find_probabilities(runs, budget)
        solved = [
            f"{runs.algorithms[k]} {100 * share[k]:.1f} % ({most[k]:.2f})"
            for k in np.argsort(-most)
            if most[k] >= DOUBT
        ]
        rows.append([f"${budget:.2f}", ", ".join(rated), ", ".join(solved)])
    return table(["budget", "highest rating (P)", "most tasks solved (P)"], rows)


def describe_losses(runs: pb.Runs) -> str:
    """Return the points of tasks that each model loses against the best one at each budget."""
    budgets = np.array([0.01, 0.02, 0.05, 0.1, 0.3, 1.0, 3.0])
    share = measure_solved(runs, budgets)
    loss = 100 * (share.max(axis=1, keepdims=True) - share)
    order = np.argsort(loss.mean(axis=0))
    rows = [
        [runs.algorithms[k], *(f"{one:.1f}" for one in loss[:, k]), f"{loss[:, k].max():.1f}"]
        for k in order
    ]
    best = ["solved by the best, %", *(f"{100 * one:.1f}" for one in share.max(axis=1)), ""]
    return table(["model", *(f"${one:g}" for one in budgets), "largest"], [best, *rows])


def draw(runs: pb.Runs, path: Path) -> None:
    """Draw which model solves most tasks, and below it the share of tasks that each solves."""
    from matplotlib import pyplot

    most = np.stack([find_probabilities(runs, budget) for budget in BUDGETS])
    data = pb.plots.Ribbon.of(runs.algorithms, BUDGETS, "dollars", most)
    leaders = {data.algorithms[one.algorithm] for one in data.leads}
    pb.plots.set_colours(COLOURS)
    styles = pb.plots.Cast.of(runs.algorithms).highlight(sorted(leaders)).styles()
    figure, (top, bottom) = pyplot.subplots(
        2, 1, figsize=(7.0, 4.4), layout="constrained", height_ratios=(1, 5), dpi=150
    )
    pb.plots.ribbon(data, top)
    top.set_xlabel("")
    times = np.geomspace(BUDGETS[0], BUDGETS[-1], 200)
    for k, curve in enumerate(measure_solved(runs, times).T):
        style, name = styles[runs.algorithms[k]], runs.algorithms[k]
        lines: Any = {"color": style.colour, "linewidth": 0.7 if style.muted else 1.8}
        bottom.plot(
            times,
            100 * curve,
            label=None if style.muted else name,
            zorder=2 if style.muted else 3,
            **lines,
        )
    bottom.set_xscale("log")
    bottom.set_xlim(BUDGETS[0], BUDGETS[-1])
    bottom.set_xticks(
        [0.01, 0.03, 0.1, 0.3, 1, 3],
        ["$0.01", "$0.03", "$0.10", "$0.30", "$1", "$3"],
        parse_math=False,
    )
    bottom.set_xticks([], minor=True)
    bottom.set_ylim(0)
    bottom.set_ylabel("% of tasks solved within the budget")
    bottom.set_xlabel(
        "Cost of a task; grey: other models. Data: SWE-bench bash-only, swebench.com, CC BY-NC 4.0",
        fontsize=9,
    )
    bottom.legend(frameon=False, fontsize=8, loc="upper left")
    bottom.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path)
    pyplot.close(figure)
    pb.plots.set_colours(None)


def write(source: Path, folder: Path) -> str:
    """Write the table and the figure, and return the table."""
    with warnings.catch_warnings():  # that columns are guessed
        warnings.simplefilter("ignore", pb.errors.DataWarning)
        runs = shorten(pb.read(source, clock="dollars"))
    posterior = pb.fit(pb.rank(runs, BUDGETS))
    boards = [pb.selection.audit(runs, one) for one in (None, pb.preferences.between(scale="log"))]
    everywhere = pb.select(posterior)
    parts = [
        "# Which coding model, if the budget is not known?",
        "Made by `python studies/agents/run.py BOARD`; README.md says what BOARD is.",
        "Data: the SWE-bench team, swebench.com, CC BY-NC 4.0.",
        "## Three budgets",
        describe_choices(runs, posterior),
        f"## Any budget\n\n```\n{everywhere}\n```",
        "## What is worth running\n\n```\n" + str(posterior.verdict()).splitlines()[-1] + "\n```",
        "## Losses: points of tasks solved less than by the best model at the same budget",
        describe_losses(runs),
        "## Ranks\n\n" + "\n\n".join(f"```\n{board}\n```" for board in boards),
        f"## More money\n\n{pb.selection.value_of_time(runs)}.",
    ]
    if possible():
        draw(runs, folder / "figures" / "budgets.png")
        parts.append(
            "![What to run at which budget, and the share of tasks solved](figures/budgets.png)"
        )
    text = "\n\n".join(parts) + "\n"
    (folder / "table.md").write_text(text, encoding="utf-8")
    return text


def main() -> None:
    """Write the table from the copy of the board that is named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("board", type=Path, nargs="?", help="your copy of the results")
    parser.add_argument("--quick", action="store_true", help="small: does it run at all?")
    options = parser.parse_args()
    if options.quick:
        with tempfile.TemporaryDirectory() as folder:
            print(write(simulate(Path(folder, "board.csv")), Path(folder)))
    elif options.board:
        print(write(options.board, HERE))
    else:
        parser.error("name your copy of the results: README.md says which")


if __name__ == "__main__":
    main()
