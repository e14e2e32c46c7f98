"""Reading of withdrawn runs, which stay in the store but do not count."""

from collections import Counter

from polarbear.errors import StoreError
from polarbear.racing.events import Withdrawn
from polarbear.store.database import Database
from polarbear.store.reading import EVENTS_OF_KIND, advise_repair
from polarbear.store.rows import decode_event, decode_name


def read_withdrawn(database: Database) -> dict[tuple[str, str], int]:
    """Map each pair (algorithm, instance) to the last event that withdrew its earlier runs."""
    last: dict[tuple[str, str], int] = {}
    for row in database.query(f"{EVENTS_OF_KIND} ORDER BY seq", "withdrawn"):
        event = decode_event(row)
        if not isinstance(event, Withdrawn):
            raise StoreError(
                f"{database.name}: event {row[0]}, which withdraws runs, is damaged; "
                f"{advise_repair(database.name)}"
            )
        last.update((pair, int(row[0])) for pair in event.pairs)
    return last


def count_withdrawn(
    database: Database, last: dict[tuple[str, str], int]
) -> Counter[tuple[int, int]]:
    """Count the withdrawn runs by algorithm number and status number."""
    if not last:
        return Counter()
    rows = database.query("SELECT id, name, crc FROM names")
    ids = {name: row[0] for row in rows if (name := decode_name(*row)) is not None}
    withdrawn_at = {(ids[a], ids[i]): seq for (a, i), seq in last.items() if {a, i} <= ids.keys()}
    sql = "SELECT algorithm, status, instance, seq FROM runs WHERE algorithm = ?"
    return Counter(
        (algorithm, status)
        for algorithm_id in {pair[0] for pair in withdrawn_at}
        for algorithm, status, instance, seq in database.query(sql, algorithm_id)
        if seq < withdrawn_at.get((algorithm, instance), 0)
    )
