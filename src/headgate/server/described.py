"""The application's OpenAPI description, as clients are generated from it."""

from typing import Any

from fastapi import FastAPI


class DescribedApp(FastAPI):
    """Routes return plain objects, and name the shapes of their answers beside that: of both, a description
    shows the shapes."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            self.openapi_schema = _with_shapes(super().openapi())
        return self.openapi_schema


def _with_shapes(described: dict[str, Any]) -> dict[str, Any]:
    for operations in described["paths"].values():
        for operation in operations.values():
            for answer in operation.get("responses", {}).values():
                for content in answer.get("content", {}).values():
                    content["schema"] = _without_siblings(content.get("schema", {}))
    return described


def _without_siblings(schema: Any) -> Any:
    """Of a reference, what stands beside it is that of the plain object."""
    if isinstance(schema, list):
        return [_without_siblings(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return {"$ref": schema["$ref"]}
    return {name: _without_siblings(inner) for name, inner in schema.items()}
