"""A place in an object store, and how it is reached. Nothing of it is secret: keys are the environment's."""

import re
from dataclasses import asdict, dataclass
from typing import Any, Self

from headgate.errors import InvalidRequest

S3_SCHEMES = ("s3", "s3a", "s3n")
# What a store that is not AWS takes any name for.
ANY_REGION = "us-east-1"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")
BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
PREFIX = re.compile(r"[A-Za-z0-9!_.'()=+@:,&$ -]+(/[A-Za-z0-9!_.'()=+@:,&$ -]+)*")
ROLE = re.compile(r"arn:(aws[a-z-]*):iam::\d{12}:role/[\w+=,.@/-]{1,512}")
KMS_KEY = re.compile(r"arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:(key|alias)/[\w/-]+")
ENDPOINT = re.compile(r"https?://[^@\s/?#]+(:\d+)?/?")
EXTERNAL_ID = re.compile(r"[\w+=,.@:/-]{2,1224}")
REGION = re.compile(r"[a-z0-9-]{1,40}")
ENCRYPTIONS = ("none", "s3", "kms")


@dataclass(frozen=True)
class Place:
    """A bucket, or a part of one. `name` is None for the storage of the configuration."""

    name: str | None
    bucket: str
    prefix: str = ""
    region: str | None = None
    endpoint: str | None = None
    path_style: bool = False
    encryption: str = "none"
    kms_key: str | None = None
    role_arn: str | None = None
    external_id: str | None = None

    @property
    def root(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}" if self.prefix else f"s3://{self.bucket}"

    def holds(self, location: str) -> bool:
        return f"s3://{plain(location)}/".startswith(f"{self.root}/")

    @property
    def settings(self) -> dict[str, str]:
        """What any client of Iceberg needs to find it, by the names that they know."""
        region = self.region or (ANY_REGION if self.endpoint else None)
        found = {"client.region": region, "s3.region": region, "s3.endpoint": self.endpoint}
        said = {key: value for key, value in found.items() if value is not None}
        if self.path_style:
            said["s3.path-style-access"] = "true"
        return said | self.encryption_settings

    @property
    def encryption_settings(self) -> dict[str, str]:
        if self.encryption == "none":
            return {}
        return {"s3.sse.type": self.encryption} | ({"s3.sse.key": self.kms_key} if self.kms_key else {})

    @property
    def own_settings(self) -> dict[str, str]:
        """For Headgate's own JVMs: with the keys of their environment, by way of the role if there is one.
        AWS's library asks for the role again before its keys expire."""
        if self.role_arn is None:
            return self.settings
        found = {
            "client.factory": "org.apache.iceberg.aws.AssumeRoleAwsClientFactory",
            "client.assume-role.arn": self.role_arn,
            "client.assume-role.region": self.region or ANY_REGION,
        }
        return self.settings | found | self._external

    @property
    def _external(self) -> dict[str, str]:
        return {} if self.external_id is None else {"client.assume-role.external-id": self.external_id}

    @property
    def put_arguments(self) -> dict[str, str]:
        """What boto3's puts are called with, for the encryption that is wanted."""
        match self.encryption:
            case "s3":
                return {"ServerSideEncryption": "AES256"}
            case "kms":
                key = {"SSEKMSKeyId": self.kms_key} if self.kms_key else {}
                return {"ServerSideEncryption": "aws:kms"} | key
        return {}

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def checked(cls, **given: Any) -> Self:
        """Of what a user said: refused where it could not be what it seems."""
        place = cls(**given)
        what = f"storage '{place.name}'" if place.name is not None else "the storage of the configuration"
        _check(place.name, NAME, f"'{place.name}' cannot name a storage.", "Use letters, digits, _ and -.")
        _check(
            place.bucket,
            BUCKET,
            f"'{place.bucket}' is no name of a bucket.",
            "Say s3://BUCKET or s3://BUCKET/PREFIX.",
        )
        if place.prefix and (
            not PREFIX.fullmatch(place.prefix) or {".", ".."} & set(place.prefix.split("/"))
        ):
            raise InvalidRequest(
                f"The prefix '{place.prefix!a}' of {what} cannot be used.", "Use a/plain/path."
            )
        for value, pattern, noun, remedy in (
            (place.role_arn, ROLE, "role", "Say arn:aws:iam::ACCOUNT:role/NAME."),
            (place.kms_key, KMS_KEY, "KMS key", "Say arn:aws:kms:REGION:ACCOUNT:key/ID."),
            (place.endpoint, ENDPOINT, "endpoint", "Say https://HOST or https://HOST:PORT, without a user."),
            (place.external_id, EXTERNAL_ID, "external id", "Use letters, digits and + = , . @ : / -"),
            (place.region, REGION, "region", "Say for instance eu-central-1."),
        ):
            _check(value, pattern, f"The {noun} of {what} is not one.", remedy)
        if place.encryption not in ENCRYPTIONS:
            raise InvalidRequest(
                f"'{place.encryption}' is no encryption of {what}.", f"Say one of {', '.join(ENCRYPTIONS)}."
            )
        if place.kms_key is not None and place.encryption != "kms":
            raise InvalidRequest(
                f"The KMS key of {what} needs the encryption kms.", "Say kms, or leave it out."
            )
        if place.external_id is not None and place.role_arn is None:
            raise InvalidRequest(f"The external id of {what} is for a role.", "Name the role too.")
        return place


def plain(location: str) -> str:
    """Bucket and key, without the scheme: s3, s3a and s3n are the same."""
    return location.partition("://")[2].rstrip("/")


def is_s3(location: str) -> bool:
    return location.partition("://")[0].lower() in S3_SCHEMES


def split(uri: str) -> tuple[str, str]:
    """Bucket and prefix of `s3://bucket/prefix`."""
    if not is_s3(uri):
        raise InvalidRequest(f"'{uri}' is not in S3.", "Say s3://BUCKET or s3://BUCKET/PREFIX.")
    bucket, _, prefix = plain(uri).partition("/")
    return bucket, prefix.strip("/")


def _check(value: str | None, pattern: re.Pattern[str], message: str, remedy: str) -> None:
    if value is not None and not pattern.fullmatch(value):
        raise InvalidRequest(message, remedy)
