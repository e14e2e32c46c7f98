"""Stores of races: durable logs of events in SQLite files or PostgreSQL databases.

The coordinator, the live page and the command line import this package; it imports ``racing``.
"""

from polarbear.store.backup import BackupSummary, backup_store
from polarbear.store.log import ConflictingRun, Store
from polarbear.store.merging import Merged, merge
from polarbear.store.opening import open_store
from polarbear.store.repair import RepairSummary, repair_store
from polarbear.store.restoring import restore_race

__all__ = [
    "BackupSummary",
    "ConflictingRun",
    "Merged",
    "RepairSummary",
    "Store",
    "backup_store",
    "merge",
    "open_store",
    "repair_store",
    "restore_race",
]
