"""table.md and figures/, from what is in results/."""

from collections import Counter
from pathlib import Path
from typing import Any

from design.figures import draw
from tools.figures import possible
from tools.markdown import table
from tools.records import Records

CAPTION = """Left: evaluations in all when each candidate had its verdict, and what the fixed
evaluator would have spent by then. Right: the runs and the evaluations that each was given by the
end."""
EVERY = 25
"""A row for so many candidates."""


def write(folder: Path) -> str:
    """Write the tables and the figures, and give back what is in the tables."""
    parts = ["Made by `python studies/design/run.py`; README.md says what is compared."]
    for place in sorted(path.parent for path in (folder / "results").glob("*/proposals.jsonl")):
        ended = Records(place / "ended.jsonl", ("candidates",)).rows
        verdicts = Records(place / "verdicts.jsonl", ("name",)).rows
        options = {
            row["name"]: row["options"]
            for row in Records(place / "proposals.jsonl", ("name",)).rows
        }
        fixed = Records(place / "fixed.jsonl", ("candidates", "out")).rows
        parts += [f"## Proposed by {place.name}", _course(verdicts)]
        if verdicts and possible():
            draw(place, folder / "figures" / f"{place.name}.png")
            parts.append(f"![What candidates cost](figures/{place.name}.png)\n\n*{CAPTION}*")
        parts += [_ended(row, fixed) for row in ended[-1:]]
        if ended:
            parts.append(_members(ended[-1]["pareto"], options))
    text = "\n\n".join(parts) + "\n"
    (folder / "table.md").write_text(text)
    return text


def _course(verdicts: list[dict[str, Any]]) -> str:
    rows = []
    for k, row in enumerate(verdicts, start=1):
        if k % EVERY == 0 or k == len(verdicts):
            said = Counter(one["standing"] for one in verdicts[:k])
            members = said["member"] + said["equivalent"]
            counts = [said["dominated"], members, said["undecided"], said["removed"]]
            spent = row["spent"]
            rows.append([k, *counts, row["racing"], f"{spent:,.0f}", f"{spent / k:,.0f}"])
    head = [
        "candidates",
        "dominated at once",
        "member or equivalent",
        "undecided",
        "failed",
        "racing now",
    ]
    return table([*head, "evaluations", "for each candidate"], rows)


def _ended(row: dict[str, Any], fixed: list[dict[str, Any]]) -> str:
    saved = 100 * (1 - row["spent"] / row["full"])
    said = (
        f"{row['candidates']} candidates and the baseline: {row['spent']:,.0f} evaluations, "
        f"against {row['full']:,.0f} of the fixed evaluator: {saved:.0f} % saved."
    )
    same = [one for one in fixed if one["candidates"] == row["candidates"]]
    if not same:
        return said + " The fixed evaluator was not run, so its set is not known."
    last = max(same, key=lambda one: one["out"])
    ours, theirs = set(row["pareto"]), set(last["pareto"])
    rest = row["candidates"] + 1 - len(ours)
    return said + (
        f" Of the {len(ours)} members of the race's set the fixed evaluator keeps "
        f"{len(ours & theirs)}; of {last['out']} of the {rest} who are out it would keep "
        f"{len(theirs - ours)}."
    )


def _members(names: list[str], options: dict[str, dict[str, Any]]) -> str:
    rows = []
    for name in names:
        given = options[name]
        on = [key for key, value in given.items() if value is True]
        named = [str(value) for value in given.values() if isinstance(value, str)]
        rows.append([name, ", ".join(named), ", ".join(on)])
    return table(["member", "modules", "switched on"], rows)
