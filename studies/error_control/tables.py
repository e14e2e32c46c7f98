"""Make table.md and the figure from what was measured."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from error_control.cost import LIMIT, TARGET, WINS
from error_control.errors import NAMES
from tools.figures import possible
from tools.markdown import table

Row = Mapping[str, Any]
Files = Mapping[str, Sequence[Row]]

AT_DESIGN = ("0.02 to 0.05", "0.46 to 0.65", "0.92 to 0.99")
"""Shares below the 10, 50 and 90 % forecast that were seen when the rule was designed."""

BEFORE = {
    ("plain", "per_member"): "1,631 (2.5 % kept)",
    ("clones", "per_member"): "2,911",
    ("plain", "per_look"): "653 (5.8 % kept)",
    ("clones", "per_look"): "2,049",
}
"""Runs and dominated algorithms kept in the simulations of the design, at certainty .95."""


def write(folder: Path, files: Files) -> str:
    """Write table.md and the figure; return the table."""
    parts = [
        ("Error under looking", _errors(files["errors"])),
        ("Cost of one pair at one time", _cost(files["cost"], files["pairs"])),
        ("A tied pair, look after look", _curves(files["curves"])),
        ("Two equal algorithms", _equal(files["equal"])),
        ("Whole races", _races(files["races"])),
        ("Forecasts", _forecasts(files["races"])),
    ]
    text = "\n".join(f"## {title}\n\n{body}\n" for title, body in parts if body)
    page = (
        f"# Error control: results\n\nWritten by `python studies/error_control/run.py`.\n\n{text}"
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "table.md").write_text(page)
    if files["curves"] and possible():
        draw(files["curves"], folder / "figures" / "looks")
    return page


def _share(row: Row, name: str) -> str:
    """Return a percentage with its standard error; bold above what was stated and two errors."""
    if name not in row:
        return ""
    share, error = row[name], row[f"{name}_error"]
    text = f"{100 * share:.1f} ± {100 * error:.1f}"
    return f"**{text}**" if share > 1 - row["certainty"] + 2 * error else text


def _errors(rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    lines: dict[tuple[Any, ...], dict[str, Row]] = {}
    for row in rows:
        key = tuple(row[name] for name in ("setting", "n", "times", "persistence", "certainty"))
        lines.setdefault(key, {})[row["rule"]] = row
    body = []
    order = {name: k for k, name in enumerate(dict.fromkeys(row["setting"] for row in rows))}
    for key, by_rule in sorted(lines.items(), key=lambda each: (order[each[0][0]], each[0])):
        ours, paper = by_rule["per_member"], by_rule.get("per_look", {})
        lost = [_share(each, "lost") for each in (ours, paper)]
        leads = [_share(each, "false_leads") for each in (ours, paper)]
        par = [_share(each, "false_par") for each in (ours, paper)]
        body.append([*key, *lost, *leads, *par])
    head = ["setting", "n", "T", "L", "certainty"]
    for what in ("member lost", "false lead", "false par"):
        head += [f"{what}, per_member", "per_look"]
    races = min(row["races"] for row in rows)
    text = (
        f"Percent of {races:,} races or more, with standard errors. Bold: more than was stated and "
        "two standard errors. *Member lost*: a given member that may be lost is ever eliminated. "
        "*False lead*: an algorithm that leads nowhere is ever called ahead somewhere. *False "
        "par*: a pair is ever closed, although one is behind by epsilon everywhere."
    )
    duels = [
        f"{row['rule']} at {row['certainty']}: {_share(row, 'lost')} % (founder), "
        f"{_share(row, 'newcomers_lost')} % (each newcomer)"
        for row in rows
        if row["setting"] == "newcomers"
    ]
    text = f"{_worst(rows)}\n\n{text}\n\n{table(head, body)}"
    return f"{text}\n\nMembers lost with newcomers: {'; '.join(duels)}." if duels else text


def _worst(rows: Sequence[Row]) -> str:
    """Return the largest errors over all settings, in one sentence for each rule and certainty."""
    said = []
    for rule in ("per_member", "per_look"):
        for certainty in sorted({row["certainty"] for row in rows}):
            of = [row for row in rows if (row["rule"], row["certainty"]) == (rule, certainty)]
            worst = [max(row.get(name, 0.0) for row in of) for name in NAMES]
            lost, _, leads, par = (f"{100 * each:.1f} %" for each in worst)
            said.append(
                f"- {rule} at {certainty}: a member is lost in at most {lost} of races, a lead is "
                f"false in at most {leads}, closing at par in at most {par}."
            )
    return "\n".join(["The largest errors over all settings below:", "", *said])


def _cost(rows: Sequence[Row], pairs: Sequence[Row]) -> str:
    body = []
    for certainty in LIMIT:
        limit = LIMIT[certainty]
        body.append([f"limit, {certainty}", *(f"{limit[win]:,}" for win in WINS)])
        kinds = [row for row in rows if row["certainty"] == certainty]
        names = dict.fromkeys((row["rule"], row["looks"]) for row in kinds)
        for rule, looks in names:
            of = {row["win"]: row for row in kinds if (row["rule"], row["looks"]) == (rule, looks)}
            cells = []
            for win in WINS:
                ratio = of[win]["instances"] / limit[win]
                over = ratio > TARGET.get(looks, {}).get(win, np.inf) and certainty == 0.99
                cell = f"{of[win]['instances']:,.0f} ({ratio:.2f})"
                mark = over and rule != "per_look"
                cells.append(f"**{cell}**" if mark else cell)
            body.append([f"{rule}, {looks}, {certainty}", *cells])
        real = [row for row in pairs if row["certainty"] == certainty]
        if real:
            cells = []
            for win in WINS:
                took = [row["instances"] for row in real if row["win"] == win]
                error = np.std(took) / np.sqrt(max(1, len(took)))
                mean = np.mean(took) if took else np.nan
                text = f"{mean:,.0f} ± {error:,.0f} ({mean / limit[win]:.2f}), {len(took)} races"
                cells.append(text if took else "")
            body.append([f"per_member, real races, {certainty}", *cells])
    if not rows:
        return ""
    head = ["mean instances (share of the limit)", *(f"p = {win:g}" for win in WINS)]
    wrong = [
        [
            f"{row['rule']}, {row['looks']}, {row['certainty']}",
            f"{row['won'] + row['lost']:.3f}",
            f"{_same(rows, row):.3f}",
        ]
        for row in rows
        if row["win"] == 0.5
    ]
    errors = table(["", "tie: either eliminated", "p = .55: wrongly closed at par"], wrong)
    return (
        "Up to 10,000 instances, epsilon 0.05. Bold: above the target of this certainty.\n\n"
        f"{table(head, body)}\n\n{errors}"
    )


def _same(rows: Sequence[Row], like: Row) -> float:
    names = ("rule", "looks", "certainty")
    return next(
        row["closed"]
        for row in rows
        if row["win"] == 0.55 and all(row[name] == like[name] for name in names)
    )


def _curves(rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    looks = [k for k in (1, 3, 10, 30, 100) if k <= len(rows[0]["wrong"])]
    body = [
        [
            f"{row['rule']}, {row['certainty']}",
            *(f"{100 * row['wrong'][k - 1]:.1f}" for k in looks),
            f"{100 * row['wrong'][-1]:.1f}",
            f"{100 * row['wrong_without_closing'][-1]:.1f}",
        ]
        for row in rows
    ]
    head = ["percent called different until look", *map(str, looks), "the last", "without closing"]
    return (
        f"{table(head, body)}\n\nExact, with the default batches up to "
        f"{rows[0]['instances'][-1]:,} instances ({len(rows[0]['wrong'])} looks). A pair that is "
        "closed at par is not looked at again, except in the last column."
    )


def _equal(rows: Sequence[Row]) -> str:
    kinds = ("equivalent", "dominated", "member", "undecided")
    body = [
        [row["times"], row["races"]]
        + [f"{100 * row['ends'].get(kind, 0) / row['races']:.1f} %" for kind in kinds]
        + [f"{row['instances']:,.0f}"]
        for row in rows
    ]
    said = "Certainty .95, L = 0.5, at most 4,096 instances, default batches, simulated. "
    said += "Real races are in `studies/racing/equal_pairs.md`.\n\n"
    return said + table(["times", "races", *kinds, "mean instances"], body) if body else ""


def _races(rows: Sequence[Row]) -> str:
    body = []
    for setting, error_control in dict.fromkeys(
        (row["setting"], row["error_control"]) for row in rows
    ):
        of = [r for r in rows if (r["setting"], r["error_control"]) == (setting, error_control)]
        runs = np.array([row["runs"] for row in of])
        statuses = [one for row in of for one in row["statuses"]]
        dominated = sum(not belongs for _, belongs, _ in statuses)
        kept = sum(row["dominated_kept"] for row in of)
        body.append(
            [
                setting,
                error_control,
                len(of),
                f"{runs.mean():,.0f} ± {runs.std() / np.sqrt(len(runs)):,.0f}",
                f"{np.median(runs):,.0f}",
                f"{np.mean([row['time'] for row in of]):,.0f}",
                BEFORE.get((setting, error_control), "-"),
                f"{kept} of {dominated}",
                sum(margin < 0.05 for row in of for margin in row["margins"]),
                sum(row["lost"] > 0 for row in of),
                sum(row["ended"] == "resolved" for row in of),
                *(_doubted(statuses, kind) for kind in ("member", "equivalent")),
            ]
        )
    head = ["", "error control", "races", "mean runs", "median", "time", "at the design"]
    head += ["dominated kept", "behind by less than epsilon", "races that lost a member"]
    head += ["resolved", "members with P(belongs) < .5", "equivalent ones with it"]
    return (
        "Five algorithms, T = 10, three members, certainty .95. *time*: the mean time of all runs "
        "together, where a run of full length has 1. *behind by less than epsilon*: dominated "
        "algorithms that are within epsilon of each rival at some time.\n\n"
        f"{table(head, body)}"
        if body
        else ""
    )


def _doubted(statuses: Sequence[tuple[str, bool, float | None]], kind: str) -> str:
    """Return how many algorithms of a status the posterior doubts to be members."""
    called = [p for status, _, p in statuses if status == kind and p is not None]
    return f"{sum(p < 0.5 for p in called)} of {len(called)}"


def _forecasts(rows: Sequence[Row]) -> str:
    body = []
    rows = [row for row in rows if row["error_control"] == "per_member"]
    for setting in dict.fromkeys(row["setting"] for row in rows):
        told = [
            np.array(row["forecasts"])
            for row in rows
            if row["setting"] == setting and row["ended"] == "resolved" and row["forecasts"]
        ]
        if told:
            below = [each[:, 3:] <= each[:, :3] for each in told]
            decisions = np.concatenate(below)
            zero = np.mean(np.concatenate(told)[:, 1] == 0)
            for name, share in (
                (f"{len(decisions)} decisions", decisions.mean(axis=0)),
                (
                    f"mean of {len(told)} races",
                    np.mean([each.mean(axis=0) for each in below], axis=0),
                ),
            ):
                body.append([f"{setting}, {name}", *(f"{k:.2f}" for k in share), f"{zero:.2f}"])
    head = ["", "below 10 %", "below 50 %", "below 90 %", "median forecast is 0"]
    return (
        "The share of decisions after which the race took at most the instances of its forecast "
        "(`Decision.forecast.instances`). Long races have many decisions.\n\n"
        f"{table(head, [*body, ['at the design', *AT_DESIGN, '0']])}"
        if body
        else ""
    )


STYLE = {
    ("per_look", 0.95): ("#D55E00", "-", "posterior at each look, .95", 1.5),
    ("per_look", 0.99): ("#E69F00", "--", "posterior at each look, .99", 1.5),
    ("per_member", 0.95): ("#0072B2", "-", "e-values, .95 (default)", 0.5),
}
"""Colour (of Okabe and Ito, for colour-blind readers), line, text and how far above its line."""


def draw(rows: Sequence[Row], stem: Path) -> None:
    """Draw how often a given member is lost against the number of looks: two equal algorithms."""
    from matplotlib import pyplot

    figure, ax = pyplot.subplots(figsize=(5.2, 3.2), layout="constrained")
    looks = np.arange(1, len(rows[0]["wrong"]) + 1)
    for row in rows:
        if (row["rule"], row["certainty"]) in STYLE:
            colour, line, label, above = STYLE[row["rule"], row["certainty"]]
            wrong = 100 * np.array(row["wrong"]) / 2  # by symmetry, a given one of the two
            ax.plot(looks, wrong, color=colour, linestyle=line, linewidth=2.4)
            text = f"{label}: {wrong[-1]:.0f} %"
            ax.text(looks[-1], wrong[-1] + above, text, color=colour, ha="right", fontsize=10)
    ax.axhline(5, color="0.35", linewidth=1, linestyle=":")
    ax.text(1.01 * looks[-1], 5, " stated\n at .95", fontsize=8.5, color="0.3", va="center")
    ax.set_xscale("log")
    ax.set_xlim(1, looks[-1])
    ticks = [k for k in (1, 2, 5, 10, 20, 50, 100) if k <= looks[-1]]
    ax.set_xticks(ticks, [str(k) for k in ticks])
    ax.minorticks_off()
    ax.set_ylim(0, None)
    ax.margins(y=0.12)
    ax.set_xlabel("looks at the data")
    ax.set_ylabel("a given one of two equal algorithms\nis eliminated (% of races)")
    ax.spines[["top", "right"]].set_visible(False)
    stem.parent.mkdir(parents=True, exist_ok=True)
    for suffix in (".png", ".svg"):
        options: dict[str, Any] = {"metadata": {"Date": None}} if suffix == ".svg" else {"dpi": 150}
        figure.savefig(stem.with_suffix(suffix), **options)
    pyplot.close(figure)
