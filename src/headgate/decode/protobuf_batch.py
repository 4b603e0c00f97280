"""Batches of Protobuf messages become Arrow columns. This is what runs in Spark's Python workers.

Columns are read by a fast decoder and written again by it: where that gives the very bytes, nothing was lost
on the way. What does not come out the same is looked at message by message, by Google's parser and by a
strict look at the bytes, and put into the plainest form of the same message, which the decoder is given then.
"""

from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from ptars import HandlerPool

from headgate.decode.protobuf_plan import plan, twin
from headgate.decode.protobuf_types import Findings
from headgate.decode.protobuf_wire import Flaw, check

PROBLEM, RECORD = "problem", "record"
_PANIC = "PanicException"


def decode(files: tuple[bytes, ...], message: str, body: pa.Array) -> pa.Array:
    """A struct of `problem` and `record` for each of `body`, one of the two NULL; NULL where `body` is."""
    return _decoder(files, message).decode(body)


@lru_cache(maxsize=64)
def _decoder(files: tuple[bytes, ...], message: str) -> "Decoder":
    return Decoder(files, message)


class Decoder:
    """Reads messages of one type. `files` are its schema and what that imports, what is needed first."""

    def __init__(self, files: tuple[bytes, ...], message: str) -> None:
        pool = DescriptorPool()
        for file in files:
            pool.AddSerializedFile(file)
        self._descriptor = pool.FindMessageTypeByName(message)
        self._plan = plan(self._descriptor)
        plain = twin(self._plan)
        self._message: Any = GetMessageClass(self._descriptor)
        self._plain: Any = GetMessageClass(plain)
        self._handler = HandlerPool([plain.file]).get_for_message(plain)

    def decode(self, body: pa.Array) -> pa.Array:
        data = body.cast(pa.binary())
        there = data.drop_null()
        made = self._read(there)
        if len(there) == len(data):
            return made
        places = np.cumsum(data.is_valid().to_numpy(zero_copy_only=False)) - 1
        return made.take(pa.array(places, mask=data.is_null().to_numpy(zero_copy_only=False)))

    def _read(self, data: pa.Array) -> pa.Array:
        problems: dict[int, str] = {}
        rows = np.arange(len(data))
        plain = self._decoded(data)
        if plain is None:
            rows = self._decodable(data, problems)
            plain = self._decoded(data.take(rows))
        records, unsure = self._columns(
            plain, data if len(rows) == len(data) else data.take(rows), rows, problems
        )
        if not problems and not unsure:
            return _answer(records, {})
        again: list[int] = []
        forms: list[bytes] = []
        for row in sorted(unsure):
            try:
                forms.append(self._plainest(data[row].as_py()))
                again.append(row)
            except Flaw as flaw:
                problems[row] = str(flaw)
        late = self._records(pa.array(forms, pa.binary()), again, problems)
        return _answer(_chosen(len(data), records, rows, late, again), problems)

    def _records(self, forms: pa.Array, rows: list[int], problems: dict[int, str]) -> pa.Array:
        """Of messages in their plainest form: nothing is unsure any more, or it is a problem."""
        records, lost = self._columns(self._decoded(forms), forms, np.array(rows, "int64"), problems)
        for row in lost:
            problems.setdefault(row, "cannot be written again as it was read")
        return records

    def _columns(
        self, plain: pa.RecordBatch, data: pa.Array, rows: Any, problems: dict[int, str]
    ) -> tuple[pa.Array, set[int]]:
        """The records, and the rows of those that need a closer look."""
        written = self._handler.record_batch_to_array(plain)
        findings = Findings()
        records = self._plan.columns(plain.to_struct_array(), rows, findings)
        differs = pc.not_equal(written.cast(pa.binary()), data).to_numpy(zero_copy_only=False)
        findings.doubt(rows, differs)
        for row, problem in findings.problems.items():
            if row not in findings.unclear:
                problems[row] = problem
        return records, findings.unclear

    def _plainest(self, data: bytes) -> bytes:
        """The same message, with fields in order, each once, and none that is not set."""
        check(data, self._descriptor)
        try:
            message = self._message.FromString(data)
        except DecodeError as error:
            raise Flaw(self._not_whole()) from error
        form = message.SerializePartialToString(deterministic=True)
        return bytes(self._plain.FromString(form).SerializePartialToString(deterministic=True))

    def _not_whole(self) -> str:
        return f"is no whole {self._descriptor.full_name} message"

    # -- the decoder fails for a whole batch: the messages that make it fail are found, and left out

    def _decodable(self, data: pa.Array, problems: dict[int, str]) -> Any:
        parses = np.array([self._parses(value) for value in data.to_pylist()], bool)
        for row in np.flatnonzero(~parses).tolist():
            problems[row] = self._not_whole()
        good: list[int] = []
        self._halve(data, np.flatnonzero(parses), good, problems)
        return np.array(good, "int64")

    def _halve(self, data: pa.Array, rows: Any, good: list[int], problems: dict[int, str]) -> None:
        if self._decoded(data.take(rows)) is not None:
            good.extend(rows.tolist())
        elif len(rows) == 1:
            row = int(rows[0])
            try:
                self._plainest(data[row].as_py())
                problems[row] = self._not_whole()
            except Flaw as flaw:
                problems[row] = str(flaw)
        else:
            half = len(rows) // 2
            self._halve(data, rows[:half], good, problems)
            self._halve(data, rows[half:], good, problems)

    def _decoded(self, data: pa.Array) -> pa.RecordBatch | None:
        try:
            return self._handler.array_to_record_batch(data)
        except BaseException as error:  # a panic of the decoder is no Exception
            if not isinstance(error, Exception) and type(error).__name__ != _PANIC:
                raise
            return None

    def _parses(self, data: bytes) -> bool:
        try:
            self._plain.FromString(data)
        except DecodeError:
            return False
        return True


def _chosen(length: int, records: pa.Array, fast: Any, late: pa.Array, again: list[int]) -> pa.Array:
    """By row, the later reading where there is one; NULL where there is none."""
    places = np.full(length, -1, "int64")
    places[fast] = np.arange(len(fast))
    places[np.array(again, "int64")] = len(records) + np.arange(len(again))
    both = pa.concat_arrays([records, late])
    return both.take(pa.array(places, mask=places < 0))


def _answer(records: pa.Array, problems: dict[int, str]) -> pa.Array:
    texts: list[str | None] = [None] * len(records)
    for row, problem in problems.items():
        texts[row] = problem
    said = pa.array(texts, pa.string())
    if problems:
        records = pc.if_else(said.is_null(), records, pa.scalar(None, records.type))
    return pa.StructArray.from_arrays([said, records], [PROBLEM, RECORD])
