"""The least that AWS must allow for a Glue catalog, as the policies that IAM takes. No I/O."""

from collections.abc import Callable, Mapping
from typing import Any

from headgate.errors import InvalidRequest
from headgate.publication.options import GlueOptions, as_place, parse_options, place
from headgate.storage import Place

# What each policy is for.
PURPOSES = ("publisher", "reader", "trust")
_VERSION = "2012-10-17"


def policy(
    kind: str,
    given: Mapping[str, Any],
    cluster: str,
    purpose: str,
    account: str | None,
    place_of: Callable[[str], Place],
) -> dict[str, Any]:
    """`publisher`: for Headgate. `reader`: for who queries. `trust`: lets `account` assume the role."""
    options = as_place(parse_options(kind, given), place_of)
    if not isinstance(options, GlueOptions):
        raise InvalidRequest(f"Policies are AWS's: a catalog of kind {kind} has none.")
    if purpose not in PURPOSES:
        raise InvalidRequest(f"There is no policy for '{purpose}'.", f"Say {', '.join(PURPOSES)}.")
    account = account or options.catalog_id
    if account is None or len(account) != 12 or not account.isdigit():
        raise InvalidRequest(
            "The policy names an AWS account.", "Give its 12 digits: --account 123456789012."
        )
    if purpose == "trust":
        return _trust(options, account)
    if options.region is None:
        raise InvalidRequest(
            "The policy names a region, and the catalog was added without one.",
            "Add the catalog again with --region.",
        )
    where = f"arn:{_partition(options.region)}:glue:{options.region}:{account}"
    database = place(kind, options, cluster)
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


def _trust(options: GlueOptions, account: str) -> dict[str, Any]:
    partition = "aws" if options.region is None else _partition(options.region)
    statement: dict[str, Any] = {
        "Sid": "HeadgateAssumesRole",
        "Effect": "Allow",
        "Principal": {"AWS": f"arn:{partition}:iam::{account}:root"},
        "Action": "sts:AssumeRole",
    }
    if options.external_id is not None:
        statement["Condition"] = {"StringEquals": {"sts:ExternalId": options.external_id}}
    return _policy(statement)


def _policy(*statements: Mapping[str, Any]) -> dict[str, Any]:
    return {"Version": _VERSION, "Statement": list(statements)}


def _allow(name: str, actions: list[str], resources: list[str]) -> dict[str, Any]:
    return {"Sid": name, "Effect": "Allow", "Action": actions, "Resource": resources}


def _partition(region: str) -> str:
    if region.startswith("cn-"):
        return "aws-cn"
    return "aws-us-gov" if region.startswith("us-gov-") else "aws"
