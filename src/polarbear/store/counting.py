"""How many runs of each algorithm ended how: kept beside the runs, so that nobody counts a million.

The numbers are written in the transaction of the runs that they count. Together with the events
that are no runs they add up to the number of the last event; if not, something is damaged.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from polarbear.errors import StoreError
from polarbear.store.codec import STATUS_OF_CODE, Head, count_row
from polarbear.store.database import Database, Statement
from polarbear.store.reading import advice, head_of

Counts = Counter[tuple[int, int]]
"""By the numbers of algorithm and status."""

# One statement sees one moment, so that the numbers are those of this head.
_ALL = (
    "SELECT h.epoch, h.last, h.holder, h.crc, c.algorithm, c.status, c.number, c.crc "
    "FROM head h LEFT JOIN counts c ON h.id = 1"
)
_SMALL = "SELECT count(*) FROM events WHERE seq <= ?"
_KEEP = (
    "INSERT INTO counts VALUES (?, ?, ?, ?) ON CONFLICT (algorithm, status) "
    "DO UPDATE SET number = excluded.number, crc = excluded.crc"
)


def counted(database: Database) -> tuple[Head, Counts]:
    """How far the store goes, and the numbers of its runs."""
    rows = database.query(_ALL)
    head = head_of(rows, database.name)
    found = [row[4:] for row in rows if row[4] is not None]
    counts = Counts({(row[0], row[1]): row[2] for row in found})
    sound = all(count_row(*row[:3]) == row and row[1] in STATUS_OF_CODE for row in found)
    if not sound or counts.total() + database.query(_SMALL, head.last)[0][0] != head.last:
        raise StoreError(
            f"{database.name}: the numbers of runs do not add up; {advice(database.name)}"
        )
    return head, counts


def added(counts: Counts, runs: Sequence[Sequence[Any]]) -> tuple[Counts, Statement]:
    """The numbers of these rows of ``runs``, and what keeps them, with all there were before."""
    new = Counts((row[2], row[5]) for row in runs)
    rows = [count_row(*key, counts[key] + number) for key, number in new.items()]
    return new, Statement(_KEEP, rows)
