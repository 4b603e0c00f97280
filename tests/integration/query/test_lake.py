"""Queries of the lake in one driver: SQL and no code, with the rights of who asks."""

from dataclasses import replace

import httpx
import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headgate.access import LOCAL, Grant
from headgate.adhoc.arrow import ArrowResults
from headgate.adhoc.lake import run_lake
from headgate.errors import InvalidRequest
from headgate.lake_functions import allowed_functions, known_functions, removed_functions
from headgate.query.warm import run_first
from headgate.statements.asking import Asked
from tests.integration.query.conftest import Lake
from tests.integration.query.spellings import REFUSED, TAKEN


def test_every_function_of_this_spark_is_allowed_or_removed(spark: SparkSession) -> None:
    allowed, removed = allowed_functions(), set(removed_functions())
    assert not allowed & removed
    assert known_functions(spark) == allowed | removed, "say in lake_functions.toml what is to become of it"


@pytest.mark.parametrize("sql", REFUSED)
def test_what_is_no_query_is_refused(lake: Lake, sql: str) -> None:
    with pytest.raises((InvalidRequest, PySparkException, Py4JJavaError)) as refusal:
        lake.ask(sql)
    assert REFUSED[sql] in str(refusal.value)
    assert "root:" not in str(refusal.value)


def test_queries_of_every_kind_are_taken(lake: Lake) -> None:
    assert [row.n for row in lake.ask("SELECT n FROM seen ORDER BY n")] == [1, 2]
    for sql in TAKEN:
        assert lake.ask(sql), sql


def test_a_view_of_the_lake_runs_no_script(lake: Lake, spark: SparkSession) -> None:
    spark.sql("CREATE VIEW lake.doors.scripted AS SELECT TRANSFORM(n) USING 'id' AS (b) FROM lake.doors.seen")
    try:
        with pytest.raises(InvalidRequest, match="TRANSFORM"):
            lake.ask("SELECT * FROM scripted")
    finally:
        spark.sql("DROP VIEW lake.doors.scripted")


def test_a_reader_sees_its_tables_alone(lake: Lake) -> None:
    def listed(caller: object) -> set[str]:
        return {row.tableName for row in lake.ask("SHOW TABLES", caller)}  # type: ignore[arg-type]

    assert listed(LOCAL) == {"seen", "hidden"}
    assert listed(lake.reader) == {"seen"}
    assert [row.n for row in lake.ask("SELECT n FROM seen ORDER BY n", lake.reader)] == [1, 2]
    assert len(lake.ask("SELECT * FROM doors.seen.snapshots", lake.reader)) == 1
    for sql in (
        "SELECT * FROM hidden",
        "SELECT * FROM lake.doors.hidden",
        "SELECT * FROM doors.hidden.snapshots",
        "SELECT * FROM doors.hidden.files",
        "WITH h AS (SELECT * FROM hidden) SELECT * FROM seen, h",
        "DESCRIBE hidden",
        "SHOW CREATE TABLE hidden",
    ):
        with pytest.raises(PySparkException, match="TABLE_OR_VIEW_NOT_FOUND"):
            lake.ask(sql, lake.reader)
    assert {row.namespace for row in lake.ask("SHOW NAMESPACES", lake.reader)} == {"doors"}


def test_the_token_of_a_query_reads_the_catalog_and_opens_nothing_else(lake: Lake) -> None:
    for caller in (LOCAL, lake.reader):
        runtime, headers = lake.services.runtime, {"Authorization": f"Bearer {lake.token(caller)}"}
        with httpx.Client(trust_env=False, headers=headers) as http:
            tables = f"{runtime.iceberg}/v1/namespaces/doors/tables"
            assert http.get(f"{tables}/seen").status_code == 200
            assert http.delete(f"{tables}/seen").status_code == 403
            assert http.post(f"{tables}/metrics", json={}).status_code == 403, (
                "a commit to a table of that name"
            )
            assert http.post(f"{runtime.iceberg}/v1/namespaces", json={"namespace": ["x"]}).status_code == 403
            assert http.get(f"{runtime.api}/status").status_code == 403
            assert http.get(f"{runtime.registry}/subjects").status_code == 403
            exchanged = {
                "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
                "subject_token": lake.token(caller),
                "subject_token_type": "urn:ietf:params:oauth:token-type:access_token",
            }
            assert http.post(f"{runtime.iceberg}/v1/oauth/tokens", data=exchanged).status_code in (400, 401)


def test_a_token_is_shown_by_nothing(lake: Lake) -> None:
    token = lake.token(lake.reader)
    with lake.sessions.session("UTC", lake.catalog(lake.reader)) as session:
        shown = session.sql("SET -v").collect() + session.sql("SET").collect()
        assert not [row for row in shown if token in str(row)]
    for sql in (
        "SELECT '${spark.sql.catalog.lake.token}' AS a",
        "EXPLAIN EXTENDED SELECT * FROM seen",
        "DESCRIBE EXTENDED seen",
        "SHOW CREATE TABLE seen",
        "SHOW TBLPROPERTIES seen",
    ):
        assert token not in str(lake.ask(sql, lake.reader))


def test_current_user_is_who_asks(lake: Lake) -> None:
    assert [tuple(row) for row in lake.ask("SELECT current_user(), user", lake.reader)] == [
        ("doors.reader", "doors.reader")
    ]


def test_a_session_is_kept_for_its_token_and_no_other(lake: Lake) -> None:
    reader, local = lake.catalog(lake.reader), lake.catalog(LOCAL)
    with lake.sessions.session("UTC", reader) as first, lake.sessions.session("UTC", reader) as second:
        assert first is second
    with lake.sessions.session("UTC", local) as other, lake.sessions.session("Asia/Tokyo", reader) as moved:
        assert len({id(session) for session in (first, other, moved)}) == 3


def test_a_revoked_credential_reads_no_more(lake: Lake) -> None:
    made, _ = lake.credentials.create("doors.passing", [Grant.parse("reader:doors:seen")])
    assert lake.ask("SELECT n FROM seen", made.principal)
    lake.credentials.revoke("doors.passing")
    with pytest.raises(Exception, match="revoked"):
        lake.ask("SELECT n FROM seen", made.principal)


def test_rows_come_as_a_stream_of_arrow(lake: Lake) -> None:
    asked = Asked("lake", "SELECT id AS a, concat('x', id) AS a FROM range(100000) ORDER BY id")
    results = ArrowResults()
    figures = run_lake(lake.sessions, replace(asked, form="arrow"), lake.catalog(LOCAL), with_room(results))
    results.end("Completed", **figures)
    stream = pa.ipc.open_stream(b"".join(piece for piece in results.pieces() if piece))
    assert stream.schema.names == ["a", "a"]
    rows, batches, metadata = 0, 0, None
    while metadata is None:
        batch, metadata = stream.read_next_batch_with_custom_metadata()
        rows, batches = rows + batch.num_rows, batches + 1
    assert (rows, results.rows) == (100_000, 100_000)
    assert batches > 5, "no batch is all of it"
    assert b'"state": "Completed"' in metadata[b"headgate"]


def with_room(results: ArrowResults) -> ArrowResults:
    """With room for all pieces: here nobody reads meanwhile."""
    results._pieces.maxsize = 0
    return results


def test_a_driver_that_starts_early_runs_a_first_query(spark: SparkSession) -> None:
    assert run_first(spark) == 3
