"""The least that AWS must allow."""

from typing import Any

import pytest

from headgate.errors import InvalidRequest
from headgate.publication import policy as policies
from headgate.storage import Place

ACCOUNT = "123456789012"
VAULT = Place(
    "vault", "vault", region="eu-west-1", role_arn=f"arn:aws:iam::{ACCOUNT}:role/lake", external_id="x-1"
)


def policy(kind: str, options: dict[str, str], cluster: str, purpose: str, account: str | None) -> Any:
    return policies.policy(kind, options, cluster, purpose, account, {"vault": VAULT}.__getitem__)


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
