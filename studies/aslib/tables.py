"""The table and the figure, from what was measured."""

from pathlib import Path
from typing import Any

import numpy as np
from aslib.scoring import calibration_error, chance_error
from tools.figures import possible
from tools.markdown import table

Rows = list[dict[str, Any]]

MODELS = ("features", "features and forest")
SOLVED = tuple(f"solved, {name}" for name in MODELS)
SELECTORS = ("overall", *MODELS, *SOLVED, "regression")
COMPARED = (MODELS[1], SOLVED[1])
"""The selectors whose closed gap is compared with that of regression."""


def sum_par10(rows: Rows, name: str) -> float:
    return sum(row["par10"][name] for row in rows)


def closed_gap(rows: Rows, name: str) -> float:
    """Return the share of the gap between the single and the virtual best that is closed."""
    single, virtual = sum_par10(rows, "single best"), sum_par10(rows, "virtual best")
    if single <= virtual or any(name not in row["par10"] for row in rows):
        return np.nan
    return (single - sum_par10(rows, name)) / (single - virtual)


def gain(rows: Rows, name: str) -> tuple[float, float]:
    """Return how much more of the gap is closed than by regression, and its standard error."""
    if any(name not in row.get("gain_squared", {}) for row in rows):
        return np.nan, np.nan
    gap = sum_par10(rows, "single best") - sum_par10(rows, "virtual best")
    total = sum_par10(rows, "regression") - sum_par10(rows, name)
    number = sum(row["held_out"] for row in rows)
    squared = sum(row["gain_squared"][name] for row in rows)
    if gap <= 0:
        return np.nan, np.nan
    return total / gap, np.sqrt(max(squared - total**2 / number, 0.0)) / gap


def nats(rows: Rows, name: str, score: str) -> float:
    """Return the log score of a model above the overall one, in nats per instance."""
    if any(name not in row["models"] for row in rows):
        return np.nan
    above = sum(row["models"][name][score] - row["models"]["overall"][score] for row in rows)
    return above / max(1, sum(row["solved"] for row in rows))


def pooled_bins(rows: Rows, name: str, event: str) -> np.ndarray:
    return np.sum([row["models"][name][event] for row in rows], axis=0)


def error(rows: Rows, name: str, event: str) -> float:
    if any(name not in row["models"] for row in rows):
        return np.nan
    return calibration_error([pooled_bins(rows, name, event)])


def group(rows: Rows) -> dict[tuple[str, float], Rows]:
    """Return the rows of all folds, by scenario and cut-off."""
    cells: dict[tuple[str, float], Rows] = {}
    for row in sorted(rows, key=lambda row: (row["scenario"], row["share"], row["fold"])):
        cells.setdefault((row["scenario"], row["share"]), []).append(row)
    return cells


def show(value: float, digits: int = 2) -> str:
    return "-" if np.isnan(value) else f"{value:.{digits}f}"


def gap_rows(cells: dict[tuple[str, float], Rows]) -> list[list[str]]:
    lines = []
    for (scenario, share), rows in cells.items():
        first = rows[0]
        lines.append([
            f"{scenario} ({first['instances']} x {first['algorithms']}, {first['features']})",
            f"{100 * share:.0f} %", f"{len(rows)} of {first['folds']}",
            *(show(closed_gap(rows, name)) for name in SELECTORS),
            *(show_gain(*gain(rows, name)) for name in COMPARED),
        ])  # fmt: skip
    means = [np.mean([closed_gap(rows, s) for rows in cells.values()]) for s in SELECTORS]
    lines.append(["mean", "", "", *(show(float(m)) for m in means), "", ""])
    return lines


def show_gain(above: float, deviation: float) -> str:
    return "-" if np.isnan(above) else f"{above:+.2f} ({deviation:.2f})"


def score_rows(cells: dict[tuple[str, float], Rows]) -> list[list[str]]:
    def values(rows: Rows) -> list[float]:
        models = ("overall", *MODELS)
        return [
            *(nats(rows, name, score) for score in ("log_first", "log_ranking") for name in MODELS),
            *(error(rows, name, event) for event in ("first", "beats") for name in models),
            *(error(rows, name, "beats") for name in SOLVED),
        ]

    def line(numbers: list[float]) -> list[str]:
        return [show(x, 2 if k < 4 else 3) for k, x in enumerate(numbers)]

    every = {cell: values(rows) for cell, rows in cells.items()}
    lines = [[s, f"{100 * share:.0f} %", *line(own)] for (s, share), own in every.items()]
    means = np.mean(list(every.values()), axis=0).tolist()
    everything = [row for rows in cells.values() for row in rows]
    lines.append(["mean", "", *line(means)])
    lines.append(["all together", "", *line(values(everything))])
    return lines


def cost_rows(cells: dict[tuple[str, float], Rows]) -> list[list[str]]:
    lines = []
    for scenario in dict.fromkeys(name for name, _ in cells):
        rows = [row for (name, _), own in cells.items() if name == scenario for row in own]
        means = [np.mean([row["seconds"].get(s, np.nan) for row in rows]) for s in SELECTORS]
        lines.append([scenario, *(show(float(m), 1) for m in means)])
    return lines


def summarise(cells: dict[tuple[str, float], Rows]) -> str:
    """Return in words what is asked of the study."""
    if any("gain_squared" not in row for rows in cells.values() for row in rows):
        return "Without scikit-learn: no forests."
    chance = {
        event: np.mean([chance_error(pooled_bins(r, MODELS[1], event)) for r in cells.values()])
        for event in ("first", "beats")
    }
    by_chance = (
        "By chance alone, probabilities that are true have a mean expected calibration error in "
        f"these cells of about {chance['first']:.3f} (first) and at least {chance['beats']:.3f} "
        "(beats)."
    )
    return "\n\n".join([*(compare(cells, name) for name in COMPARED), by_chance])


def compare(cells: dict[tuple[str, float], Rows], name: str) -> str:
    """Return in words how the closed gap of a selector compares with that of regression."""
    both = [gain(rows, name) for rows in cells.values()]
    worse = [
        f"{scenario} at {100 * share:.0f} % ({above:+.2f}, standard error {deviation:.2f})"
        for ((scenario, share), _), (above, deviation) in zip(cells.items(), both, strict=True)
        if above < -2 * deviation
    ]
    better = sum(above > 2 * deviation for above, deviation in both)
    mean = np.nanmean([above for above, _ in both])  # nan where there is no gap to close
    of_scenario: dict[str, list[float]] = {}
    for (scenario, _), (above, _) in zip(cells, both, strict=True):
        of_scenario.setdefault(scenario, []).append(above)
    means = [np.nanmean(gains) for gains in of_scenario.values()]
    between = np.std(means, ddof=1) / np.sqrt(len(means)) if len(means) > 1 else np.nan
    return (
        f"*{name}* against regression, in {len(cells)} cells of a scenario and a cut-off: "
        f"{mean:+.3f} of the gap in the mean (standard error between scenarios "
        f"{show(float(between), 3)}). More than two standard errors above it in {better}; more "
        f"than two below it: {', '.join(worse) or 'nowhere'}."
    )


def draw(cells: dict[tuple[str, float], Rows], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 4.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    for share, marker in zip(sorted({share for _, share in cells}), "os^D", strict=False):
        own = [rows for (_, at), rows in cells.items() if at == share]
        points = [[closed_gap(rows, name) for name in ("regression", SOLVED[1])] for rows in own]
        x, y = np.array(points).T
        left.plot(x, y, marker, label=f"{100 * share:.0f} % of the cut-off", alpha=0.8)
    left.axline((0, 0), slope=1, color="grey", linewidth=0.8)
    left.set(xlabel="closed gap, regression", ylabel=f"closed gap, {SOLVED[1]}")
    left.legend(frameon=False)
    everything = [row for rows in cells.values() for row in rows]
    for event, marker in (("first", "o-"), ("beats", "s-")):
        number, prob, outcome = pooled_bins(everything, MODELS[1], event)
        some = number >= 20
        right.plot(prob[some] / number[some], outcome[some] / number[some], marker,
                   label=f"P({event})")  # fmt: skip
    right.axline((0, 0), slope=1, color="grey", linewidth=0.8)
    right.set(xlabel="predicted probability", ylabel="share that came true")
    right.legend(frameon=False)
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=130)


TITLE = """# Selection per instance on scenarios of ASlib

Made by `python studies/aslib/run.py --scenarios FOLDER`; README.md says what is compared."""

GAPS = """## Closed gap

The share of the gap in PAR10 between the single best (0) and the virtual best algorithm (1) that a
selector closes on held-out instances. The selectors whose name begins with *solved* learn from
rankings in which all algorithms that solved an instance by the cut-off tie."""

SCORES = """## Log scores and calibration

Nats per held-out instance above the overall model, for which algorithm is first and for the whole
ranking; expected calibration errors (ECE). The columns *solved* are about pairs of which one
algorithm solved the instance by the cut-off and the other did not."""

COSTS = """## CPU seconds of a fit

Of all three cut-offs together, on the training data of a fold; `features and forest` includes the
cross-fitted forests."""


def write(rows: Rows, folder: Path) -> str:
    """Write the table and the figure to a folder, and return the table."""
    cells = group(rows)
    size = "scenario (instances x algorithms, features)"
    compared = [f"{name} - regression (s.e.)" for name in COMPARED]
    score_head = [f"{score}: {name}" for score in ("first", "ranking") for name in MODELS]
    score_head += [
        f"ECE {event}: {name}" for event in ("first", "beats") for name in ("overall", *MODELS)
    ]
    score_head += [f"ECE beats: {name}" for name in SOLVED]
    parts = [
        TITLE,
        summarise(cells),
        GAPS,
        table([size, "cut-off", "folds", *SELECTORS, *compared], gap_rows(cells)),
        SCORES,
        table(["scenario", "cut-off", *score_head], score_rows(cells)),
        COSTS,
        table(["scenario", *SELECTORS], cost_rows(cells)),
    ]
    if possible() and all(MODELS[1] in row["models"] for row in rows):
        draw(cells, folder / "figures" / "gap.png")
        parts.append("![Closed gap and calibration](figures/gap.png)")
    text = "\n\n".join(parts) + "\n"
    (folder / "table.md").write_text(text)
    return text
