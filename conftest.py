"""For the examples in docstrings and documents; what tests need is in tests/conftest.py."""

import sys

import pytest

collect_ignore = ["docs/gallery"]  # what the site makes of examples: to import them would run them


@pytest.fixture(autouse=True)
def figures_are_closed():
    """Each example begins without the figures of those before it, and no window opens."""
    yield
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close("all")
