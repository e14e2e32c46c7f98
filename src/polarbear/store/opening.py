"""``open_store``: open the store of a race by its path or URL."""

from os import PathLike, fspath
from pathlib import Path

from polarbear.store.log import Store
from polarbear.store.sqlite import MEMORY, SQLite


def open_store(where: str | PathLike[str], *, read_only: bool = False) -> Store:
    """Open the store of a race; create it if it does not exist.

    Parameters
    ----------
    where
        A file (SQLite), ``":memory:"`` for a temporary store, or a URL
        ``postgresql://user@host/database#race`` (extra ``postgres``), where ``race`` is the name of
        the race in the database.
    read_only
        Read, also while another process writes. There can be one writer and any number of readers,
        which never wait for one another.

    Returns
    -------
    Store
        Close it after use, or use it in a ``with`` statement.

    Raises
    ------
    StoreError
        If it is no store, is damaged, has a newer format, has another writer, or does not exist
        and is to be read only.

    Examples
    --------
    >>> from polarbear import Race
    >>> with open_store(":memory:") as store:
    ...     race = Race(["CSA", "RS"], [10, 100], direction="minimize")
    ...     jobs = race.ask()
    ...     store.append(race.events)  # before anything is run
    ...     again = Race.from_events(store.read())
    >>> again.ask() == jobs
    True
    """
    name = fspath(where)
    if name.startswith(("postgresql://", "postgres://")):
        from polarbear.store.postgres import PostgreSQL

        return Store(PostgreSQL(name, read_only=read_only))
    return Store(SQLite(name if name == MEMORY else Path(name), read_only=read_only))
