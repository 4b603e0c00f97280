"""Whether a place can be used: an object is written, read, listed and removed there."""

import uuid
from collections.abc import Callable
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from headgate.errors import InvalidRequest
from headgate.storage.aws import s3_client
from headgate.storage.place import Place

# A name that begins with `_`: no reader takes it for data.
FOLDER = "_headgate_probe"


def probe(place: Place, open_client: Callable[[Place], Any] = s3_client) -> None:
    """Leaves nothing behind. What fails is said with what to allow."""
    client = _tried(place, "take on the role" if place.role_arn else "find keys", lambda: open_client(place))
    key = "/".join(part for part in (place.prefix, FOLDER, str(uuid.uuid4())) if part)
    content = f"headgate {key}".encode()
    there = {"Bucket": place.bucket, "Key": key}
    try:
        put = {**there, "Body": content, **place.put_arguments}
        _tried(place, "write", lambda: client.put_object(**put, IfNoneMatch="*"))
        try:
            _check_once(place, client, put)
            _check_read(place, client, there, content)
            _check_listed(place, client, key)
        finally:
            _tried(place, "delete", lambda: client.delete_object(**there))
    finally:
        client.close()


def _check_once(place: Place, client: Any, put: dict[str, Any]) -> None:
    """Two engines must not both make a version of a Delta log."""
    try:
        client.put_object(**put, IfNoneMatch="*")
    except ClientError as error:
        if error.response.get("ResponseMetadata", {}).get("HTTPStatusCode") in (409, 412):
            return
        raise _refused(place, "write only what is not there", error) from error
    raise InvalidRequest(
        f"The store of {_what(place)} replaces an object that it was asked to make only if there is none.",
        "Use a store that knows conditional writes (If-None-Match): two engines must know who was first.",
    )


def _check_read(place: Place, client: Any, there: dict[str, str], content: bytes) -> None:
    found = _tried(place, "read", lambda: client.get_object(**there)["Body"].read())
    if found != content:
        raise InvalidRequest(f"What was written to {_what(place)} came back changed.")


def _check_listed(place: Place, client: Any, key: str) -> None:
    listed = _tried(place, "list", lambda: client.list_objects_v2(Bucket=place.bucket, Prefix=key))
    if key not in [one["Key"] for one in listed.get("Contents", ())]:
        raise InvalidRequest(
            f"What was written to {_what(place)} is not in its list.",
            "Tables need a store that lists what was written at once.",
        )


def _tried(place: Place, doing: str, act: Callable[[], Any]) -> Any:
    try:
        return act()
    except (BotoCoreError, ClientError) as error:
        raise _refused(place, doing, error) from error


def _refused(place: Place, doing: str, error: Exception) -> InvalidRequest:
    return InvalidRequest(
        f"Cannot {doing} at {_what(place)}: {str(error).rstrip('.')}.",
        "Nothing was kept. Headgate uses the keys of its own environment (AWS_ACCESS_KEY_ID, AWS_PROFILE); "
        "`headgate storage policy NAME URI` says what they, or the role, must be allowed.",
    )


def _what(place: Place) -> str:
    return place.root if place.endpoint is None else f"{place.root} ({place.endpoint})"
