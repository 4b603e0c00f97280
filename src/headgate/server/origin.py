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
    origin, or that name. For images, scripts and frames it names no origin, but says that another page asks.
    Programs other than browsers say nothing of the kind. `public_url` is what clients at the public door call
    the server, for instance behind a proxy that speaks TLS.
    """

    def __init__(self, app: ASGIApp, public_url: str | None = None) -> None:
        self._app = app
        self._public_origin = None if public_url is None else _origin(public_url)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        if scope["type"] == "http" and ("\0" in scope["path"] or b"%00" in scope["query_string"]):
            # No name has one, and there are programs and databases that end a text with it.
            failure = Failure(error="InvalidRequest", message="The address of the request has a zero in it.")
            await JSONResponse(failure.model_dump(), 400)(scope, receive, send)
            return
        headers = Headers(scope=scope)
        host, origin = ", ".join(headers.getlist("host")), ", ".join(headers.getlist("origin")) or None
        # At the public door the server has names that it does not know; nothing opens it without a secret.
        public = scope.get(PUBLIC_DOOR) is True
        known = public or _name(f"//{host}") in OWN_HOSTS
        scheme = SCHEMES.get(scope["scheme"], scope["scheme"])
        own = {f"{scheme}://{host}", *({self._public_origin} if public else ())}
        if known and (origin is None or origin in own) and not _is_loaded_by_others(headers):
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


def _is_loaded_by_others(headers: Headers) -> bool:
    """Whether a page of another origin has the browser load this. A link that is followed is no load."""
    if headers.get("sec-fetch-site", "none") in ("same-origin", "none"):
        return False
    return (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) != ("navigate", "document")


def _origin(url: str) -> str:
    """As a browser writes it."""
    parts = urlsplit(url.casefold())
    usual = {"http": ":80", "https": ":443"}.get(parts.scheme, "")
    return f"{parts.scheme}://{parts.netloc.removesuffix(usual)}"


def _name(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        # A port that is none makes the whole no address.
        return parts.hostname if parts.port is None or parts.port else None
    except ValueError:
        return None
