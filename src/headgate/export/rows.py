"""Rows of a query of the lake, batch by batch, from the query driver: all that exports know of it."""

import io
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx
import pyarrow as pa

from headgate.errors import InvalidRequest, ServerUnavailable, TransientError
from headgate.statements.asking import Asked, Caller
from headgate.store import ProcessRecord, Store

DRIVER = "query"
START_SECONDS = 180.0
LOOK_SECONDS = 0.25
ANSWER_SECONDS = 60.0
# A driver that has said nothing for so long is not there.
SILENT_SECONDS = 30.0
PIECE_BYTES = 256 * 1024
# The last batch is empty, and has the end of the query under this key of its metadata.
LAST_WORD = b"headgate"


class QueryRows:
    """Asks with the rights of Headgate itself. `token` opens the driver's door, `key` the catalog."""

    def __init__(self, store: Store, token: str, key: str, stop: threading.Event) -> None:
        self._store = store
        self._headers = {"Authorization": f"Bearer {token}"}
        self._key = key
        self._stop = stop

    def shape(self, sql: str, zone: str, name: str) -> pa.Schema:
        """The columns of a query that gives no row."""
        with self._asked(sql, zone, name, is_final=True) as (schema, batches):
            for _ in batches:
                pass
            return schema

    @contextmanager
    def batches(self, sql: str, zone: str, name: str) -> Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
        """The schema and the batches, as long as the block lasts: who leaves it early stops the query."""
        with self._asked(sql, zone, name, is_final=False) as rows:
            yield rows

    @contextmanager
    def _asked(
        self, sql: str, zone: str, name: str, is_final: bool
    ) -> Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
        """`is_final`: a query that Spark does not understand is an error that stays; one that fails later may
        have failed for any reason."""
        address = self._address()
        asked = Asked(
            "lake",
            sql,
            zone=zone,
            form="arrow",
            caller=Caller(name, name, self._key),
            hides_rows=not is_final,
        )
        limits = httpx.Timeout(ANSWER_SECONDS, read=None)
        try:
            with httpx.Client(
                base_url=address, headers=self._headers, timeout=limits, trust_env=False
            ) as client:
                started = _checked(client.post("/queries", json=asked.to_dict(), timeout=ANSWER_SECONDS))
                with client.stream("GET", f"/queries/{started['id']}/rows") as answer:
                    if not answer.is_success:
                        answer.read()
                        _checked(answer)
                    stream = pa.ipc.open_stream(io.BufferedReader(_Pieces(answer.iter_bytes()), PIECE_BYTES))
                    yield stream.schema, self._batches_of(stream, is_final)
        except (httpx.TransportError, pa.ArrowInvalid, OSError) as error:
            raise ServerUnavailable(
                f"The query driver was cut off: {type(error).__name__}.", "See logs/query.log."
            ) from error

    def _batches_of(self, stream: pa.RecordBatchReader, is_final: bool) -> Iterator[pa.RecordBatch]:
        while not self._stop.is_set():
            try:
                batch, metadata = stream.read_next_batch_with_custom_metadata()
            except StopIteration:
                break
            if metadata is not None and LAST_WORD in metadata:
                _check_end(json.loads(metadata[LAST_WORD]), is_final)
                return
            yield batch
        raise ServerUnavailable("The rows of a query ended before their end was said.")

    def _address(self) -> str:
        """Where the driver is; it is started if need be."""
        if (address := _listening(self._store.process(DRIVER))) is not None:
            return address
        self._store.want(DRIVER)
        deadline = time.monotonic() + START_SECONDS
        while (address := _listening(self._store.process(DRIVER))) is None:
            if time.monotonic() > deadline or self._stop.wait(LOOK_SECONDS):
                raise ServerUnavailable("The query driver is not ready.", "See logs/query.log.")
        return address


def _listening(record: ProcessRecord) -> str | None:
    is_ready = record.state == "ready" and time.time() - record.beat_at < SILENT_SECONDS
    address = record.detail.get("queries")
    return str(address) if is_ready and address else None


def _check_end(end: Mapping[str, Any], is_final: bool) -> None:
    if end["op"] == "error":
        raise _error(end, is_final)
    if end.get("state") != "Completed":
        raise ServerUnavailable("The query was stopped.")


def _checked(answer: httpx.Response) -> Any:
    if answer.is_success:
        return answer.json()
    try:
        raise _error(answer.json(), is_final=False)
    except (ValueError, KeyError) as error:
        raise ServerUnavailable(f"The query driver answered {answer.status_code}.") from error


def _error(said: Mapping[str, Any], is_final: bool) -> Exception:
    message, remedy = str(said["message"]), str(said.get("remedy") or "")
    # What Spark says of a query begins with the class of the error.
    if is_final and said["error"] == "InvalidRequest" and (message.startswith("[") or remedy):
        return InvalidRequest(message, remedy)
    return TransientError(message, remedy)


class _Pieces(io.RawIOBase):
    """Pieces of bytes as a file that is read."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        while not self._left:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._left = piece
        taken = self._left[: len(into)]
        into[: len(taken)] = taken
        self._left = self._left[len(taken) :]
        return len(taken)
