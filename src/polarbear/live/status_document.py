"""``describe_race_now``: a race in a few numbers, which its page loads every second."""

from collections.abc import Sequence
from math import isfinite
from typing import Any

from polarbear._text import format_list
from polarbear.data.run import FAILED
from polarbear.live.pace import Pace, format_seconds
from polarbear.racing.events import Asked
from polarbear.racing.status import RaceStatus
from polarbear.store.log import Store

MAX_GRID_INSTANCES = 60
"""The most columns of the grid of runs."""

Cells = Sequence[str]


def describe_race_now(
    status: RaceStatus, pace: Pace, *, quiet: float | None, cells: Cells | None = None
) -> dict[str, Any]:
    """Return what the strip of a race's page shows, as data for JSON.

    ``quiet``: the seconds since the last event, if known. ``cells``: see :func:`read_cells`.

    >>> from polarbear import Race
    >>> status = Race(["a", "b", "c"], [1, 2], direction="minimize").status
    >>> now = describe_race_now(status, Pace(), quiet=5.0)
    >>> now["stage"], now["settled"], now["pairs"], now["quiet"], now["per_minute"]
    ([0, 3, None], 0, 3, '5 s', None)
    """
    failed = {name: number for name, number in status.runs.failed.items() if number}
    names = [f"{name} ({number:,})" for name, number in sorted(failed.items(), key=_by_number)]
    return {
        # The report is worth loading again when one of these has changed.
        "stage": get_stage(status),
        "ended": status.ended,
        "runs": status.n_runs,
        "wanted": status.n_wanted,
        "per_minute": 60 * pace.per_second or None,
        "settled": status.n_pairs - status.counts.open_pairs,
        "pairs": status.n_pairs,
        "to_go": _describe_end(status, pace),
        "failed": sum(failed.values()),
        "who_failed": format_list(names, 6) if names else "",
        "quiet": None if quiet is None else format_seconds(quiet),
        "algorithms": [one.algorithm for one in status.verdicts],
        "cells": cells,
    }


def get_stage(status: RaceStatus) -> list[Any]:
    """Return what the report of a race depends on most: rounds, algorithms and its end."""
    return [status.counts.rounds, len(status.verdicts), status.ended]


def _by_number(item: tuple[str, int]) -> int:
    return -item[1]


def _describe_end(status: RaceStatus, pace: Pace) -> str:
    """Return the range of the time that the race will take, in words; "" if it is not known."""
    remaining, speed = pace.remaining(status), pace.per_second
    if status.ended or remaining is None or not speed:
        return ""
    if not isfinite(remaining.most):
        least = format_seconds(remaining.least / speed)
        return f"more than {least} to go" if remaining.least else "end not in sight"
    least, most = (format_seconds(runs / speed) for runs in (remaining.least, remaining.most))
    until = {"budget": ", until the budget is spent", "instances": ", if the instances suffice"}
    span = least if least == most else f"{least} to {most}"
    if remaining.least == 0:
        span = f"up to {most}"
    return f"{span} to go{until.get(remaining.limit or '', '')}"


def read_cells(store: Store, status: RaceStatus) -> list[str] | None:
    """Return the runs before the first decision: a row of letters for each algorithm.

    Each letter is an instance: "." if no run was requested, "o" if it is under way, "#" if it is
    made, "x" if it failed. None after the first decision, when ratings say more.
    """
    if status.counts.rounds:
        return None
    jobs = [job for event in store.of_kind(Asked) for job in event.jobs]
    instances = [*dict.fromkeys(job.instance for job in jobs)][:MAX_GRID_INSTANCES]
    asked, made = {(job.algorithm, job.instance) for job in jobs}, store.pairs()
    failed = {pair for kind in FAILED for pair in store.pairs(status=kind)}

    def letter(pair: tuple[str, str]) -> str:
        return "x" if pair in failed else "#" if pair in made else "o" if pair in asked else "."

    return [
        "".join(letter((one.algorithm, instance)) for instance in instances)
        for one in status.verdicts
    ]
