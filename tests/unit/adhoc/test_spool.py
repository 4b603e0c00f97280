"""Parts of a large result as tasks write them: whole or not there, and not too far ahead of the reader."""

import pickle
import threading
from pathlib import Path

import pyarrow as pa
from pyspark import cloudpickle

from headgate.adhoc.spool import _messages
from headgate.adhoc.spool_task import part_name, wait_for_reader, write_batches, write_part
from tests.support.services import wait_for

SCHEMA = pa.schema([("c0", pa.int64())])


def batch(*values: int) -> pa.RecordBatch:
    return pa.record_batch([list(values)], schema=SCHEMA)


def test_batches_are_read_as_they_were_written(tmp_path: Path) -> None:
    file = tmp_path / part_name(0)
    write_batches(iter([batch(1, 2), batch(), batch(3)]), file, 1000)
    read = [pa.ipc.read_record_batch(message, SCHEMA) for message in _messages(file)]
    assert [one.column(0).to_pylist() for one in read] == [[1, 2], [], [3]]
    write_batches(iter([]), tmp_path / part_name(1), 1000)
    assert list(_messages(tmp_path / part_name(1))) == []


def test_a_task_waits_while_the_reader_has_parts_to_take(tmp_path: Path) -> None:
    first, second = tmp_path / part_name(0), tmp_path / part_name(1)
    write_batches(iter([batch(*range(1000))]), first, 1)
    thread = threading.Thread(target=write_batches, args=(iter([batch(*range(1000))]), second, 1))
    thread.start()
    wait_for("the second to be begun", lambda: (tmp_path / "00000001.part").exists())
    thread.join(1)
    assert thread.is_alive()
    assert not second.exists(), "a file has its name when it is whole"
    first.unlink()
    thread.join(10)
    assert second.exists()


def test_nobody_waits_for_parts_that_come_later(tmp_path: Path) -> None:
    """The reader wants the first, and would wait for it for as long."""
    (tmp_path / part_name(1)).write_bytes(b"x" * 1000)
    wait_for_reader(tmp_path / part_name(0), 1)


def test_a_task_can_be_sent_to_a_worker(tmp_path: Path) -> None:
    sent = cloudpickle.dumps(write_part(str(tmp_path), 1000))  # type: ignore[no-untyped-call]
    assert callable(pickle.loads(sent))
