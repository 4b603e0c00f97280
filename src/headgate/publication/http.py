"""Requests to an outside catalog over HTTP, with a token that is asked for when it is needed."""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from headgate.errors import OutsideRefused, OutsideUnavailable

TIMEOUT = httpx.Timeout(20.0, connect=5.0)
# Asked for again so long before it ends.
_EARLY_SECONDS = 60.0
_DEFAULT_LIFETIME = 300.0


@dataclass(frozen=True)
class Login:
    """Client credentials of OAuth2."""

    token_url: str
    client_id: str
    secret: str
    scope: str


class OutsideHttp:
    """Answers below 500, other than 401 and 403, are for the caller to judge. Redirects are not followed: the
    token is for the host that was named."""

    def __init__(self, base: str, login: Login | None, shown: str) -> None:
        self._base = base
        self._login = login
        self._shown = shown
        self._http = httpx.Client(timeout=TIMEOUT, trust_env=False)
        self._token: str | None = None
        self._until = 0.0
        self._lock = threading.Lock()

    def call(
        self, method: str, path: str, body: Any = None, parameters: Mapping[str, str] | None = None
    ) -> httpx.Response:
        """With one more attempt when the token is refused: it may have been revoked, or its key replaced."""
        answer = self._send(method, path, body, parameters)
        if answer.status_code == 401 and self._login is not None:
            self._token = None
            answer = self._send(method, path, body, parameters)
        if answer.status_code in (401, 403):
            raise OutsideRefused(
                f"{self._shown} refuses {method} {path}: {reason(answer)}",
                "Are the client id and its secret right, and may they do this?",
            )
        if answer.status_code >= 500 or answer.status_code == 429:
            raise OutsideUnavailable(f"{self._shown} cannot now: {answer.status_code}, {reason(answer)}")
        if answer.is_redirect:
            raise OutsideRefused(
                f"{self._shown} leads elsewhere.", "Add the catalog with the address that it has now."
            )
        return answer

    def close(self) -> None:
        self._http.close()

    def _send(
        self, method: str, path: str, body: Any, parameters: Mapping[str, str] | None
    ) -> httpx.Response:
        headers = {} if self._login is None else {"Authorization": f"Bearer {self._current(self._login)}"}
        try:
            return self._http.request(
                method, self._base + path, json=body, params=parameters, headers=headers
            )
        except httpx.TransportError as error:
            raise OutsideUnavailable(
                f"{self._shown} does not answer: {str(error) or type(error).__name__}."
            ) from error

    def _current(self, login: Login) -> str:
        with self._lock:
            if self._token is None or time.monotonic() >= self._until:
                self._token, lifetime = self._ask(login)
                self._until = time.monotonic() + max(lifetime - _EARLY_SECONDS, lifetime / 2)
            return self._token

    def _ask(self, login: Login) -> tuple[str, float]:
        form = {"grant_type": "client_credentials", "scope": login.scope}
        try:
            answer = self._http.post(login.token_url, data=form, auth=(login.client_id, login.secret))
        except httpx.TransportError as error:
            said = str(error) or type(error).__name__
            raise OutsideUnavailable(f"No token from {login.token_url}: {said}.") from error
        if answer.status_code >= 500 or answer.status_code == 429:
            raise OutsideUnavailable(f"No token from {login.token_url} now: {answer.status_code}.")
        try:
            found = answer.json()
            if not answer.is_success:
                raise OutsideRefused(
                    f"{login.token_url} gives no token: {answer.status_code}, {reason(answer)}",
                    "Are the client id and its secret right?",
                )
            return str(found["access_token"]), float(found.get("expires_in") or _DEFAULT_LIFETIME)
        except (ValueError, KeyError, TypeError) as error:
            raise OutsideRefused(
                f"{login.token_url} answers {answer.status_code} without a token.", "Is --token-url right?"
            ) from error


def reason(answer: httpx.Response) -> str:
    """What an answer says went wrong, in one line, in any of the ways that catalogs say it."""
    try:
        said = answer.json()
    except ValueError:
        return answer.reason_phrase
    if not isinstance(said, dict):
        return answer.reason_phrase
    inner = said.get("error")
    if isinstance(inner, dict):
        said = inner
    found = said.get("message") or said.get("error_description") or said.get("error") or answer.reason_phrase
    return " ".join(str(found).split())[:300]
