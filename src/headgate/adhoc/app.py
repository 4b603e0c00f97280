"""The query driver's own door, on this machine only and by a token: queries are started, read and stopped."""

import hmac
import socket
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio.to_thread
import uvicorn
from fastapi import Depends, FastAPI, HTTPException, Request, status
from fastapi.responses import JSONResponse, StreamingResponse
from starlette.types import Receive, Scope, Send

from headgate.adhoc.queries import Queries, Query
from headgate.errors import HeadgateError, NotFound, TooManyRequests, TransientError
from headgate.statements.asking import Asked

_NO_MORE = object()
CODES = {NotFound: 404, TooManyRequests: 429, TransientError: 503, HeadgateError: 400}
START_SECONDS = 30.0


class Leaving(StreamingResponse):
    """Says when it has ended, however that came."""

    def __init__(self, content: AsyncIterator[bytes], media_type: str, left: Callable[[], None]) -> None:
        super().__init__(content, media_type=media_type)
        self._left = left

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._left()


def create_app(queries: Queries, token: str) -> FastAPI:
    def check(request: Request) -> None:
        given = request.headers.get("authorization", "")
        if not hmac.compare_digest(given.encode(), f"Bearer {token}".encode()):
            raise HTTPException(status.HTTP_401_UNAUTHORIZED)

    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, dependencies=[Depends(check)])

    @app.exception_handler(HeadgateError)
    async def fail(_: Request, error: HeadgateError) -> JSONResponse:
        code = next(code for kind, code in CODES.items() if isinstance(error, kind))
        told = {"error": type(error).__name__, "message": error.message, "remedy": error.remedy}
        return JSONResponse(told, code)

    @app.post("/queries", status_code=status.HTTP_201_CREATED)
    def start(asked: dict[str, Any]) -> dict[str, Any]:
        return queries.start(Asked.from_dict(asked)).to_dict()

    @app.get("/queries")
    def listed() -> list[dict[str, Any]]:
        return [query.to_dict() for query in queries.all()]

    @app.get("/queries/{query_id}/rows")
    async def rows(query_id: str, request: Request, owner: str | None = None) -> Leaving:
        query = queries.read(query_id, owner)
        return Leaving(_pieces(query, request), query.results.media_type, lambda: queries.leave(query))

    @app.delete("/queries/{query_id}", status_code=status.HTTP_204_NO_CONTENT)
    def cancel(query_id: str, owner: str | None = None) -> None:
        queries.cancel(query_id, owner)

    return app


async def _pieces(query: Query, request: Request) -> AsyncIterator[bytes]:
    pieces = query.results.pieces()
    while not await request.is_disconnected():
        piece: Any = await anyio.to_thread.run_sync(next, pieces, _NO_MORE)
        if piece is _NO_MORE:
            return
        if piece is not None:
            yield piece


class Door:
    """The application on a port that the system chooses, for as long as the block lasts."""

    def __init__(self, app: FastAPI, host: str) -> None:
        self._socket = socket.create_server((host, 0))
        self.address = f"http://{host}:{self._socket.getsockname()[1]}"
        config = uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, name="door", daemon=True)

    def _run(self) -> None:
        self._server.run(sockets=[self._socket])

    def __enter__(self) -> "Door":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(START_SECONDS)
        self._socket.close()
