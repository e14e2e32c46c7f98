"""Fingerprints are those that stores of earlier versions hold."""

from dataclasses import dataclass

import numpy as np

from polarbear.running.solvers.commands import Command
from polarbear.running.solvers.fingerprints import fingerprint
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


@dataclass(slots=True)
class Slotted:
    step: int

    def __call__(self, _):
        yield 1, float(self.step)


OPTIONS = {"step": 1, "unknown": iter([])}
SIZES = {"step": 1}


def test_what_a_function_uses_belongs_to_its_fingerprint(monkeypatch):
    def ellipsis(_):
        return np.zeros((3, 2))[..., 0] + SIZES["step"]

    def other(_):
        return np.zeros((3, 2))[..., 1] + SIZES["step"]

    other.__qualname__ = ellipsis.__qualname__
    before = fingerprint(ellipsis)
    assert before
    assert before != fingerprint(other)
    monkeypatch.setitem(SIZES, "step", 2)
    assert fingerprint(ellipsis) != before


def test_a_global_that_cannot_be_hashed_does_not_hide_the_rest():
    def one(_):
        return OPTIONS["step"] + 1

    def other(_):
        return OPTIONS["step"] + 2

    other.__qualname__ = one.__qualname__
    assert fingerprint(one)
    assert fingerprint(one) != fingerprint(other)


def test_objects_with_slots_and_scalars_of_numpy_have_fingerprints():
    assert fingerprint(Slotted(1)) == fingerprint(Slotted(1)) != fingerprint(Slotted(2))
    values = [np.bool_(True), np.bool_(False), np.datetime64("2030-01-01"), ..., bytearray(b"x")]
    assert len({fingerprint(one) for one in values} - {""}) == len(values)
    assert fingerprint(open)
    assert not fingerprint(iter([]))
