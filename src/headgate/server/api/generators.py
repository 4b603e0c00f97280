"""Managed generators of made-up data."""

from dataclasses import asdict, replace
from typing import Any

from fastapi import APIRouter, status
from pydantic import BaseModel, ConfigDict, Field

from headgate.access import Role
from headgate.datagen import GeneratorSpec
from headgate.datagen.formats import Format
from headgate.datagen.times import NOW, START_MS, parse_start
from headgate.kafka.topics import check_topic_name
from headgate.server.access import Asking, needs
from headgate.server.answers import answers
from headgate.server.answers.generators import GeneratorAnswer
from headgate.store import GeneratorRecord, Generators


class GeneratorRequest(BaseModel):
    """A generator that is to run in the background."""

    model_config = ConfigDict(extra="forbid")

    scenario: str = Field(description="`orders`, `hotels` or `sales`")
    name: str | None = Field(None, description="The scenario's name, if none is said.")
    limit: int | None = Field(None, ge=1)
    rate: float | None = Field(None, gt=0, description="Records per second.")
    speed: float | None = Field(None, gt=0, description="How many times as fast as the clock time goes on.")
    seed: int = 1
    prefix: str = ""
    cdc: bool = False
    format: Format = Format.AVRO
    start: str | None = Field(None, description="`2026-11-12T00:00:00Z`, or `now`.")
    evolve: int | None = Field(None, ge=0, description="Change the schemas after so many.")
    late_share: float = Field(0.0, ge=0, le=1)
    duplicate_share: float = Field(0.0, ge=0, le=1)

    def spec(self) -> GeneratorSpec:
        """What it makes; InvalidRequest where it cannot be made."""
        said = self.model_dump(exclude={"name", "start", "evolve"})
        start_ms = START_MS if self.start is None else parse_start(self.start)
        spec = GeneratorSpec(**said, start_ms=start_ms, evolve_after=self.evolve)
        for topic in spec.topics():
            check_topic_name(topic)
        return spec


def generators_router(generators: Generators) -> APIRouter:
    router = APIRouter(prefix="/generators", tags=["generators"])
    reader, writer = (needs(role, "generator", generators=generators) for role in (Role.READER, Role.WRITER))

    @router.get(
        "", summary="List the generators", **needs(Role.READER, "seen"), **answers(list[GeneratorAnswer])
    )
    def list_all(access: Asking) -> list[dict[str, Any]]:
        """Those of which the caller may read all topics."""
        found = [shown(record) for record in generators.all()]
        return [one for one in found if access.sees_all(one["topics"])]

    @router.post(
        "",
        summary="Start a generator",
        status_code=status.HTTP_201_CREATED,
        **needs(Role.WRITER, "body"),
        **answers(GeneratorAnswer, 201),
    )
    def start(wanted: GeneratorRequest, access: Asking) -> dict[str, Any]:
        """A new one, or one of the same name and specification, which goes on where it was."""
        spec = wanted.spec()
        name = wanted.name or spec.scenario
        access.note(f"generator {name}")
        for topic in spec.topics():
            access.check_makes(topic)
        if wanted.start == NOW:
            spec = started_once(generators, name, spec)
        generators.start(name, spec.to_dict())
        return shown(generators.get(name))

    @router.get("/{generator}", summary="Show a generator", **reader, **answers(GeneratorAnswer))
    def show(generator: str) -> dict[str, Any]:
        return shown(generators.get(generator))

    @router.post(
        "/{generator}/stop",
        summary="Stop a generator; its place is kept",
        status_code=status.HTTP_202_ACCEPTED,
        **writer,
        **answers(GeneratorAnswer, 202),
    )
    def stop(generator: str) -> dict[str, Any]:
        """`state` is `Stopped` when it writes no more."""
        generators.stop(generator)
        return shown(generators.get(generator))

    @router.delete(
        "/{generator}",
        summary="Forget a generator that is at rest",
        status_code=status.HTTP_204_NO_CONTENT,
        **writer,
    )
    def forget(generator: str) -> None:
        """What it has written stays. Started again, it begins from the beginning."""
        generators.forget(generator)

    return router


def started_once(generators: Generators, name: str, spec: GeneratorSpec) -> GeneratorSpec:
    """Of a generator that is there, `now` is when it was created."""
    there = {record.name: record for record in generators.all()}.get(name)
    return spec if there is None else replace(spec, start_ms=there.spec["start_ms"])


def shown(record: GeneratorRecord) -> dict[str, Any]:
    fields = asdict(record)
    spec = GeneratorSpec.from_dict(dict(fields.pop("spec")))
    fields.pop("id")
    return fields | {
        "spec": spec.to_dict(),
        "topics": spec.topics(),
        "state": record.state.value,
        "is_at_rest": record.is_at_rest,
    }
