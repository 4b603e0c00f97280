"""The cookie of a browser's session: no script reads it, and no page of others sends it."""

from collections.abc import Mapping
from typing import Any

from fastapi import Response

from headgate.access.gate import PUBLIC_DOOR, session_cookie


def keep_session(
    scope: Mapping[str, Any], response: Response, secret: str, lifetime: int, public_url: str | None
) -> None:
    # Nobody keeps the answer, and its address is not told to the pages that follow.
    response.headers["Cache-Control"] = "no-store"
    response.headers["Referrer-Policy"] = "no-referrer"
    response.set_cookie(
        session_cookie(scope),
        secret,
        lifetime,
        path="/",
        httponly=True,
        samesite="strict",
        secure=is_encrypted(scope, public_url),
    )


def forget_session(scope: Mapping[str, Any], response: Response, public_url: str | None) -> None:
    response.headers["Cache-Control"] = "no-store"
    secure = is_encrypted(scope, public_url)
    response.delete_cookie(session_cookie(scope), path="/", httponly=True, samesite="strict", secure=secure)


def is_encrypted(scope: Mapping[str, Any], public_url: str | None) -> bool:
    """Whether the browser speaks TLS: with the server, or with a proxy before its public door."""
    if scope["scheme"] == "https":
        return True
    return scope.get(PUBLIC_DOOR) is True and (public_url or "").casefold().startswith("https://")
