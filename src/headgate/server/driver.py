"""The query driver as the server reaches it: started when it is wanted, spoken to by its own door."""

import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import anyio
import anyio.to_thread
import httpx

from headgate import errors
from headgate.errors import HeadgateError, ServerUnavailable
from headgate.server import overview
from headgate.store import Store

START_SECONDS = 120.0
LOOK_SECONDS = 0.25
ANSWER_SECONDS = 30.0
NAME = "query"
NDJSON = "application/x-ndjson"


@dataclass
class Rows:
    """A query's lines, as they come. To be closed, whatever comes."""

    _client: httpx.AsyncClient
    _answer: httpx.Response

    @property
    def media_type(self) -> str:
        return str(self._answer.headers["content-type"])

    async def pieces(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._answer.aiter_raw():
                yield piece
        except httpx.TransportError:
            if self.media_type != NDJSON:
                # A stream of Arrow that ends too soon says so itself.
                return
            told = {"op": "error", "error": "ServerUnavailable", "message": "The query driver has ended."}
            yield b"\n" + json.dumps({**told, "remedy": "Ask again: it is started anew."}).encode() + b"\n"

    async def close(self) -> None:
        """Also when the one who reads was cut off: the driver learns by it that nobody reads."""
        with anyio.CancelScope(shield=True):
            await self._answer.aclose()
            await self._client.aclose()


class QueryDriver:
    """`token` opens its door."""

    def __init__(self, store: Store, token: str) -> None:
        self._store = store
        self._headers = {"Authorization": f"Bearer {token}"}

    def start(self) -> None:
        """Waits until it is ready, and has it started if need be."""
        if self._address() is not None:
            return
        self._store.want(NAME)
        deadline = time.monotonic() + START_SECONDS
        while self._address() is None:
            if time.monotonic() > deadline:
                raise ServerUnavailable(
                    f"The query driver is not ready after {START_SECONDS:.0f} s.",
                    "See logs/query.log in the data folder.",
                )
            time.sleep(LOOK_SECONDS)

    def cancel(self, query_id: str, owner: str | None = None) -> None:
        self.call("DELETE", f"/queries/{quote(query_id, safe='')}", owner=owner)

    def call(self, method: str, path: str, body: Any = None, owner: str | None = None) -> Any:
        try:
            answer = httpx.request(
                method,
                f"{self._there()}{path}",
                json=body,
                params=_whose(owner),
                headers=self._headers,
                timeout=ANSWER_SECONDS,
                trust_env=False,
            )
        except httpx.TransportError as error:
            raise _silent() from error
        if not answer.is_success:
            raise _error(answer)
        return answer.json() if answer.content else None

    @property
    def is_there(self) -> bool:
        return self._address() is not None

    async def rows(self, query_id: str, owner: str | None = None) -> Rows:
        """Opened: what is wrong with the query's name is known by then. `owner`: whose it must be."""
        address = await anyio.to_thread.run_sync(self._there)
        # Rows come when there are any.
        limits = httpx.Timeout(ANSWER_SECONDS, read=None)
        client = httpx.AsyncClient(timeout=limits, trust_env=False, headers=self._headers)
        try:
            path = f"{address}/queries/{quote(query_id, safe='')}/rows"
            request = client.build_request("GET", path, params=_whose(owner))
            answer = await client.send(request, stream=True)
            if not answer.is_success:
                await answer.aread()
                raise _error(answer)
        except httpx.TransportError as error:
            await client.aclose()
            raise _silent() from error
        except BaseException:
            await client.aclose()
            raise
        return Rows(client, answer)

    def _there(self) -> str:
        found = self._address()
        if found is None:
            raise _silent()
        return found

    def _address(self) -> str | None:
        record = self._store.process(NAME)
        if overview.process(record)["state"] != "ready":
            return None
        found = record.detail.get("queries")
        return None if found is None else str(found)


def _whose(owner: str | None) -> dict[str, str]:
    return {} if owner is None else {"owner": owner}


def _silent() -> ServerUnavailable:
    return ServerUnavailable("The query driver does not answer.", "Ask again: it is started when asked for.")


def _error(answer: httpx.Response) -> HeadgateError:
    try:
        told = answer.json()
        kind = getattr(errors, told["error"], None)
        message, remedy = str(told["message"]), str(told.get("remedy") or "")
    except (ValueError, KeyError, TypeError):
        return ServerUnavailable(f"The query driver answered {answer.status_code}.", "See logs/query.log.")
    if isinstance(kind, type) and issubclass(kind, HeadgateError):
        return kind(message, remedy)
    return ServerUnavailable(message, remedy)
