"""Clients that are not ours: Iceberg's Java client, PyIceberg and DuckDB, on the same catalog."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import duckdb
import duckdb_extensions
import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import (
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.types import StringType

from headgate.jvm import Jvm
from tests.integration.catalog.javaclient import JavaClient
from tests.integration.catalog.serving import Service

ROWS = [(1, "one"), (2, "two"), (3, "drei")]


@pytest.fixture
def java(jvm: Jvm, service: Service) -> Iterator[JavaClient]:
    client = JavaClient(jvm, service.uri)
    yield client
    client.close()


@pytest.fixture
def pyiceberg(service: Service) -> Iterator[RestCatalog]:
    catalog = RestCatalog("test", uri=service.uri)
    yield catalog
    catalog.close()


@pytest.fixture
def duck(service: Service) -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect()
    for extension in ("avro", "httpfs", "iceberg"):
        duckdb_extensions.import_extension(extension)
        connection.load_extension(extension)
    connection.execute(
        f"ATTACH 'any' AS lake (TYPE iceberg, ENDPOINT '{service.uri}', AUTHORIZATION_TYPE 'none')"
    )
    yield connection
    connection.close()


def arrow(rows: list[tuple[int, str]]) -> pa.Table:
    return pa.table({"id": [row[0] for row in rows], "name": [row[1] for row in rows]})


def test_a_format_3_table_from_java_is_read_by_java_and_pyiceberg(
    java: JavaClient, pyiceberg: RestCatalog
) -> None:
    table = java.create("db.v3", format_version="3")
    assert table.operations().current().formatVersion() == 3
    java.append(table, ROWS[:2]).commit()
    java.append(table, ROWS[2:]).commit()
    assert java.rows(java.load("db.v3")) == ROWS
    assert table.operations().current().nextRowId() == 3
    found = pyiceberg.load_table("db.v3").scan().to_arrow().sort_by("id")
    assert list(zip(*found.to_pydict().values(), strict=True)) == ROWS
    assert all(file.exists() for file in java.files(table))


def test_a_java_transaction_creates_and_fills_a_table_at_once(java: JavaClient) -> None:
    types = java.create("db.pattern").schema()
    builder = java.catalog.buildTable(java.identifier("db.ctas"), types).withProperty("format-version", "3")
    transaction = builder.createTransaction()
    java.append(transaction.table(), ROWS).commit()
    assert not java.catalog.tableExists(java.identifier("db.ctas"))
    transaction.commitTransaction()
    assert java.rows(java.load("db.ctas")) == ROWS


def test_a_replaced_table_keeps_its_history(java: JavaClient) -> None:
    table = java.create("db.replaced", format_version="3")
    java.append(table, ROWS).commit()
    builder = java.catalog.buildTable(java.identifier("db.replaced"), table.schema())
    transaction = builder.replaceTransaction()
    java.append(transaction.table(), ROWS[:1]).commit()
    transaction.commitTransaction()
    loaded = java.load("db.replaced")
    assert java.rows(loaded) == ROWS[:1]
    assert len(list(loaded.snapshots())) == 2
    assert loaded.uuid() == table.uuid()


def test_the_java_client_does_not_load_what_it_has(java: JavaClient, service: Service) -> None:
    java.append(java.create("db.tagged"), ROWS).commit()
    etag = service.http.get("/namespaces/db/tables/tagged").headers["etag"]
    again = service.http.get("/namespaces/db/tables/tagged", headers={"If-None-Match": etag})
    assert (again.status_code, again.content) == (304, b"")
    refs = service.http.get("/namespaces/db/tables/tagged?snapshots=refs", headers={"If-None-Match": etag})
    assert refs.status_code == 200
    java.append(java.load("db.tagged"), ROWS).commit()
    later = service.http.get("/namespaces/db/tables/tagged", headers={"If-None-Match": etag})
    assert later.status_code == 200
    assert len(service.get("/namespaces/db/tables/tagged?snapshots=refs")["metadata"]["snapshots"]) == 1
    assert len(later.json()["metadata"]["snapshots"]) == 2


def test_views_by_the_java_client(java: JavaClient) -> None:
    schema = java.create("db.viewed").schema()
    name = java.identifier("db.a_view")
    namespace = name.namespace()

    def query(sql: str) -> Any:
        builder = java.catalog.buildView(name).withSchema(schema).withDefaultNamespace(namespace)
        return builder.withQuery("spark", sql)

    query("select 1").create()
    assert java.catalog.loadView(name).sqlFor("spark").sql() == "select 1"
    query("select 2").replace()
    assert java.catalog.loadView(name).sqlFor("spark").sql() == "select 2"
    java.catalog.loadView(name).updateProperties().set("a", "b").commit()
    assert java.catalog.loadView(name).properties()["a"] == "b"
    with pytest.raises(Py4JJavaError, match="AlreadyExistsException"):
        query("select 3").create()
    with pytest.raises(Py4JJavaError, match="AlreadyExistsException"):
        java.create("db.a_view")
    other = java.identifier("db.other_view")
    java.catalog.renameView(name, other)
    assert [view.name() for view in java.catalog.listViews(namespace)] == ["other_view"]
    assert java.catalog.dropView(other)
    assert not java.catalog.viewExists(other)


def test_names_as_the_java_client_encodes_them(java: JavaClient) -> None:
    names = ["a b", "a+b", "a/b", "50%", "ü.x"]
    for name in names:
        java.append(java.create(f"db.{name}"), ROWS).commit()
        assert java.rows(java.load(f"db.{name}")) == ROWS
    listed = [found.name() for found in java.catalog.listTables(java.identifier("db.x").namespace())]
    assert set(names) <= set(listed)
    for name in names:
        assert java.catalog.dropTable(java.identifier(f"db.{name}"), True)
        assert not java.catalog.tableExists(java.identifier(f"db.{name}"))


def test_pyiceberg_writes_evolves_renames_and_drops(pyiceberg: RestCatalog, service: Service) -> None:
    table = pyiceberg.create_table("db.py", arrow(ROWS).schema)
    table.append(arrow(ROWS))
    with table.update_schema() as update:
        update.add_column("city", StringType())
    table.append(pa.table({"id": [4], "name": ["four"], "city": ["Ulm"]}))
    assert pyiceberg.load_table("db.py").scan().to_arrow().sort_by("id")["city"].to_pylist()[-1] == "Ulm"
    with pytest.raises(TableAlreadyExistsError):
        pyiceberg.create_table("db.py", arrow(ROWS).schema)
    pyiceberg.rename_table("db.py", "db.py2")
    with pytest.raises(NoSuchTableError):
        pyiceberg.load_table("db.py")
    assert pyiceberg.table_exists("db.py2")
    assert ("db", "py2") in pyiceberg.list_tables("db")
    folder = Path(urlparse(table.location()).path)
    pyiceberg.drop_table("db.py2")
    assert any(path.suffix == ".parquet" for path in folder.rglob("*"))
    with pytest.raises(NoSuchTableError):
        pyiceberg.drop_table("db.py2")


def test_a_dropped_table_can_be_registered_again(pyiceberg: RestCatalog) -> None:
    table = pyiceberg.create_table("db.left", arrow(ROWS).schema)
    table.append(arrow(ROWS))
    with pytest.raises(TableAlreadyExistsError):
        pyiceberg.register_table("db.left", table.metadata_location)
    with pytest.raises(TableAlreadyExistsError):
        pyiceberg.register_table("db.second_name", table.metadata_location)
    pyiceberg.drop_table("db.left")
    again = pyiceberg.register_table("db.back", table.metadata_location)
    again.append(arrow(ROWS))
    assert again.scan().to_arrow().num_rows == 6


def test_purging_removes_every_file(pyiceberg: RestCatalog) -> None:
    table = pyiceberg.create_table("db.purged", arrow(ROWS).schema)
    table.append(arrow(ROWS))
    table.append(arrow(ROWS))
    folder = Path(urlparse(table.location()).path)
    pyiceberg.purge_table("db.purged")
    assert [path for path in folder.rglob("*") if path.is_file()] == []


def test_namespaces_by_pyiceberg(pyiceberg: RestCatalog) -> None:
    pyiceberg.create_namespace(("outer", "inner"), {"owner": "me"})
    assert pyiceberg.load_namespace_properties(("outer", "inner"))["owner"] == "me"
    summary = pyiceberg.update_namespace_properties(("outer", "inner"), {"owner", "none"}, {"x": "y"})
    assert (summary.removed, summary.updated, summary.missing) == (["owner"], ["x"], ["none"])
    assert pyiceberg.list_namespaces("outer") == [("outer", "inner")]
    with pytest.raises(NamespaceAlreadyExistsError):
        pyiceberg.create_namespace(("outer", "inner"))
    pyiceberg.create_table(("outer", "inner", "t"), arrow(ROWS).schema)
    with pytest.raises(NamespaceNotEmptyError):
        pyiceberg.drop_namespace(("outer", "inner"))
    pyiceberg.purge_table(("outer", "inner", "t"))
    pyiceberg.drop_namespace(("outer", "inner"))
    with pytest.raises(NoSuchNamespaceError):
        pyiceberg.load_namespace_properties(("outer", "inner"))


def test_duckdb_reads_what_others_wrote(
    duck: duckdb.DuckDBPyConnection, pyiceberg: RestCatalog, java: JavaClient
) -> None:
    pyiceberg.create_table("db.seen", arrow(ROWS).schema).append(arrow(ROWS))
    java.append(java.create("db.seen3", format_version="3"), ROWS).commit()
    for table in ("seen", "seen3"):
        assert duck.execute(f"SELECT id, name FROM lake.db.{table} ORDER BY id").fetchall() == ROWS


def test_duckdb_writes_too(duck: duckdb.DuckDBPyConnection, pyiceberg: RestCatalog) -> None:
    duck.execute("CREATE TABLE lake.db.quack (id BIGINT, name VARCHAR)")
    duck.execute("INSERT INTO lake.db.quack VALUES (1, 'one'), (2, 'two')")
    assert pyiceberg.load_table("db.quack").scan().to_arrow().num_rows == 2
