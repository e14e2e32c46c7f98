"""The store of a long race, packed small enough to be committed: another machine goes on."""

import lzma
import tempfile
from pathlib import Path

from polarbear.store.backup import backup_store

FILE = "store.xz"


def pack(store: Path, folder: Path) -> Path:
    """Write a copy of a closed store to ``store.xz`` in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / FILE
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / store.name
        backup_store(store, copy)
        path.write_bytes(lzma.compress(copy.read_bytes(), preset=9))
    return path


def unpack(folder: Path, store: Path) -> None:
    """Make the store from ``store.xz`` in a folder, if there is one and no store yet."""
    path = folder / FILE
    if path.exists() and not store.exists():
        store.write_bytes(lzma.decompress(path.read_bytes()))
