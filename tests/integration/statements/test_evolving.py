"""Running statements over topics whose schemas change: their columns stay as they were planned."""

import json
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
from pyspark.sql import DataFrame

from headgate.datagen import GeneratorSpec, produce
from headgate.decode.json_plain import parse_columns
from headgate.errors import StatementFailed
from headgate.statements.query import StatementQuery
from tests.integration.statements.bench import EVENT_SCHEMA, Bench, event, framed
from tests.integration.statements.events import Watched
from tests.integration.statements.plans import Plan, Table, copy_of, projection
from tests.integration.statements.test_change_events import Shop
from tests.support.services import Services

FAR = 2**31


def changed(field: str, /, **more: Any) -> dict[str, Any]:
    """Events whose field of this name is another."""
    schema: dict[str, Any] = json.loads(json.dumps(EVENT_SCHEMA))
    schema["fields"] = [one | more if one["name"] == field else one for one in schema["fields"]]
    return schema


def wide_amount() -> dict[str, Any]:
    return changed("amount", type=["null", "long"])


def learned(bench: Bench, query: StatementQuery, rows: int) -> None:
    """The query ends for a schema that it has learned; started again it has read so many rows."""
    failure = bench.until_failed(query)
    assert failure is None, failure
    query.start()
    bench.until_read(query, rows)


def test_a_wider_type_is_cast_and_a_value_that_does_not_fit_fails_with_its_place(bench: Bench) -> None:
    source = bench.events()
    plan = projection(source)
    output, running = bench.output(plan), bench.running()
    bench.send(source.name, [event(1, amount=3)])
    query = bench.query(plan, output, running)
    query.start()
    bench.until_read(query, 1)
    bench.send(source.name, [event(2, amount=7), event(3, amount=None)], schema=wide_amount())
    learned(bench, query, 3)
    bench.send(source.name, [event(4, amount=5), event(5, amount=FAR)], 1, schema=wide_amount())
    failure = bench.until_failed(query)
    assert isinstance(failure, StatementFailed)
    assert f"'{source.name}' at partition 1, offset 1" in str(failure)
    assert "column 'amount', which is INT" in str(failure)
    assert "Make the statement again" in str(failure)
    assert "sql.tables.initial-offset-from" in str(failure)
    assert str(FAR) not in str(failure), "who sees a failure may not see the column"
    cents = {value["id"]: value["cents"] for value in bench.values(output.topic)}
    assert (cents[1], cents[2]) == (300, 700)
    assert 5 not in cents
    skipping = bench.query(plan, output, replace(running, skip_bad=True))
    skipping.start()
    bench.until(skipping, "the record to be left out", lambda: skipping.totals.bad_rows)
    skipping.stop()
    assert sorted(value["id"] for value in bench.values(output.topic)) == [1, 2, 4]
    assert skipping.totals.bad_rows == 1


NARROW = "id bigint, price float, total decimal(9,2), lines array<struct<n: int>>, marks map<string, int>"


def numbers(source: Table) -> Plan:
    columns = parse_columns("id bigint, price float, total decimal(9,2), n int, a int")

    def make(rows: DataFrame) -> DataFrame:
        return rows.selectExpr(
            "id", "price", "total", "try_element_at(lines, 2).n AS n", "try_element_at(marks, 'a') AS a"
        )

    return Plan(columns, [source], make)


def numbers_schema(whole: str, real: str, digits: int) -> dict[str, Any]:
    line = {"type": "record", "name": "Line", "fields": [{"name": "n", "type": whole}]}
    total = {"type": "bytes", "logicalType": "decimal", "precision": digits, "scale": 2}
    types = {
        "id": "long",
        "price": real,
        "total": total,
        "lines": {"type": "array", "items": line},
        "marks": {"type": "map", "values": whole},
    }
    fields = [{"name": name, "type": kind} for name, kind in types.items()]
    return {"type": "record", "name": "Numbers", "fields": fields}


def row_of_numbers(number: int, **more: Any) -> dict[str, Any]:
    return {
        "id": number,
        "price": 0.5,
        "total": Decimal("1.25"),
        "lines": [{"n": 1}, {"n": 2}],
        "marks": {"a": 3},
        **more,
    }


def test_numbers_are_cast_at_every_depth_and_each_that_does_not_fit_is_left_out_alone(bench: Bench) -> None:
    topic = bench.topic("numbers", 1)
    bench.register(topic, numbers_schema("int", "float", 9))
    wide = numbers_schema("long", "double", 12)
    bench.send(topic, [row_of_numbers(0)], schema=numbers_schema("int", "float", 9))
    good = [
        row_of_numbers(1, price=float("nan")),
        row_of_numbers(2, price=float("inf"), total=Decimal("-9999999.99")),
        row_of_numbers(3, lines=[{"n": 0}, {"n": -FAR}], marks={"a": FAR - 1}),
        row_of_numbers(4, lines=[], marks={}),
    ]
    bad = [
        row_of_numbers(10, price=0.1),
        row_of_numbers(11, price=1e300),
        row_of_numbers(12, total=Decimal("10000000.00")),
        row_of_numbers(13, lines=[{"n": 1}, {"n": 2}, {"n": FAR}]),
        row_of_numbers(14, marks={"a": 1, "b": -FAR - 1}),
    ]
    bench.send(topic, [*good, *bad], schema=wide)
    plan = numbers(Table(topic, parse_columns(NARROW)))
    output = bench.output(plan)
    query = bench.query(plan, output, bench.running(skip_bad=True))
    query.start()
    bench.until_read(query, 10)
    query.stop()
    rows = {value["id"]: value for value in bench.values(output.topic)}
    assert sorted(rows) == [0, 1, 2, 3, 4]
    assert query.totals.bad_rows == len(bad)
    assert rows[0] == rows[0] | {"price": 0.5, "total": Decimal("1.25"), "n": 2, "a": 3}
    assert rows[1]["price"] != rows[1]["price"]
    assert (rows[2]["price"], rows[2]["total"]) == (float("inf"), Decimal("-9999999.99"))
    assert (rows[3]["n"], rows[3]["a"]) == (-FAR, FAR - 1)
    assert (rows[4]["n"], rows[4]["a"]) == (None, None)


def test_a_renamed_field_is_read_by_its_alias_and_one_that_is_gone_is_null(bench: Bench) -> None:
    source = bench.events(partitions=1)
    plan = projection(source)
    output = bench.output(plan)
    bench.send(source.name, [event(1, "ann")])
    query = bench.query(plan, output)
    query.start()
    bench.until_read(query, 1)
    renamed = changed("who", name="person", aliases=["who"])
    bench.send(source.name, [{**event(2), "person": "bob"}], schema=renamed)
    learned(bench, query, 2)
    # By way of a name between.
    again = changed("who", name="somebody", aliases=["person"])
    bench.send(source.name, [{**event(3), "somebody": "cat"}], schema=again)
    learned(bench, query, 3)
    gone = changed("who", name="nobody", default="")
    bench.send(source.name, [{**event(4), "nobody": "dan"}], schema=gone)
    learned(bench, query, 4)
    query.stop()
    found = sorted((value["id"], value["who"]) for value in bench.values(output.topic))
    assert found == [(1, "ann"), (2, "bob"), (3, "cat"), (4, None)]


def test_a_statement_that_was_made_after_a_rename_reads_the_records_before_it(bench: Bench) -> None:
    source = bench.events(partitions=1)
    bench.send(source.name, [event(1, "ann")])
    renamed = changed("who", name="person", aliases=["who"])
    bench.send(source.name, [{**event(2), "person": "bob"}], schema=renamed)
    columns = parse_columns("id bigint, person string")
    plan = copy_of(Table(source.name, columns))
    output = bench.output(plan)
    query = bench.query(plan, output)
    query.start()
    bench.until_read(query, 2)
    query.stop()
    found = sorted((value["id"], value["person"]) for value in bench.values(output.topic))
    assert found == [(1, "ann"), (2, "bob")]


def test_a_type_that_is_no_wider_one_fails_with_the_place_of_its_first_record(bench: Bench) -> None:
    source = bench.events()
    plan = projection(source)
    query = bench.query(plan, bench.output(plan))
    bench.send(source.name, [event(1)])
    query.start()
    bench.until_read(query, 1)
    bench.send(source.name, [event(2, amount=3)], 1, schema=changed("amount", type=["null", "double"]))
    failure = bench.until_failed(query)
    assert isinstance(failure, StatementFailed)
    assert f"'{source.name}' at partition 1, offset 0" in str(failure)
    assert "'amount' is double" in str(failure)
    assert "Make the statement again" in str(failure)


def key_schema(kind: str) -> dict[str, Any]:
    return {"type": "record", "name": "Key", "fields": [{"name": "id", "type": kind}]}


def row_schema(kind: str) -> dict[str, Any]:
    fields = [{"name": "id", "type": kind}, {"name": "name", "type": "string"}]
    return {"type": "record", "name": "Row", "fields": fields}


def test_a_wider_key_is_the_same_row_and_one_that_does_not_fit_fails(bench: Bench) -> None:
    topic = bench.topic("keyed", 1, {"cleanup.policy": "compact"})
    columns = parse_columns("id int, name string")

    def send(kind: str, rows: Sequence[tuple[int, str | None]]) -> None:
        key, row = key_schema(kind), row_schema(kind)
        key_id, row_id = bench.register(topic, key, "key"), bench.register(topic, row)
        for number, name in rows:
            value = {"id": number, "name": name}
            data = None if name is None else framed(row_id, fastavro.parse_schema(row), value)
            bench.send_raw(topic, data, 0, framed(key_id, fastavro.parse_schema(key), {"id": number}))
        bench.flush()

    def make(rows: DataFrame) -> DataFrame:
        return rows.select("id", "name", "`$op`", "`$partition`", "`$offset`")

    plan = Plan(columns, [Table(topic, columns, ("id",), "upsert")], make, key=("id",), changelog="upsert")
    output = bench.output(plan)
    query = bench.query(plan, output)
    send("int", [(1, "one"), (2, "two")])
    query.start()
    bench.until_read(query, 2)
    send("long", [(1, "uno"), (2, None)])
    learned(bench, query, 4)
    last = {bench.decode(key)["id"]: value and value["name"] for key, value in bench.records(output.topic)}
    assert last == {1: "uno", 2: None}
    # A tombstone has nothing but its key.
    send("long", [(FAR, None)])
    failure = bench.until_failed(query)
    assert isinstance(failure, StatementFailed)
    assert "partition 0, offset 4" in str(failure)
    assert "column 'id', which is INT" in str(failure)


def test_change_events_of_a_wider_column_are_the_rows_that_they_were(bench: Bench) -> None:
    bikes = Watched(bench, "bikes", {"id": "long", "gears": "int"}, ("id",))
    columns = parse_columns("id bigint, gears int")

    def make(rows: DataFrame) -> DataFrame:
        return rows.select("id", "gears", "`$op`", "`$partition`", "`$offset`")

    table = Table(bikes.topic, columns, ("id",), "upsert")
    plan = Plan(columns, [table], make, key=("id",), changelog="upsert")
    output = bench.output(plan)
    query = bench.query(plan, output)
    bikes.send("c", {"id": 1, "gears": 7})
    bench.flush()
    query.start()
    bench.until_read(query, 1)
    bikes.change({"id": "long", "gears": "long"})
    bikes.send("u", {"id": 1, "gears": 8}, {"id": 1, "gears": 7})
    bench.flush()
    learned(bench, query, 2)
    # What was there before is not looked at.
    bikes.send("u", {"id": 1, "gears": 9}, {"id": 1, "gears": FAR})
    bench.flush()
    bench.until_read(query, 3)
    bikes.send("u", {"id": 1, "gears": FAR}, {"id": 1, "gears": 9})
    bench.flush()
    failure = bench.until_failed(query)
    assert isinstance(failure, StatementFailed)
    assert "partition 0, offset 3" in str(failure)
    assert "column 'gears', which is INT" in str(failure)
    assert [value["gears"] for value in bench.values(output.topic)] == [7, 8, 9]


def test_a_generator_that_evolves_does_not_end_a_running_statement(
    bench: Bench, services: Services, tmp_path: Path
) -> None:
    shop, prefix = Shop(bench, tmp_path), f"evolving.{bench.name}."
    kafka, registry = services.runtime.kafka, services.runtime.registry
    plain = GeneratorSpec("sales", seed=4, prefix=prefix)
    evolving = replace(plain, evolve_after=60)
    later = [one for one in evolving.made().records(120) if one.topic == "sales"]
    assert {one.version for one in later} == {0, 1}
    first = [one for one in plain.made().records(20) if one.topic == "sales"]
    produce(plain.made(), kafka, registry, limit=20, prefix=prefix)
    shop.run(
        "SET 'client.statement-name' = 'sold-@'; CREATE TABLE `sold.@` AS SELECT event_id, "
        f"s.`order`.quantity AS quantity FROM `{prefix}sales` AS s"
    )
    with shop.engine():
        shop.until("sold", lambda found: (found.detail.get("rows_out") or 0) >= len(first))
        produce(evolving.made(), kafka, registry, limit=120, prefix=prefix)
        shop.until("sold", lambda found: found.detail["rows_out"] >= len(first) + len(later))
    expected = [(one.value["event_id"], (one.value["order"] or {}).get("quantity")) for one in first + later]
    rows = [(row["event_id"], row["quantity"]) for row in bench.values(f"sold.{bench.name}")]
    assert sorted(rows, key=str) == sorted(expected, key=str)
    shop.store.close()
