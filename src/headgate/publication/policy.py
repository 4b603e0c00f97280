"""The least that AWS must allow for a Glue catalog, as the policies that IAM takes. No I/O."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headgate.errors import InvalidRequest
from headgate.publication.options import GlueOptions, as_place, parse_options, place
from headgate.storage import Place
from headgate.storage.policy import bucket_policy, key_policy

# What each policy is for.
PURPOSES = ("publisher", "reader", "trust", "bucket", "kms")
_VERSION = "2012-10-17"
_ACCOUNT = re.compile(r"arn:aws[a-z-]*:(?:iam|sts)::(\d{12}):.*")


@dataclass(frozen=True)
class Around:
    """What policies name beside the catalog: `places` are those where tables may lie; `caller` finds the user
    or role that Headgate asks with, if it must be known."""

    cluster: str
    place_of: Callable[[str], Place]
    places: Sequence[Place]
    caller: Callable[[GlueOptions], str]


def policy(
    kind: str, given: Mapping[str, Any], purpose: str, account: str | None, around: Around
) -> dict[str, Any]:
    """`publisher`: for Headgate. `reader`: for who queries. `trust`: lets Headgate assume the role. `bucket`
    and `kms`: what bucket and key must say for readers of `account`, by bucket and by key.

    Without an account, who Headgate is to AWS is asked.
    """
    options = as_place(parse_options(kind, given), around.place_of)
    if not isinstance(options, GlueOptions):
        raise InvalidRequest(f"Policies are AWS's: a catalog of kind {kind} has none.")
    if purpose not in PURPOSES:
        raise InvalidRequest(f"There is no policy for '{purpose}'.", f"Say {', '.join(PURPOSES)}.")
    if account is not None and (len(account) != 12 or not account.isdigit()):
        raise InvalidRequest(
            "The policy names an AWS account.", "Give its 12 digits: --account 123456789012."
        )
    if purpose in ("trust", "bucket", "kms"):
        partition = "aws" if options.region is None else _partition(options.region)
        principal = around.caller(options) if account is None else f"arn:{partition}:iam::{account}:root"
        if purpose == "trust":
            return _trust(options, principal)
        return _of_storage(purpose, principal, around.places)
    if options.region is None:
        raise InvalidRequest(
            "The policy names a region, and the catalog was added without one.",
            "Add the catalog again with --region.",
        )
    where_from = account or options.catalog_id or _account_of(around.caller(options))
    return _of_glue(options, purpose, where_from, place(kind, options, around.cluster))


def _of_glue(options: GlueOptions, purpose: str, account: str, database: str) -> dict[str, Any]:
    assert options.region is not None
    where = f"arn:{_partition(options.region)}:glue:{options.region}:{account}"
    on_database = [f"{where}:catalog", f"{where}:database/{database}"]
    on_tables = [*on_database, f"{where}:table/{database}/*"]
    if purpose == "reader":
        return _policy(
            _allow("HeadgateReadsTables", ["glue:GetDatabase", "glue:GetTable", "glue:GetTables"], on_tables)
        )
    changes = ["glue:GetTable", "glue:CreateTable", "glue:UpdateTable", "glue:DeleteTable"]
    return _policy(
        _allow("HeadgateDatabase", ["glue:GetDatabase", "glue:CreateDatabase"], on_database),
        _allow("HeadgateTables", changes, on_tables),
    )


def _of_storage(purpose: str, principal: str, places: Sequence[Place]) -> dict[str, Any]:
    if purpose == "kms":
        keys = dict.fromkeys(one.kms_key for one in places if one.kms_key is not None)
        if not keys:
            raise InvalidRequest("No storage of tables is encrypted with a KMS key: there is no such policy.")
        return {key: key_policy(principal) for key in keys}
    if not places:
        raise InvalidRequest(
            "Tables lie on this machine: no bucket has a policy for them.",
            "Put the warehouse on S3 (`catalog.warehouse`), or name a storage for tables.",
        )
    found: dict[str, Any] = {}
    for one in places:
        made = bucket_policy(one, principal)
        before = found.setdefault(one.bucket, {**made, "Statement": []})
        before["Statement"] += [said for said in made["Statement"] if said not in before["Statement"]]
    return found


def _trust(options: GlueOptions, principal: str) -> dict[str, Any]:
    statement: dict[str, Any] = {
        "Sid": "HeadgateAssumesRole",
        "Effect": "Allow",
        "Principal": {"AWS": principal},
        "Action": "sts:AssumeRole",
    }
    if options.external_id is not None:
        statement["Condition"] = {"StringEquals": {"sts:ExternalId": options.external_id}}
    return _policy(statement)


def _account_of(arn: str) -> str:
    match = _ACCOUNT.fullmatch(arn)
    if match is None:
        raise InvalidRequest(
            f"AWS knows Headgate as {arn}, which names no account.", "Say --account 123456789012."
        )
    return match[1]


def _policy(*statements: Mapping[str, Any]) -> dict[str, Any]:
    return {"Version": _VERSION, "Statement": list(statements)}


def _allow(name: str, actions: list[str], resources: list[str]) -> dict[str, Any]:
    return {"Sid": name, "Effect": "Allow", "Action": actions, "Resource": resources}


def _partition(region: str) -> str:
    if region.startswith("cn-"):
        return "aws-cn"
    return "aws-us-gov" if region.startswith("us-gov-") else "aws"
