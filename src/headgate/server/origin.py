"""Keeps web pages of others out: browsers run on this machine too, and know secrets of their users."""

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from headgate.access.gate import PUBLIC_DOOR
from headgate.server.failures import Failure

OWN_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})


class OwnOrigin:
    """Refuses requests that a page of another origin makes, and those for another host name.

    A page can send requests to 127.0.0.1, or have its own name point there; a browser then names the page's
    origin, or that name. Programs other than browsers send no Origin.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin")
        # At the public door the server has names that it does not know; nothing opens it without a secret.
        known = scope.get(PUBLIC_DOOR) is True or _name(f"//{host}") in OWN_HOSTS
        if known and (origin is None or origin == f"{scope['scheme']}://{host}"):
            await self._app(scope, receive, send)
            return
        refused = Failure(
            error="InvalidRequest",
            message=f"Requests for host '{host}' from origin '{origin}' are refused.",
            remedy="Use the addresses that `headgate status` shows.",
        )
        await JSONResponse(refused.model_dump(), 403)(scope, receive, send)


def _name(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
