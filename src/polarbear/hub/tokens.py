"""Contributors: tokens that are hashed at rest, roles, quotas and limits on requests.

A token is ``pb_ID_SECRET``. The file has the id and a hash of the secret, so a copy of the file
does not allow to act as a contributor. The secret has 256 random bits, so that a fast hash is
enough.
"""

import hmac
import time
from dataclasses import dataclass
from hashlib import sha256
from secrets import token_hex

from polarbear.errors import DataError
from polarbear.hub.hub_file import HubFile, make_log_entry
from polarbear.hub.protocol import Refused

ROLES = ("contribute", "audit", "submit", "administer")
"""contribute: makes runs. audit: its results are trusted, and settle disagreements. submit: makes
runs, and lets algorithms join the race that the operator has allowed by digest. administer: reads
the log and the metrics, and revokes tokens and workers."""

DEFAULT_QUOTA = 256
"""The number of jobs that all workers of a contributor may hold at once."""


@dataclass(frozen=True)
class Contributor:
    """A person or machine with a token: its name, role, and quota of concurrent leases."""

    name: str
    role: str
    quota: int


def add_contributor(
    hub: HubFile,
    name: str,
    *,
    role: str = "contribute",
    days: float = 365.0,
    quota: int = DEFAULT_QUOTA,
    now: float | None = None,
) -> str:
    """Add a contributor, or give a new token to one; return the token, which is not stored.

    >>> from tempfile import mkdtemp
    >>> hub = HubFile(f"{mkdtemp()}/race.hub")
    >>> token = add_contributor(hub, "ann")
    >>> find_contributor(hub, token).name
    'ann'
    >>> revoke_contributor(hub, "ann")
    >>> find_contributor(hub, token)
    Traceback (most recent call last):
    polarbear.hub.protocol.Refused: the token was revoked
    >>> hub.close()
    """
    if role not in ROLES:
        raise DataError(f"role={role!r}: expected one of {', '.join(ROLES)}")
    if not name or len(name) > 100:
        raise DataError("the name of a contributor must have 1 to 100 characters")
    moment = time.time() if now is None else now
    identifier, secret = token_hex(6), token_hex(32)
    row = (name, role, identifier, _hash(secret), moment + 86_400 * days, quota, "active")
    hub.write(
        [
            ("INSERT OR REPLACE INTO contributors VALUES (?, ?, ?, ?, ?, ?, ?)", row),
            make_log_entry("operator", "add contributor", f"{name} ({role})", at=moment),
        ]
    )
    return f"pb_{identifier}_{secret}"


def revoke_contributor(hub: HubFile, name: str, *, actor: str = "operator") -> None:
    """Revoke the token of a contributor; a running server notices within a second."""
    if not hub.read("SELECT 1 FROM contributors WHERE name = ?", name):
        raise DataError(f"there is no contributor {name!r}")
    hub.write(
        [
            ("UPDATE contributors SET state = 'revoked' WHERE name = ?", (name,)),
            make_log_entry(actor, "revoke", name),
        ]
    )


def find_contributor(hub: HubFile, token: str, now: float | None = None) -> Contributor:
    """Return the contributor of a token; refuse a wrong, expired or revoked one."""
    moment = time.time() if now is None else now
    kind, _, rest = token.partition("_")
    identifier, _, secret = rest.partition("_")
    if kind != "pb" or not identifier.isalnum() or len(secret) != 64 or not secret.isalnum():
        raise Refused(401, "token", "the token is malformed")
    sql = "SELECT name, role, quota, hash, expires, state FROM contributors WHERE token = ?"
    rows = hub.read(sql, identifier)
    expected = rows[0][3] if rows else _hash("")
    if not hmac.compare_digest(_hash(secret), expected) or not rows:
        raise Refused(401, "token", "the token is not known")
    name, role, quota, _, expires, state = rows[0]
    if state != "active":
        raise Refused(401, "token", f"the token was {state}")
    if expires < moment:
        raise Refused(401, "token", "the token has expired")
    return Contributor(name, role, quota)


class RateLimit:
    """Limits the number of requests of each client: a rate, and a burst that is allowed at once.

    >>> limit = RateLimit(rate=1.0, burst=2)
    >>> [limit.allows("ann", now) for now in (0.0, 0.0, 0.0, 1.5)]
    [True, True, False, True]
    """

    MAX_CLIENTS = 100_000

    def __init__(self, rate: float, burst: float) -> None:
        self._rate, self._burst = rate, burst
        self._left: dict[str, tuple[float, float]] = {}  # requests left, and when that was

    def allows(self, client: str, now: float) -> bool:
        """Count a request of a client, and return whether it is within the limit."""
        left, then = self._left.pop(client, (self._burst, now))
        left = min(self._burst, left + (now - then) * self._rate)
        self._left[client] = (left - 1 if left >= 1 else left, now)
        if len(self._left) > self.MAX_CLIENTS:
            del self._left[next(iter(self._left))]
        return left >= 1


def _hash(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()
