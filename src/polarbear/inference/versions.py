"""``software_versions``: the versions of this package and its numerical libraries."""

import platform
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

PACKAGES = ("numpy", "scipy")


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
