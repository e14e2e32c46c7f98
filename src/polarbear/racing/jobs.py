"""``Job``: a run that a race asks for, and seeds that depend on names alone."""

from collections.abc import Sequence
from hashlib import blake2b
from json import dumps
from typing import NamedTuple

from numpy.typing import ArrayLike

from polarbear.data.run import EncodedRun, Run, Status


class RunId(NamedTuple):
    """What tells runs apart."""

    algorithm: str
    instance: str
    repetition: int


class Job(NamedTuple):
    """Run ``algorithm`` on ``instance`` until ``horizon``.

    ``repetition`` is 0, and counts on where a run is asked for again: with another seed if it
    failed, with the same one if it extends an earlier run. ``seed`` is for the run,
    ``instance_seed`` for those who make instances by chance. ``extends`` is the repetition that
    this job runs again until a later horizon, with the same seed; None for a new run.
    """

    algorithm: str
    instance: str
    repetition: int
    horizon: float
    seed: int
    instance_seed: int
    extends: int | None = None

    @property
    def key(self) -> RunId:
        """What tells this run from others."""
        return RunId(self.algorithm, self.instance, self.repetition)

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


def key_of(run: Run | EncodedRun) -> RunId:
    """What tells a run from others."""
    return RunId(run.algorithm, run.instance, run.repetition)


def job(seed: int, key: RunId, horizon: float, extends: int | None = None) -> Job:
    """A job of the race with this seed; one that extends a repetition has the seed of that run.

    >>> short, long = RunId("CSA", "f1", 0), RunId("CSA", "f1", 1)
    >>> job(0, long, 100.0, extends=0).seed == job(0, short, 10.0).seed
    True
    """
    named = key if extends is None else key._replace(repetition=extends)
    own = derive_seed(seed, ["run", *named])
    return Job(*key, horizon, own, derive_seed(seed, ["instance", key.instance]), extends)


def derive_seed(seed: int, names: Sequence[str | int]) -> int:
    """A seed from a seed and names: the same on every machine, and below 2^31 as solvers like it.

    >>> derive_seed(0, ["run", "CSA", "f1"]), derive_seed(0, ["run", "CSA", "f2"])
    (413279216, 1208773988)
    """
    digest = blake2b(dumps([seed, *names]).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 33
