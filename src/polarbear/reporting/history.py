"""The history of a race, as data for the page of a report."""

import hashlib
import json
from collections import Counter
from dataclasses import fields
from typing import Any

import numpy as np

from polarbear._text import format_count, format_duration, format_list
from polarbear.data.array_files import pack_array
from polarbear.data.runs import Runs
from polarbear.plots.evolution import evolution_data
from polarbear.plots.run_allocation import allocation_data
from polarbear.racing.budget import Budget
from polarbear.racing.events import Decided, Removed, Told
from polarbear.racing.questions.question import Question
from polarbear.racing.questions.stored import UnknownQuestion
from polarbear.racing.race import Race
from polarbear.racing.status import RaceStatus
from polarbear.simulation.replays import Replay


def describe_race(source: Race, names: list[str], refits: int) -> dict[str, Any]:
    """Return the rounds, eliminations and costs of a race, as data for JSON.

    ``refits``: the number of rounds whose posterior is fitted again, to show the probability that
    each algorithm is dominated. With 0 it is not shown.
    """
    evolution = evolution_data(source, refits=refits)
    code = {name: k for k, name in enumerate(names)}
    order = [evolution.cast.names.index(name) for name in names]
    return {
        "facts": _describe_status(source),
        "rounds": {
            "instances": evolution.instances.tolist(),
            "runs": evolution.runs.tolist(),
            "share": evolution.share.round(5).tolist(),
        },
        "dominance": pack_array(evolution.dominance[:, order]) if refits else None,
        "out": [
            {
                "round": event.round + 1,
                "algorithm": code[one.algorithm],
                "by": code[one.rival or ""],
                "probability": one.probability,
                "decisive": list(one.decisive),
            }
            for event in source.events
            if isinstance(event, Decided)
            for one in event.decision.eliminated
        ],
        "settled": _find_settled_rounds(evolution.resolved[:, order]),
        "removed": [
            {"algorithm": code[event.algorithm], "why": event.why}
            for event in source.events
            if isinstance(event, Removed)
        ],
        "allocation": _describe_allocation(source, code),
    }


def _find_settled_rounds(resolved: np.ndarray[Any, np.dtype[np.bool_]]) -> list[dict[str, int]]:
    """Return for each algorithm the round after which it stays settled, if there is one."""
    settled: list[dict[str, int]] = []
    for k, column in enumerate(resolved.T if len(resolved) else []):
        if column[-1]:
            unsettled = np.flatnonzero(~column)
            first = int(unsettled[-1]) + 2 if len(unsettled) else 1
            settled.append({"round": first, "algorithm": k})
    return settled


def _describe_allocation(source: Race, code: dict[str, int]) -> list[dict[str, Any]]:
    """Return the cost of each algorithm: all of its runs, including retries and extensions."""
    runs = Counter(event.run.algorithm for event in source.events if isinstance(event, Told))
    allocation, failed = allocation_data(source), source.status.runs.failed
    return [
        {
            "algorithm": code[name],
            "runs": runs[name],
            "instances": int(allocation.instances[k, 0]),
            "time": float(allocation.time[k]),
            "failed": failed.get(name, 0),
        }
        for k, name in enumerate(allocation.cast.names)
        if runs[name]
    ]


def _describe_status(source: Race) -> dict[str, str]:
    """Return the status of the race, as texts by label."""
    race = source
    status = race.status
    are_there, verb = ("remaining", "remain") if status.ended else ("racing", "are racing")
    facts = {"stands": describe_end(status), are_there: format_list(status.pareto, limit=30)}
    if status.chosen:
        facts["chosen"] = format_list(status.chosen, limit=30)
    facts["error"] = status.setup.question.guarantee
    if isinstance(source, Replay):
        full = format_duration(source.full.time, status.setup.clock)
        used = f"{source.used:,} of {format_count(source.full.runs, 'recorded run')}"
        facts["spent"] = (
            f"{used}, {format_duration(status.spent.time, status.setup.clock)} of {full}"
        )
        facts["saved"] = f"{round(100 * source.saved)} % of the time"
    else:
        facts["spent"] = status.describe_spent()
    n_repeated = status.n_runs - len(source.runs)
    if n_repeated:
        facts["made again"] = (
            f"{format_count(n_repeated, 'run')}, for longer or after a failure: of these only the "
            "last counts"
        )
    if status.counts.rounds:
        instances = format_count(status.counts.instances, "instance")
        facts["rounds"] = f"{format_count(status.counts.rounds, 'round')} on {instances}"
        if race.posterior and race.posterior.instances < status.counts.instances:
            rest = format_count(race.posterior.instances, "instance")
            facts["ratings"] = f"of the algorithms that {verb}, from the {rest} they have run on"
    for name, why in status.runs.why.items():
        facts[f"{name} failed"] = " | ".join(why.split("\n"))[:600]
    if status.n_wanted and not status.ended:
        wanted = sorted(status.runs.wanted.items(), key=lambda item: -item[1])
        names = format_list([f"{name} ({number:,})" for name, number in wanted], 12)
        facts["under way"] = f"{format_count(status.n_wanted, 'run')}: {names}"
    if status.counts.open_pairs and status.counts.rounds:
        asked = source.question.undecided(status.pareto, len(source.times))
        pairs = format_count(len(asked), "pair")
        facts["open"] = f"{status.counts.open_pairs:,} of {pairs} of algorithms that {verb}"
        if status.forecast is not None:
            facts["to go"] = status.describe_forecast()
    return facts


def describe_end(status: RaceStatus) -> str:
    """Return a sentence on whether the race has ended, and why."""
    if status.counts.rounds and status.resolved:
        is_known = "the relation of every pair is known"
        return f"resolved: {is_known}" if status.is_about_set else "the question is settled"
    if status.ended not in (None, "resolved"):
        return f"ended before everything was resolved: {status.ended}"
    return "under way" if status.counts.rounds else "nothing is decided yet"


def describe_origin(source: Race) -> dict[str, str]:
    """Return the question and the seed of a race, and a hash of its runs."""
    race = source
    return {
        "question": _describe_record(race.question),
        "budget": _describe_record(race.budget),
        "seed": str(race.state.setup.seed),
        "direction": race.state.setup.direction,
        "runs (SHA-256)": hash_runs(source.runs),
    }


def _describe_record(record: Question | Budget) -> str:
    """Return a record as Python code, with only the fields that differ from their defaults."""
    if isinstance(record, UnknownQuestion):
        content = ", ".join(f"{name}={value!r}" for name, value in record.content.items())
        return f"{record.name}({content})"
    arguments = [
        f"{field.name}={getattr(record, field.name)!r}"
        for field in fields(record)
        if field.repr and getattr(record, field.name) not in (field.default, ())
    ]
    return f"{type(record).__name__}({', '.join(arguments)})"


def hash_runs(runs: Runs) -> str:
    """Return the SHA-256 hash of runs, which does not depend on their order."""
    digest = hashlib.sha256(json.dumps([runs.algorithms, runs.instances, runs.direction]).encode())
    runs_of = (runs.algorithm, runs.instance, runs.repetition, runs.until, runs.ended)
    for array in (*runs_of, runs.offset, runs.time, runs.value):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
