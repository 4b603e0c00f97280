"""Outside catalogs, and the tables in them; storage; and the policies that both need."""

from typing import Literal

from pydantic import JsonValue

from headgate.model import TableFormat
from headgate.publication.options import GlueOptions, RestOptions, UnityOptions
from headgate.server.answers.events import AgedEventAnswer
from headgate.server.answers.shape import Maybe, Shape
from headgate.store import IntegrationState, PublicationState


class PublicationAnswer(Shape):
    """A table in an outside catalog; `name` is its own there."""

    catalog: str
    topic: str
    name: str | None
    state: PublicationState
    reason: str
    since: float
    metadata_location: str | None
    published_at: float | None


class CatalogAnswer(Shape):
    """An outside catalog, with its tables. Of its options those that were said."""

    name: str
    kind: Literal["glue", "unity", "rest"]
    format: TableFormat
    state: IntegrationState
    reason: str
    since: float
    desired: Literal["present", "removed"]
    place: str
    options: GlueOptions | UnityOptions | RestOptions
    created_at: float
    tables: list[PublicationAnswer]


class ShownCatalogAnswer(CatalogAnswer):
    """One catalog, with what happened to it."""

    age: float
    events: list[AgedEventAnswer]


# Of IAM, of a bucket or of a key: AWS's own language.
PolicyAnswer = dict[str, JsonValue]


class StorageAnswer(Shape):
    """A named place in an object store."""

    uri: str
    name: str | None
    bucket: str
    prefix: str
    region: str | None
    endpoint: str | None
    path_style: bool
    encryption: Literal["none", "s3", "kms"]
    kms_key: str | None
    role_arn: str | None
    external_id: str | None


class ShownStorageAnswer(StorageAnswer):
    """One place, with the tables that are wanted there, and the catalogs that are asked as its role."""

    tables: list[str]
    catalogs: list[str]


class StoragePoliciesAnswer(Shape):
    """What IAM must allow; `trust` and `assume` are of a place with a role."""

    access: PolicyAnswer
    reader: PolicyAnswer
    trust: Maybe[PolicyAnswer]
    assume: Maybe[PolicyAnswer]
