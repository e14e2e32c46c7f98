"""``software_versions``: the versions of this package and its numerical libraries.

``describe_installation`` is longer, for a report of an error.
"""

import platform
import re
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires, version

PACKAGES = ("numpy", "scipy")
REQUIREMENT = re.compile(r"([\w.-]+)[^;]*?(?:;.*extra == [\"'](.+?)[\"'])?$")
"""A requirement of the metadata: its name, and the extra that needs it."""


def software_versions() -> dict[str, str]:
    """Return the versions of this package, of numpy and scipy, and of Python.

    The packages are not imported, and missing ones are left out. A source tree that is not
    installed has a version as well.

    >>> list(software_versions())
    ['polarbear-race', 'numpy', 'scipy', 'Python']
    """
    versions = {"polarbear-race": import_module("polarbear").__version__}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return {**versions, "Python": platform.python_version()}


def describe_installation() -> str:
    """Return the versions of Python, the system, SQLite, and all installed dependencies, as text.

    Extras whose packages are missing are listed in the last line.

    >>> print(describe_installation())
    Python         3...
    system         ...
    SQLite         ...
    runs           ...
    numpy          ...
    """
    import os
    import sqlite3

    facts = {
        "Python": f"{platform.python_version()} ({platform.python_implementation()})",
        "system": f"{platform.platform()}, {os.cpu_count()} cores",
        "SQLite": sqlite3.sqlite_version,
        "runs": "in forked processes" if hasattr(os, "fork") else "in new Python processes",
    }
    missing = []
    for name, extra in _list_requirements():
        try:
            facts[name] = version(name)
        except PackageNotFoundError:
            missing.append(extra or name)
    if missing:
        facts["not installed"] = ", ".join(dict.fromkeys(missing))
    return "\n".join(f"{name:<14} {fact}" for name, fact in facts.items())


def _list_requirements() -> list[tuple[str, str]]:
    """Return the dependencies of this package, each with an extra that needs it, or ""."""
    try:
        lines = requires("polarbear-race") or []
    except PackageNotFoundError:  # a source tree that is not installed
        lines = [*PACKAGES]
    matches = [REQUIREMENT.match(line) for line in lines]
    pairs = [(match[1], match[2] or "") for match in matches if match is not None]
    return [*{name: (name, extra) for name, extra in pairs if extra != "all"}.values()]
