import os
import signal

import pytest
from hypothesis import Phase, settings

import servers

# Timings on shared machines say nothing, and a failure in CI must be repeatable:
# random search belongs to HYPOTHESIS_PROFILE=thorough.
settings.register_profile("default", deadline=None, derandomize=True, max_examples=100)
# For CI, which has 12 minutes; the first 20 of the examples of the default.
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=20)
# To look at a failure without waiting for a smaller one.
settings.register_profile(
    "plain", deadline=None, derandomize=True, phases=(Phase.explicit, Phase.generate)
)
# For a second look at what was looked at before, as with the oldest versions that are promised.
settings.register_profile("brief", deadline=None, derandomize=True, max_examples=10)
settings.register_profile("thorough", deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# A shell starts what it puts into the background with SIGINT ignored, and programs inherit that:
# Ctrl-C in a test would do nothing.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

POSIX_ONLY = {
    "cli": "limits of processes and signals",
    "coordinator": "forked runs",
    "faults": "forks, kills and power failures",
    "live": "terminals and signals",
    "running": "forks, process groups and limits",
    "store": "locks of files and links",
    "studies": "forked runs",
    "test_benchmarks.py": "the CPU time of processes",
    "test_hostile.py": "forked runs",
    "test_package.py": "the CPU time of processes",
    "test_pictures.py": "forked runs",
    "test_programs.py": "the CPU time of processes",
}
"""Tests that are left out where there is no POSIX, with what they need."""

collect_ignore = [] if os.name == "posix" else [*POSIX_ONLY]


def pytest_report_header():
    """List what is left out on this system, and why."""
    return [f"left out: {name} needs {POSIX_ONLY[name]} (POSIX)" for name in collect_ignore]


@pytest.fixture(scope="session")
def server():
    """A PostgreSQL server of our own."""
    if servers.why_not():
        pytest.skip(servers.why_not())
    own = servers.Server()
    yield own
    own.remove()


def pytest_collection_modifyitems(items):
    """Mark long tests as slow too; put tests that fork first, while this process is small."""
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker("slow")
    early = (
        "tests/running",
        "tests/faults",
        "tests/coordinator",
        "tests/design",
        "tests/store",
        "tests/live",
        "tests/studies/test_design",
        "tests/studies/test_races",
        "README",
        "docs",
    )
    items.sort(key=lambda item: not item.nodeid.startswith(early))
