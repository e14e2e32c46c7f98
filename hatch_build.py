"""Metadata of the package that depend on where it is published: links of the README, and its URLs.

``[tool.polarbear] repository`` in pyproject.toml is the only place with the address. A package
index shows the README without the files beside it, so links to them become absolute. While no
address is set, links stay relative and the package has no URLs.
"""

import re
import tomllib
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)\s]+)\)")
PICTURES = (".png", ".svg")
VERSION = re.compile(r'^__version__ = "(.+)"', re.MULTILINE)


class ReadmeHook(MetadataHookInterface):
    """Set the README and the URLs of the package."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Write both into the metadata."""
        root = Path(self.root)
        settings = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["tool"]["polarbear"]
        repository = settings["repository"].rstrip("/")
        version = VERSION.findall((root / "src/polarbear/__init__.py").read_text("utf-8"))[0]
        text = (root / "README.md").read_text("utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": make_absolute(text, repository, version),
        }
        metadata["urls"] = make_urls(repository, version, settings["documentation"])


def make_absolute(text: str, repository: str, version: str) -> str:
    """Return Markdown whose relative links lead to this version in the repository."""
    if not repository:
        return text

    def expand(link: re.Match[str]) -> str:
        kind = "raw" if link[1].endswith(PICTURES) else "blob"
        return f"]({repository}/{kind}/v{version}/{link[1]})"

    return LINK.sub(expand, text)


def make_urls(repository: str, version: str, documentation: str = "") -> dict[str, str]:
    """Return the URLs that a package index lists; none without a repository."""
    if not repository:
        return {"Documentation": documentation} if documentation else {}
    files = f"{repository}/blob/v{version}"
    return {
        "Repository": repository,
        "Documentation": documentation or f"{files}/docs/index.md",
        "Changelog": f"{files}/CHANGELOG.md",
        "Issues": f"{repository}/issues",
    }
