"""For the examples in docstrings and documents; what tests need is in tests/conftest.py."""

import shutil
import sys

import pytest

# Examples, which would run if they were imported, and what needs Sphinx, matplotlib or a browser.
collect_ignore = [
    "docs/gallery",
    "docs/conf.py",
    "docs/picture_data.py",
    "docs/take_pictures.py",
    "tests/support/every_figure.py",
]


@pytest.fixture(autouse=True)
def documents_have_a_folder_of_their_own(request, monkeypatch, tmp_path_factory):
    """What a page writes, as a reader would ("race.db"), goes to a folder that is thrown away.

    What a page offers for download, named PAGE-*, is there.
    """
    page = request.node.path
    if page.suffix == ".md":
        folder = tmp_path_factory.mktemp("document")
        for file in page.parent.glob(f"{page.stem}-*.gz"):
            shutil.copy(file, folder)
        monkeypatch.chdir(folder)


@pytest.fixture(autouse=True)
def figures_are_closed():
    """Each example begins without the figures of those before it, and no window opens."""
    yield
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close("all")
