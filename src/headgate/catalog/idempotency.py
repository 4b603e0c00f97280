"""Requests that may be sent twice and must act once: the Idempotency-Key of the REST spec, kept durably."""

import hashlib
import uuid
from dataclasses import dataclass

from headgate.catalog.errors import bad_request, unprocessable

LIFETIME = "PT24H"  # as the configuration route tells clients
LIFETIME_SECONDS = 24 * 60 * 60


@dataclass(frozen=True)
class Once:
    """A request's key, and what it asked for: the same key must not be used for something else."""

    key: str
    fingerprint: str


@dataclass(frozen=True)
class Outcome:
    """How a request ended. Of a table the metadata file is kept, for its text may be large; else the body."""

    status: int
    metadata_location: str | None = None
    body: str | None = None


def once(key: str | None, *request: str | bytes) -> Once | None:
    """From the header, and the parts of the request that say what it asks for."""
    if key is None:
        return None
    try:
        parsed = str(uuid.UUID(key))
    except ValueError as error:
        raise bad_request(f"Idempotency-Key must be a UUID, not {key!r}.") from error
    digest = hashlib.sha256()
    for part in request:
        raw = part.encode(errors="surrogatepass") if isinstance(part, str) else part
        digest.update(len(raw).to_bytes(8, "big"))
        digest.update(raw)
    return Once(parsed, digest.hexdigest())


def check_same_request(repeated: Once, fingerprint: str) -> None:
    if repeated.fingerprint != fingerprint:
        raise unprocessable(
            f"Idempotency-Key {repeated.key} was used for another request. Use a new key for a new request."
        )
