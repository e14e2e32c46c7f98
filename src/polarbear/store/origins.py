"""``Origins``: the solvers, limits, hosts and software versions of the runs of a store."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from polarbear._text import escape_text, format_count
from polarbear.racing.events import Hosted, Identified, Withdrawn
from polarbear.racing.jobs import RunId


class Origins(NamedTuple):
    """The solvers, limits and worker processes that made the runs of a store.

    ``identity``: the fingerprints, command lines and limits of the last call. ``changes``: the
    differences that earlier calls accepted. ``workers``: the details of each worker process, by
    number. ``worker_of``: the number of the process that made a run.

    >>> identity = Identified({}, {"CSA": {"command": "csa 1"}}, {"wall": 60.0})
    >>> print(Origins(identity, (), {}, {}, ()))
      solver      CSA: csa 1
      limits      wall 60.0
    """

    identity: Identified
    changes: tuple[str, ...]
    workers: Mapping[int, Mapping[str, str]]
    worker_of: Mapping[RunId, int]
    withdrawn: tuple[Withdrawn, ...]

    @classmethod
    def of(
        cls,
        identified: Sequence[Identified],
        hosted: Sequence[Hosted],
        withdrawn: Sequence[Withdrawn],
    ) -> "Origins":
        """Collect the origins of runs from events of three types."""
        last = Identified()
        for event in identified:
            last = last.updated(event)
        changes = tuple(change for event in identified for change in event.changes)
        workers = {event.worker: event.details for event in hosted if event.details}
        worker_of = {key: event.worker for event in hosted for key in event.runs}
        return cls(
            identity=last,
            changes=changes,
            workers=workers,
            worker_of=worker_of,
            withdrawn=tuple(withdrawn),
        )

    @property
    def solvers(self) -> Mapping[str, Mapping[str, str]]:
        """Return the command lines and fingerprints of the solvers."""
        return self.identity.solvers

    @property
    def limits(self) -> Mapping[str, Any]:
        """Return the limits of time and memory for each run."""
        return self.identity.limits

    def plain(self) -> dict[str, Any]:
        """Return the origins as plain data for JSON, with the number of runs of each worker."""
        made = Counter(self.worker_of.values())
        return {
            "solvers": self.solvers,
            "limits": self.limits,
            "changes": self.changes,
            "workers": [
                {"number": number, "runs": made[number], **details}
                for number, details in self.workers.items()
            ],
            "withdrawn": [
                {"at": event.at, "why": event.why, "pairs": len(event.pairs)}
                for event in self.withdrawn
            ],
        }

    def __str__(self) -> str:
        lines = [
            f"  solver      {name}: {parts.get('command') or 'Python'}"
            for name, parts in self.solvers.items()
        ]
        limits = ", ".join(f"{k} {v}" for k, v in self.limits.items() if v is not None)
        lines += [f"  limits      {limits}"] if limits else []
        made = Counter(self.worker_of.values())
        for number, details in self.workers.items():
            text = ", ".join(f"{name} {value}" for name, value in details.items())
            lines.append(f"  worker {number:<4} {format_count(made[number], 'run')}: {text}")
        lines += [f"  accepted    {change}" for change in self.changes]
        lines += [f"  withdrawn   {event.at} {event.why}".rstrip() for event in self.withdrawn]
        return "\n".join(escape_text(line) for line in lines)
