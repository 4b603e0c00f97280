"""A place in moto's S3 that encrypts with a key of KMS, where IAM allows what Headgate prints and no more."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from moto.s3.models import S3Backend

from tests.support.glue import Glue
from tests.support.iam import ACCOUNT, Iam, enforced
from tests.support.object_store import KEY, SECRET
from tests.support.stack import Stack

BUCKET, ROOT = "sealed", "s3://sealed/tables"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/sealed"
HEADGATE = f"arn:aws:iam::{ACCOUNT}:user/headgate"
KMS_KEY = f"arn:aws:kms:us-east-1:{ACCOUNT}:key/1234abcd-12ab-34cd-56ef-1234567890ab"
READER_KEY = "the-key-of-a-reader"
WHO = ("--role", ROLE, "--external-id", "x-2", "--kms-key", KMS_KEY)
# What of a table is written, by the end of its name.
KINDS = {
    "data": r"/data/.*\.parquet",
    "metadata": r"/metadata/\d+-.*\.metadata\.json",
    "manifests": r"/metadata/[^/]*-m\d+\.avro",
    "lists of manifests": r"/metadata/snap-.*\.avro",
    "deletion vectors": r"/data/.*\.puffin",
    "the Delta log": r"/_delta_log/\d+\.json",
    "checkpoints": r"/_delta_log/\d+\.checkpoint\.parquet",
    "the last checkpoint": r"/_delta_log/_last_checkpoint",
    "Delta's deletion vectors": r"\.bin",
    "remembered keys": r"/_[^/]*/[^/]*/deleted/[^/]*",
}


@dataclass
class Sealed:
    """Under IAM; `written` is how each object was encrypted when it was put, those that are gone included."""

    iam: Iam
    written: dict[str, tuple[str | None, str | None]] = field(default_factory=dict)


@contextmanager
def sealed_place(aws: Glue) -> Iterator[Sealed]:
    """The bucket, where neither Headgate nor the role may do anything yet."""
    client = s3(aws.url, "tests", "tests")
    client.create_bucket(Bucket=BUCKET)
    client.put_object(Bucket=BUCKET, Key="elsewhere/x", Body=b"x")
    client.close()
    put = S3Backend.put_object
    with enforced() as iam, pytest.MonkeyPatch.context() as patch:
        found = Sealed(iam)

        def put_and_tell(self: S3Backend, *given: Any, **named: Any) -> Any:
            made = put(self, *given, **named)
            found.written[made.name] = (made.encryption, made.kms_key_id)
            return made

        patch.setattr(S3Backend, "put_object", put_and_tell)
        iam.users[KEY] = HEADGATE
        for who in (KEY, ROLE, READER_KEY):
            iam.policies[who] = {"Statement": []}
        iam.trusts[ROLE] = {"Statement": []}
        yield found


def printed(stack: Stack) -> Mapping[str, Any]:
    """By `headgate storage policy`, before the place is there."""
    found = stack.json("storage", "policy", "sealed", ROOT, *WHO, "--principal", HEADGATE)
    assert set(found) == {"access", "trust", "assume", "reader"}
    return dict(found)


def s3(url: str, key: str, secret: str, token: str | None = None) -> Any:
    return boto3.client(
        "s3",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id=key,
        aws_secret_access_key=secret,
        aws_session_token=token,
        config=Config(s3={"addressing_style": "path"}),
    )


def keys(aws: Glue, prefix: str) -> list[str]:
    client = s3(aws.url, "tests", "tests")
    found = client.list_objects_v2(Bucket=BUCKET, Prefix=prefix)
    client.close()
    return [str(one["Key"]) for one in found.get("Contents", ())]


def as_role(aws: Glue) -> Any:
    """A client with keys of the role."""
    own = {"aws_access_key_id": KEY, "aws_secret_access_key": SECRET, "region_name": "us-east-1"}
    sts = boto3.client("sts", endpoint_url=aws.url, **own)
    given = sts.assume_role(RoleArn=ROLE, RoleSessionName="a-test", ExternalId="x-2")["Credentials"]
    with pytest.raises(ClientError, match="not authorized"):
        sts.assume_role(RoleArn=ROLE, RoleSessionName="a-test", ExternalId="x-3")
    sts.close()
    return s3(aws.url, given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"])


def check_written(written: Mapping[str, tuple[str | None, str | None]]) -> None:
    """That there was a file of every kind, and that each was written with the key."""
    missing = [kind for kind, name in KINDS.items() if not any(re.search(f"{name}$", one) for one in written)]
    assert missing == []
    assert {key: how for key, how in written.items() if how != ("aws:kms", KMS_KEY)} == {}


def check_nothing_else(aws: Glue, inside: str) -> None:
    """Outside of the place the role is refused; and a reader, wherever it would write."""
    role, reader = as_role(aws), s3(aws.url, READER_KEY, "any")
    there = {"Bucket": BUCKET, "Key": "tables/_test/x"}
    sealed = {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": KMS_KEY}
    for end in ("complete_multipart_upload", "abort_multipart_upload"):
        upload = role.create_multipart_upload(**there, **sealed)["UploadId"]
        part = role.upload_part(**there, UploadId=upload, PartNumber=1, Body=b"part")
        parts = {"Parts": [{"ETag": part["ETag"], "PartNumber": 1}]}
        more = {"MultipartUpload": parts} if end.startswith("complete") else {}
        getattr(role, end)(**there, UploadId=upload, **more)
    assert reader.get_object(**there)["Body"].read() == b"part"
    role.delete_object(**there)
    other = {"Bucket": BUCKET, "Key": "elsewhere/x"}
    others_key = {**sealed, "SSEKMSKeyId": KMS_KEY.replace("1234abcd", "ffffffff")}
    deeds: list[Callable[[], Any]] = [
        lambda: role.get_object(**other),
        lambda: role.put_object(**other, Body=b"y"),
        lambda: role.put_object(Bucket=BUCKET, Key="tables2/x", Body=b"y"),
        lambda: role.delete_object(**other),
        lambda: role.list_objects_v2(Bucket=BUCKET),
        lambda: role.list_objects_v2(Bucket=BUCKET, Prefix="elsewhere/"),
        lambda: role.get_object(Bucket=BUCKET, Key="elsewhere/missing"),
        lambda: role.put_object(**there, Body=b"y", **others_key),
        lambda: role.delete_bucket(Bucket=BUCKET),
        lambda: role.put_bucket_policy(Bucket=BUCKET, Policy="{}"),
        lambda: reader.put_object(**there, Body=b"y"),
        lambda: reader.delete_object(Bucket=BUCKET, Key=inside),
        lambda: reader.create_multipart_upload(**there),
        lambda: reader.get_object(**other),
        lambda: reader.list_objects_v2(Bucket=BUCKET),
    ]
    for deed in deeds:
        with pytest.raises(ClientError, match=r"AccessDenied|Access Denied"):
            deed()
    denied = role.delete_objects(Bucket=BUCKET, Delete={"Objects": [{"Key": "elsewhere/x"}]})
    assert [one["Code"] for one in denied["Errors"]] == ["AccessDenied"]
    role.close()
    reader.close()
