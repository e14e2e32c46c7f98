"""Where the events of a race are kept: durable before they are acted on, read while the race runs.

``open_store`` opens a file (SQLite) or a PostgreSQL database. A store appends and reads; the rest
follows from the events.
"""

from polarbear.store.log import Remark, Store
from polarbear.store.merging import Merged, merge
from polarbear.store.opening import open_store
from polarbear.store.overview import Overview
from polarbear.store.repair import Salvaged, salvage

__all__ = [
    "Merged",
    "Overview",
    "Remark",
    "Salvaged",
    "Store",
    "merge",
    "open_store",
    "salvage",
]
