"""What a race has found, in words and tables."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tools.markdown import table

CAPTIONS = {
    "rounds": """Ratings after the rounds in which an algorithm was eliminated or settled: the
probability of coming first among the rated algorithms. Bands are narrow with many instances.""",
    "course": """Left: the probability of being dominated after every round. A cross marks an
elimination, a diamond a settled algorithm. The black line is the share of decided pairs. Right:
the number of instances on which an algorithm ran at least until a time, the most costly first.""",
    "end": """Ratings at the end of the race, and the value of each algorithm if every time is
equally likely to be the budget.""",
    "classical": """The usual view of complete runs: the mean share of the range of values attained
by a time (ECDF), and its mean over time for every run (AOCC).""",
    "attained": """Where two differ: the share of runs of the one that have attained a value by a
time, minus that of the other (EAF). Lines are what half of the runs have attained.""",
}
"""What the pictures of races show, by the ends of their names."""


def in_words(facts: dict[str, Any]) -> dict[str, str]:
    """What the paper says of its races, of ours."""
    out = [
        f"{', '.join(name for name, *_ in one['eliminated'])} in {_when(one)}"
        for one in facts["rounds"]
        if one["eliminated"]
    ]
    settled: dict[int, list[str]] = {}
    for name, one in _first_settled(facts).items():
        settled.setdefault(one["round"], []).append(name)
    last = facts["rounds"][-1] if facts["rounds"] else {"round": 0, "instances": 0}
    ended = "" if facts["ended"] == "resolved" else f" (ended: {facts['ended']})"
    half = _half(facts)
    beyond = [f"{name} {number[half]:,}" for name, number in facts["reached"].items()]
    chosen = {scale: ", ".join(names) for scale, names in facts["chosen"].items()}
    return {
        "pareto": ", ".join(facts["pareto"]) or "-",
        "eliminated": ", ".join(out) or "none",
        "rounds": f"{last['round']}; {last['instances']:,}{ended}",
        "settled": ", ".join(f"{', '.join(who)} in {k}" for k, who in settled.items()) or "none",
        "beyond half": ", ".join(beyond),
        "chosen": f"{chosen.get('linear', '-')}; on a logarithmic scale {chosen.get('log', '-')}",
    }


def compared(
    paper: Mapping[str, tuple[str, str]], head: str, ours: Mapping[str, Mapping[str, str]]
) -> str:
    """The rows "the paper / ours": of each figure its name, what the paper says, and our words."""
    rows = [
        [what, said, *(words[key] for words in ours.values())]
        for key, (what, said) in paper.items()
    ]
    return table(["figure", head, *ours], rows)


def pictured(folder: Path, name: str, captions: Mapping[str, str] = CAPTIONS) -> list[str]:
    """The pictures of a race that there are, for a file in the folder, with what one sees."""
    paths = {what: folder / "figures" / f"{name}-{what}.png" for what in captions}
    return [
        f"![{' '.join(captions[what].split())}](figures/{path.name})"
        for what, path in paths.items()
        if path.exists()
    ]


def explained(captions: Mapping[str, str] = CAPTIONS) -> str:
    """What one sees in pictures, said once."""
    return "\n".join([f"- *{what}*: {said}" for what, said in captions.items()])


def _when(one: dict[str, Any]) -> str:
    return f"{one['round']} ({one['instances']:,} instances)"


def _half(facts: dict[str, Any]) -> int:
    """The first time in the second half."""
    return next(k for k, t in enumerate(facts["times"]) if t >= facts["times"][-1] / 2)


def _first_settled(facts: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """In which round those in the set had all their pairs settled for the first time."""
    found: dict[str, dict[str, Any]] = {}
    for one in facts["rounds"]:
        for name in one["settled"]:
            if name in facts["pareto"]:
                found.setdefault(name, one)
    return found


def _settled(one: dict[str, Any]) -> list[Any]:
    return ["all pairs settled", one["round"], one["instances"]]


def tables(facts: dict[str, Any], unit: str) -> list[str]:
    """Who was eliminated when, and where the runs went."""
    first_settled = _first_settled(facts)
    rows = [
        [name, f"eliminated by {by} (P = {p:.3f})", one["round"], one["instances"]]
        for one in facts["rounds"]
        for name, by, p in one["eliminated"]
    ]
    for name in facts["pareto"]:
        one = first_settled.get(name)
        said = ["undecided", "-", "-"]
        rows.append([name, *(said if one is None else _settled(one))])
    half = _half(facts)
    spent = [
        [name, number[0], number[half], number[-1]] for name, number in facts["reached"].items()
    ]
    last = f"{facts['times'][-1]:,.6g} {unit}"
    return [
        table(["algorithm", "verdict", "round", "instances so far"], rows),
        table(["algorithm", "instances", "at least half the time", f"all {last}"], spent),
        "```\n" + facts["verdict"] + "\n```",
    ]
