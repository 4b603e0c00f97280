"""Kafka's topics."""

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, status
from pydantic import BaseModel, ConfigDict, Field

from headgate.kafka.topics import Topics, check_not_reserved
from headgate.model import Topic
from headgate.store import Store


class TopicRequest(BaseModel):
    """A topic that is to be."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, max_length=249)
    partitions: int = Field(4, ge=1)
    config: dict[str, str] = Field(default_factory=dict)


def topics_router(store: Store, topics: Topics) -> APIRouter:
    router = APIRouter(prefix="/topics", tags=["topics"])

    @router.get("", summary="List the topics")
    def list_topics(internal: bool = False) -> list[dict[str, Any]]:
        states = {record.spec.topic: record.status.state.value for record in store.tables()}
        return [_topic(topic) | {"table": states.get(topic.name)} for topic in topics.list(internal)]

    @router.post("", summary="Create a topic", status_code=status.HTTP_201_CREATED)
    def create(wanted: TopicRequest) -> dict[str, Any]:
        check_not_reserved(wanted.name)
        return _topic(topics.create(wanted.name, wanted.partitions, config=wanted.config))

    @router.get("/{name}", summary="Describe a topic")
    def describe(name: str) -> dict[str, Any]:
        return _topic(topics.describe(name)) | {"config": topics.config_overrides(name)}

    @router.delete("/{name}", summary="Delete a topic", status_code=status.HTTP_204_NO_CONTENT)
    def delete(name: str) -> None:
        check_not_reserved(name)
        topics.delete(name)

    return router


def _topic(topic: Topic) -> dict[str, Any]:
    return asdict(topic)
