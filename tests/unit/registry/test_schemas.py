import uuid

import pytest

from headgate.registry.refusals import Refusal
from headgate.registry.schemas import (
    Reference,
    Schema,
    SchemaType,
    canonical_text,
    check_subject,
    digest,
    guid_of,
    normal_form,
)

RECORD = '{"type":"record","name":"A","fields":[{"name":"x","type":"int"},{"name":"y","type":"int"}]}'


def test_white_space_and_key_order_do_not_matter_in_avro() -> None:
    fields = '[ {"type":"int", "name":"x"}, {"name":"y","type":"int"} ]'
    spaced = f'{{ "name": "A", "fields": {fields},\n "type":"record"}}'
    assert digest(Schema(RECORD)) == digest(Schema(spaced))


def test_the_order_of_fields_matters() -> None:
    turned = '{"type":"record","name":"A","fields":[{"name":"y","type":"int"},{"name":"x","type":"int"}]}'
    assert digest(Schema(RECORD)) != digest(Schema(turned))


def test_key_order_matters_in_json_schema_until_normalized() -> None:
    one, other = (Schema(text, SchemaType.JSON) for text in ('{"a":1,"b":2}', '{"b": 2, "a": 1}'))
    assert digest(one) != digest(other)
    assert digest(one, normalize=True) == digest(other, normalize=True)
    assert digest(one) == digest(Schema('{ "a": 1, "b": 2 }', SchemaType.JSON))
    assert normal_form(other).text == '{"a":1,"b":2}'


def test_protobuf_is_compared_as_it_is() -> None:
    text = 'syntax = "proto3";'
    assert canonical_text(Schema(text, SchemaType.PROTOBUF), normalize=True) == text


@pytest.mark.parametrize(
    "other",
    [
        Schema(RECORD, SchemaType.JSON),
        Schema(RECORD, references=(Reference("a", "b", 1),)),
        Schema(RECORD, metadata={"properties": {"a": "b"}}),
        Schema(RECORD, rule_set={"domainRules": []}),
    ],
)
def test_all_parts_count(other: Schema) -> None:
    assert digest(Schema(RECORD)) != digest(other)
    assert digest(other) == digest(other)


def test_references_count_in_full() -> None:
    made = {
        digest(Schema(RECORD, references=(reference,)))
        for reference in (
            Reference("a", "b", 1),
            Reference("a", "b", 2),
            Reference("a", "c", 1),
            Reference("x", "b", 1),
        )
    }
    assert len(made) == 4


def test_plain_schemas() -> None:
    rich = Schema(RECORD, metadata={"properties": {}}, rule_set={})
    assert not rich.plain
    assert rich.without_extras() == Schema(RECORD)
    assert rich.without_extras().plain


def test_a_guid_is_a_uuid_of_the_content_and_never_changes() -> None:
    guid = guid_of(digest(Schema('"string"')))
    assert str(uuid.UUID(guid)) == guid
    # A literal: stored GUIDs are in records' headers, so they must not change with the code.
    assert guid == "074fdbeb-0f2c-0893-6b76-1c2a89a3f8f8"
    assert guid_of(digest(Schema(' "string"\n'))) == guid


@pytest.mark.parametrize("text", ["", "{", "NaN", '{"a": Infinity}', "[" * 100_000, '{"a": 1e999}', "nul"])
@pytest.mark.parametrize("kind", [SchemaType.AVRO, SchemaType.JSON])
def test_what_is_not_json_is_an_invalid_schema(text: str, kind: SchemaType) -> None:
    with pytest.raises(Refusal) as caught:
        digest(Schema(text, kind))
    assert caught.value.code == 42201


def test_subjects() -> None:
    for good in ("a", "a b", "a/b", "ä", ":a", "x:.y", "\u00a0", "日本"):
        check_subject(good)
    for bad in ("", "a\nb", "\0", "\x7f", ":.ctx:a", ":.:a"):
        with pytest.raises(Refusal) as caught:
            check_subject(bad)
        assert (caught.value.status, caught.value.code) == (422, 42208)
