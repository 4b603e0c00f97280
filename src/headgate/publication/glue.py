"""AWS Glue: an Iceberg table as Athena, Redshift, EMR and Iceberg's own Glue catalog read it."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import boto3
from botocore.config import Config
from botocore.credentials import AssumeRoleCredentialFetcher, DeferredRefreshableCredentials
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
    ProfileNotFound,
)
from botocore.session import get_session

from headgate.errors import NotPublishable, OutsideMoved, OutsideRefused, OutsideUnavailable
from headgate.publication.options import GlueOptions
from headgate.publication.outside import Entry, Guard, PublishedTable
from headgate.publication.types import glue_columns
from headgate.storage.place import ANY_REGION

UUID_KEY, TOPIC_KEY, SEQUENCE_KEY = "headgate.table-uuid", "headgate.topic", "headgate.sequence-number"
CLUSTER_KEY = "headgate.cluster"
POINTER_KEY, FORMER_KEY = "metadata_location", "previous_metadata_location"
_CONFIG = Config(connect_timeout=5, read_timeout=20, retries={"max_attempts": 2, "mode": "standard"})
_ROLE_SESSION = re.compile(r"arn:(aws[a-z-]*):sts::(\d{12}):assumed-role/([^/]+)/.*")
_REFUSED = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "ExpiredToken",
        "ExpiredTokenException",
        "IncompleteSignature",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "MissingAuthenticationToken",
        "OptInRequired",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)
# The last: what was there a moment ago, the entry or its database, is gone.
_MOVED = frozenset({"ConcurrentModificationException", "VersionMismatchException", "EntityNotFoundException"})
_AWAY = frozenset(
    {
        "InternalServiceException",
        "OperationTimeoutException",
        "RequestLimitExceeded",
        "ResourceNotReadyException",
        "ThrottlingException",
    }
)


class GlueCatalog:
    """One database of a Glue catalog. An entry is swapped by its version: what Glue does not have any more in
    that version it does not change."""

    def __init__(self, options: GlueOptions, database: str, cluster: str, secret: str | None) -> None:
        self._database = database
        self._cluster = cluster
        self._catalog = {} if options.catalog_id is None else {"CatalogId": options.catalog_id}
        with _glue_errors():
            self._glue = _client(options, secret)

    def prepare(self) -> None:
        with _glue_errors(f"database '{self._database}'"):
            try:
                self._glue.get_database(Name=self._database, **self._catalog)
            except ClientError as error:
                if _code(error) != "EntityNotFoundException":
                    raise
                self._create_database()

    def _create_database(self) -> None:
        said = {
            "Name": self._database,
            "Description": f"Topics of the cluster '{self._cluster}' as tables",
            "Parameters": {CLUSTER_KEY: self._cluster},
        }
        try:
            self._glue.create_database(DatabaseInput=said, **self._catalog)
        except ClientError as error:
            if _code(error) != "AlreadyExistsException":
                raise

    def mark(self, table: PublishedTable) -> str:
        return table.metadata_location

    def entry(self, name: str) -> Entry | None:
        with _glue_errors(f"table '{self._database}.{name}'"):
            try:
                found = self._glue.get_table(DatabaseName=self._database, Name=name, **self._catalog)["Table"]
            except ClientError as error:
                if _code(error) == "EntityNotFoundException":
                    return None
                raise
        said: Mapping[str, str] = found.get("Parameters") or {}
        sequence = said.get(SEQUENCE_KEY, "")
        return Entry(
            uuid=said.get(UUID_KEY),
            mark=said.get(POINTER_KEY),
            metadata_location=said.get(POINTER_KEY),
            sequence=int(sequence) if sequence.isdigit() else None,
            version=found.get("VersionId"),
            said=found,
        )

    def put(self, name: str, table: PublishedTable, before: Entry | None, guard: Guard) -> None:
        wanted = self._input(name, table, before)
        where = {"DatabaseName": self._database, **self._catalog}
        with _glue_errors(f"table '{self._database}.{name}'"):
            guard()
            if before is None:
                try:
                    self._glue.create_table(TableInput=wanted, **where)
                except ClientError as error:
                    if _code(error) == "AlreadyExistsException":
                        raise OutsideMoved(f"Somebody else has just made '{name}' in Glue.") from error
                    raise
            elif before.version is None:
                raise OutsideRefused(
                    f"Glue tells no version of table '{self._database}.{name}': it cannot be swapped safely.",
                    "Use an endpoint that keeps versions of tables.",
                )
            else:
                # No archive: the pointer moves with every batch.
                self._glue.update_table(
                    TableInput=wanted, VersionId=before.version, SkipArchive=True, **where
                )

    def remove(self, name: str, before: Entry, guard: Guard) -> None:
        with _glue_errors(f"table '{self._database}.{name}'"):
            guard()
            try:
                self._glue.delete_table(DatabaseName=self._database, Name=name, **self._catalog)
            except ClientError as error:
                if _code(error) != "EntityNotFoundException":
                    raise

    def close(self) -> None:
        self._glue.close()

    def _input(self, name: str, table: PublishedTable, before: Entry | None) -> dict[str, Any]:
        said = {} if before is None else dict(before.said.get("Parameters") or {})
        # What others have added to our entry stays.
        said |= {
            "EXTERNAL": "TRUE",
            "table_type": "ICEBERG",
            POINTER_KEY: table.metadata_location,
            CLUSTER_KEY: self._cluster,
            TOPIC_KEY: table.topic,
            UUID_KEY: table.uuid,
            SEQUENCE_KEY: str(table.sequence),
        }
        said.pop(FORMER_KEY, None)
        if before is not None and before.uuid == table.uuid and before.metadata_location is not None:
            said[FORMER_KEY] = before.metadata_location
        return {
            "Name": name,
            "Description": f"Topic '{table.topic}' of the cluster '{self._cluster}'"[:2048],
            "TableType": "EXTERNAL_TABLE",
            "Parameters": said,
            "PartitionKeys": [],
            "StorageDescriptor": {"Columns": glue_columns(table.schema), "Location": table.location},
        }


def caller_arn(options: GlueOptions, secret: str | None) -> str:
    """The user or role whose keys these are, before any role is taken on, as STS tells it."""
    with _glue_errors("who asks"):
        client = _session(options, secret).client(
            "sts", region_name=options.region or ANY_REGION, config=_CONFIG
        )
        try:
            arn = str(client.get_caller_identity()["Arn"])
        finally:
            client.close()
    # A session of a role stands for the role: policies name that.
    match = _ROLE_SESSION.fullmatch(arn)
    return arn if match is None else f"arn:{match[1]}:iam::{match[2]}:role/{match[3]}"


def _session(options: GlueOptions, secret: str | None) -> Any:
    return boto3.Session(
        aws_access_key_id=options.access_key_id,
        aws_secret_access_key=secret,
        region_name=options.region,
        profile_name=options.profile,
    )


def _client(options: GlueOptions, secret: str | None) -> Any:
    session = _session(options, secret)
    if options.role_arn is not None:
        session = _assumed(session, options)
    return session.client("glue", endpoint_url=options.endpoint, config=_CONFIG)


def _assumed(session: Any, options: GlueOptions) -> Any:
    """As the role: its keys are asked for when they are needed, and again before they end."""
    arguments = {"RoleSessionName": "headgate-publication"}
    if options.external_id is not None:
        arguments["ExternalId"] = options.external_id
    credentials = session.get_credentials()
    if credentials is None:
        raise NoCredentialsError
    region = session.region_name

    def client(service: str, **given: Any) -> Any:
        return session.client(service, **{"region_name": region, **given})

    fetcher = AssumeRoleCredentialFetcher(client, credentials, options.role_arn, arguments)
    inner = get_session()
    inner._credentials = DeferredRefreshableCredentials(fetcher.fetch_credentials, "assume-role")
    return boto3.Session(botocore_session=inner, region_name=region)


@contextmanager
def _glue_errors(what: str = "the catalog") -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        raise _error_of(error, what) from error
    except (NoCredentialsError, PartialCredentialsError, NoRegionError, ProfileNotFound) as error:
        raise OutsideRefused(
            f"Glue cannot be asked: {error}.",
            "Give the engine AWS's variables or a profile, or add the catalog with its own.",
        ) from error
    except BotoCoreError as error:
        raise OutsideUnavailable(f"Glue does not answer: {error}") from error


def _error_of(error: ClientError, what: str) -> Exception:
    code = _code(error)
    said = f"Glue, on {what}: {code}: {error.response.get('Error', {}).get('Message', '')}"
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode") or 0)
    if code in _REFUSED or status in (401, 403):
        return OutsideRefused(said, "`headgate catalog policy` prints what Headgate needs there.")
    if code in _MOVED:
        return OutsideMoved(said)
    if code in _AWAY or status >= 500 or status == 429:
        return OutsideUnavailable(said)
    return NotPublishable(said)


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", "unknown"))
