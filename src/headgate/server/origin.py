"""Keeps web pages of others out: browsers run on this machine too, and know secrets of their users."""

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from headgate.access.gate import PUBLIC_DOOR
from headgate.server.failures import Failure

# A page's origin has its own scheme, where its WebSocket has another.
SCHEMES = {"ws": "http", "wss": "https"}
OWN_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})


class OwnOrigin:
    """Refuses requests that a page of another origin makes, and those for another host name.

    A page can send requests to 127.0.0.1, or have its own name point there; a browser then names the page's
    origin, or that name. Programs other than browsers send no Origin.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        host, origin = ", ".join(headers.getlist("host")), ", ".join(headers.getlist("origin")) or None
        # At the public door the server has names that it does not know; nothing opens it without a secret.
        known = scope.get(PUBLIC_DOOR) is True or _name(f"//{host}") in OWN_HOSTS
        scheme = SCHEMES.get(scope["scheme"], scope["scheme"])
        if known and (origin is None or origin == f"{scheme}://{host}"):
            await self._app(scope, receive, send)
            return
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": "another origin or host"})
            return
        refused = Failure(
            error="InvalidRequest",
            message=f"Requests for host '{host}' from origin '{origin}' are refused.",
            remedy="Use the addresses that `headgate status` shows.",
        )
        await JSONResponse(refused.model_dump(), 403)(scope, receive, send)


def _name(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        # A port that is none makes the whole no address.
        return parts.hostname if parts.port is None or parts.port else None
    except ValueError:
        return None
