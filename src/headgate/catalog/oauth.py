"""The token route of the REST spec: client credentials, and a token for a token.

Errors are OAuth's (RFC 6749, 5.2), not the catalog's: that is what clients expect here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse

from headgate.access.credentials import Credential
from headgate.access.gate import Gate, Visit, basic
from headgate.errors import NotAuthorized, TooManyFailures, TooManyRequests

PATH = "/v1/oauth/tokens"
CREDENTIALS = "client_credentials"
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105
SUBJECT_TYPES = (ACCESS_TOKEN, "urn:ietf:params:oauth:token-type:jwt")
LONGEST_BODY = 65_536
# Nobody between may keep a token.
NO_STORE = {"Cache-Control": "no-store", "Pragma": "no-cache"}


class Refusal(Exception):
    """An answer that is not a token."""

    def __init__(self, status: int, error: str, description: str, headers: Mapping[str, str] | None = None):
        super().__init__(description)
        self.response = JSONResponse(
            {"error": error, "error_description": description}, status, {**NO_STORE, **(headers or {})}
        )


@dataclass(frozen=True)
class TokenRequest:
    """A form, and the header that came with it."""

    form: Mapping[str, str]
    visit: Visit

    def client(self) -> tuple[str, str] | None:
        """Client id and secret, from the header or the form; a Bearer header is the token to be replaced."""
        scheme, _, shown = (self.visit.authorization or "").strip().partition(" ")
        in_form = self.form.get("client_id"), self.form.get("client_secret")
        if scheme.lower() == "basic":
            return basic(shown)
        return None if in_form[1] is None else (in_form[0] or "", in_form[1])


def token_router(gate: Gate) -> APIRouter:
    router = APIRouter(tags=["iceberg"])

    @router.post(PATH, summary="A token for a client's secret, or for a token that is still good")
    async def tokens(request: Request) -> Response:
        try:
            asked = TokenRequest(await _form(request), Visit.of(request.scope))
            client = await run_in_threadpool(_client, gate, asked)
            request.state.caller = client.principal
            return await run_in_threadpool(_answer, gate, client)
        except Refusal as refusal:
            return refusal.response

    return router


async def _form(request: Request) -> dict[str, str]:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > LONGEST_BODY:
            raise Refusal(413, "invalid_request", "The request is too long.")
    try:
        return {key: values[0] for key, values in parse_qs(body.decode(), max_num_fields=50).items()}
    except ValueError as error:
        raise Refusal(400, "invalid_request", "The body must be a form.") from error


def _client(gate: Gate, asked: TokenRequest) -> Credential:
    try:
        return _client_for(gate, asked)
    except NotAuthorized as error:
        challenge = {"WWW-Authenticate": 'Basic realm="headgate"'}
        raise Refusal(401, "invalid_client", str(error), challenge) from error
    except TooManyFailures as error:
        wait = {"Retry-After": str(error.wait)}
        raise Refusal(429, "temporarily_unavailable", str(error), wait) from error


def _answer(gate: Gate, client: Credential) -> Response:
    answer: dict[str, Any] = {
        "access_token": _token(gate, client),
        "token_type": "bearer",
        "issued_token_type": ACCESS_TOKEN,
        "expires_in": gate.tokens.lifetime,
        "scope": "catalog",
    }
    return JSONResponse(answer, headers=NO_STORE)


def _token(gate: Gate, client: Credential) -> str:
    try:
        return gate.issue(client)
    except TooManyRequests as error:
        wait = {"Retry-After": str(error.wait)}
        raise Refusal(429, "temporarily_unavailable", str(error), wait) from error


def _client_for(gate: Gate, asked: TokenRequest) -> Credential:
    match asked.form.get("grant_type", ""):
        case grant if grant == CREDENTIALS:
            shown = asked.client()
            if shown is None:
                raise NotAuthorized("client_id and client_secret are missing.")
            return gate.client(*shown, asked.visit)
        case grant if grant == EXCHANGE:
            return _exchange(gate, asked)
        case grant:
            description = f"Grants are {CREDENTIALS} and {EXCHANGE}, not {grant[:100]!r}."
            raise Refusal(400, "unsupported_grant_type", description)


def _exchange(gate: Gate, asked: TokenRequest) -> Credential:
    """A client's own token for a new one. With its secret beside it, one that has expired will do as well."""
    token = asked.form.get("subject_token", "")
    if not token or asked.form.get("subject_token_type") not in SUBJECT_TYPES:
        raise Refusal(400, "invalid_request", f"subject_token must be there, of the type {ACCESS_TOKEN}.")
    if "actor_token" in asked.form:
        raise Refusal(400, "invalid_request", "Nobody acts for somebody else here: actor_token is not taken.")
    shown = asked.client()
    client = None if shown is None else gate.client(*shown, asked.visit)
    try:
        subject = gate.exchanged(token, asked.visit, or_expired=client is not None)
    except NotAuthorized as error:
        raise Refusal(400, "invalid_grant", str(error)) from error
    if client is not None and client.client_id != subject.client_id:
        raise Refusal(400, "invalid_grant", "The token was given to another client.")
    return subject
