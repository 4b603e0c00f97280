"""The whole: addresses, processes, tables and statements; and events."""

from typing import Literal

from pydantic import JsonValue

from headgate.server.answers.live import AttentionAnswer, CatalogStandingAnswer, ExportStandingAnswer
from headgate.server.answers.shape import Maybe, Shape
from headgate.server.answers.statements import StatementAnswer
from headgate.server.answers.tables import TableAnswer

ProcessState = Literal["stopped", "starting", "ready", "silent"]


class AddressesAnswer(Shape):
    """Where things are."""

    kafka: str
    registry: str
    iceberg: str
    api: str
    console: str
    spark_connect: Maybe[str]
    public: Maybe[str]


class ProcessAnswer(Shape):
    """A process of Headgate; `silent` is one that has said nothing for half a minute."""

    name: Literal["broker", "server", "engine", "query", "export", "connect", "datagen"]
    state: ProcessState
    pid: int | None
    beat_age: float | None
    detail: dict[str, JsonValue]


class StatusAnswer(Shape):
    """Where things are and how they stand."""

    version: str
    cluster: str
    warehouse: str | None
    addresses: AddressesAnswer
    processes: list[ProcessAnswer]
    tables: list[TableAnswer]
    statements: list[StatementAnswer]
    catalogs: list[CatalogStandingAnswer]
    exports: list[ExportStandingAnswer]
    attention: list[AttentionAnswer]


class QueryDriverAnswer(Shape):
    """The query driver; `spark_connect` is its address."""

    state: ProcessState
    wanted: bool
    spark_connect: str | None
