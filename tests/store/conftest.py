import itertools

import pytest

from polarbear import open_store

_numbers = itertools.count()


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request, tmp_path):
    """A place for a store that is not there yet."""
    if request.param == "sqlite":
        return str(tmp_path / "race.db")
    return f"{request.getfixturevalue('server').url}#race {next(_numbers)}"


@pytest.fixture
def store(where):
    with open_store(where) as opened:
        yield opened
