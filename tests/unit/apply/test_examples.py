"""The worlds of `examples` on the schemas of their scenarios: their SQL is planned, without a broker."""

import json
from pathlib import Path

import pytest
from pyspark.sql.types import StructType

from headgate.apply.kinds import KINDS
from headgate.apply.kinds.statements import script_of
from headgate.apply.kinds.topics import watermark_of
from headgate.apply.memory import memory_installation
from headgate.apply.model import Ref, Spec, Wanted
from headgate.apply.plan import make_plan
from headgate.apply.read import read_path
from headgate.datagen import SCENARIOS
from headgate.registry.client import RegisteredSchema
from headgate.registry.schemas import SchemaType
from headgate.sql.insert import plan_create, plan_insert
from headgate.sql.tables import Catalog, Changelog, TableInfo, Watermark
from headgate.tables.readers import registered_reader
from headgate.worlds import WORLDS as WORLDS_BY_NAME

FOLDER = Path(__file__).parents[3] / "examples"
WORLDS = sorted(FOLDER.glob("*.yaml"))


def catalog_of(wanted: Wanted) -> Catalog:
    """The topics of a file as tables, by the schemas of the file."""
    specs = {resource.ref: resource.spec for resource in wanted.resources}
    catalog = Catalog()
    for ref, spec in specs.items():
        if ref.kind != "schemas":
            continue
        topic = ref.name.removesuffix("-value")
        if ref.name.endswith("-key"):
            continue
        reader = registered_reader(RegisteredSchema(1, SchemaType.AVRO, spec["schema"]), None, "value")
        assert reader is not None
        key = key_of(specs.get(Ref("schemas", f"{topic}-key")))
        mark = watermark_of(next(s for r, s in specs.items() if (r.kind, r.name) == ("topics", topic)))
        watermark = None if mark is None else Watermark(mark["column"], mark["delay_ms"])
        changelog: Changelog = "upsert" if key else "append"
        # Of change events a table has the rows.
        columns = reader.type["after"].dataType if key else reader.type
        assert isinstance(columns, StructType)
        catalog.tables[topic] = TableInfo(topic, columns, key, changelog, watermark)
    return catalog


def key_of(spec: Spec | None) -> tuple[str, ...]:
    """The columns of a key's schema."""
    return () if spec is None else tuple(field["name"] for field in json.loads(spec["schema"])["fields"])


@pytest.mark.parametrize("file", WORLDS, ids=lambda file: file.stem)
def test_the_sql_of_a_world_is_planned_on_its_schemas(file: Path) -> None:
    wanted = read_path(file, {})
    catalog = catalog_of(wanted)
    installation = memory_installation()
    plan = make_plan(wanted, installation.observe(wanted))
    assert {step.ref for step in plan.steps} == set(wanted.refs())
    for step in plan.steps:
        if step.ref.kind != "statements":
            continue
        (spec,) = (one.spec for one in wanted.resources if one.ref == step.ref)
        KINDS["statements"].check(step.ref.name, spec)
        script = script_of(step.ref.name, spec)
        assert script.create is not None
        made, _ = plan_create(script.create, catalog)
        catalog.tables[made.name] = made
        assert plan_insert(script.insert, made, catalog).columns.names == made.columns.names


@pytest.mark.parametrize("file", WORLDS, ids=lambda file: file.stem)
def test_a_world_has_the_schemas_that_its_records_have(file: Path) -> None:
    schemas = {
        one.ref.name: json.loads(one.spec["schema"])
        for one in read_path(file, {}).resources
        if one.ref.kind == "schemas"
    }
    scenario = SCENARIOS[file.stem](cdc=WORLDS_BY_NAME[file.stem].cdc)
    assert schemas == {
        **{f"{topic}-value": schema for topic, schema in scenario.schemas.items()},
        **{f"{topic}-key": schema for topic, schema in scenario.key_schemas.items()},
    }
