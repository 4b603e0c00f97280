"""What may be said of a catalog; what was given is never repeated."""

from typing import Any

import pytest

from headgate.errors import InvalidRequest
from headgate.publication.options import as_place, format_of, parse_options, place, table_name
from headgate.storage import Place

UNITY = {"url": "https://dbc.example.org/", "catalog": "main", "client_id": "c", "secret": "unity"}


@pytest.mark.parametrize(
    ("kind", "given", "said"),
    [
        ("hive", {}, "'hive' is no kind of catalog. Say glue, unity, rest."),
        ("glue", {"url": "https://x"}, "url: Extra inputs are not permitted"),
        ("glue", {"access_key_id": "AKIA12345678"}, "belong together"),
        ("glue", {"external_id": "abc"}, "role_arn"),
        ("glue", {"role_arn": "arn:aws:iam::1:role/x"}, "role_arn: "),
        ("glue", {"catalog_id": "12"}, "catalog_id: "),
        ("glue", {"storage": "vault", "profile": "p"}, "a storage brings its role"),
        ("rest", {"uri": "https://x", "storage": "vault"}, "storage: Extra inputs"),
        ("glue", {"database": "My-Data"}, "'My-Data' cannot name a database in AWS Glue."),
        ("glue", {"names": {"a": "A.b"}}, "'A.b' cannot name the table of topic 'a' in AWS Glue."),
        ("unity", {}, "url: Field required"),
        ("unity", {**UNITY, "url": "http://dbc.example.org"}, "url: Value error, must begin with https://"),
        ("unity", {**UNITY, "url": "https://u:p4ss@dbc.example.org"}, "without user, password"),
        ("unity", {**UNITY, "schema": "a.b"}, "'a.b' cannot name a schema"),
        ("rest", {"uri": "https://x", "client_id": "c"}, "belong together"),
        ("rest", {"uri": "https://x", "token_url": "https://y"}, "token_url is for a client_id"),
        ("rest", {"uri": "https://x?token=hidden"}, "without user, password"),
    ],
)
def test_what_cannot_be(kind: str, given: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse_options(kind, given)
    assert said in str(refused.value)
    assert "p4ss" not in str(refused.value)
    assert "hidden" not in str(refused.value)


def test_places_and_names() -> None:
    unity = parse_options("unity", {**UNITY, "names": {"a.b": "ab"}})
    assert place("unity", unity, "Prod-EU") == "prod_eu"
    assert (table_name("unity", unity, "a.b"), table_name("unity", unity, "a.c")) == ("ab", "a_c")
    assert place("unity", parse_options("unity", {**UNITY, "schema": "lake"}), "Prod-EU") == "lake"
    assert place("glue", parse_options("glue", {"database": "d"}), "Prod-EU") == "d"
    rest = parse_options("rest", {"uri": "http://127.0.0.1:1/iceberg/"})
    assert (place("rest", rest, "Prod-EU"), table_name("rest", rest, "a.B")) == ("Prod-EU", "a.B")


def test_a_storage_brings_its_role_and_its_region() -> None:
    role = "arn:aws:iam::123456789012:role/lake"
    places = {
        "vault": Place("vault", "vault", region="eu-west-1", role_arn=role, external_id="x-1"),
        "plain": Place("plain", "plain"),
    }
    asked = as_place(parse_options("glue", {"storage": "vault"}), places.__getitem__)
    assert asked.model_dump(include={"role_arn", "external_id", "region"}) == {
        "role_arn": role,
        "external_id": "x-1",
        "region": "eu-west-1",
    }
    other = as_place(parse_options("glue", {"storage": "vault", "region": "us-east-1"}), places.__getitem__)
    assert other.model_dump()["region"] == "us-east-1"
    alone = parse_options("glue", {"region": "us-east-1"})
    assert as_place(alone, places.__getitem__) == alone
    with pytest.raises(InvalidRequest, match="has no role"):
        as_place(parse_options("glue", {"storage": "plain"}), places.__getitem__)


def test_each_kind_has_its_format() -> None:
    assert [format_of(kind, None).value for kind in ("glue", "unity", "rest")] == [
        "iceberg",
        "delta",
        "iceberg",
    ]
    with pytest.raises(InvalidRequest, match="as iceberg, not as delta"):
        format_of("glue", "delta")
