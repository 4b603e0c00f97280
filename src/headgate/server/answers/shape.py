"""What the shapes of answers have in common, and how a route says which one is its own."""

from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from fastapi import status
from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

_T = TypeVar("_T")


@dataclass(frozen=True)
class _MayBeMissing:
    """Marks what an object may lack."""


Maybe = Annotated[_T, _MayBeMissing()]


class Shape(BaseModel):
    """An object of an answer: what it holds, `Maybe` what it may lack, and nothing else."""

    model_config = ConfigDict(extra="forbid")

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler, /
    ) -> JsonSchemaValue:
        described = handler(core_schema)
        own = handler.resolve_ref_schema(described)
        missing = {
            field.alias or name
            for name, field in cls.model_fields.items()
            if any(isinstance(mark, _MayBeMissing) for mark in field.metadata)
        }
        needed = [name for name in own.get("required", ()) if name not in missing]
        own.pop("required", None)
        if needed:
            own["required"] = needed
        return described


def answers(shape: Any, code: int = status.HTTP_200_OK) -> dict[str, Any]:
    """What a route answers with where all goes well, as an argument of its decorator."""
    return {"responses": {code: {"model": shape}}}
