"""Why runs failed: by algorithm and reason, with the number of runs and the instances."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from polarbear._text import format_count, format_list
from polarbear.data.names import natural_sort_key
from polarbear.racing.events import Failed

MAX_REASONS = 3
"""The number of reasons that are given for an algorithm; others are counted."""


@dataclass
class Reason:
    """A reason for which runs of an algorithm failed: its last wording, and runs by instance."""

    why: str = ""
    runs: Counter[str] = field(default_factory=Counter)


Reasons = dict[str, dict[str, Reason]]
"""By algorithm, and then by reason without numbers, which may differ from run to run."""


def add_failure(reasons: Reasons, failed: Failed) -> None:
    """Count a failed run under its reason."""
    kind = re.sub(r"0x[0-9a-f]+|[0-9]+", "#", failed.why.split("; it printed last:")[0])
    reason = reasons.setdefault(failed.key.algorithm, {}).setdefault(kind, Reason())
    reason.why = failed.why
    reason.runs[failed.key.instance] += 1


def withdraw_failures(reasons: Reasons, pairs: Iterable[tuple[str, str]]) -> None:
    """Forget the failures of (algorithm, instance) whose runs were withdrawn."""
    for algorithm, instance in pairs:
        own = reasons.get(algorithm, {})
        for kind in [kind for kind, reason in own.items() if instance in reason.runs]:
            del own[kind].runs[instance]
            if not own[kind].runs:
                del own[kind]
        if not own:
            reasons.pop(algorithm, None)


def describe_failures(
    reasons: Reasons, n_runs: Mapping[str, int], dominated: Collection[str]
) -> dict[str, str]:
    """Why runs of each algorithm failed, most frequent reasons first.

    Of a dominated algorithm it says so if most of its runs failed: ``n_runs`` are all of its runs.

    >>> from polarbear.data.run import Status
    >>> from polarbear.racing.jobs import RunId
    >>> reasons = {}
    >>> for instance in ("f1", "f2"):
    ...     add_failure(reasons, Failed(RunId("a", instance, 0), Status.CRASHED, "no licence"))
    >>> describe_failures(reasons, {"a": 2}, ["a"])
    {'a': 'no licence (2 runs, on f1, f2); dominated after 2 of 2 runs failed so'}
    """
    said: dict[str, str] = {}
    for name in sorted(reasons, key=natural_sort_key):
        own = sorted(reasons[name].values(), key=lambda reason: -reason.runs.total())
        parts = [
            f"{reason.why} ({format_count(reason.runs.total(), 'run')}, on "
            f"{format_list(sorted(reason.runs, key=natural_sort_key), 4)})"
            for reason in own[:MAX_REASONS]
        ]
        if own[MAX_REASONS:]:
            parts.append(f"and {format_count(len(own) - MAX_REASONS, 'other reason')}")
        failed, made = sum(each.runs.total() for each in own), n_runs.get(name, 0)
        if name in dominated and 2 * failed > made:
            parts.append(f"dominated after {failed:,} of {format_count(made, 'run')} failed so")
        said[name] = "; ".join(parts)
    return said
