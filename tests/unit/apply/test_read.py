"""Files become what is wanted, or an error that names file, line and what was probably meant."""

import json
from pathlib import Path

import pytest

from headgate.apply.model import Ref
from headgate.apply.read import read_path, read_text, resource_of
from headgate.apply.shapes import SECTIONS, Document, json_schema
from headgate.apply.show import file_text
from headgate.errors import InvalidRequest

SHOP = """\
world: shop
topics:
  payments:
    partitions: 3
    watermark: {column: paid_at, delay: 5 s}
tables:
  payments: {freshness: 5s, partition: [day(paid_at)]}
"""


def refused(text: str, **variables: str) -> str:
    with pytest.raises(InvalidRequest) as caught:
        read_text(text, variables)
    return str(caught.value)


def test_a_document_becomes_its_things_with_their_lines() -> None:
    wanted = read_text(SHOP)
    assert wanted.world == "shop"
    assert wanted.refs() == [Ref("topics", "payments"), Ref("tables", "payments")]
    topic, table = wanted.resources
    assert topic.spec == {"partitions": 3, "watermark": {"column": "paid_at", "delay": "5 s"}}
    assert table.spec == {"freshness": "5s", "partition": ["day(paid_at)"]}
    assert [topic.at, table.at] == ["the text:3", "the text:7"]


def test_several_documents_and_files_are_one_world(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("world: shop\ntopics: {a: }\n---\ntopics: {b: }\n")
    (tmp_path / "b.yml").write_text("statements:\n  s: {file: s.sql}\n")
    (tmp_path / "s.sql").write_text("INSERT INTO b SELECT * FROM a")
    wanted = read_path(tmp_path, {})
    assert [ref.name for ref in wanted.refs()] == ["a", "b", "s"]
    assert wanted.resources[2].spec == {"sql": "INSERT INTO b SELECT * FROM a"}


def test_variables_stand_in_values_and_names_and_have_defaults() -> None:
    text = "topics:\n  '${P}orders': {partitions: '${N:-2}', config: {a: '${P}$${P}'}}\n"
    (topic,) = read_text(text, {"P": "x."}).resources
    assert topic.ref.name == "x.orders"
    assert topic.spec == {"partitions": 2, "config": {"a": "x.${P}"}}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("topics:\n  a:\n    partitons: 3\n",
         "the text:3: nothing is known of 'topics.a.partitons'. Did you mean 'partitions'?"),
        ("topcs: {}\n", "the text:1: nothing is known of 'topcs'. Did you mean 'topics'?"),
        ("topics:\n  a:\n    watermark: {colum: x}\n", "Did you mean 'column'?"),
        ("tables:\n  t:\n    freshnes: 5s\n",
         "the text:3: nothing is known of 'tables.t.freshnes'. Did you mean 'freshness'?"),
        ("topics:\n  a: {partitions: many}\n", "the text:2: topics.a.partitions: "),
        ("topics:\n  a: {partitions: 0}\n", "the text:2: topics.a.partitions: "),
        ("statements:\n  s: {settings: {}}\n", "the text:2: statements.s: a statement needs `sql` or `file`"),
        ("schemas:\n  s: {type: avro}\n", "the text:2: schemas.s: a schema needs `schema` or `file`"),
        ("schemas:\n  s: {type: cobol, schema: x}\n", "the text:2: schemas.s.type: "),
        ("topics:\n  a: {}\n  a: {}\n", "the text:3: 'a' is there twice. Remove one of them."),
        ("topics: {a: }\n---\ntopics: {a: }\n", "the text:3: topic a is there already, in the text:1."),
        ("world: a\n---\nworld: b\n", "the text:3: world 'b' is another than 'a' of the text:1."),
        ("world: 'a b'\n", "the text:1: world: "),
        ("topics:\n  a: ${NOWHERE}\n", "the text:2: nothing is known of ${NOWHERE}. Say --var NOWHERE=…"),
        ("topics:\n  a: '${1}'\n", "the text:2: '${1}' names no variable."),
        ("topics:\n\ta: 1\n", "the text:2: this is no YAML: "),
        ("- a\n", "the text:1: a document is a mapping."),
        ("a: &x [*x]\n", "the text:1: a value holds itself."),
        ("? [a]\n: b\n", "the text:1: a key is a plain text."),
        ("", "There is nothing in the text."),
        ("statements:\n  s: {file: s.sql}\n", "the text:2: no file can be named here."),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_line(text: str, said: str) -> None:
    assert said in refused(text)


@pytest.mark.parametrize(
    ("text", "said", "remedy"),
    [
        ("topics:\n  a:\n    partitions: many\n", "the text:3: ", "Write a whole number: 4."),
        ("topics:\n  a:\n    config: {retention.ms: -1}\n", "the text:3: ", "Put it into quotes."),
        ("tables:\n  a:\n    partition: {by: day}\n", "the text:3: ", "Write a list: [a, b]."),
        ("topics: [a, b]\n", "the text:1: ", "Write keys with their values: {key: value}."),
        ("topics: {a: 3}\n", "the text:1: ", "Write keys with their values: {key: value}."),
        ("schemas:\n  s: {type: arvo, schema: x}\n", "the text:2: ", "Did you mean 'avro'?"),
        ("generators:\n  g: {scenario: orders, cdc: perhaps}\n", "the text:2: ", "Write true or false."),
        ("generators:\n  g: {rate: 5}\n", "the text:2: ", "Add it."),
        ("world: [a]\n", "the text:1: ", "Write one text."),
    ],
)
def test_a_wrong_type_is_told_with_what_to_write(text: str, said: str, remedy: str) -> None:
    told = refused(text)
    assert told.startswith(said), told
    assert told.endswith(remedy), told


def test_a_secret_takes_no_variable_even_if_it_is_known() -> None:
    text = "catalogs:\n  g:\n    type: rest\n    options:\n      uri: https://x\n      secret: ${TOKEN}\n"
    said = refused(text, TOKEN="hunter2")
    assert said.startswith("the text:6: 'secret' names a secret of the configuration, and takes no variable.")
    assert "hunter2" not in said


def test_a_file_that_is_not_there_is_named_with_the_line_that_names_it(tmp_path: Path) -> None:
    file = tmp_path / "w.yaml"
    file.write_text("statements:\n  s:\n    file: gone.sql\n")
    with pytest.raises(InvalidRequest, match=r"w.yaml:3: gone.sql cannot be read: No such file"):
        read_path(file, {})
    with pytest.raises(InvalidRequest, match="other cannot be read"):
        read_path(tmp_path / "other", {})
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidRequest, match="There is no YAML file in"):
        read_path(tmp_path / "empty", {})


def test_a_text_beside_a_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "w.yaml"
    file.write_text("statements:\n  s: {file: s.sql, sql: x}\n")
    with pytest.raises(InvalidRequest, match=r"w.yaml:2: 's' has sql and file."):
        read_path(file, {})


def test_a_thing_without_a_document_is_held_to_the_same_shape() -> None:
    assert resource_of(Ref("tables", "t"), {"from": "latest"}).spec == {"from": "latest"}
    with pytest.raises(InvalidRequest, match=r"nothing is known of 'tables.t.fro'. Did you mean 'from'?"):
        resource_of(Ref("tables", "t"), {"fro": "latest"})
    with pytest.raises(InvalidRequest, match="There are no things of kind 'thing'"):
        resource_of(Ref("thing", "t"), {})


def test_the_json_schema_knows_every_section() -> None:
    assert set(json_schema()["properties"]) == {"world", *SECTIONS} == set(Document.model_fields)


def test_the_json_schema_in_the_documents_is_of_this_version() -> None:
    file = Path(__file__).parents[3] / "docs" / "reference" / "desired-state.schema.json"
    assert json.loads(file.read_text()) == json_schema(), (
        f"write it again: headgate apply --json-schema > {file}"
    )


def test_what_is_written_as_a_file_is_read_as_it_was() -> None:
    sql = "INSERT INTO a\nSELECT '${x} $${y}', \"it's\", 'yes' -- 1:2  \n\tFROM b"
    spec = {"sql": sql, "settings": {"sql.state-ttl": "1"}}
    document = {"statements": {"s": spec}, "topics": {"no": {}}}
    topic, statement = read_text(file_text(document)).resources
    assert statement.spec == spec
    assert topic.ref.name == "no"
