"""Every function, against answers that were computed by hand. All of them are columns of one query."""

import random
from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructField, StructType

from headgate.sql.planner import Options, Plan, plan
from headgate.sql.script import parse_statement
from headgate.sql.statements import Select
from headgate.sql.tables import SYSTEM, Catalog, TableInfo
from tests.integration.sql.answers import ANSWERS, COLUMNS, MOMENT, ROW, SECRETS
from tests.integration.sql.running import Running
from tests.support.services import COMPILED

TABLE = TableInfo("one", COLUMNS)


def planned(columns: str) -> Plan:
    statement = parse_statement(f"SELECT {columns} FROM one")
    assert isinstance(statement, Select)
    return plan(statement.query, Catalog({"one": TABLE}), Options(secret=SECRETS.__getitem__))


@pytest.fixture(scope="module")
def answers(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    running = Running(spark, tmp_path_factory.mktemp("answers"), random.Random(7))
    made = planned(", ".join(f"{expression} AS c{place}" for place, (expression, _) in enumerate(ANSWERS)))
    session = running.session(made)
    for key, value in COMPILED.items():
        session.conf.set(key, value)
    schema = StructType([*COLUMNS.fields, *(StructField(n, k) for n, k in SYSTEM.items())])
    rows = session.createDataFrame([(*ROW.values(), MOMENT, 0, 0, None)], schema)
    built = made.build(lambda _: rows)
    wrong = [
        (expression, given.dataType.simpleString(), said.dataType.simpleString())
        for (expression, _), given, said in zip(
            ANSWERS, built.schema.fields[: len(ANSWERS)], made.columns.fields, strict=True
        )
        if given.dataType.simpleString() != said.dataType.simpleString()
    ]
    assert wrong == [], "Spark gives other types than the plan says"
    return list(built.collect()[0])


@pytest.mark.parametrize("place", range(len(ANSWERS)), ids=[expression for expression, _ in ANSWERS])
def test_answer(answers: list[Any], place: int) -> None:
    wanted, got = ANSWERS[place][1], answers[place]
    if isinstance(wanted, datetime) and wanted.tzinfo is not None:
        # A moment comes as the clock of this machine shows it.
        got = got.astimezone(UTC)
    assert got == wanted
    assert type(got) is type(wanted)
