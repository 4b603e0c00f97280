"""Unity Catalog, as far as publication uses it: requests and answers are held against its OpenAPI."""

import base64
import re
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import httpx
import uvicorn
import yaml
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from headgate.embedded.ports import LOOPBACK, free_port

API = "/api/2.1/unity-catalog"
CLIENT_ID, SECRET = "unity-client", "the-secret-of-the-unity-client"
_PYTHON = {"string": str, "integer": int, "boolean": bool, "object": dict, "array": list}


class Spec:
    """The excerpt of the published document."""

    def __init__(self) -> None:
        self._said = yaml.safe_load((Path(__file__).parent / "unity-openapi.yaml").read_text())

    def operation(self, method: str, path: str) -> tuple[Mapping[str, Any], dict[str, str]] | None:
        """What is said of a request, and what stands in its path."""
        for template, item in self._said["paths"].items():
            pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", template)
            found = re.fullmatch(pattern, path)
            if found and method.lower() in item:
                shared = item.get("parameters", [])
                operation = item[method.lower()]
                return {**operation, "parameters": [*shared, *operation.get("parameters", [])]}, (
                    found.groupdict()
                )
        return None

    def problems(self, value: Any, schema: Mapping[str, Any], where: str = "body") -> list[str]:
        """What in a value is not as the schema has it. Fields that it does not name are not taken."""
        if "$ref" in schema:
            schema = self._said["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        kind = schema.get("type")
        if kind and (not isinstance(value, _PYTHON[kind]) or (kind == "integer" and isinstance(value, bool))):
            return [f"{where} is no {kind}"]
        if "enum" in schema and value not in schema["enum"]:
            return [f"{where} is {value}, none of {schema['enum']}"]
        if kind == "array":
            return [
                p for i, one in enumerate(value) for p in self.problems(one, schema["items"], f"{where}.{i}")
            ]
        if kind != "object":
            return []
        known, more = schema.get("properties", {}), schema.get("additionalProperties")
        found = [f"{where}.{key} is missing" for key in schema.get("required", ()) if key not in value]
        for key, one in value.items():
            if key in known:
                found += self.problems(one, known[key], f"{where}.{key}")
            elif more:
                found += self.problems(one, more, f"{where}.{key}")
            else:
                found.append(f"{where}.{key} is unknown")
        return found


@dataclass
class Unity:
    """A server. `tables` and `schemas` by their full names."""

    url: str
    catalogs: set[str] = field(default_factory=lambda: {"main"})
    schemas: dict[str, dict[str, Any]] = field(default_factory=dict)
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    # Method and path of all that was asked, and what was not as published.
    asked: list[tuple[str, str]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    tokens: set[str] = field(default_factory=set)
    token_seconds: int = 3600
    # What everything is answered with, while it is set.
    trouble: int | None = None

    def changes(self) -> list[tuple[str, str]]:
        return [one for one in self.asked if one[0] != "GET"]


def application(unity: Unity) -> FastAPI:
    app, spec = FastAPI(), Spec()

    @app.post("/oidc/v1/token")
    async def token(request: Request) -> JSONResponse:
        form = {key: values[0] for key, values in parse_qs((await request.body()).decode()).items()}
        expected = "Basic " + base64.b64encode(f"{CLIENT_ID}:{SECRET}".encode()).decode()
        if form != {"grant_type": "client_credentials", "scope": "all-apis"}:
            return JSONResponse({"error": "unsupported_grant_type"}, 400)
        if request.headers.get("Authorization") != expected:
            return JSONResponse({"error": "invalid_client", "error_description": "Client is unknown"}, 401)
        made = secrets.token_hex(8)
        unity.tokens.add(made)
        return JSONResponse({"access_token": made, "token_type": "Bearer", "expires_in": unity.token_seconds})

    @app.api_route(API + "/{path:path}", methods=["GET", "POST", "PATCH", "PUT", "DELETE"])
    async def call(request: Request, path: str) -> JSONResponse:
        if unity.trouble is not None:
            return JSONResponse({"error_code": "X", "message": "not now"}, unity.trouble)
        if request.headers.get("Authorization", "").removeprefix("Bearer ") not in unity.tokens:
            return JSONResponse({"error_code": "UNAUTHENTICATED", "message": "who are you"}, 401)
        unity.asked.append((request.method, f"/{path}"))
        found = spec.operation(request.method, f"/{path}")
        if found is None:
            unity.wrong.append(f"{request.method} /{path} is not published")
            return JSONResponse({"error_code": "NOT_FOUND", "message": "no such route"}, 404)
        operation, names = found
        body = await request.json() if await request.body() else None
        problems = _request_problems(spec, operation, request, body)
        if problems:
            unity.wrong += problems
            return JSONResponse({"error_code": "INVALID_ARGUMENT", "message": "; ".join(problems)}, 400)
        status, answer = _carry_out(unity, operation["operationId"], names, body)
        if status == 200:
            schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
            unity.wrong += spec.problems(answer, schema, "answer")
        return JSONResponse(answer, status)

    return app


def _request_problems(spec: Spec, operation: Mapping[str, Any], request: Request, body: Any) -> list[str]:
    known = {one["name"] for one in operation["parameters"] if one["in"] == "query"}
    found = [f"query {name} is unknown" for name in request.query_params if name not in known]
    wanted = operation.get("requestBody")
    if wanted is None:
        return found if body is None else [*found, "there is no body"]
    return [*found, *spec.problems(body, wanted["content"]["application/json"]["schema"])]


def _carry_out(unity: Unity, what: str, names: Mapping[str, str], body: Any) -> tuple[int, dict[str, Any]]:
    missing = 404, {"error_code": "NOT_FOUND", "message": f"{names} does not exist"}
    match what:
        case "getCatalog":
            return (200, {"name": names["name"]}) if names["name"] in unity.catalogs else missing
        case "getSchema":
            found = unity.schemas.get(names["full_name"])
            return missing if found is None else (200, found)
        case "createSchema":
            full = f"{body['catalog_name']}.{body['name']}"
            if full in unity.schemas:
                return 409, {"error_code": "SCHEMA_ALREADY_EXISTS", "message": full}
            unity.schemas[full] = {**body, "full_name": full}
            return 200, unity.schemas[full]
        case "getTable":
            found = unity.tables.get(names["full_name"])
            return missing if found is None else (200, found)
        case "createTable":
            schema = f"{body['catalog_name']}.{body['schema_name']}"
            full = f"{schema}.{body['name']}"
            if schema not in unity.schemas:
                return missing
            if full in unity.tables:
                return 409, {"error_code": "TABLE_ALREADY_EXISTS", "message": full}
            now = int(time.time() * 1000)
            unity.tables[full] = {**body, "table_id": secrets.token_hex(8), "created_at": now}
            return 200, unity.tables[full]
        case "deleteTable":
            if unity.tables.pop(names["full_name"], None) is None:
                return missing
            return 200, {}
    raise AssertionError(what)


@contextmanager
def unity_server() -> Iterator[Unity]:
    unity = Unity(f"http://{LOOPBACK}:{free_port()}")
    config = uvicorn.Config(
        application(unity), LOOPBACK, int(unity.url.rpartition(":")[2]), log_level="warning"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        deadline = time.monotonic() + 20
        while not server.started:
            assert thread.is_alive()
            assert time.monotonic() < deadline, "the double of Unity Catalog does not start"
            time.sleep(0.01)
        assert httpx.get(unity.url, trust_env=False).status_code == 404
        yield unity
    finally:
        server.should_exit = True
        thread.join(timeout=20)
