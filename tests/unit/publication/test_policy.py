"""The least that AWS must allow."""

from typing import Any

import pytest

from headgate.errors import InvalidRequest
from headgate.publication import policy as policies
from headgate.publication.options import GlueOptions
from headgate.storage import Place

ACCOUNT = "123456789012"
VAULT = Place(
    "vault", "vault", region="eu-west-1", role_arn=f"arn:aws:iam::{ACCOUNT}:role/lake", external_id="x-1"
)


LAKE = Place(None, "lake", "warehouse", kms_key=f"arn:aws:kms:eu-west-1:{ACCOUNT}:key/k-1")


def policy(
    kind: str,
    options: dict[str, str],
    cluster: str,
    purpose: str,
    account: str | None,
    places: tuple[Place, ...] = (LAKE, VAULT),
    caller: str | None = None,
) -> Any:
    def ask(_: GlueOptions) -> str:
        if caller is None:
            raise InvalidRequest("AWS does not tell who Headgate is", "Say it: --account 123456789012.")
        return caller

    around = policies.Around(cluster, {"vault": VAULT}.__getitem__, places, ask)
    return policies.policy(kind, options, purpose, account, around)


def test_the_publisher_may_do_what_it_does_and_no_more() -> None:
    found = policy("glue", {"region": "eu-west-1"}, "Prod-EU", "publisher", ACCOUNT)

    actions = [action for one in found["Statement"] for action in one["Action"]]
    # What glue.py calls.
    assert sorted(actions) == [
        "glue:CreateDatabase", "glue:CreateTable", "glue:DeleteTable", "glue:GetDatabase", "glue:GetTable",
        "glue:UpdateTable",
    ]  # fmt: skip
    where = f"arn:aws:glue:eu-west-1:{ACCOUNT}"
    assert [one["Resource"] for one in found["Statement"]] == [
        [f"{where}:catalog", f"{where}:database/prod_eu"],
        [f"{where}:catalog", f"{where}:database/prod_eu", f"{where}:table/prod_eu/*"],
    ]
    assert "*" not in actions


def test_readers_only_read() -> None:
    found = policy("glue", {"region": "cn-north-1", "catalog_id": ACCOUNT}, "local", "reader", None)
    (only,) = found["Statement"]
    assert all(action.startswith("glue:Get") for action in only["Action"])
    assert all(one.startswith(f"arn:aws-cn:glue:cn-north-1:{ACCOUNT}:") for one in only["Resource"])


def test_who_may_assume_the_role() -> None:
    options = {"role_arn": f"arn:aws:iam::{ACCOUNT}:role/lake", "external_id": "abc"}
    (only,) = policy("glue", options, "local", "trust", "210987654321")["Statement"]
    assert only["Principal"] == {"AWS": "arn:aws:iam::210987654321:root"}
    assert only["Condition"] == {"StringEquals": {"sts:ExternalId": "abc"}}


def test_without_an_account_they_name_who_headgate_is() -> None:
    role = f"arn:aws:iam::{ACCOUNT}:role/headgate"
    options = {"role_arn": f"arn:aws:iam::{ACCOUNT}:role/lake", "region": "eu-west-1"}
    (only,) = policy("glue", options, "local", "trust", None, caller=role)["Statement"]
    assert only["Principal"] == {"AWS": role}
    asked = policy("glue", {"region": "eu-west-1"}, "local", "publisher", None, caller=role)
    assert asked == policy("glue", {"region": "eu-west-1"}, "local", "publisher", ACCOUNT)


def test_buckets_and_keys_are_opened_to_readers_of_an_account() -> None:
    reader = {"AWS": "arn:aws:iam::210987654321:root"}
    found = policy("glue", {"region": "eu-west-1"}, "local", "bucket", "210987654321")
    assert sorted(found) == ["lake", "vault"]
    for one in found.values():
        assert all(said["Principal"] == reader for said in one["Statement"])
        actions = {a for said in one["Statement"] for a in [said["Action"]] if isinstance(a, str)}
        assert actions == {"s3:ListBucket", "s3:GetBucketLocation"}
    objects, listing, _ = found["lake"]["Statement"]
    assert (objects["Action"], objects["Resource"]) == (["s3:GetObject"], ["arn:aws:s3:::lake/warehouse/*"])
    assert listing["Condition"] == {"StringLike": {"s3:prefix": ["warehouse/*"]}}
    keys = policy("glue", {"region": "eu-west-1"}, "local", "kms", "210987654321")
    (statement,) = keys[LAKE.kms_key]["Statement"]
    assert (statement["Action"], statement["Principal"]) == ("kms:Decrypt", reader)


@pytest.mark.parametrize(("purpose", "said"), [("bucket", "on this machine"), ("kms", "KMS key")])
def test_a_lake_on_this_machine_has_neither(purpose: str, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        policy("glue", {"region": "eu-west-1"}, "local", purpose, ACCOUNT, places=())


def test_with_a_named_storage_the_policies_are_for_its_role() -> None:
    (only,) = policy("glue", {"storage": "vault"}, "local", "trust", ACCOUNT)["Statement"]
    assert only["Condition"] == {"StringEquals": {"sts:ExternalId": "x-1"}}
    found = policy("glue", {"storage": "vault"}, "local", "publisher", ACCOUNT)
    assert found == policy("glue", {"region": "eu-west-1"}, "local", "publisher", ACCOUNT)


@pytest.mark.parametrize(
    ("kind", "options", "purpose", "account", "said"),
    [
        ("rest", {"uri": "https://x"}, "publisher", ACCOUNT, "Policies are AWS's"),
        ("glue", {"region": "eu-west-1"}, "writer", ACCOUNT, "There is no policy for 'writer'"),
        ("glue", {"region": "eu-west-1"}, "publisher", None, "--account"),
        ("glue", {"region": "eu-west-1"}, "publisher", "12", "--account"),
        ("glue", {}, "publisher", ACCOUNT, "--region"),
    ],
)
def test_what_cannot_be_printed(
    kind: str, options: dict[str, str], purpose: str, account: str | None, said: str
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        policy(kind, options, "local", purpose, account)
    assert said in str(refused.value)
