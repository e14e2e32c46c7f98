"""Reasons for failed runs, by algorithm, with the number of runs and the instances."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from polarbear._text import format_count, format_list
from polarbear.data.names import natural_sort_key
from polarbear.racing.events import Failed

MAX_REASONS = 3
"""The number of reasons listed for an algorithm; the others are only counted."""


@dataclass
class Reason:
    """A reason why runs of an algorithm failed: its latest text, and failed runs by instance."""

    why: str = ""
    runs: Counter[str] = field(default_factory=Counter)


Reasons = dict[str, dict[str, Reason]]
"""Reasons by algorithm, then by wording without numbers, which may differ between runs."""


def add_failure(reasons: Reasons, failed: Failed) -> None:
    """Add a failed run to the counts of failures by algorithm and reason."""
    kind = re.sub(r"0x[0-9a-f]+|[0-9]+", "#", failed.reason)
    reason = reasons.setdefault(failed.key.algorithm, {}).setdefault(kind, Reason())
    reason.why = failed.why
    reason.runs[failed.key.instance] += 1


def withdraw_failures(reasons: Reasons, pairs: Iterable[tuple[str, str]]) -> None:
    """Delete the failures of pairs (algorithm, instance) whose runs were withdrawn."""
    for algorithm, instance in pairs:
        by_kind = reasons.get(algorithm, {})
        for kind in [kind for kind, reason in by_kind.items() if instance in reason.runs]:
            del by_kind[kind].runs[instance]
            if not by_kind[kind].runs:
                del by_kind[kind]
        if not by_kind:
            reasons.pop(algorithm, None)


def describe_failures(
    reasons: Reasons, n_runs: Mapping[str, int], dominated: Collection[str]
) -> dict[str, str]:
    """Return for each algorithm why its runs failed, with the most frequent reasons first.

    ``n_runs`` are all runs of each algorithm. If most runs of a dominated algorithm failed, the
    text says so.

    >>> from polarbear.data.run import Status
    >>> from polarbear.racing.jobs import RunId
    >>> reasons = {}
    >>> for instance in ("f1", "f2"):
    ...     add_failure(reasons, Failed(RunId("a", instance, 0), Status.CRASHED, "no licence"))
    >>> describe_failures(reasons, {"a": 2}, ["a"])
    {'a': 'no licence (2 runs, on f1, f2); dominated after 2 of 2 runs failed so'}
    """
    descriptions: dict[str, str] = {}
    for name in sorted(reasons, key=natural_sort_key):
        ordered = sorted(reasons[name].values(), key=lambda reason: -reason.runs.total())
        parts = [
            f"{reason.why} ({format_count(reason.runs.total(), 'run')}, on "
            f"{format_list(sorted(reason.runs, key=natural_sort_key), 4)})"
            for reason in ordered[:MAX_REASONS]
        ]
        if ordered[MAX_REASONS:]:
            parts.append(f"and {format_count(len(ordered) - MAX_REASONS, 'other reason')}")
        n_failed, n_made = sum(reason.runs.total() for reason in ordered), n_runs.get(name, 0)
        if name in dominated and 2 * n_failed > n_made:
            parts.append(f"dominated after {n_failed:,} of {format_count(n_made, 'run')} failed so")
        descriptions[name] = "; ".join(parts)
    return descriptions
