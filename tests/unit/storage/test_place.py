"""Places: what is taken, what is in them, what clients are told."""

from typing import Any

import pytest

from headgate.errors import InvalidRequest
from headgate.storage.place import Place, is_s3, split

ROLE = "arn:aws:iam::123456789012:role/lake"


def test_a_place_holds_what_lies_below_it() -> None:
    place = Place("a", "lake", "tables")
    assert place.root == "s3://lake/tables"
    assert place.holds("s3://lake/tables/local/t")
    assert place.holds("s3a://lake/tables")
    assert not place.holds("s3://lake/tables2/t")
    assert not place.holds("s3://lake")
    assert Place("b", "lake").holds("s3://lake/any")
    assert not Place("b", "lake").holds("s3://lake2/any")


@pytest.mark.parametrize(
    "given",
    [
        {"name": "../x"},
        {"name": ""},
        {"bucket": "Not_A_Bucket"},
        {"bucket": "a"},
        {"prefix": "a/../b"},
        {"prefix": "a//b"},
        {"prefix": "a*"},
        {"prefix": "${aws:username}"},
        {"prefix": "a\nb"},
        {"role_arn": "lake"},
        {"role_arn": f'{ROLE}"'},
        {"endpoint": "ftp://store"},
        {"endpoint": "http://user:word@store"},
        {"endpoint": "http://store/path"},
        {"region": "eu central"},
        {"encryption": "rot13"},
        {"kms_key": "arn:aws:kms:eu-central-1:123456789012:key/1"},
        {"encryption": "kms", "kms_key": "mine"},
        {"external_id": "x-1"},
    ],
    ids=str,
)
def test_what_cannot_be_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        Place.checked(**{"name": "a", "bucket": "lake", **given})


def test_only_s3_is_s3() -> None:
    assert split("s3://lake/a/b/") == ("lake", "a/b")
    assert is_s3("S3A://lake")
    for uri in ("file:///lake", "/lake", "gs://lake"):
        with pytest.raises(InvalidRequest):
            split(uri)


def test_what_clients_are_told() -> None:
    place = Place(
        "a", "lake", endpoint="http://store:9000", path_style=True, role_arn=ROLE, external_id="x-1"
    )
    assert place.settings == {
        "client.region": "us-east-1",
        "s3.region": "us-east-1",
        "s3.endpoint": "http://store:9000",
        "s3.path-style-access": "true",
    }
    own = place.own_settings
    assert own["client.assume-role.arn"] == ROLE
    assert own["client.assume-role.external-id"] == "x-1"
    assert Place("a", "lake").settings == {}
    assert Place("a", "lake").own_settings == {}


def test_encryption_is_said_in_both_languages() -> None:
    key = "arn:aws:kms:eu-central-1:123456789012:key/1"
    assert Place("a", "lake").put_arguments == {}
    managed = Place("a", "lake", encryption="s3")
    assert managed.settings == {"s3.sse.type": "s3"}
    assert managed.put_arguments == {"ServerSideEncryption": "AES256"}
    keyed = Place("a", "lake", encryption="kms", kms_key=key)
    assert keyed.settings == {"s3.sse.type": "kms", "s3.sse.key": key}
    assert keyed.put_arguments == {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": key}
