"""Kafka's topics."""

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, status
from pydantic import BaseModel, ConfigDict, Field

from headgate.access import Role
from headgate.kafka.offsets import Offsets
from headgate.kafka.topics import BROKER_DEFAULT, Topics, check_not_reserved, no_such_topic
from headgate.model import Topic
from headgate.server.access import Access, Asking, needs
from headgate.server.answers import answers
from headgate.server.answers.topics import ListedTopicAnswer, ShownTopicAnswer, TopicAnswer
from headgate.store import Store


class TopicRequest(BaseModel):
    """A topic that is to be."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, max_length=249)
    partitions: int = Field(4, ge=1, le=100_000)
    replication: int | None = Field(None, ge=1, le=100, description="None is what the broker says.")
    config: dict[str, str] = Field(default_factory=dict)


def topics_router(store: Store, topics: Topics, offsets: Offsets) -> APIRouter:
    router = APIRouter(prefix="/topics", tags=["topics"])

    @router.get(
        "", summary="List the topics", **needs(Role.READER, "seen"), **answers(list[ListedTopicAnswer])
    )
    def list_topics(access: Asking, internal: bool = False) -> list[dict[str, Any]]:
        """Internal ones are for admins."""
        states = {record.spec.topic: record.status.state.value for record in store.tables()}
        return [
            _topic(topic) | {"table": states.get(topic.name)}
            for topic in topics.list(internal)
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
        topic = topics.describe(name)
        if not _sees(access, topic):
            raise no_such_topic(name)
        return _topic(topic) | {"config": topics.config_overrides(name), "offsets": offsets.reach(topic)}

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


def _sees(access: Access, topic: Topic) -> bool:
    return access.has(topic.name, Role.ADMIN if topic.internal else Role.READER)


def _topic(topic: Topic) -> dict[str, Any]:
    return asdict(topic)
