from typing import Any

import pytest
from pydantic import ValidationError

from headgate.registry.api.bodies import (
    ConfigBody,
    ModeBody,
    SchemaBody,
    config_body,
    schema_body,
    version_body,
)
from headgate.registry.api.protocol import page
from headgate.registry.refusals import (
    Refusal,
    incompatible,
    reference_exists,
    subject_not_found,
    unprocessable,
)
from headgate.registry.registration import Imported
from headgate.registry.schemas import Reference, Schema, SchemaType, SchemaVersion, StoredSchema
from headgate.registry.settings import Mode


def sent(**body: Any) -> SchemaBody:
    return SchemaBody.model_validate({"schema": '"string"', **body})


def test_a_schema_is_read_as_confluent_writes_it() -> None:
    body = sent(
        schemaType="JSON",
        references=[{"name": "n", "subject": "s", "version": 2}],
        metadata={"properties": {"a": "b"}},
        ruleSet={"domainRules": [{"name": "r", "disabled": False, "tags": ["x"], "params": {"p": "q"}}]},
    )
    assert body.schema_sent(unknown_allowed=False) == Schema(
        '"string"',
        SchemaType.JSON,
        (Reference("n", "s", 2),),
        {"properties": {"a": "b"}},
        {"domainRules": [{"name": "r", "disabled": False, "tags": ["x"], "params": {"p": "q"}}]},
    )
    assert sent().schema_sent(False) == Schema('"string"')


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ({}, Imported()),
        ({"id": -1, "version": -1}, Imported()),
        ({"version": 0}, Imported()),
        ({"id": 5}, Imported(5)),
        ({"id": 5, "version": 2}, Imported(5, 2)),
    ],
)
def test_ids_and_versions_that_are_named(named: dict[str, int], expected: Imported) -> None:
    assert sent(**named).imported == expected
    assert sent(**named).imported.empty == (expected == Imported())


@pytest.mark.parametrize(
    "bad", [{"id": 0}, {"id": 2**31}, {"version": -2}, {"metadata": {"x": 1}}, {"ruleSet": []}]
)
def test_bodies_that_make_no_sense(bad: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        sent(**bad)


def test_unknown_properties() -> None:
    assert sent(newer=1).schema_sent(unknown_allowed=True)
    with pytest.raises(Refusal, match="newer"):
        sent(newer=1).schema_sent(unknown_allowed=False)


def test_half_a_character_is_refused() -> None:
    for body in (sent, lambda **b: ConfigBody(**b), lambda **b: ModeBody(**b)):
        with pytest.raises(ValidationError, match="Unicode"):
            body(mode="\ud800", compatibility="\ud800")


def test_configurations() -> None:
    assert ConfigBody.model_validate({"compatibility": "full"}).config_sent() == {"compatibility": "FULL"}
    assert ConfigBody.model_validate({"compatibilityLevel": "NONE"}).config_sent() == {
        "compatibility": "NONE"
    }
    assert ConfigBody.model_validate({"normalize": False, "alias": None}).config_sent() == {
        "normalize": False
    }
    for bad, code in (({}, 42203), ({"compatibility": "X"}, 42203), ({"alias": "a"}, 422)):
        with pytest.raises(Refusal) as caught:
            ConfigBody.model_validate(bad).config_sent()
        assert caught.value.code == code
    assert config_body({"compatibility": "FULL", "normalize": True}) == {
        "compatibilityLevel": "FULL",
        "normalize": True,
    }


def test_modes() -> None:
    assert ModeBody(mode="readonly").mode_sent() is Mode.READONLY
    with pytest.raises(Refusal) as caught:
        ModeBody(mode="").mode_sent()
    assert caught.value.code == 42204


def test_what_clients_get() -> None:
    stored = StoredSchema(
        3, "g", Schema('"string"', references=(Reference("n", "s", 2),), metadata={}, rule_set={})
    )
    body = {
        "schemaType": "AVRO",
        "schema": '"string"',
        "guid": "g",
        "references": [{"name": "n", "subject": "s", "version": 2}],
        "metadata": {},
        "ruleSet": {},
    }
    assert schema_body(stored) == body
    assert schema_body(stored, "other")["schema"] == "other"
    assert version_body(SchemaVersion("t", 4, False, stored)) == {
        "subject": "t",
        "version": 4,
        "id": 3,
        **body,
    }
    assert version_body(SchemaVersion("t", 4, True, stored))["deleted"] is True
    assert set(schema_body(StoredSchema(3, "g", Schema('"string"')))) == {"schemaType", "schema", "guid"}


def test_the_status_is_in_the_code() -> None:
    assert subject_not_found("a").status == 404
    assert incompatible("a", ["b"]).status == 409
    assert reference_exists("a", 1, [2, 3]).status == 422
    assert unprocessable("a").status == 422
    assert "2, 3" in str(reference_exists("a", 1, [2, 3]))


def test_pages() -> None:
    found = [1, 2, 3, 4]
    assert page(found, 0, -1) == found
    assert page(found, 1, 2) == [2, 3]
    assert page(found, 9, 2) == []
    assert page(found, -1, 1) == [1]
    assert page(found, 0, 0) == []
