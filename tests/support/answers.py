"""Answers of the control API, held against its description: what is not described as it is fails the test."""

import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

import httpx
import httpx2
import jsonschema_rs

from scripts.openapi import description

PREFIX = "/api/v1/"
JSON = "application/json"
_lock = threading.Lock()


class NotAsDescribed(AssertionError):
    """An answer that has another shape than the description says."""


@cache
def _description() -> dict[str, Any]:
    return description()


@cache
def _paths() -> list[tuple[re.Pattern[str], str]]:
    """What each path of the description stands for; those with fewer names in them first."""
    found = sorted(_description()["paths"], key=lambda path: path.count("{"))
    return [(re.compile(re.sub(r"\\{[^}]*\\}", "[^/]+", re.escape(path))), path) for path in found]


@cache
def _validator(method: str, path: str, code: int) -> jsonschema_rs.Validator | None:
    responses = _description()["paths"][path][method]["responses"]
    answer = responses.get(str(code)) or responses.get(f"{code // 100}XX")
    schema = ((answer or {}).get("content") or {}).get(JSON, {}).get("schema")
    if schema is None:
        return None
    whole = {**schema, "components": _description()["components"]}
    return jsonschema_rs.Draft202012Validator(whole)


def check_answer(method: str, url: str, code: int, content: bytes) -> None:
    """Raises NotAsDescribed; answers of other paths are nobody's business here."""
    path = urlsplit(url).path
    if not path.startswith(PREFIX):
        return
    # Not decoded: a name may hold a slash.
    template = next((known for pattern, known in _paths() if pattern.fullmatch(path)), None)
    if template is None or method.lower() not in _description()["paths"][template]:
        return
    with _lock:
        validator = _validator(method.lower(), template, code)
    if validator is None:
        return
    problems = [
        f"{'.'.join(map(str, problem.instance_path)) or 'the answer'}: {problem.message}"
        for problem in validator.iter_errors(json.loads(content))
    ]
    if problems:
        said = "\n".join(text[:500] for text in problems[:5])
        raise NotAsDescribed(f"{method} {template} answered {code} otherwise than described:\n{said}")


def _check(method: str, url: str, code: int, headers: Mapping[str, str], content: bytes) -> None:
    if headers.get("content-type", "").startswith(JSON) and content:
        check_answer(method, url, code, content)


@contextmanager
def held_to_the_description() -> Iterator[None]:
    """All answers that are read in this process while the block lasts."""
    send, send2 = httpx.Client.send, httpx2.Client.send

    def checked(client: httpx.Client, request: httpx.Request, **options: Any) -> httpx.Response:
        answer = send(client, request, **options)
        if not options.get("stream"):
            _check(request.method, str(request.url), answer.status_code, answer.headers, answer.content)
        return answer

    def checked2(client: httpx2.Client, request: httpx2.Request, **options: Any) -> httpx2.Response:
        answer = send2(client, request, **options)
        if not options.get("stream"):
            _check(request.method, str(request.url), answer.status_code, answer.headers, answer.content)
        return answer

    with patch.object(httpx.Client, "send", checked), patch.object(httpx2.Client, "send", checked2):
        yield
