"""boto3's clients of a place: with the keys of the environment, by way of the place's role if it has one."""

import threading
from typing import Any

import boto3
import botocore.session
from botocore.config import Config
from botocore.credentials import RefreshableCredentials

from headgate.storage.place import ANY_REGION, Place

SESSION_SECONDS = 3600
_CONFIG = {"connect_timeout": 10, "read_timeout": 60, "retries": {"max_attempts": 4, "mode": "standard"}}


def s3_client(place: Place) -> Any:
    """Keys of a role are asked for again before they expire."""
    session = boto3.Session() if place.role_arn is None else _as_role(place)
    style = {"addressing_style": "path" if place.path_style else "auto"}
    return session.client(
        "s3",
        region_name=place.region or session.region_name or ANY_REGION,
        endpoint_url=place.endpoint,
        # Checksums that not every store knows are sent only where S3 demands them.
        config=Config(
            **_CONFIG,
            s3=style,
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        ),
    )


def sts_client(place: Place) -> Any:
    """Its address is AWS's for the region, or what AWS_ENDPOINT_URL_STS says."""
    return boto3.Session().client("sts", region_name=place.region or ANY_REGION, config=Config(**_CONFIG))


def assume(place: Place, session_name: str, policy: str | None = None) -> dict[str, Any]:
    """Keys of the place's role for an hour, for no more than `policy` allows."""
    assert place.role_arn is not None
    said: dict[str, Any] = {
        "RoleArn": place.role_arn,
        "RoleSessionName": session_name,
        "DurationSeconds": SESSION_SECONDS,
    }
    if place.external_id is not None:
        said["ExternalId"] = place.external_id
    if policy is not None:
        said["Policy"] = policy
    client = sts_client(place)
    try:
        found: dict[str, Any] = client.assume_role(**said)["Credentials"]
    finally:
        client.close()
    return found


def _as_role(place: Place) -> Any:
    def refresh() -> dict[str, str]:
        keys = assume(place, "headgate")
        return {
            "access_key": keys["AccessKeyId"],
            "secret_key": keys["SecretAccessKey"],
            "token": keys["SessionToken"],
            "expiry_time": keys["Expiration"].isoformat(),
        }

    below = botocore.session.get_session()
    credentials = RefreshableCredentials.create_from_metadata(refresh(), refresh, "sts-assume-role")
    # botocore has no public way to hand it credentials that renew themselves.
    below._credentials = credentials
    return boto3.Session(botocore_session=below)


class Clients:
    """One client for each place, for as long as the process lives. For many threads."""

    def __init__(self) -> None:
        self._clients: dict[Place, Any] = {}
        self._lock = threading.Lock()

    def of(self, place: Place) -> Any:
        with self._lock:
            if place not in self._clients:
                self._clients[place] = s3_client(place)
            return self._clients[place]
