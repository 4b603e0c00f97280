"""What of Debezium's records can be known without a record."""

import json
from typing import Any

import pytest
from pyspark.sql import types as t

from headgate.decode.avro import AvroReader
from headgate.decode.connect import is_envelope
from headgate.decode.debezium import ChangeReader, _uuid, envelope_columns, is_control
from headgate.decode.json_plain import ConnectJsonReader, JsonReader, parse_columns
from headgate.errors import UnsupportedSchema
from tests.support.debezium import Events, SourceTable
from tests.support.debezium_forms import Database, Form

ROW = parse_columns("id int, name string")


@pytest.mark.parametrize(
    ("name", "control"),
    [
        ("io.debezium.connector.common.Heartbeat", True),
        ("io.debezium.connector.common.TransactionMetadataValue", True),
        ("io.debezium.connector.mysql.SchemaChangeValue", True),
        ("io.debezium.connector.sqlserver.SchemaChangeValue", True),
        ("io.debezium.connector.mysql.Source", False),
        ("shop.public.Heartbeat", False),
        ("shop.io.debezium.connector.common.Heartbeat", False),
        ("io.debezium.connector.common.Heartbeats", False),
    ],
)
def test_debeziums_own_records_by_name(name: str, control: bool) -> None:
    assert is_control(ROW, name) is control
    assert is_control(ROW, name.swapcase()) is False


def test_debeziums_own_records_by_shape() -> None:
    """Only where there is no name, and only what no table looks like."""
    transaction = "status string, id string, event_count bigint, data_collections string, ts_ms bigint"
    changes = "source string, ts_ms bigint, `databaseName` string, `schemaName` string, ddl string,"
    changes += "`tableChanges` string"
    assert is_control(parse_columns(transaction), None)
    assert is_control(parse_columns(changes), None)
    assert not is_control(parse_columns(transaction), "shop.public.blocks.Value")
    assert not is_control(parse_columns("ts_ms bigint"), None)
    assert not is_control(ROW, None)


def test_columns_of_events_without_a_schema() -> None:
    found = envelope_columns(ROW)
    assert is_envelope(found)
    assert found["before"].dataType == found["after"].dataType == ROW
    reader = ChangeReader(JsonReader(found))
    assert reader.type == ROW
    assert reader.record_name is None


def test_only_change_events() -> None:
    with pytest.raises(UnsupportedSchema, match="no change events"):
        ChangeReader(JsonReader(ROW))


def test_names_are_those_of_the_row() -> None:
    schema = json.loads(json.dumps(Events(Database.POSTGRES, Form.AVRO).value_schema))
    fields = schema["fields"][0]["type"][1]["fields"]
    fields[1]["aliases"] = ["title"]
    schema["fields"][2]["type"]["fields"][0]["aliases"] = ["release"]
    reader = ChangeReader(AvroReader(json.dumps(schema)))
    assert reader.record_name == "shop.public.orders.Value"
    assert reader.former_names == {"name": ("title",)}
    assert reader.field_numbers == {}


@pytest.mark.parametrize("database", Database)
def test_the_forms_have_the_same_columns(database: Database) -> None:
    avro = ChangeReader(AvroReader(json.dumps(Events(database, Form.AVRO).value_schema)))
    connect = ChangeReader(ConnectJsonReader(Events(database, Form.CONNECT_JSON).value_schema or {}))
    assert avro.type == connect.type
    declared = parse_columns(Events(database, Form.JSON).declared)
    assert declared.names == avro.type.names
    assert isinstance(declared["due"].dataType, t.IntegerType)


@pytest.mark.parametrize("database", Database)
def test_a_simulated_table(database: Database) -> None:
    """The same seed gives the same messages; they lead to its state, and their places never fall per key."""
    tables = [SourceTable(database, Form.JSON, seed, toast=False) for seed in (1, 1, 2)]
    one, same, other = ([*table.run(200)] for table in tables)
    assert one == same != other == tables[2].messages
    state: dict[int, Any] = {}
    places: dict[int, Any] = {}
    for message in one:
        assert message.key is not None
        key = json.loads(message.key)["id"]
        if message.event is None:
            assert key not in state
            continue
        source = message.event["source"]
        place = source.get("lsn") or (int(source["file"].rpartition(".")[2]), source["pos"])
        assert places.get(key, place) <= place
        places[key] = place
        state[key] = message.event["after"]
        if message.event["op"] == "d":
            del state[key]
    assert state.keys() == tables[0].state.keys()
    rows = {row["id"]: row for row in tables[0].rows}
    assert all(state[key]["total"] == row["total"] for key, row in rows.items())
    assert {m.event["op"] for m in one if m.event is not None} == {"c", "u", "d"}
    assert len(tables[0].snapshot()) == len(rows)


def test_a_uuid_is_made_of_bytes_as_java_does() -> None:
    assert _uuid(b"hello") == "5d41402a-bc4b-3a76-b971-9d911017c592"
