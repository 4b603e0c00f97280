"""Keys for clients: limited to a table, kept for a while, and never longer than they are good for."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any

import pytest
from botocore.exceptions import ClientError

from headgate.errors import StorageUnavailable
from headgate.storage.place import Place
from headgate.storage.policy import assume_policy, reader_policy, role_policy, session_policy, trust_policy
from headgate.storage.vending import Vendor

ROLE = "arn:aws:iam::123456789012:role/lake"
KEY = "arn:aws:kms:eu-central-1:123456789012:key/1"
PLACE = Place("a", "lake", "tables", role_arn=ROLE, external_id="x-1")
TABLE = "s3://lake/tables/local/orders"


def allows(policy: Any, action: str, resource: str, prefix: str | None = None) -> bool:
    """IAM's rules, as far as our policies use them."""
    for statement in policy["Statement"]:
        actions, resources = listed(statement["Action"]), listed(statement["Resource"])
        if action not in actions or not any(fnmatchcase(resource, one) for one in resources):
            continue
        wanted = statement.get("Condition", {}).get("StringLike", {}).get("s3:prefix")
        if wanted is None or (prefix is not None and any(fnmatchcase(prefix, one) for one in wanted)):
            return True
    return False


def listed(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else value


@pytest.mark.parametrize("writes", [True, False])
def test_a_session_reaches_one_table(writes: bool) -> None:
    text = session_policy(PLACE, (TABLE,), writes)
    assert len(text) < 2048
    policy = json.loads(text)
    mine, other = "arn:aws:s3:::lake/tables/local/orders", "arn:aws:s3:::lake/tables/local/orders2"
    assert allows(policy, "s3:GetObject", f"{mine}/data/1.parquet")
    for action in ("s3:PutObject", "s3:DeleteObject"):
        assert allows(policy, action, f"{mine}/data/1.parquet") is writes
        assert not allows(policy, action, f"{other}/data/1.parquet")
    assert not allows(policy, "s3:GetObject", f"{other}/data/1.parquet")
    bucket = "arn:aws:s3:::lake"
    assert allows(policy, "s3:ListBucket", bucket, "tables/local/orders/metadata/")
    assert not allows(policy, "s3:ListBucket", bucket, "tables/local/orders2/")
    assert not allows(policy, "s3:ListBucket", bucket)


def test_policies_of_a_place() -> None:
    place = Place("a", "lake", role_arn="arn:aws-cn:iam::123456789012:role/x", encryption="kms", kms_key=KEY)
    assert allows(role_policy(place), "s3:PutObject", "arn:aws-cn:s3:::lake/any/1")
    assert allows(role_policy(place), "kms:GenerateDataKey", KEY)
    assert not allows(reader_policy(place), "s3:PutObject", "arn:aws-cn:s3:::lake/any/1")
    assert allows(reader_policy(place), "kms:Decrypt", KEY)
    assert not allows(reader_policy(place), "kms:GenerateDataKey", KEY)
    (trust,) = trust_policy(PLACE, "arn:aws:iam::1:user/headgate")["Statement"]
    assert trust["Condition"] == {"StringEquals": {"sts:ExternalId": "x-1"}}
    assert trust["Principal"] == {"AWS": "arn:aws:iam::1:user/headgate"}
    assert assume_policy(PLACE)["Statement"][0]["Resource"] == ROLE


class Sts:
    def __init__(self) -> None:
        self.now = 1_000_000.0
        self.asked: list[tuple[str, str]] = []

    def __call__(self, place: Place, name: str, policy: str) -> Mapping[str, Any]:
        self.asked.append((name, policy))
        return {
            "AccessKeyId": f"key{len(self.asked)}",
            "SecretAccessKey": "s",
            "SessionToken": "t",
            "Expiration": datetime.fromtimestamp(self.now + 3600, UTC),
        }


def test_keys_are_given_again_while_they_are_good() -> None:
    sts = Sts()
    vendor = Vendor(sts, lambda: sts.now)
    first = vendor.keys(PLACE, (TABLE,), False, "'a client'")
    sts.now += 1000
    assert vendor.keys(PLACE, (TABLE,), False, "'a client'") == first
    # Others, other tables and other rights have keys of their own.
    vendor.keys(PLACE, (TABLE,), True, "'a client'")
    vendor.keys(PLACE, (TABLE,), False, "'b'")
    vendor.keys(PLACE, (f"{TABLE}2",), False, "'a client'")
    assert len(sts.asked) == 4
    sts.now += 1000
    again = vendor.keys(PLACE, (TABLE,), False, "'a client'")
    assert again.config["s3.access-key-id"] == "key5"
    assert again.config["s3.session-token-expires-at-ms"] == str(int((sts.now + 3600) * 1000))
    assert sts.asked[0][0] == "headgate--a-client-"


def test_keys_are_not_shown() -> None:
    sts = Sts()
    keys = Vendor(sts, lambda: sts.now).keys(PLACE, (TABLE,), False, "a")
    assert "key1" not in repr(keys)


def test_a_role_that_cannot_be_taken_on() -> None:
    def refuse(*_: object) -> Mapping[str, Any]:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "not you"}}, "AssumeRole")

    with pytest.raises(StorageUnavailable, match="not you"):
        Vendor(refuse).keys(PLACE, (TABLE,), False, "a")
