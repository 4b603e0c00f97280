"""Tables that the tests of plans know."""

from pyspark.sql.types import (
    ArrayType,
    DataType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from headgate.sql.planner import Options, Plan, plan
from headgate.sql.script import parse_script
from headgate.sql.statements import CreateView, Select
from headgate.sql.tables import Catalog, TableInfo, Watermark

INT, BIGINT, DOUBLE, STRING = IntegerType(), LongType(), DoubleType(), StringType()
CLOCK, MOMENT = TimestampNTZType(), TimestampType()


def struct(*columns: tuple[str, DataType]) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns])


RIDES = TableInfo(
    "rides",
    struct(
        ("ride", INT),
        ("bike", STRING),
        ("fare", DecimalType(8, 2)),
        ("metres", BIGINT),
        ("speed", DOUBLE),
        ("began", MOMENT),
        ("noted", CLOCK),
        ("stops", ArrayType(STRING)),
        ("facts", MapType(STRING, INT)),
        ("rider", struct(("name", STRING), ("born", CLOCK))),
        ("note", STRING),
    ),
    watermark=Watermark("began", 5_000),
)
# The same without a watermark of its own.
BARE = TableInfo("bare", RIDES.columns)
BIKES = TableInfo(
    "fleet.public.bikes",
    struct(("bike", STRING), ("bought", MOMENT), ("price", DecimalType(8, 2)), ("checked", CLOCK)),
    watermark=Watermark("bought", 10_000),
)
CLOCKED = TableInfo("clocked", struct(("id", INT), ("at", CLOCK)), watermark=Watermark("at", 1_000))
RIDERS = TableInfo(
    "riders", StructType([StructField("id", INT, False), StructField("name", STRING)]), ("id",), "upsert"
)


def catalog(*views: str) -> Catalog:
    tables = {table.name: table for table in (RIDES, BARE, BIKES, CLOCKED, RIDERS)}
    made = [view for text in views for view in parse_script(text) if isinstance(view, CreateView)]
    return Catalog(tables, {view.name: view for view in made})


def planned(sql: str, options: Options | None = None, *views: str) -> Plan:
    statement = parse_script(sql)[0]
    assert isinstance(statement, Select)
    return plan(statement.query, catalog(*views), options)
