"""``Job``: a run that a race requests, with seeds that depend only on names and the race's seed."""

from collections.abc import Sequence
from hashlib import blake2b
from json import dumps
from typing import Any, NamedTuple, Self, TypeVar

from numpy.typing import ArrayLike

from polarbear.data.run import EncodedRun, Run, Status

QUOTES = "; it printed last: "
"""What stands between the reason of a failure and the lines of output that the text quotes."""

MAX_REPETITION = 1_000_000
"""The largest repetition number that is accepted; no race requests a run as often."""


class RunId(NamedTuple):
    """The id of a run: its algorithm, its instance and its repetition number."""

    algorithm: str
    instance: str
    repetition: int

    @classmethod
    def from_plain(cls, row: Any) -> Self:
        """Return the id from a list of its fields; raise an error if it is invalid."""
        return check_id(cls(*row))


class Job(NamedTuple):
    """A requested run of an algorithm on an instance until a time, its horizon.

    ``repetition`` is 0 for the first request. A run that failed is requested again as the next
    repetition, with another seed. A run that is extended to a later horizon is also the next
    repetition, with the same seed; ``extends`` is then the repetition that it extends, and None
    otherwise. ``seed`` is for the run, ``instance_seed`` for generating a random instance.
    """

    algorithm: str
    instance: str
    repetition: int
    horizon: float
    seed: int
    instance_seed: int
    extends: int | None = None

    @classmethod
    def from_plain(cls, row: Any) -> Self:
        """Return the job from a list of its fields; raise an error if it is invalid."""
        job = check_id(cls(*row))
        return job if isinstance(job.horizon, float) else job._replace(horizon=float(job.horizon))

    @property
    def key(self) -> RunId:
        """The id of the requested run: algorithm, instance and repetition."""
        return RunId(self.algorithm, self.instance, self.repetition)

    def run(
        self,
        time: ArrayLike,
        value: ArrayLike,
        *,
        until: float | None = None,
        status: Status = Status.CUT,
    ) -> Run:
        """Return the outcome of this job as a run, by default observed until the job's horizon."""
        until = self.horizon if until is None else until
        return Run(
            algorithm=self.algorithm,
            instance=self.instance,
            time=time,
            value=value,
            until=until,
            repetition=self.repetition,
            status=status,
        )


_Named = TypeVar("_Named", RunId, Job)


def check_id(record: _Named) -> _Named:
    """Return a job or an id that was read; raise an error if its names or number are invalid."""
    if not (isinstance(record.algorithm, str) and isinstance(record.instance, str)):
        raise TypeError(f"names must be text, got {record!r}")
    if not isinstance(record.repetition, int) or not 0 <= record.repetition <= MAX_REPETITION:
        raise ValueError(
            f"a repetition must be a whole number from 0 to {MAX_REPETITION}, got {record!r}"
        )
    return record


def key_of(run: Run | EncodedRun) -> RunId:
    """Return the id of a run: algorithm, instance and repetition."""
    return RunId(run.algorithm, run.instance, run.repetition)


def job(seed: int, key: RunId, horizon: float, extends: int | None = None) -> Job:
    """Return a job with the seeds that follow from the seed of the race.

    A job that extends a repetition has the seed of that repetition.

    >>> short, long = RunId("CSA", "f1", 0), RunId("CSA", "f1", 1)
    >>> job(0, long, 100.0, extends=0).seed == job(0, short, 10.0).seed
    True
    """
    original = key if extends is None else key._replace(repetition=extends)
    return Job(
        *key,
        horizon=horizon,
        seed=derive_seed(seed, ["run", *original]),
        instance_seed=derive_seed(seed, ["instance", key.instance]),
        extends=extends,
    )


def derive_seed(seed: int, names: Sequence[str | int]) -> int:
    """Derive a seed from a seed and names; it is the same on every machine.

    It is below 2^31, because many solvers take no larger seed.

    >>> derive_seed(0, ["run", "CSA", "f1"]), derive_seed(0, ["run", "CSA", "f2"])
    (413279216, 1208773988)
    """
    digest = blake2b(dumps([seed, *names]).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 33
