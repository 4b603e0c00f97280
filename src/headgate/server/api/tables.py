"""Topics as tables."""

import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fastapi import APIRouter, status

from headgate.access import Role
from headgate.access.topics import TopicRights, all_rights
from headgate.errors import InvalidRequest, NotFound
from headgate.kafka.offsets import Offsets
from headgate.kafka.topics import Topics
from headgate.model import OnError, Start, StartKind, TableSpec, Topic
from headgate.options import TableOptions
from headgate.server import overview
from headgate.server.access import Asking, needs
from headgate.server.answers import answers
from headgate.server.answers.requests import AskedAnswer, RequestAnswer
from headgate.server.answers.tables import ResumedTableAnswer, ShownTableAnswer, SyncAnswer, TableAnswer
from headgate.server.api.catalogs import publication
from headgate.server.api.spec import ResumeRequest, TableRequest
from headgate.storage import Storages
from headgate.storage.places import check_storage
from headgate.store import Integrations, Store, TableRecord

EVENTS = 50
ENDING = ("disabled", "purged")
ACCEPTABLE = ("new-topic", "new-timeline", "lost")


def tables_router(store: Store, topics: Topics, offsets: Offsets, embedded: bool = True) -> APIRouter:
    """Requests are written down; the engine carries them out. `embedded`: the catalog is ours."""
    router = APIRouter(prefix="/tables", tags=["tables"])
    integrations = Integrations(store.engine)

    @router.get("", summary="List the tables", **needs(Role.READER, "seen"), **answers(list[TableAnswer]))
    def list_tables(access: Asking) -> list[dict[str, Any]]:
        return [overview.table(record) for record in store.tables() if access.sees(record.spec.topic)]

    @router.post(
        "",
        summary="Make a topic a table",
        status_code=status.HTTP_201_CREATED,
        **needs(Role.WRITER, "body"),
        **answers(ShownTableAnswer, 201),
    )
    def enable(wanted: TableRequest, access: Asking) -> dict[str, Any]:
        spec = wanted.spec()
        access.note(f"table {spec.topic}")
        access.check_makes(spec.topic)
        _check_dead_letters(spec, access)
        check_wanted(spec, store, embedded, access)
        topic = topics.describe(spec.topic)
        if topic.internal:
            raise InvalidRequest(f"Topic '{spec.topic}' is internal: it cannot be a table.")
        store.enable_table(replace(spec, start=settled(spec.start, topic, offsets)))
        return show(spec.topic)

    @router.get(
        "/{topic}",
        summary="Show a table with its events",
        **needs(Role.READER, "table"),
        **answers(ShownTableAnswer),
    )
    def show(topic: str) -> dict[str, Any]:
        record, published = store.table(topic), integrations.publications(topic=topic)
        found = overview.table_with_detail(record, store.events(topic, EVENTS))
        # Where it is published, or will be as soon as the engine has it.
        kinds = {
            one.name: one.kind
            for one in integrations.all()
            if one.desired == "present" and one.format in record.spec.formats
        }
        return found | {
            "catalogs": [publication(one) for one in published],
            "warnings": [
                *format_warnings(record.spec, kinds),
                *delta_warnings(record.status.detail),
            ],
        }

    @router.patch(
        "/{topic}",
        summary="Change what is wanted of a table",
        **needs(Role.WRITER, "table"),
        **answers(ShownTableAnswer),
    )
    def alter(topic: str, wanted: TableOptions, access: Asking) -> dict[str, Any]:
        wanted.check_alterable(topic)
        record = store.table(topic)
        _not_ending(record)
        spec = wanted.apply(record.spec)
        if wanted.on_error is not None or wanted.dead_letters is not None:
            _check_dead_letters(spec, access)
        _not_dead_letters(spec, store, access)
        store.alter_table(spec)
        return show(topic)

    @router.delete(
        "/{topic}",
        summary="Stop materializing a topic",
        status_code=status.HTTP_202_ACCEPTED,
        **needs(Role.WRITER, "table"),
        **answers(ShownTableAnswer, 202),
    )
    def disable(topic: str, access: Asking, purge: bool = False) -> dict[str, Any]:
        """With `purge` the table and its files are deleted, which takes an admin of it."""
        if purge:
            access.check_table(topic, Role.ADMIN)
        store.set_desired(topic, "purged" if purge else "disabled")
        return show(topic)

    @router.post(
        "/{topic}/suspend",
        summary="Stop writing a table",
        status_code=status.HTTP_202_ACCEPTED,
        **needs(Role.WRITER, "table"),
        **answers(ShownTableAnswer, 202),
    )
    def suspend(topic: str) -> dict[str, Any]:
        _not_ending(store.table(topic))
        store.set_desired(topic, "suspended")
        return show(topic)

    @router.post(
        "/{topic}/resume",
        summary="Go on where a table stopped",
        status_code=status.HTTP_202_ACCEPTED,
        **needs(Role.WRITER, "table"),
        **answers(ResumedTableAnswer, 202),
    )
    def resume(topic: str, access: Asking, wanted: ResumeRequest | None = None) -> dict[str, Any]:
        """With `accept`, the table goes on past what stopped it: see the request that is returned. That gives
        records up, and takes an admin of the table."""
        accept = wanted.accept if wanted is not None else None
        if accept is not None:
            access.check_table(topic, Role.ADMIN)
        _not_ending(store.table(topic))
        if accept not in (None, *ACCEPTABLE):
            raise InvalidRequest(f"'{accept}' cannot be accepted.", f"Say {' or '.join(ACCEPTABLE)}.")
        # First the request: the engine must find it when it takes the table up.
        asked = {}
        if accept is not None:
            asked = {"request": store.ask(topic, "accept", {"what": accept}, access.caller.name)}
        store.set_desired(topic, "enabled")
        return show(topic) | asked

    @router.post(
        "/{topic}/replay",
        summary="Replay dead letters",
        status_code=status.HTTP_202_ACCEPTED,
        **needs(Role.WRITER, "table"),
        **answers(AskedAnswer, 202),
    )
    def replay(topic: str, access: Asking) -> dict[str, Any]:
        """Those that can be read now are put into the table, once; the request tells how many."""
        record = store.table(topic)
        _not_ending(record)
        if record.spec.on_error is not OnError.LOG:
            raise InvalidRequest(
                f"Table '{topic}' keeps no dead letters: its error policy is {record.spec.on_error}.",
                f"It does with `headgate table alter {topic} --on-error log`.",
            )
        if record.desired == "suspended":
            raise InvalidRequest(
                f"Table '{topic}' is suspended and takes no rows.",
                f"Resume it: `headgate table resume {topic}`.",
            )
        return {"request": store.ask(topic, "replay", {}, access.caller.name)}

    @router.get(
        "/{topic}/requests/{request_id}",
        summary="What came of a request",
        **needs(Role.READER, "table"),
        **answers(RequestAnswer),
    )
    def request(topic: str, request_id: str) -> dict[str, Any]:
        found = store.request(request_id)
        if found.topic != topic:
            raise NotFound(f"There is no request {request_id} for table '{topic}'.")
        return {"id": found.id, "kind": found.kind, "state": found.state, "result": dict(found.result)}

    @router.post(
        "/{topic}/sync",
        summary="Catch up at once",
        status_code=status.HTTP_202_ACCEPTED,
        **needs(Role.WRITER, "table"),
        **answers(SyncAnswer, 202),
    )
    def sync(topic: str) -> dict[str, Any]:
        """The table has caught up when its `detail.synced` is the token."""
        record = store.table(topic)
        _not_ending(record)
        if record.desired == "suspended":
            raise InvalidRequest(
                f"Table '{topic}' is suspended and does not catch up.",
                f"Resume it: `headgate table resume {topic}`.",
            )
        token = uuid.uuid4().hex
        store.request_sync(topic, token)
        return {"token": token}

    return router


def check_wanted(spec: TableSpec, store: Store, embedded: bool, rights: TopicRights | None = None) -> None:
    """Raises InvalidRequest for a table that cannot be beside those that are; `rights`: of who wants it."""
    _not_dead_letters(spec, store, rights or all_rights())
    _known_storage(spec, store, embedded)


def _known_storage(spec: TableSpec, store: Store, embedded: bool) -> None:
    if spec.storage is None:
        return
    if not embedded:
        raise InvalidRequest(
            f"Where table '{spec.topic}' lies is for your own catalog to say.",
            "Storage of a table's own is for the embedded catalog.",
        )
    check_storage(spec.storage, Storages(store.engine))


def format_warnings(spec: TableSpec, kinds: Mapping[str, str]) -> list[str]:
    """Of catalogs, by name and kind, whose engines read less than what the table is written in."""
    if spec.format < 3:
        return []
    return [
        f"it is of format version 3 and in {name}: Athena and Redshift read version 2 only; a table that is "
        "enabled with --readers athena is of that"
        for name, kind in kinds.items()
        if kind == "glue"
    ]


def delta_warnings(detail: Mapping[str, Any]) -> list[str]:
    """Of readers that refuse the table's Delta log as it is."""
    if not (detail.get("delta") or {}).get("widened_types"):
        return []
    return [
        "columns of its Delta log have got wider types: delta-rs and Polars do not read it; with --readers "
        "delta-rs files are rewritten instead; `headgate table mirror --rebuild` makes a log without them"
    ]


def settled(start: Start, topic: Topic, offsets: Offsets) -> Start:
    """`latest` is the end at this moment, not when the engine gets round to it. Offsets must be there."""
    if start.kind is StartKind.LATEST:
        return replace(start, offsets=offsets.start_offsets(start, topic))
    if start.kind is StartKind.OFFSETS:
        offsets.start_offsets(start, topic)
    return start


def _check_dead_letters(spec: TableSpec, access: Asking) -> None:
    """They are written to a topic and a table of their own."""
    if spec.on_error is OnError.LOG:
        access.check_makes(spec.dead_letters_name)


def _not_dead_letters(spec: TableSpec, store: Store, rights: TopicRights) -> None:
    """A name is a topic's table or a place for dead letters, never both."""
    for other in store.tables():
        if other.spec.on_error is OnError.LOG and other.spec.dead_letters_name == spec.topic:
            if not rights.sees(other.spec.topic):
                raise InvalidRequest(f"'{spec.topic}' holds the dead letters of another table.")
            raise InvalidRequest(
                f"'{spec.topic}' holds the dead letters of table '{other.spec.topic}'.",
                f"It is a table already: see `headgate dlq show {other.spec.topic}`.",
            )
        if spec.on_error is OnError.LOG and spec.dead_letters_name == other.spec.topic:
            raise InvalidRequest(
                f"'{other.spec.topic}' is a table of its own: it cannot hold dead letters.",
                "Choose another name with --dead-letters.",
            )
    if spec.on_error is OnError.LOG and spec.dead_letters_name == spec.topic:
        raise InvalidRequest(f"Table '{spec.topic}' cannot hold its own dead letters.")


def _not_ending(record: TableRecord) -> None:
    if record.desired in ENDING:
        raise InvalidRequest(f"Table '{record.spec.topic}' is being disabled.")
