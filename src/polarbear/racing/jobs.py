"""``Job``: a run that a race asks for, and seeds that depend on names alone."""

from collections.abc import Sequence
from hashlib import blake2b
from json import dumps
from typing import NamedTuple

from numpy.typing import ArrayLike

from polarbear.data.run import Run, Status


class Key(NamedTuple):
    """What tells runs apart."""

    algorithm: str
    instance: str
    repetition: int


class Job(NamedTuple):
    """Run ``algorithm`` on ``instance`` until ``horizon``.

    ``repetition`` is 0, and counts on where a run is asked for again: with another seed if it
    failed, with the same one if it is wanted for longer, or failed when it was. ``seed`` is for the
    run, ``instance_seed`` for those who make instances by chance.
    """

    algorithm: str
    instance: str
    repetition: int
    horizon: float
    seed: int
    instance_seed: int

    @property
    def key(self) -> Key:
        """What tells this run from others."""
        return Key(self.algorithm, self.instance, self.repetition)

    def run(
        self,
        time: ArrayLike,
        value: ArrayLike,
        *,
        until: float | None = None,
        status: Status = Status.CUT,
    ) -> Run:
        """What was found, to be told to the race; by default watched until the horizon."""
        until = self.horizon if until is None else until
        return Run(self.algorithm, self.instance, time, value, until, self.repetition, status)


def job(seed: int, key: Key, horizon: float, first: int | None = None) -> Job:
    """A job of the race with this seed.

    ``first``: the repetition that this one is again, for longer.
    """
    named = key if first is None else key._replace(repetition=first)
    own = derived(seed, ["run", *named])
    return Job(*key, horizon, own, derived(seed, ["instance", key.instance]))


def first_of(seed: int, asked: Job) -> int:
    """The repetition that a job is again, for longer; its own if it is a new one.

    >>> short, long = Key("CSA", "f1", 0), Key("CSA", "f1", 1)
    >>> first_of(0, job(0, long, 100.0)), first_of(0, job(0, long, 100.0, first=short.repetition))
    (1, 0)
    """
    name, instance, last = asked.key
    same = (k for k in range(last) if derived(seed, ["run", name, instance, k]) == asked.seed)
    return next(same, last)


def derived(seed: int, names: Sequence[str | int]) -> int:
    """A seed from a seed and names: the same on every machine, and below 2^31 as solvers like it.

    >>> derived(0, ["run", "CSA", "f1"]), derived(0, ["run", "CSA", "f2"])
    (413279216, 1208773988)
    """
    digest = blake2b(dumps([seed, *names]).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 33
