"""``backup_store``: copy a store to another place, and later only what is new."""

from itertools import islice
from os import PathLike
from typing import NamedTuple

from polarbear._text import format_count
from polarbear.errors import StoreError
from polarbear.store.log import CHUNK
from polarbear.store.opening import open_store


class BackupSummary(NamedTuple):
    """The result of a backup: the number of events copied, and of those copied before.

    >>> print(BackupSummary(12, 300))
    12 events copied, 300 were there
    """

    copied: int
    known: int

    def __str__(self) -> str:
        return f"{format_count(self.copied, 'event')} copied, {self.known:,} were there"


def backup_store(source: str | PathLike[str], target: str | PathLike[str]) -> BackupSummary:
    """Copy the events of a store to another store, which then holds the same race.

    Each of the two is an SQLite file or a PostgreSQL database, so the way back is the same call.
    The source is only read, and may be written to meanwhile. The target is new, or an earlier
    backup, to which later events are added. Every row that is copied is verified.

    >>> import tempfile
    >>> from polarbear import Race
    >>> race, folder = Race(["a", "b"], [1], direction="minimize"), tempfile.TemporaryDirectory()
    >>> with open_store(f"{folder.name}/race.db") as store:
    ...     store.append(race.events)
    >>> print(backup_store(f"{folder.name}/race.db", f"{folder.name}/copy.db"))
    3 events copied, 0 were there
    >>> print(backup_store(f"{folder.name}/race.db", f"{folder.name}/copy.db"))
    0 events copied, 3 were there
    >>> folder.cleanup()
    """
    with open_store(source, read_only=True) as old, open_store(target) as new:
        known = new.n_events
        if old.n_events < known or old.hash_events(known) != new.hash_events(known):
            raise StoreError(
                f"{new.name} is not an earlier backup of {old.name}: their first events differ; "
                "name a new store"
            )
        copied = 0
        events = old.read(arrays=True, after=known)
        while chunk := list(islice(events, CHUNK)):
            new.append(chunk)
            copied += len(chunk)
        new.add_conflicts(old.conflicts())
    return BackupSummary(copied, known)
