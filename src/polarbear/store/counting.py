"""The numbers of runs by algorithm and status, which a store keeps in a table.

They are written in the transaction of the runs that they count, so that a million runs need not be
counted again. With the number of other events they add up to the number of the last event.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from polarbear.errors import StoreError
from polarbear.store.database import Database, Statement
from polarbear.store.reading import advise_repair, read_head
from polarbear.store.rows import STATUS_OF_CODE, Head, count_row

Counts = Counter[tuple[int, int]]
"""The number of runs by the code of the algorithm and the code of the status."""

# One statement reads one snapshot, so that the numbers fit the head.
_COUNTS = (
    "SELECT h.epoch, h.last, h.holder, h.crc, c.algorithm, c.status, c.number, c.crc "
    "FROM head h LEFT JOIN counts c ON h.id = 1"
)
_OTHER_EVENTS = "SELECT count(*) FROM events WHERE seq <= ?"
_UPDATE = (
    "INSERT INTO counts VALUES (?, ?, ?, ?) ON CONFLICT (algorithm, status) "
    "DO UPDATE SET number = excluded.number, crc = excluded.crc"
)


def read_counts(database: Database) -> tuple[Head, Counts]:
    """Return the head row and the numbers of runs; raise an error if they contradict each other."""
    rows = database.query(_COUNTS)
    head = read_head(rows, database.name)
    count_rows = [row[4:] for row in rows if row[4] is not None]
    counts = Counts({(row[0], row[1]): row[2] for row in count_rows})
    intact = all(count_row(*row[:3]) == row and row[1] in STATUS_OF_CODE for row in count_rows)
    if not intact or counts.total() + database.query(_OTHER_EVENTS, head.last)[0][0] != head.last:
        raise StoreError(
            f"{database.name}: the stored numbers of runs do not match the stored runs; "
            f"{advise_repair(database.name)}"
        )
    return head, counts


def add_counts(counts: Counts, runs: Sequence[Sequence[Any]]) -> tuple[Counts, Statement]:
    """Add new runs to the numbers of runs; return these and the SQL statement that stores them."""
    new = Counts((row[2], row[5]) for row in runs)
    rows = [count_row(*key, counts[key] + number) for key, number in new.items()]
    return new, Statement(_UPDATE, rows)
