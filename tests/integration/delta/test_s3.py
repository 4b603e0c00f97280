"""A log in S3: the store itself sees to it that a version is made once."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from moto.server import ThreadedMotoServer

from headgate.delta.files import S3Files, files_at
from headgate.delta.log import DeltaLog
from headgate.tables.mirror_source import held_columns
from tests.unit.delta.test_log import Log, added, shown


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    made = boto3.client(
        "s3",
        endpoint_url=f"http://127.0.0.1:{port}",
        region_name="us-east-1",
        aws_access_key_id="any",
        aws_secret_access_key="any",
    )
    made.create_bucket(Bucket="lake")
    try:
        yield made
    finally:
        made.close()
        server.stop()


def test_a_name_is_given_once(client: Any) -> None:
    files = files_at("s3://lake/once/", client)
    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda n: files.put_new("a/b", f"writer {n}".encode()), range(8)))
    assert sum(won) == 1
    assert files.read("a/b") == f"writer {won.index(True)}".encode()
    # A request that is sent again finds what it made itself.
    assert files.put_new("a/b", files.read("a/b") or b"")
    files.put("a/b", b"anew")
    assert files.read("a/b") == b"anew"


def test_listing_and_removing(client: Any) -> None:
    files = files_at("s3a://lake/some/table", client)
    for number in range(1005):
        files.put(f"log/{number:04}", b"x")
    files.put("log/deeper/1", b"x")
    assert files.names("log") == [f"{number:04}" for number in range(1005)]
    assert files.names("log", after="1002") == ["1003", "1004"]
    assert files.names("nothing") == []
    assert (files.exists("log/0007"), files.exists("log/7")) == (True, False)
    assert files.read("log/7") is None
    files.delete(f"log/{number:04}" for number in range(1005))
    assert files.names("log") == []


def test_a_whole_log(client: Any, tmp_path: Any) -> None:
    log = Log(tmp_path)
    log.log = DeltaLog(S3Files(client, "lake", "whole"), "t")
    for number in range(45):
        log.commit(number, added(f"f{number}"))
    again = DeltaLog(files_at("s3://lake/whole", client), "t")
    assert shown(again.load()) == shown(log.state)
    assert again.truncate(log.state, 30) == 30
    assert shown(again.load()) == shown(log.state)
    assert again.state_at(35).version == 35
    again.remove()
    assert again.load() is None


def test_footers_are_read_in_pieces(client: Any) -> None:
    table = pa.table({"a": pa.array(range(100_000))}).cast(
        pa.schema([pa.field("a", pa.int64(), metadata={"PARQUET:field_id": "7"})])
    )
    data = pa.BufferOutputStream()
    pq.write_table(table, data)
    files = files_at("s3://lake/files", client)
    files.put("one.parquet", data.getvalue().to_pybytes())
    assert held_columns(files, "one.parquet").names == {7: (None, "a")}
