"""Fingerprints are those that stores of earlier versions hold."""

from polarbear.running.solvers.commands import Command
from polarbear.running.solvers.identity import describe_differences, identify
from polarbear.running.solvers.setup import Limits, Setup

STORED_COMMAND = (
    "solve '{instance}'  (clock='wall', errors=True, exits=(0, 1), "
    "pattern='(?P<value>\\\\d+)', terminal=True)"
)
STORED_LIMITS = {
    "wall": 60,
    "cpu": 5,
    "memory": None,
    "address_space": None,
    "processes": 256,
    "threads": 1,
    "environment": None,
}


def test_identity_does_not_change_with_the_names_of_the_package():
    setup = Setup.of(
        {
            "program": Command(
                ["solve", "{instance}"],
                r"(?P<value>\d+)",
                ok_exit_codes=(0, 1),
                include_stderr=True,
                use_pty=True,
            ),
        },
        ["x"],
        times=[1, 2],
        direction="minimize",
        clock="wall",
        limits=Limits(wall_seconds=60, cpu_seconds=5),
    )
    identity = identify(setup)
    assert identity.instances == {"x": "28b00d6c442b8e1844b924e997106a6e"}
    assert identity.solvers == {
        "program": {"command": STORED_COMMAND, "content": "75eda7b2ded019811a27536eb2bfe550"},
    }
    assert identity.limits == STORED_LIMITS
    assert Limits.from_stored(STORED_LIMITS) == setup.limits
    assert describe_differences(identity, identity) == []
