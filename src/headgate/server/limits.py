"""How long a request's body may be, how deep JSON may nest in it, and that its text is text: told before
anything reads it."""

import re
from itertools import accumulate

from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headgate.config import Limits
from headgate.errors import HeadgateError, InvalidRequest, LimitReached
from headgate.server.failures import Failure, status_of

# Possessive, and with an end that may be missing: each byte is read once, whatever the body is.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
# An escape of JSON. The group is half of a character, which no text has and no database takes.
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
FORM = b"application/x-www-form-urlencoded"
_NO_BRACKETS = bytes(set(range(256)) - set(_STEPS))


class BodyLimits:
    """Reads each body whole, and hands it on if it keeps to the limits. `own_limits`: paths whose routes
    stop reading by themselves."""

    def __init__(self, app: ASGIApp, limits: Limits, own_limits: frozenset[str] = frozenset()) -> None:
        self._app = app
        self._limits = limits
        self._own_limits = own_limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _has_body(scope) or scope["path"] in self._own_limits:
            await self._app(scope, receive, send)
            return
        try:
            messages = await self._read(scope, receive)
        except (LimitReached, InvalidRequest) as error:
            await JSONResponse(_body(scope["path"], error), status_of(error))(scope, receive, send)
            return

        async def replay() -> Message:
            return messages.pop(0) if messages else await receive()

        await self._app(scope, replay, send)

    async def _read(self, scope: Scope, receive: Receive) -> list[Message]:
        most = self._limits.body_bytes
        declared = dict(scope["headers"]).get(b"content-length", b"")
        if declared.isdigit() and int(declared) > most:
            raise _too_long(most)
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return [message]
            body += message.get("body", b"")
            if len(body) > most:
                raise _too_long(most)
            if not message.get("more_body", False):
                break
        await self._check_depth(bytes(body))
        if dict(scope["headers"]).get(b"content-type", b"").partition(b";")[0].strip().lower() != FORM:
            await _check_text(bytes(body))
        return [{"type": "http.request", "body": bytes(body), "more_body": False}]

    async def _check_depth(self, body: bytes) -> None:
        most = self._limits.json_depth
        if body.count(b"[") + body.count(b"{") <= most:
            return
        # Others are answered meanwhile.
        if await run_in_threadpool(depth_of, body) > most:
            raise LimitReached(
                f"The body nests deeper than {most} levels.", "Nest less, or raise limits.json_depth."
            )


async def _check_text(body: bytes) -> None:
    if (b"\\ud" in body or b"\\uD" in body) and await run_in_threadpool(has_half_characters, body):
        raise InvalidRequest(
            "The body has half of a character: a surrogate without its other half.",
            "Send text that is Unicode.",
        )


def has_half_characters(body: bytes) -> bool:
    """Whether JSON writes a surrogate that is not one of a pair."""
    return any(escape.group(1) for escape in _ESCAPE.finditer(body))


def depth_of(body: bytes) -> int:
    """How deep brackets nest outside of strings, in a time that grows with the body's length alone."""
    brackets = _STRING.sub(b"", body).translate(None, _NO_BRACKETS)
    return max(accumulate(map(_STEPS.__getitem__, brackets)), default=0)


def _too_long(most: int) -> LimitReached:
    return LimitReached(f"The body is longer than {most} bytes.", "Send less, or raise limits.body_bytes.")


def _has_body(scope: Scope) -> bool:
    return any(name in (b"content-length", b"transfer-encoding") for name, _ in scope["headers"])


def _body(path: str, error: HeadgateError) -> dict[str, object]:
    """As the clients of that path expect a refusal to look."""
    code = status_of(error)
    if path.startswith("/iceberg/"):
        kind = "RequestTooLargeException" if isinstance(error, LimitReached) else "BadRequestException"
        return {"error": {"message": str(error), "type": kind, "code": code}}
    if path.startswith("/registry/"):
        return {"error_code": code, "message": str(error)}
    return Failure(error=type(error).__name__, message=error.message, remedy=error.remedy).model_dump()
