"""Kafka's topics."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, status
from pydantic import BaseModel, ConfigDict, Field

from headgate.access import Role
from headgate.access.topics import TopicRights
from headgate.kafka.offsets import Offsets
from headgate.kafka.topics import BROKER_DEFAULT, Topics, check_not_reserved, no_such_topic
from headgate.model import Topic
from headgate.registry.api.rights import SubjectRights
from headgate.registry.client import SchemaSource, SubjectVersion
from headgate.server.access import Access, Asking, needs
from headgate.server.answers import answers
from headgate.server.answers.topics import (
    ListedTopicAnswer,
    ShownTopicAnswer,
    TopicAnswer,
    TopicSchemasAnswer,
)
from headgate.server.topic_figures import TopicFigures
from headgate.store import Store

# Of one subject; each is a call.
MOST_VERSIONS = 100
CALLS_AT_ONCE = 8


class TopicRequest(BaseModel):
    """A topic that is to be."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, max_length=249)
    partitions: int = Field(4, ge=1, le=100_000)
    replication: int | None = Field(None, ge=1, le=100, description="None is what the broker says.")
    config: dict[str, str] = Field(default_factory=dict)


def topics_router(store: Store, topics: Topics, offsets: Offsets, schemas: SchemaSource) -> APIRouter:
    router = APIRouter(prefix="/topics", tags=["topics"])
    figures = TopicFigures(offsets, schemas)

    @router.get(
        "", summary="List the topics", **needs(Role.READER, "seen"), **answers(list[ListedTopicAnswer])
    )
    def list_topics(access: Asking, internal: bool = False) -> list[dict[str, Any]]:
        """Internal ones are for admins. `records` counts offsets, a moment old."""
        states = {record.spec.topic: record.status.state.value for record in store.tables()}
        listed = topics.list(internal)
        records, latest = figures.records(listed), figures.latest_schemas()
        return [
            _topic(topic)
            | {
                "records": records.get(topic.id),
                # Known when somebody has watched for a while.
                "rate": None,
                "value_schema": _latest(latest.get(f"{topic.name}-value")),
                "key_schema": _latest(latest.get(f"{topic.name}-key")),
                "table": states.get(topic.name),
            }
            for topic in listed
            if _sees(access, topic)
        ]

    @router.post(
        "",
        summary="Create a topic",
        status_code=status.HTTP_201_CREATED,
        **needs(Role.WRITER, "body"),
        **answers(TopicAnswer, 201),
    )
    def create(wanted: TopicRequest, access: Asking) -> dict[str, Any]:
        access.check_makes(wanted.name)
        check_not_reserved(wanted.name)
        copies = BROKER_DEFAULT if wanted.replication is None else wanted.replication
        return _topic(topics.create(wanted.name, wanted.partitions, copies, wanted.config))

    @router.get(
        "/{name}", summary="Describe a topic", **needs(Role.READER, "topic"), **answers(ShownTopicAnswer)
    )
    def describe(name: str, access: Asking) -> dict[str, Any]:
        """With what was set on it, and from where to where its partitions reach."""
        topic = _seen(topics, name, access)
        return _topic(topic) | {"config": topics.config_overrides(name), "offsets": offsets.reach(topic)}

    @router.get(
        "/{name}/schemas",
        summary="The schemas of a topic's keys and values",
        **needs(Role.READER, "topic"),
        **answers(TopicSchemasAnswer),
    )
    def show_schemas(name: str, access: Asking) -> dict[str, Any]:
        """The subjects `NAME-key` and `NAME-value`, with their versions as they were registered, without
        references to subjects that one does not see."""
        _seen(topics, name, access)
        return {part: described_subject(schemas, f"{name}-{part}", access) for part in ("key", "value")}

    @router.delete(
        "/{name}",
        summary="Delete a topic",
        status_code=status.HTTP_204_NO_CONTENT,
        **needs(Role.ADMIN, "topic"),
    )
    def delete(name: str) -> None:
        check_not_reserved(name)
        topics.delete(name)

    return router


def _seen(topics: Topics, name: str, access: Access) -> Topic:
    topic = topics.describe(name)
    if not _sees(access, topic):
        raise no_such_topic(name)
    return topic


def _sees(access: Access, topic: Topic) -> bool:
    return access.has(topic.name, Role.ADMIN if topic.internal else Role.READER)


def _topic(topic: Topic) -> dict[str, Any]:
    return asdict(topic)


def _latest(version: SubjectVersion | None) -> dict[str, Any] | None:
    if version is None:
        return None
    return {"subject": version.subject, "version": version.version, "id": version.id, "type": version.type}


def described_subject(schemas: SchemaSource, subject: str, rights: TopicRights) -> dict[str, Any] | None:
    """As a caller of these rights sees it; None when it has no version."""
    subjects = SubjectRights(rights)
    numbers = schemas.version_numbers(subject)
    if not numbers:
        return None
    newest = numbers[: -MOST_VERSIONS - 1 : -1]
    with ThreadPoolExecutor(CALLS_AT_ONCE) as pool:
        versions = list(pool.map(lambda number: schemas.version(subject, number), newest))
    return {
        "subject": subject,
        "compatibility": schemas.compatibility_level(subject),
        "total": len(numbers),
        "versions": [
            {
                "version": one.version,
                "id": one.id,
                "type": one.type,
                "text": one.text,
                "references": [
                    {"name": name, "subject": target, "version": number}
                    for name, target, number in one.references
                    if subjects.sees(target)
                ],
            }
            # One that was deleted meanwhile is not there.
            for one in versions
            if one is not None
        ],
    }
