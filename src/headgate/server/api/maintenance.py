"""Maintenance that somebody asks for: written down here, carried out by the engine in the table's slot."""

from typing import Any

from fastapi import APIRouter, status
from pydantic import BaseModel, ConfigDict, Field

from headgate.access import Role
from headgate.config import YOUNGEST_ORPHAN_SECONDS
from headgate.errors import InvalidRequest
from headgate.options import parse_duration
from headgate.server.access import needs
from headgate.store import Store

ENDING = ("disabled", "purged")


class Asked(BaseModel):
    model_config = ConfigDict(extra="forbid")


class CompactRequest(Asked):
    """Which files to pack."""

    all: bool = Field(False, description="Every file, whatever its size.")


class ExpireRequest(Asked):
    """Which snapshots to expire; what is not said is as configured."""

    older_than: str | None = Field(None, description="`5d`, `12h`")
    keep_last: int | None = Field(None, ge=1, le=1_000_000)


class CleanRequest(Asked):
    """Which files that no snapshot knows to remove; what is not said is as configured."""

    older_than: str | None = Field(None, description="`3d`; under `1h` only with `force`.")
    force: bool = False


class EraseRequest(Asked):
    """Which rows to erase."""

    where: str = Field(min_length=1, max_length=100_000, description="A condition on the table's columns.")


class MirrorRequest(Asked):
    """What to do with a table's Delta log."""

    rebuild: bool = Field(False, description="Write it anew; its versions get other numbers.")


class VerifyRequest(Asked):
    """How much of a table to verify."""

    deep: bool = Field(False, description="Read every row, and compare them with Kafka and the key index.")


def maintenance_router(store: Store) -> APIRouter:
    """Each gives the id of a request, whose result says what was done."""
    router = APIRouter(prefix="/tables", tags=["maintenance"])

    @router.post(
        "/{topic}/compact",
        summary="Pack a table's files",
        status_code=status.HTTP_202_ACCEPTED,
        **needs(Role.WRITER, "table"),
    )
    def compact(topic: str, wanted: CompactRequest | None = None) -> dict[str, Any]:
        return _ask(topic, "compact", wanted)

    @router.post(
        "/{topic}/expire",
        summary="Expire old snapshots",
        status_code=status.HTTP_202_ACCEPTED,
        **needs(Role.ADMIN, "table"),
    )
    def expire(topic: str, wanted: ExpireRequest | None = None) -> dict[str, Any]:
        if wanted is not None and wanted.older_than is not None:
            parse_duration(wanted.older_than)
        return _ask(topic, "expire", wanted)

    @router.post(
        "/{topic}/clean",
        summary="Remove files that no snapshot knows",
        status_code=status.HTTP_202_ACCEPTED,
        **needs(Role.ADMIN, "table"),
    )
    def clean(topic: str, wanted: CleanRequest | None = None) -> dict[str, Any]:
        if wanted is not None and wanted.older_than is not None:
            young = parse_duration(wanted.older_than) < YOUNGEST_ORPHAN_SECONDS
            if young and not wanted.force:
                raise InvalidRequest(
                    f"Files that are {wanted.older_than} old may belong to a commit under way.",
                    "Say 1h or more, or --force when nothing writes to the table.",
                )
        return _ask(topic, "clean", wanted)

    @router.post(
        "/{topic}/erase",
        summary="Erase rows for good",
        status_code=status.HTTP_202_ACCEPTED,
        **needs(Role.ADMIN, "table"),
    )
    def erase(topic: str, wanted: EraseRequest) -> dict[str, Any]:
        return _ask(topic, "erase", wanted)

    @router.post(
        "/{topic}/mirror",
        summary="Bring the Delta log up to date",
        status_code=status.HTTP_202_ACCEPTED,
        **needs(Role.WRITER, "table"),
    )
    def mirror(topic: str, wanted: MirrorRequest | None = None) -> dict[str, Any]:
        return _ask(topic, "mirror", wanted)

    @router.post(
        "/{topic}/verify",
        summary="Verify a table",
        status_code=status.HTTP_202_ACCEPTED,
        **needs(Role.WRITER, "table"),
    )
    def verify(topic: str, wanted: VerifyRequest | None = None) -> dict[str, Any]:
        return _ask(topic, "verify", wanted)

    def _ask(topic: str, kind: str, wanted: Asked | None) -> dict[str, Any]:
        record = store.table(topic)
        if record.desired in ENDING:
            raise InvalidRequest(f"Table '{topic}' is being disabled.")
        # To look at a table changes nothing in it.
        if record.desired == "suspended" and kind != "verify":
            raise InvalidRequest(
                f"Table '{topic}' is suspended: the engine leaves it alone.",
                f"Resume it: `headgate table resume {topic}`.",
            )
        arguments = {} if wanted is None else wanted.model_dump(exclude_none=True)
        return {"request": store.ask(topic, kind, arguments)}

    return router
