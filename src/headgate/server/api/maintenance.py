"""Maintenance that somebody asks for: written down here, carried out by the engine in the table's slot."""

from typing import Any, Literal

from fastapi import APIRouter, status
from pydantic import BaseModel, ConfigDict, Field

from headgate.access import Role
from headgate.config import YOUNGEST_ORPHAN_SECONDS
from headgate.errors import InvalidRequest
from headgate.options import check_tag, parse_duration
from headgate.server.access import Access, Asking, needs
from headgate.server.answers import answers
from headgate.server.answers.requests import AskedAnswer
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


class RollbackRequest(Asked):
    """Where a table is to be put back to, and what becomes of the records between the two positions."""

    to: str = Field(min_length=1, max_length=256, description="A snapshot's id, a tag, or a time.")
    records: Literal["again", "keep-out"] | None = Field(
        None,
        description="`again`: the position goes back, and they are read again. `keep-out`: it stays, and "
        "they stay out of the table.",
    )
    dry_run: bool = Field(False, description="Only say what it would mean; `records` may be left out.")


class TagRequest(Asked):
    """A name for a snapshot."""

    name: str = Field(min_length=1, max_length=128)
    snapshot: str | None = Field(None, max_length=32, description="Its id; the newest if none is said.")
    keep: str | None = Field(None, description="`30d`, `12h`: then expiry removes the tag.")


def maintenance_router(store: Store) -> APIRouter:
    """Each gives the id of a request, whose result says what was done."""
    router = APIRouter(prefix="/tables", tags=["maintenance"])

    @router.post(
        "/{topic}/compact",
        summary="Pack a table's files",
        status_code=status.HTTP_202_ACCEPTED,
        **needs(Role.WRITER, "table"),
        **answers(AskedAnswer, 202),
    )
    def compact(topic: str, access: Asking, wanted: CompactRequest | None = None) -> dict[str, Any]:
        return _ask(topic, "compact", wanted, access)

    @router.post(
        "/{topic}/expire",
        summary="Expire old snapshots",
        status_code=status.HTTP_202_ACCEPTED,
        **needs(Role.ADMIN, "table"),
        **answers(AskedAnswer, 202),
    )
    def expire(topic: str, access: Asking, wanted: ExpireRequest | None = None) -> dict[str, Any]:
        if wanted is not None and wanted.older_than is not None:
            parse_duration(wanted.older_than)
        return _ask(topic, "expire", wanted, access)

    @router.post(
        "/{topic}/clean",
        summary="Remove files that no snapshot knows",
        status_code=status.HTTP_202_ACCEPTED,
        **needs(Role.ADMIN, "table"),
        **answers(AskedAnswer, 202),
    )
    def clean(topic: str, access: Asking, wanted: CleanRequest | None = None) -> dict[str, Any]:
        if wanted is not None and wanted.older_than is not None:
            young = parse_duration(wanted.older_than) < YOUNGEST_ORPHAN_SECONDS
            if young and not wanted.force:
                raise InvalidRequest(
                    f"Files that are {wanted.older_than} old may belong to a commit under way.",
                    "Say 1h or more, or --force when nothing writes to the table.",
                )
        return _ask(topic, "clean", wanted, access)

    @router.post(
        "/{topic}/erase",
        summary="Erase rows for good",
        status_code=status.HTTP_202_ACCEPTED,
        **needs(Role.ADMIN, "table"),
        **answers(AskedAnswer, 202),
    )
    def erase(topic: str, access: Asking, wanted: EraseRequest) -> dict[str, Any]:
        return _ask(topic, "erase", wanted, access)

    @router.post(
        "/{topic}/mirror",
        summary="Bring the Delta log up to date",
        status_code=status.HTTP_202_ACCEPTED,
        **needs(Role.WRITER, "table"),
        **answers(AskedAnswer, 202),
    )
    def mirror(topic: str, access: Asking, wanted: MirrorRequest | None = None) -> dict[str, Any]:
        return _ask(topic, "mirror", wanted, access)

    @router.post(
        "/{topic}/verify",
        summary="Verify a table",
        status_code=status.HTTP_202_ACCEPTED,
        **needs(Role.WRITER, "table"),
        **answers(AskedAnswer, 202),
    )
    def verify(topic: str, access: Asking, wanted: VerifyRequest | None = None) -> dict[str, Any]:
        return _ask(topic, "verify", wanted, access)

    @router.post(
        "/{topic}/rollback",
        summary="Put a table back to an earlier snapshot",
        status_code=status.HTTP_202_ACCEPTED,
        **needs(Role.ADMIN, "table"),
        **answers(AskedAnswer, 202),
    )
    def rollback(topic: str, wanted: RollbackRequest, access: Asking) -> dict[str, Any]:
        """With `dry_run` the request's result says what it would mean, in snapshots, rows and offsets."""
        if wanted.dry_run:
            return _ask(topic, "plan-rollback", wanted, access)
        if wanted.records is None:
            raise InvalidRequest(
                f"It is not said what becomes of the records that table '{topic}' has read since.",
                "Say `again` to have them read again, or `keep-out` to keep them out of the table.",
            )
        access.note(f"snapshot {wanted.to}, records {wanted.records}")
        return _ask(topic, "rollback", wanted, access)

    @router.post(
        "/{topic}/tags",
        summary="Name a snapshot",
        status_code=status.HTTP_202_ACCEPTED,
        **needs(Role.WRITER, "table"),
        **answers(AskedAnswer, 202),
    )
    def tag(topic: str, wanted: TagRequest, access: Asking) -> dict[str, Any]:
        check_tag(wanted.name)
        if wanted.keep is not None:
            parse_duration(wanted.keep)
        access.note(f"tag {wanted.name}")
        return _ask(topic, "tag", wanted, access)

    @router.delete(
        "/{topic}/tags/{name}",
        summary="Remove a tag",
        status_code=status.HTTP_202_ACCEPTED,
        **needs(Role.ADMIN, "table"),
        **answers(AskedAnswer, 202),
    )
    def untag(topic: str, name: str, access: Asking) -> dict[str, Any]:
        """Its snapshot goes with the next expiry, if it is old enough: that takes an admin of the table."""
        check_tag(name)
        access.note(f"tag {name}")
        return _ask(topic, "untag", None, access, name=name)

    def _ask(topic: str, kind: str, wanted: Asked | None, access: Access, **more: str) -> dict[str, Any]:
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
        return {"request": store.ask(topic, kind, arguments | more, access.caller.name)}

    return router
