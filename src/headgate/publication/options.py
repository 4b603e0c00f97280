"""What is said of an outside catalog when it is added. Secrets are named, never given."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from headgate.config import LOOPBACK_HOSTS
from headgate.errors import InvalidRequest
from headgate.model import TableFormat
from headgate.publication.names import check_outside_name, outside_name
from headgate.storage import Place


def _url(text: str) -> str:
    url = urlsplit(text)
    if url.username or url.password or url.query or url.fragment:
        raise ValueError("a URL without user, password, ? and #: secrets are named by --secret")
    if url.scheme == "http" and url.hostname in LOOPBACK_HOSTS:
        return text.rstrip("/")
    if url.scheme != "https" or not url.hostname:
        raise ValueError("must begin with https://, as secrets are sent there")
    return text.rstrip("/")


Url = Annotated[str, AfterValidator(_url)]


class _Options(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, populate_by_name=True)

    # By topic, where the name that follows from it will not do.
    names: dict[str, str] = Field(default_factory=dict)


class GlueOptions(_Options):
    """Without keys or a profile, whatever AWS's tools find in the engine's environment. With `storage`,
    the role of that place."""

    region: str | None = Field(None, pattern=r"^[a-z0-9-]{4,30}$")
    database: str | None = None
    catalog_id: str | None = Field(None, pattern=r"^\d{12}$")
    endpoint: Url | None = None
    profile: str | None = None
    access_key_id: str | None = Field(None, pattern=r"^[A-Z0-9a-z]{8,128}$")
    secret: str | None = None
    role_arn: str | None = Field(None, pattern=r"^arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]+$")
    external_id: str | None = Field(None, min_length=2, max_length=1224, pattern=r"^[A-Za-z0-9_+=,.@:/-]+$")
    storage: str | None = None

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if (self.access_key_id is None) != (self.secret is None):
            raise ValueError("access_key_id and secret belong together")
        if self.access_key_id is not None and self.profile is not None:
            raise ValueError("give a profile or an access_key_id, not both")
        if self.external_id is not None and self.role_arn is None:
            raise ValueError("an external_id is for a role: name it in role_arn")
        others = (self.access_key_id, self.profile, self.role_arn, self.external_id)
        if self.storage is not None and any(one is not None for one in others):
            raise ValueError("a storage brings its role: leave out keys, profile, role_arn and external_id")
        return self


class UnityOptions(_Options):
    """A workspace of Databricks, or any other Unity Catalog that takes a token."""

    url: Url
    catalog: str
    schema_name: str | None = Field(None, alias="schema")
    client_id: str
    secret: str
    token_url: Url | None = None
    scope: str = "all-apis"


class RestOptions(_Options):
    """Any Iceberg REST catalog that can register tables."""

    uri: Url
    warehouse: str | None = None
    namespace: str | None = None
    client_id: str | None = None
    secret: str | None = None
    token_url: Url | None = None
    scope: str = "catalog"

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if (self.client_id is None) != (self.secret is None):
            raise ValueError("client_id and secret belong together")
        if self.token_url is not None and self.client_id is None:
            raise ValueError("a token_url is for a client_id and its secret")
        return self


Options = GlueOptions | UnityOptions | RestOptions
KINDS: Mapping[str, tuple[type[Options], TableFormat]] = {
    "glue": (GlueOptions, TableFormat.ICEBERG),
    "unity": (UnityOptions, TableFormat.DELTA),
    "rest": (RestOptions, TableFormat.ICEBERG),
}


def parse_options(kind: str, given: Mapping[str, Any]) -> Options:
    if kind not in KINDS:
        raise InvalidRequest(f"'{kind}' is no kind of catalog.", f"Say {', '.join(KINDS)}.")
    try:
        options = KINDS[kind][0].model_validate(dict(given))
    except ValidationError as error:
        raise InvalidRequest(f"A catalog of kind {kind} cannot be so: {_said(error)}.") from error
    for topic, name in options.names.items():
        check_outside_name(kind, name, f"the table of topic '{topic}'")
    match options:
        case GlueOptions(database=str(name)):
            check_outside_name(kind, name, "a database")
        case UnityOptions(schema_name=str(name)):
            check_outside_name(kind, name, "a schema")
        case RestOptions(namespace=str(name)):
            check_outside_name(kind, name, "a namespace")
    return options


def as_place(options: Options, place_of: Callable[[str], Place]) -> Options:
    """With what a named storage brings: its role, and the region where none was said."""
    if not isinstance(options, GlueOptions) or options.storage is None:
        return options
    found = place_of(options.storage)
    if found.role_arn is None:
        raise InvalidRequest(
            f"Storage '{options.storage}' has no role that Glue could be asked as.",
            "Leave --storage out: Glue is asked with the engine's own keys then.",
        )
    brought = {"role_arn": found.role_arn, "external_id": found.external_id}
    return options.model_copy(update={**brought, "region": options.region or found.region})


def format_of(kind: str, wanted: str | None) -> TableFormat:
    """Each kind of catalog takes one format."""
    found = KINDS[kind][1]
    if wanted is not None and wanted != found.value:
        raise InvalidRequest(
            f"Tables are published to a catalog of kind {kind} as {found.value}, not as {wanted}.",
            f"Say --format {found.value}, or leave it out.",
        )
    return found


def place(kind: str, options: Options, cluster: str) -> str:
    """The database, schema or namespace: the cluster's name, unless another was chosen."""
    match options:
        case GlueOptions():
            chosen = options.database
        case UnityOptions():
            chosen = options.schema_name
        case RestOptions():
            chosen = options.namespace
    return chosen or outside_name(kind, cluster)


def table_name(kind: str, options: Options, topic: str) -> str:
    return options.names.get(topic) or outside_name(kind, topic)


def _said(error: ValidationError) -> str:
    """Which option, and what is wrong with it: never what was given."""
    found = []
    for problem in error.errors(include_input=False, include_url=False):
        where = ".".join(str(part) for part in problem["loc"])
        found.append(f"{where}: {problem['msg']}" if where else problem["msg"])
    return "; ".join(found)
