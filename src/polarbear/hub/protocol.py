"""The messages of workers: their limits, and how they are checked. docs/reference/workers.md.

All that comes from outside is checked here before it is used. A run is checked by the validator
that all runs pass (:mod:`polarbear.data.run`) and stored in the form of the shared folder.
"""

import hmac
import json
import re
from collections.abc import Mapping
from hashlib import blake2b
from math import isfinite
from typing import Any, NamedTuple

from polarbear.data.run import Run, encode_run, run_from_plain
from polarbear.errors import DataError
from polarbear.hub.board import FAILED_DIGEST
from polarbear.racing.jobs import Job
from polarbear.racing.state import FAILED
from polarbear.running.workers.outcomes import RunOutcome

VERSION = 1

MAX_BODY_BYTES = 4_000_000
"""Larger requests are refused."""

MAX_ITEMS = 256
"""The number of results, jobs or algorithms in one request."""

MAX_IMPROVEMENTS = 100_000
"""The number of improvements of one run."""

MAX_TEXT = 2000
"""The number of characters that are kept of reasons and of output."""

_NAME = re.compile(r"[0-9a-f]{32}")


class Refused(Exception):  # noqa: N818 (it is an answer)
    """Raised to refuse a request: the HTTP status, a short code and a sentence."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


class Join(NamedTuple):
    """A request to join: what the worker may run, by digest, and its machine."""

    worker: str
    algorithms: dict[str, str]
    slots: int
    calibration: tuple[float, ...]
    about: dict[str, str]


class Report(NamedTuple):
    """The result of one job as a worker reports it, not yet compared with the job."""

    job: str
    lease: str
    plain: Mapping[str, Any]


def parse_body(body: bytes) -> dict[str, Any]:
    """Parse the body of a request, which must be a JSON object without NaN or infinities.

    >>> parse_body(b'{"worker": "x"}')
    {'worker': 'x'}
    """
    try:
        content = json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise Refused(400, "malformed", "the body is not valid JSON") from None
    if not isinstance(content, dict):
        raise Refused(400, "malformed", "the body must be a JSON object")
    return content


def parse_join(body: Mapping[str, Any]) -> Join:
    """Check the body of a request to join."""
    if body.get("protocol") != VERSION:
        raise Refused(409, "version", f"this server speaks protocol {VERSION}: update the worker")
    algorithms = _take(body, "algorithms", dict)
    about = _take(body, "about", dict, {})
    calibration = _take(body, "calibration", list, [])
    slots = _take(body, "slots", int, 1)
    if len(algorithms) > 10_000 or not all(isinstance(v, str) for v in algorithms.values()):
        raise Refused(400, "malformed", "algorithms must map names to digests")
    if not 1 <= slots <= MAX_ITEMS:
        raise Refused(400, "malformed", f"slots must be from 1 to {MAX_ITEMS}")
    seconds = tuple(map(_to_seconds, calibration[:20]))
    texts = {str(key)[:40]: str(value)[:200] for key, value in list(about.items())[:40]}
    worker = _take(body, "worker", str, "")
    if worker and not _NAME.fullmatch(worker):
        raise Refused(400, "malformed", "worker must be the id that the server gave")
    return Join(worker, algorithms, slots, seconds, texts)


def parse_worker(body: Mapping[str, Any]) -> str:
    """Return the id of the worker that makes a request."""
    worker = _take(body, "worker", str)
    if not _NAME.fullmatch(worker):
        raise Refused(400, "malformed", "worker must be the id that the server gave")
    return worker


def parse_submission(body: Mapping[str, Any]) -> tuple[str, str]:
    """Return the name and the digest of an algorithm that is submitted."""
    return _take(body, "algorithm", str), _take(body, "digest", str)


def parse_held(body: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the jobs that a worker holds, each with the proof of its lease."""
    return [(_take(one, "id", str), _take(one, "lease", str)) for one in _take_items(body, "jobs")]


def parse_reports(body: Mapping[str, Any]) -> list[Report]:
    """Return the results of a request; each run is checked when its job is known."""
    return [
        Report(_take(one, "id", str), _take(one, "lease", str), one)
        for one in _take_items(body, "results")
    ]


def make_outcome(job: Job, plain: Mapping[str, Any]) -> RunOutcome:
    """Make the outcome of a job from a reported result, after checking all of its fields.

    >>> job = Job("hill", "f1", 0, 10.0, 1, 2)
    >>> make_outcome(job, {"time": [1], "value": [3.5], "until": 10, "status": "cut"}).run.value
    (3.5,)
    >>> make_outcome(job, {"time": [1], "value": [3.5], "until": 99, "status": "cut"})
    Traceback (most recent call last):
    polarbear.errors.DataError: the run was observed until 99, but the job ends at 10
    """
    time, value = plain.get("time"), plain.get("value")
    if not (isinstance(time, list) and isinstance(value, list)):
        raise DataError("time and value must be lists of numbers")
    if len(time) > MAX_IMPROVEMENTS:
        raise DataError(f"the run has more than {MAX_IMPROVEMENTS:,} improvements")
    if any(type(number) not in (int, float) for number in time):
        raise DataError("times must be numbers")
    if any(type(n) not in (int, float) and n not in ("inf", "-inf") for n in value):
        raise DataError('values must be numbers, "inf" or "-inf"')
    until, status = plain.get("until"), plain.get("status")
    if type(until) not in (int, float) or not isinstance(status, str):
        raise DataError("until must be a number, and status a text")
    run = run_from_plain(job.run(time, value, until=until)._asdict() | {"status": status})
    if run.until > job.horizon:
        raise DataError(
            f"the run was observed until {run.until:g}, but the job ends at {job.horizon:g}"
        )
    try:
        seconds = _to_seconds(plain.get("seconds", 0.0))
    except Refused as error:
        raise DataError(error.message) from None
    texts = {key: plain.get(key, "") for key in ("why", "output")}
    if not all(isinstance(text, str) for text in texts.values()):
        raise DataError("why and output must be text")
    why, output = (text.encode(errors="replace").decode()[-MAX_TEXT:] for text in texts.values())
    return RunOutcome(job, run, why, seconds=seconds, output=output)


def digest_run(run: Run) -> str:
    """Return a hash of what a run observed; two honest workers report the same one.

    >>> job = Job("hill", "f1", 0, 10.0, 1, 2)
    >>> digest_run(job.run((1.0,), (3.5,))) == digest_run(job.run((1.0,), (3.25,)))
    False
    """
    if run.status in FAILED:
        return FAILED_DIGEST
    encoded = encode_run(run)
    content = f"{encoded.status} {encoded.until!r} ".encode() + encoded.trajectory
    return blake2b(content, digest_size=16).hexdigest()


def sign_lease(secret: bytes, worker: str, job: str) -> str:
    """Return the proof that a job was given to a worker; it survives restarts of the server."""
    return hmac.digest(secret, f"lease {worker} {job}".encode(), "sha256").hex()[:32]


def is_signed(secret: bytes, worker: str, job: str, lease: str) -> bool:
    """Return whether the server gave this job to this worker."""
    return hmac.compare_digest(sign_lease(secret, worker, job).encode(), lease.encode())


def _take(body: Any, name: str, kind: type, *default: Any) -> Any:
    """Return a field of a message; refuse the message if the field has another type."""
    if not isinstance(body, Mapping):
        raise Refused(400, "malformed", "a list of objects was expected")
    value = body.get(name, *default)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise Refused(400, "malformed", f"{name} must be of type {kind.__name__}")
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise Refused(400, "malformed", f"{name} is not valid Unicode") from None
    return value


def _take_items(body: Mapping[str, Any], name: str) -> list[Any]:
    items = _take(body, name, list)
    if len(items) > MAX_ITEMS:
        raise Refused(413, "too large", f"{name} must have at most {MAX_ITEMS} entries")
    return items


def _to_seconds(value: Any) -> float:
    if type(value) not in (int, float) or not 0 <= value < 1e12 or not isfinite(value):
        raise Refused(400, "malformed", "seconds must be a number of at least 0")
    return float(value)


def _refuse_constant(name: str) -> None:
    raise ValueError(name)
