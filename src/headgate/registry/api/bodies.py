"""What clients send and what they get back, as Confluent's API names it."""

import json
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Header
from pydantic import BaseModel, ConfigDict, Field, model_validator

from headgate.registry.compatibility import Level
from headgate.registry.refusals import (
    MAX_NUMBER,
    invalid_level,
    invalid_mode,
    invalid_schema,
    unprocessable,
)
from headgate.registry.registration import LATEST, Imported
from headgate.registry.schemas import (
    Reference,
    Schema,
    SchemaType,
    SchemaVersion,
    StoredSchema,
    check_subject,
)
from headgate.registry.settings import Mode

# Clients send this header when they may name properties that are newer than the registry.
UnknownAllowed = Annotated[bool, Header(alias="Confluent-Accept-Unknown-Properties")]
Number = Annotated[int, Field(ge=1, le=MAX_NUMBER)]


# A rule of Confluent's: names, words, lists of tags, parameters. The registry keeps it, clients act on it.
Rule = dict[str, str | bool | int | list[str] | dict[str, str] | None]


class Body(BaseModel):
    @model_validator(mode="before")
    @classmethod
    def _storable(cls, sent: Any) -> Any:
        """JSON can spell half a character (a lone surrogate); no database, and no JVM, takes it."""
        if isinstance(sent, dict):
            try:
                json.dumps(sent, ensure_ascii=False).encode()
            except UnicodeEncodeError as error:
                raise ValueError("a string in it is not Unicode text") from error
        return sent


class ReferenceBody(BaseModel):
    name: str
    subject: str = Field(min_length=1)
    version: Number | Annotated[int, Field(ge=LATEST, le=LATEST)]


class MetadataBody(BaseModel):
    model_config = ConfigDict(extra="forbid")

    tags: dict[str, list[str]] | None = None
    properties: dict[str, str] | None = None
    sensitive: list[str] | None = None


class SchemaBody(Body):
    """A schema to register, look up or compare."""

    model_config = ConfigDict(extra="allow", populate_by_name=True)

    text: str | None = Field(None, alias="schema")
    schema_type: str | None = Field(None, alias="schemaType")
    references: list[ReferenceBody] | None = None
    metadata: MetadataBody | None = None
    rule_set: dict[str, list[Rule] | str | None] | None = Field(None, alias="ruleSet")
    id: Number | Annotated[int, Field(ge=-1, le=-1)] | None = None
    version: Number | Annotated[int, Field(ge=-1, le=0)] | None = None

    def schema_sent(self, unknown_allowed: bool) -> Schema:
        if self.model_extra and not unknown_allowed:
            raise unprocessable(f"Unrecognized properties: {', '.join(sorted(self.model_extra))}.")
        if not self.text or not self.text.strip():
            raise invalid_schema("it is empty")
        for reference in self.references or ():
            check_subject(reference.subject)
        return Schema(
            text=self.text,
            type=self._type(),
            references=tuple(Reference(r.name, r.subject, r.version) for r in self.references or ()),
            metadata=None if self.metadata is None else self.metadata.model_dump(exclude_none=True),
            rule_set=self.rule_set,
        )

    @property
    def imported(self) -> Imported:
        """Clients that mean no id or version may also send -1 or 0."""
        positive = [number if number and number > 0 else None for number in (self.id, self.version)]
        return Imported(*positive)

    def _type(self) -> SchemaType:
        name = self.schema_type or SchemaType.AVRO.value
        if name not in SchemaType.__members__:
            raise invalid_schema(f"'{name}' is not a schema type; there are AVRO, JSON and PROTOBUF")
        return SchemaType(name)


class ConfigBody(Body):
    """Settings that we do not act on are refused: keeping them would promise what does not happen."""

    model_config = ConfigDict(extra="allow", populate_by_name=True)

    compatibility: str | None = None
    compatibility_level: str | None = Field(None, alias="compatibilityLevel")
    compatibility_group: str | None = Field(None, alias="compatibilityGroup")
    normalize: bool | None = None

    def config_sent(self) -> dict[str, Any]:
        unsupported = sorted(name for name, value in (self.model_extra or {}).items() if value is not None)
        if unsupported:
            raise unprocessable(
                f"Not supported in a configuration: {', '.join(unsupported)}. "
                "Supported are compatibility, compatibilityGroup and normalize."
            )
        level = self.compatibility or self.compatibility_level
        if level is not None:
            level = level.upper()
            if level not in Level.__members__:
                raise invalid_level(level)
        sent = {
            "compatibility": level,
            "compatibilityGroup": self.compatibility_group,
            "normalize": self.normalize,
        }
        found = {name: value for name, value in sent.items() if value is not None}
        if not found:
            raise invalid_level("")
        return found


class ModeBody(Body):
    mode: str

    def mode_sent(self) -> Mode:
        if self.mode.upper() not in Mode.__members__:
            raise invalid_mode(self.mode)
        return Mode(self.mode.upper())


def schema_body(stored: StoredSchema, text: str | None = None) -> dict[str, Any]:
    """`text` where the client asked for another form than the stored one."""
    schema = stored.schema
    body: dict[str, Any] = {
        "schemaType": schema.type.value,
        "schema": schema.text if text is None else text,
        "guid": stored.guid,
    }
    if schema.references:
        body["references"] = [
            {"name": r.name, "subject": r.subject, "version": r.version} for r in schema.references
        ]
    if schema.metadata is not None:
        body["metadata"] = schema.metadata
    if schema.rule_set is not None:
        body["ruleSet"] = schema.rule_set
    return body


def version_body(version: SchemaVersion, text: str | None = None) -> dict[str, Any]:
    named = {"subject": version.subject, "version": version.version, "id": version.id}
    if version.deleted:
        named["deleted"] = True
    return {**named, **schema_body(version.stored, text)}


def config_body(config: Mapping[str, Any]) -> dict[str, Any]:
    """What is asked for is called `compatibility`, what is in force `compatibilityLevel`."""
    return {"compatibilityLevel" if name == "compatibility" else name: v for name, v in config.items()}
