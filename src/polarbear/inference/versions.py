"""``software_versions``: the versions of what computes."""

import platform
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

PACKAGES = ("numpy", "scipy")


def software_versions() -> dict[str, str]:
    """The versions of this package, of the packages it computes with, and of Python.

    Nothing needs to be imported or installed for it: packages that are missing are left out, and a
    plain source tree has its version too.

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
