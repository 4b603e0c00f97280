"""What records may look like: new schemas, bad bytes, headers, deletes, NULLs where none may be."""

import json
from dataclasses import replace
from typing import Any

import fastavro
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from headgate.errors import IncompatibleSchema, InvalidRequest, StatementFailed
from headgate.registry.schemas import SchemaType
from headgate.statements.runnable import Output
from headgate.statements.sink import same_place
from tests.integration.statements.bench import EVENT_SCHEMA, Bench, event, framed
from tests.integration.statements.plans import Plan, Table, keep_last, projection


def widened() -> dict[str, Any]:
    """Events with one field more."""
    found: dict[str, Any] = json.loads(json.dumps(EVENT_SCHEMA))
    found["fields"].append({"name": "note", "type": ["null", "string"], "default": None})
    return found


def test_a_newer_schema_is_learned_on_the_way(bench: Bench) -> None:
    source = bench.events()
    plan = projection(source)
    output, running = bench.output(plan), bench.running()
    bench.send(source.name, [event(1)])
    query = bench.query(plan, output, running)
    query.start()
    bench.until_read(query, 1)
    bench.send(source.name, [event(2) | {"note": "new"}], schema=widened())
    assert bench.until_failed(query) is None, "something was learned"
    query.start()
    bench.until_read(query, 2)
    query.stop()
    assert sorted(value["id"] for value in bench.values(output.topic)) == [1, 2]


def test_headers_are_learned_of_too(bench: Bench) -> None:
    source = bench.events()
    plan = projection(source)
    output = bench.output(plan)
    schema_id = bench.register(source.name, EVENT_SCHEMA)
    value = framed(schema_id, fastavro.parse_schema(EVENT_SCHEMA), event(1))
    bench.send_raw(source.name, value, headers=[("trace", b"x"), ("trace", b"y")])
    bench.flush()
    query = bench.query(plan, output)
    query.start()
    assert bench.until_failed(query) is None
    query.start()
    bench.until_read(query, 1)
    query.stop()
    assert [found["id"] for found in bench.values(output.topic)] == [1]


def test_a_bad_record_fails_the_statement_with_its_place(bench: Bench) -> None:
    source = bench.events()
    plan = projection(source)
    output, running = bench.output(plan), bench.running()
    bench.send(source.name, [event(1)], 1)
    mark = b"\x00" + bench.register(source.name, EVENT_SCHEMA).to_bytes(4, "big")
    bench.send_raw(source.name, mark + b"rubbish", 1)
    bench.flush()
    bench.send(source.name, [event(2)], 1)
    query = bench.query(plan, output, running)
    query.start()
    failure = bench.until_failed(query)
    assert isinstance(failure, StatementFailed)
    assert f"'{source.name}' at partition 1, offset 1" in str(failure)
    assert bench.values(output.topic) == [], "nothing of its batch is there"
    # By policy it is left out, and counted.
    skipping = bench.query(plan, output, replace(running, skip_bad=True))
    skipping.start()
    bench.until_read(skipping, 3)
    # What names a schema that is nowhere is bad as well; one that is new is not.
    bench.send_raw(source.name, b"\x00\x7f\x00\x00\x01nobody knows")
    bench.flush()
    assert bench.until_failed(skipping) is None
    skipping.start()
    bench.until_read(skipping, 4)
    bench.send(source.name, [event(3) | {"note": "new"}], schema=widened())
    assert bench.until_failed(skipping) is None
    skipping.start()
    bench.until_read(skipping, 5)
    skipping.stop()
    assert sorted(value["id"] for value in bench.values(output.topic)) == [1, 2, 3]
    assert skipping.totals.bad_rows == 2


def test_a_null_where_none_may_be_fails_the_statement(bench: Bench) -> None:
    source = bench.events()
    plan = projection(source)
    strict = t.StructType([replace_nullable(field, field.name != "cents") for field in plan.columns.fields])
    output = replace(bench.output(plan), columns=strict)

    def make(events: DataFrame) -> DataFrame:
        return events.selectExpr("id", "who", "amount AS cents")

    bench.send(source.name, [event(1, amount=None)])
    query = bench.query(replace(plan, make=make), output)
    query.start()
    failure = bench.until_failed(query)
    assert isinstance(failure, StatementFailed)
    assert "NULL in column 'cents'" in str(failure)


def replace_nullable(field: t.StructField, nullable: bool) -> t.StructField:
    return t.StructField(field.name, field.dataType, nullable)


KEY_SCHEMA = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "long"}]}
ROW_SCHEMA = {
    "type": "record",
    "name": "Value",
    "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"], "default": None}],
}
ROWS = t.StructType([t.StructField("id", t.LongType()), t.StructField("name", t.StringType())])


def copied(source: Table) -> Plan:
    """An upsert topic as it is."""

    def make(rows: DataFrame) -> DataFrame:
        return rows.select("id", "name", "`$op`", "`$partition`", "`$offset`")

    return Plan(ROWS, [source], make, key=("id",), changelog="upsert")


def last_of(bench: Bench, topic: str) -> dict[int, Any]:
    found: dict[int, Any] = {}
    for key, value in bench.records(topic):
        found[bench.decode(key)["id"]] = None if value is None else value["name"]
    return found


def test_tombstones_of_a_compacted_topic_are_deletes(bench: Bench) -> None:
    topic = bench.topic("rows", 2, {"cleanup.policy": "compact"})
    key_id, value_id = bench.register(topic, KEY_SCHEMA, "key"), bench.register(topic, ROW_SCHEMA)
    keys, rows = fastavro.parse_schema(KEY_SCHEMA), fastavro.parse_schema(ROW_SCHEMA)
    for number, name in ((1, "one"), (2, "two"), (1, "uno"), (2, None)):
        value = None if name is None else framed(value_id, rows, {"id": number, "name": name})
        bench.send_raw(topic, value, 0, framed(key_id, keys, {"id": number}))
    bench.flush()
    plan = copied(Table(topic, ROWS, ("id",), "upsert"))
    output = bench.output(plan)
    query = bench.query(plan, output)
    query.start()
    bench.until_read(query, 4)
    query.stop()
    assert last_of(bench, output.topic) == {1: "uno", 2: None}
    assert len(bench.records(output.topic)) == 4, "in their order"


def test_change_events_are_rows_and_deletes(bench: Bench) -> None:
    topic = bench.topic("changes", 1)
    row = {"type": "record", "name": "Row", "fields": ROW_SCHEMA["fields"]}
    envelope = {
        "type": "record",
        "name": "Envelope",
        "namespace": "shop.rows",
        "fields": [
            {"name": "before", "type": ["null", row], "default": None},
            {"name": "after", "type": ["null", "Row"], "default": None},
            {
                "name": "source",
                "type": {
                    "type": "record",
                    "name": "Source",
                    "fields": [
                        {"name": "connector", "type": "string"},
                        {"name": "lsn", "type": ["null", "long"]},
                    ],
                },
            },
            {"name": "op", "type": "string"},
        ],
    }
    key_id, value_id = bench.register(topic, KEY_SCHEMA, "key"), bench.register(topic, envelope)
    keys, events = fastavro.parse_schema(KEY_SCHEMA), fastavro.parse_schema(envelope)

    def change(op: str, number: int, name: str | None) -> None:
        image = {"id": number, "name": name}
        value = {
            "before": image if op == "d" else None,
            "after": None if op == "d" else image,
            "source": {"connector": "postgresql", "lsn": 1},
            "op": op,
        }
        bench.send_raw(topic, framed(value_id, events, value), 0, framed(key_id, keys, {"id": number}))

    change("c", 1, "one")
    change("c", 2, "two")
    change("u", 1, "uno")
    change("d", 2, "two")
    bench.send_raw(topic, None, 0, framed(key_id, keys, {"id": 2}))
    bench.flush()
    plan = copied(Table(topic, ROWS, ("id",), "upsert"))
    output = bench.output(plan)
    query = bench.query(plan, output)
    query.start()
    bench.until_read(query, 4)
    query.stop()
    assert last_of(bench, output.topic) == {1: "uno", 2: None}


def test_rows_that_were_unwrapped_say_that_they_are_deleted(bench: Bench) -> None:
    topic = bench.topic("unwrapped", 1)
    schema = {
        **ROW_SCHEMA,
        "fields": [*ROW_SCHEMA["fields"], {"name": "__deleted", "type": ["null", "string"]}],
    }
    value_id, parsed = bench.register(topic, schema), fastavro.parse_schema(schema)
    for number, name, deleted in ((1, "one", "false"), (2, "two", "false"), (2, None, "true")):
        row = {"id": number, "name": name, "__deleted": deleted}
        bench.send_raw(topic, framed(value_id, parsed, row))
    bench.flush()
    columns = t.StructType([*ROWS.fields, t.StructField("__deleted", t.StringType())])
    plan = copied(Table(topic, columns, ("id",), "upsert"))
    output = bench.output(plan)
    query = bench.query(plan, output)
    query.start()
    bench.until_read(query, 3)
    query.stop()
    assert last_of(bench, output.topic) == {1: "one", 2: None}


def test_json_is_written_by_a_schema(bench: Bench) -> None:
    source = bench.events()
    plan = projection(source)
    output = bench.output(plan, format="json")
    bench.send(source.name, [event(7, "zoë", 3)])
    query = bench.query(plan, output)
    query.start()
    bench.until_read(query, 1)
    query.stop()
    assert bench.values(output.topic) == [{"id": 7, "who": "zoë", "cents": 300}]
    schema = bench.schemas.latest(f"{output.topic}-value")
    assert schema is not None
    assert schema.type is SchemaType.JSON


def test_what_does_not_fit_its_topic_is_refused(bench: Bench) -> None:
    source = bench.events()
    updating, plain = keep_last(source), projection(source)
    with pytest.raises(InvalidRequest, match="PRIMARY KEY"):
        bench.query(updating, Output("t", updating.columns))
    with pytest.raises(InvalidRequest, match="no column who, cents"):
        bench.query(plain, Output("t", t.StructType(plain.columns.fields[:1])))
    texts = t.StructType([t.StructField(field.name, t.StringType()) for field in plain.columns.fields])
    with pytest.raises(InvalidRequest, match="'id' of 't' is string"):
        bench.query(plain, Output("t", texts))
    # A schema that is there and does not take the next version.
    output = bench.output(plain)
    other = {"type": "record", "name": "Other", "fields": [{"name": "cents", "type": "string"}]}
    bench.register(output.topic, other)
    with pytest.raises(IncompatibleSchema, match=output.topic):
        bench.query(plain, output).start()


@pytest.mark.parametrize(("before", "now"), [(4, 4), (2, 5), (1, 3), (5, 2), (3, 4)])
def test_rows_go_where_their_records_were_and_no_partition_is_left_empty(
    spark: SparkSession, before: int, now: int
) -> None:
    rows = spark.range(400).selectExpr(f"int(id % {before}) AS `$partition`", "CAST(id AS string) AS value")
    found = rows.select("$partition", same_place(before, now).alias("place")).distinct().collect()
    assert {row["place"] for row in found} == set(range(now))
    for row in found:
        assert row["$partition"] % min(before, now) == row["place"] % min(before, now)
