"""How a race went, as data for the page."""

import hashlib
import json
from collections import defaultdict
from dataclasses import fields
from typing import Any

import numpy as np

from polarbear._text import format_count, format_duration, format_list
from polarbear.data.runs import Runs
from polarbear.plots.arguments import RaceSource, get_race
from polarbear.plots.evolution import evolution_data
from polarbear.plots.run_allocation import allocation_data
from polarbear.racing.events import Decided, Removed, Told
from polarbear.racing.replay import Replay
from polarbear.racing.rules import Rules
from polarbear.racing.status import RaceStatus
from polarbear.reporting.packing import pack_array


def history(source: RaceSource, names: list[str], refits: int) -> dict[str, Any]:
    """Rounds, who was out when, and what was spent on whom; algorithms as places in ``names``.

    ``refits``: of so many rounds the posterior is made again, to say how close anybody was to being
    dominated; of none, nothing is said about it.
    """
    found = evolution_data(source, refits=refits)
    code = {name: k for k, name in enumerate(names)}
    order = [found.cast.names.index(name) for name in names]
    return {
        "facts": _facts(source),
        "rounds": {
            "instances": found.instances.tolist(),
            "runs": found.runs.tolist(),
            "share": found.share.round(5).tolist(),
        },
        "dominance": pack_array(found.dominance[:, order]) if refits else None,
        "out": [
            {
                "round": event.round + 1,
                "algorithm": code[one.algorithm],
                "by": code[one.by],
                "probability": one.probability,
                "decisive": list(one.decisive),
            }
            for event in source.events
            if isinstance(event, Decided)
            for one in event.eliminated
        ],
        "settled": _settled(found.resolved[:, order]),
        "removed": [
            {"algorithm": code[event.algorithm], "why": event.why}
            for event in source.events
            if isinstance(event, Removed)
        ],
        "allocation": _allocation(source, code),
    }


def _settled(resolved: np.ndarray[Any, np.dtype[np.bool_]]) -> list[dict[str, int]]:
    """From which round on it is known of an algorithm, for good, that it belongs."""
    found: list[dict[str, int]] = []
    for k, column in enumerate(resolved.T if len(resolved) else []):
        if column[-1]:
            before = np.flatnonzero(~column)
            found.append({"round": int(before[-1]) + 2 if len(before) else 1, "algorithm": k})
    return found


def _allocation(source: RaceSource, code: dict[str, int]) -> list[dict[str, Any]]:
    """What the race has spent on each algorithm: all runs it asked for, also those made again."""
    runs: dict[str, int] = defaultdict(int)
    time: dict[str, float] = defaultdict(float)
    for event in source.events:
        if isinstance(event, Told):
            runs[event.run.algorithm] += 1
            time[event.run.algorithm] += event.run.until
    known = allocation_data(source)
    return [
        {
            "algorithm": code[name],
            "runs": runs[name],
            "instances": int(known.instances[k, 0]),
            "time": time[name],
        }
        for k, name in enumerate(known.cast.names)
        if runs[name]
    ]


def _facts(source: RaceSource) -> dict[str, str]:
    """Return where the race stands, as labels and texts of the page."""
    race = get_race(source)
    status = race.status
    facts = {"stands": describe_end(status), "racing": format_list(status.pareto, limit=30)}
    if status.chosen:
        facts["chosen"] = format_list(status.chosen, limit=30)
    facts["error"] = status.rules.guarantee
    if isinstance(source, Replay):
        full = format_duration(source.full.time, status.clock)
        used = f"{source.used:,} of {format_count(source.full.runs, 'recorded run')}"
        facts["spent"] = f"{used}, {format_duration(status.spent.time, status.clock)} of {full}"
        facts["saved"] = f"{round(100 * source.saved)} % of the time"
    else:
        facts["spent"] = status.describe_spent()
    again = status.n_runs - len(source.runs)
    if again:
        facts["made again"] = (
            f"{format_count(again, 'run')}, for longer or after a failure: of these only the last "
            "counts"
        )
    if status.n_rounds:
        instances = format_count(status.n_instances, "instance")
        facts["rounds"] = f"{format_count(status.n_rounds, 'round')} on {instances}"
        if race.posterior and race.posterior.instances < status.n_instances:
            rest = format_count(race.posterior.instances, "instance")
            facts["ratings"] = f"of those who are racing, from the {rest} they have run on"
    for name, why in status.failures.items():
        facts[f"{name} failed"] = " | ".join(why.split("\n"))[:600]
    if status.n_wanted and not status.ended:
        facts["under way"] = format_count(status.n_wanted, "run")
    if status.n_open_pairs and status.n_rounds:
        n = len(status.pareto)
        pairs = format_count(n * (n - 1) // 2, "pair")
        facts["open"] = f"{status.n_open_pairs:,} of {pairs} of those who are racing"
        if status.forecast is not None:
            facts["to go"] = status.describe_forecast()
    return facts


def describe_end(status: RaceStatus) -> str:
    """Return whether the race is over, and why."""
    if status.n_rounds and status.resolved:
        return "resolved: the relation of every pair is known"
    if status.ended not in (None, "resolved"):
        return f"ended before everything was resolved: {status.ended}"
    return "under way" if status.n_rounds else "nothing is decided yet"


def origin(source: RaceSource) -> dict[str, str]:
    """What the race was given, and a fingerprint of what was found."""
    race = get_race(source)
    return {
        "rules": _said(race.rules),
        "seed": str(race.state.seed),
        "direction": race.state.direction,
        "runs (SHA-256)": fingerprint(source.runs),
    }


def _said(rules: Rules) -> str:
    """Rules as one would write them: what differs from the usual."""
    usual = Rules()
    said = [
        f"{field.name}={getattr(rules, field.name)!r}"
        for field in fields(rules)
        if getattr(rules, field.name) != getattr(usual, field.name)
    ]
    return f"Rules({', '.join(said)})"


def fingerprint(runs: Runs) -> str:
    """The same for the same runs, in whatever order they came."""
    found = hashlib.sha256(json.dumps([runs.algorithms, runs.instances, runs.direction]).encode())
    for array in (runs.algorithm, runs.instance, runs.until, runs.offset, runs.time, runs.value):
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()
