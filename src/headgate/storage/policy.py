"""The least that IAM must allow: for Headgate's role, for who may take it on, and for readers."""

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from headgate.storage.place import ROLE, Place, split

Document = dict[str, Any]
READS = ("s3:GetObject",)
WRITES = (
    "s3:GetObject",
    "s3:PutObject",
    "s3:DeleteObject",
    "s3:AbortMultipartUpload",
)


def role_policy(place: Place) -> Document:
    """What Headgate's role must be allowed: all that is done to tables, in this place alone."""
    return _document(place, [place.root], writes=True)


def reader_policy(place: Place) -> Document:
    """What engines must be allowed that read the tables with keys of their own."""
    return _document(place, [place.root], writes=False)


def bucket_policy(place: Place, principal: str) -> Document:
    """What the bucket's own policy must say so that a principal of another account reads the tables there."""
    found = _document(replace(place, kms_key=None), [place.root], writes=False)
    statements = [{**one, "Principal": {"AWS": principal}} for one in found["Statement"]]
    return {"Version": found["Version"], "Statement": statements}


def key_policy(principal: str) -> Document:
    """What a KMS key's own policy must say besides, where the files are encrypted with it."""
    statement: Document = {"Effect": "Allow", "Principal": {"AWS": principal}, "Action": "kms:Decrypt"}
    # In a key's policy this is the key itself.
    return {"Version": "2012-10-17", "Statement": [{**statement, "Resource": "*"}]}


def session_policy(place: Place, locations: Iterable[str], writes: bool) -> str:
    """What vended keys are limited to: a table's own locations. Short: STS takes 2,048 characters."""
    return json.dumps(_document(place, list(locations), writes), separators=(",", ":"))


def trust_policy(place: Place, principal: str) -> Document:
    """Who may take on the role: `principal` is the user or role that Headgate itself runs as."""
    statement: Document = {"Effect": "Allow", "Principal": {"AWS": principal}, "Action": "sts:AssumeRole"}
    if place.external_id is not None:
        statement["Condition"] = {"StringEquals": {"sts:ExternalId": place.external_id}}
    return {"Version": "2012-10-17", "Statement": [statement]}


def assume_policy(place: Place) -> Document:
    """What the user or role that Headgate runs as must be allowed."""
    statement = {"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": place.role_arn}
    return {"Version": "2012-10-17", "Statement": [statement]}


def _document(place: Place, locations: list[str], writes: bool) -> Document:
    arn = f"arn:{_partition(place)}:s3:::"
    places = [split(location) for location in locations]
    objects = [f"{arn}{'/'.join(part for part in one if part)}/*" for one in places]
    statements: list[Document] = [
        {"Effect": "Allow", "Action": list(WRITES if writes else READS), "Resource": objects}
    ]
    for bucket in dict.fromkeys(bucket for bucket, _ in places):
        prefixes = [prefix for other, prefix in places if other == bucket]
        listing: Document = {"Effect": "Allow", "Action": "s3:ListBucket", "Resource": f"{arn}{bucket}"}
        if all(prefixes):
            listing["Condition"] = {"StringLike": {"s3:prefix": [f"{prefix}/*" for prefix in prefixes]}}
        statements.append(listing)
        # Not for a prefix: it tells no more than where the bucket is.
        statements.append({"Effect": "Allow", "Action": "s3:GetBucketLocation", "Resource": f"{arn}{bucket}"})
    if place.kms_key is not None:
        actions = ["kms:Decrypt", "kms:GenerateDataKey"] if writes else ["kms:Decrypt"]
        statements.append({"Effect": "Allow", "Action": actions, "Resource": place.kms_key})
    return {"Version": "2012-10-17", "Statement": statements}


def _partition(place: Place) -> str:
    """`aws`, or that of China or of a government, as the role says."""
    match = None if place.role_arn is None else ROLE.fullmatch(place.role_arn)
    return "aws" if match is None else match[1]
