"""What may stand in a file, as pydantic's models; the JSON Schema for editors is made of them."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from headgate.export.definition import ExportFields
from headgate.options import TableOptions

# Fields that name a secret of the configuration.
SECRET_FIELDS = ("secret",)


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class Watermark(_Shape):
    """How far behind its greatest value rows may come."""

    column: str
    delay: str = Field("0 s", description="`10 s`, `1 hour`")


class Topic(_Shape):
    """A topic of Kafka."""

    partitions: int | None = Field(None, ge=1, description="4 where nothing is said.")
    config: dict[str, str] | None = Field(None, description="Settings of the topic, as Kafka names them.")
    watermark: Watermark | None = None
    options: dict[str, str] | None = Field(None, description="What ALTER TABLE … SET says: `changelog.mode`.")
    sql: str | None = Field(None, min_length=1, description="A CREATE TABLE: its columns, key and options.")
    file: str | None = Field(None, description="A file with it, beside this one.")


class Schema(_Shape):
    """A schema, by subject: `payments-value`."""

    type: Literal["avro", "json", "protobuf"] = "avro"
    schema_: str | dict[str, Any] | list[Any] | None = Field(
        None, alias="schema", description="As text or, where it is JSON, as YAML."
    )
    file: str | None = Field(None, description="A file with it, beside this one.")

    @model_validator(mode="before")
    @classmethod
    def _has_text(cls, given: Any) -> Any:
        if isinstance(given, dict) and given.get("schema") is None and given.get("file") is None:
            raise ValueError("a schema needs `schema` or `file`")
        return given


class Statement(_Shape):
    """One job in SQL, which runs until it is removed, or ends."""

    sql: str | None = Field(None, min_length=1, description="CREATE TABLE … AS, or INSERT INTO.")
    file: str | None = Field(None, description="A file with it, beside this one.")
    settings: dict[str, str] | None = Field(None, description="What SET says: `sql.state-ttl`.")
    state: Literal["running", "stopped"] | None = None

    @model_validator(mode="before")
    @classmethod
    def _has_sql(cls, given: Any) -> Any:
        if isinstance(given, dict) and given.get("sql") is None and given.get("file") is None:
            raise ValueError("a statement needs `sql` or `file`")
        return given


class Table(TableOptions):
    """A topic that is a table."""

    state: Literal["enabled", "suspended"] | None = None


class Storage(_Shape):
    """A place in an object store where tables may lie."""

    uri: str = Field(description="`s3://bucket` or `s3://bucket/prefix`")
    region: str | None = None
    endpoint: str | None = None
    path_style: bool | None = None
    encryption: Literal["none", "s3", "kms"] | None = None
    kms_key: str | None = None
    role_arn: str | None = None
    external_id: str | None = None


class Catalog(_Shape):
    """An outside catalog that tables are published to. Secrets are named: the configuration has them."""

    type: Literal["glue", "unity", "rest"]
    options: dict[str, Any] | None = None


class Generator(_Shape):
    """A managed generator of made-up data, with the options of `headgate datagen`."""

    scenario: Literal["orders", "hotels", "sales"]
    limit: int | None = Field(None, ge=1, description="How many orders, bookings or events.")
    rate: float | None = Field(None, gt=0, description="Records per second.")
    speed: float | None = Field(None, gt=0, description="How many times as fast as the clock time goes on.")
    seed: int | None = Field(None, ge=0)
    prefix: str | None = None
    cdc: bool | None = None
    format: Literal["avro", "json", "protobuf"] | None = None
    start: str | None = Field(None, description="`2026-11-12T00:00:00Z`, or `now`.")
    evolve: int | None = Field(None, ge=0, description="Change the schemas after so many.")
    late_share: float | None = Field(None, ge=0, le=1)
    duplicate_share: float | None = Field(None, ge=0, le=1)
    state: Literal["running", "stopped"] | None = None


class Export(ExportFields):
    """A query over tables, its rows a file by schedule, and a mail when it is there."""

    sql: str | None = Field(None, min_length=1, description="A SELECT, with `:from` and `:to` of its period.")
    file: str | None = Field(None, description="A file with it, beside this one.")
    state: Literal["active", "paused"] | None = None

    @model_validator(mode="before")
    @classmethod
    def _has_sql(cls, given: Any) -> Any:
        if isinstance(given, dict) and given.get("sql") is None and given.get("file") is None:
            raise ValueError("an export needs `sql` or `file`")
        return given


class Credential(_Shape):
    """What a credential may do that `headgate credentials create` has made."""

    grants: list[str] = Field(min_length=1, description="`ROLE:NAMESPACE:TABLE`: all that it has.")


class Document(_Shape):
    """What is to run: the things of a world."""

    world: str | None = Field(
        None, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$", description="Who owns what this makes."
    )
    storage: dict[str, Storage] = Field(default_factory=dict)
    schemas: dict[str, Schema] = Field(default_factory=dict)
    topics: dict[str, Topic | None] = Field(default_factory=dict)
    statements: dict[str, Statement] = Field(default_factory=dict)
    tables: dict[str, Table | None] = Field(default_factory=dict)
    catalogs: dict[str, Catalog] = Field(default_factory=dict)
    exports: dict[str, Export] = Field(default_factory=dict)
    credentials: dict[str, Credential] = Field(default_factory=dict)
    generators: dict[str, Generator] = Field(default_factory=dict)


SECTIONS = (
    "storage",
    "schemas",
    "topics",
    "statements",
    "tables",
    "catalogs",
    "exports",
    "credentials",
    "generators",
)


def json_schema() -> dict[str, Any]:
    """For editors that complete and check YAML."""
    return Document.model_json_schema(by_alias=True) | {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Desired state of Headgate",
    }
