"""IAM before moto's S3, Glue, KMS and STS: what a policy does not allow is refused there.

moto's own check knows no conditions, no session policies and no resources of Glue. What is here follows AWS's
documents: "Policies and permissions in Amazon S3", "Actions, resources, and condition keys for AWS Glue" (a
table's operations need the catalog, the database and the table), "AssumeRole" (a session has what both the
role and the session policy allow), and "GetObject" (who may not list a key is not told that it is missing).
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from xml.etree import ElementTree

import pytest
from moto.core.authorization import ActionAuthenticatorMixin
from moto.core.exceptions import AccessDeniedError
from moto.s3.exceptions import BucketAccessDeniedError
from moto.s3.models import s3_backends
from moto.sts.models import sts_backends

ACCOUNT = "123456789012"
Document = Mapping[str, Any]


@dataclass(frozen=True)
class Deed:
    """An action on a resource, and what the conditions of a policy may ask about it."""

    action: str
    resource: str
    said: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Iam:
    """Who is named here may do what their policies allow; others, as the tests, may do anything."""

    # By access key, or by the ARN of a role.
    policies: dict[str, Document] = field(default_factory=dict)
    # By the ARN of a role.
    trusts: dict[str, Document] = field(default_factory=dict)
    # By access key, the ARN of its user.
    users: dict[str, str] = field(default_factory=dict)
    refused: list[Deed] = field(default_factory=list)
    # By access key or role, what was done.
    done: dict[str, set[str]] = field(default_factory=dict)

    def check(self, access_key: str, deeds: Iterable[Deed]) -> bool:
        sessions = [
            one for one in sts_backends[ACCOUNT]["aws"].assumed_roles if one.access_key_id == access_key
        ]
        who = sessions[0].role_arn if sessions else access_key
        if who not in self.policies:
            return True
        layers = [self.policies[who]]
        if sessions and sessions[0].policy:
            layers.append(json.loads(sessions[0].policy))
        allowed = True
        for deed in deeds:
            fine = all(allows(layer, deed) for layer in layers) and self._trusted(access_key, deed)
            if fine:
                self.done.setdefault(who, set()).add(deed.action)
            else:
                self.refused.append(deed)
            allowed &= fine
        return allowed

    def _trusted(self, access_key: str, deed: Deed) -> bool:
        """A role must want to be taken on as well."""
        if deed.action != "sts:AssumeRole" or deed.resource not in self.trusts:
            return True
        user = self.users[access_key]
        return any(
            user in _list(one["Principal"]["AWS"]) and _concerns(one, deed)
            for one in self.trusts[deed.resource]["Statement"]
        )


def allows(policy: Document, deed: Deed) -> bool:
    statements = [one for one in _list(policy["Statement"]) if _concerns(one, deed)]
    return bool(statements) and all(one["Effect"] == "Allow" for one in statements)


def _concerns(statement: Document, deed: Deed) -> bool:
    if not any(_like(one, deed.action) for one in _list(statement["Action"])):
        return False
    if "Resource" in statement and not any(_like(one, deed.resource) for one in _list(statement["Resource"])):
        return False
    for operator, wanted in statement.get("Condition", {}).items():
        assert operator in ("StringLike", "StringEquals"), f"the tests do not know {operator}"
        for key, values in wanted.items():
            found = deed.said.get(key)
            if found is None or not any(
                _like(one, found) if operator == "StringLike" else one == found for one in _list(values)
            ):
                return False
    return True


def _like(pattern: str, text: str) -> bool:
    wild = "".join({"*": ".*", "?": "."}.get(letter, re.escape(letter)) for letter in pattern)
    return re.fullmatch(wild, text, re.DOTALL) is not None


def _list(one: Any) -> list[Any]:
    return list(one) if isinstance(one, list) else [one]


@contextmanager
def enforced() -> Iterator[Iam]:
    """While the block lasts, for all of moto's servers in this process."""
    iam = Iam()

    def check(self: Any, _: type, resource: str = "*") -> None:
        signed = str(self.headers.get("Authorization", ""))
        access_key = signed.partition("Credential=")[2].partition("/")[0]
        service = signed.partition("Credential=")[2].split("/")[3] if access_key else ""
        deeds = {"s3": _s3, "glue": _glue, "sts": _sts}.get(service)
        if deeds is None or iam.check(access_key, deeds(self, resource)):
            return
        if service == "s3":
            raise BucketAccessDeniedError(bucket=self.bucket_name)
        raise AccessDeniedError(user_arn=access_key, action=self._get_action())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ActionAuthenticatorMixin, "_authenticate_and_authorize_action", check)
        yield iam


def _s3(request: Any, resource: str) -> Iterator[Deed]:
    bucket, _, key = resource.removeprefix("arn:aws:s3:::").partition("/")
    action = "ListBucket" if request.data["Action"] == "HeadBucket" else request.data["Action"]
    prefixes = request.querystring.get("prefix")
    if action == "ListBucket":
        yield Deed("s3:ListBucket", resource, {} if prefixes is None else {"s3:prefix": prefixes[0]})
        return
    if action == "DeleteObject" and not key:
        for one in ElementTree.fromstring(request.body).iter():
            if one.tag.rpartition("}")[2] == "Key":
                yield Deed("s3:DeleteObject", f"{resource}/{one.text}")
        return
    yield Deed(f"s3:{action}", resource)
    if "x-amz-tagging" in request.headers:
        yield Deed("s3:PutObjectTagging", resource)
    kept = s3_backends[ACCOUNT]["aws"].buckets[bucket]
    if action == "GetObject":
        found = kept.keys.get(key)
        if found is None:
            yield Deed("s3:ListBucket", f"arn:aws:s3:::{bucket}", {"s3:prefix": key})
        elif found.kms_key_id is not None:
            yield Deed("kms:Decrypt", found.kms_key_id)
    if action == "PutObject":
        kms_key = request.headers.get("x-amz-server-side-encryption-aws-kms-key-id")
        if kms_key is not None:
            yield Deed("kms:GenerateDataKey", kms_key)
        upload = kept.multiparts.get(request.querystring.get("uploadId", [""])[0])
        if upload is not None and upload.kms_key_id is not None:
            # Parts are sealed one by one, and opened to be put together.
            yield Deed("kms:GenerateDataKey", upload.kms_key_id)
            yield Deed("kms:Decrypt", upload.kms_key_id)


def _glue(request: Any, _: str) -> Iterator[Deed]:
    said = json.loads(request.body or "{}")
    where = f"arn:aws:glue:{request.region}:{ACCOUNT}"
    action = f"glue:{request._get_action()}"
    yield Deed(action, f"{where}:catalog")
    of_tables = "DatabaseName" in said
    database = said["DatabaseName"] if of_tables else said.get("Name") or said["DatabaseInput"]["Name"]
    yield Deed(action, f"{where}:database/{database}")
    if of_tables:
        table = said.get("Name") or said.get("TableInput", {}).get("Name") or "*"
        yield Deed(action, f"{where}:table/{database}/{table}")


def _sts(request: Any, _: str) -> Iterator[Deed]:
    action = request._get_action()
    said = {key: values[0] for key, values in request.querystring.items()}
    context = {"sts:ExternalId": said["ExternalId"]} if "ExternalId" in said else {}
    yield Deed(f"sts:{action}", said.get("RoleArn", "*"), context)
