"""headgate.yaml and the environment become one frozen Settings, once. Unknown keys are refused.

`HEADGATE_PORTS__SERVER=0` in the environment is `ports: {server: 0}` in the file, and wins over it.
"""

import difflib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args
from urllib.parse import urlsplit

import yaml
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)

from headgate.errors import ConfigError
from headgate.options import TableOptions, parse_duration

__all__ = ["parse_duration"]
PREFIX = "HEADGATE_"
# Read by clients and scripts, not part of the settings.
CLIENT_VARIABLES = {
    "HEADGATE_URL",
    "HEADGATE_CLIENT_ID",
    "HEADGATE_CLIENT_SECRET",
    "HEADGATE_CA_FILE",
    "HEADGATE_SOAK",
    "HEADGATE_DEBUG",
    "HEADGATE_FAILPOINTS",
}


# Client options that are harmless and known to librdkafka and to the Java client, with the numbers that both
# take. Anything else could read files, load classes or undo what exactly-once rests on.
KAFKA_OPTIONS: Mapping[str, tuple[int, int] | None] = {
    "client.dns.lookup": None,
    "client.id": None,
    "client.rack": None,
    "connections.max.idle.ms": (0, 2**31 - 1),
    "fetch.max.bytes": (1_048_576, 1_000_000_000),
    "fetch.max.wait.ms": (0, 300_000),
    "fetch.min.bytes": (1, 100_000_000),
    "max.partition.fetch.bytes": (1, 1_000_000_000),
    "metadata.max.age.ms": (1_000, 86_400_000),
    "receive.buffer.bytes": (0, 100_000_000),
    "reconnect.backoff.max.ms": (100, 3_600_000),
    "reconnect.backoff.ms": (0, 10_000),
    "request.timeout.ms": (1_000, 120_000),
    "retry.backoff.max.ms": (1, 300_000),
    "retry.backoff.ms": (1, 300_000),
    "send.buffer.bytes": (0, 100_000_000),
    "socket.connection.setup.timeout.ms": (1_000, 2**31 - 1),
}
_OPTION_TEXTS = {"client.dns.lookup": re.compile("use_all_dns_ips|resolve_canonical_bootstrap_servers_only")}
_ANY_NAME = re.compile(r"[A-Za-z0-9._-]{1,200}")


# Where a setting comes from that was given.
Source = Literal["file", "environment"]


def _count(*values: object) -> int:
    """How many were given."""
    return sum(value is not None for value in values)


def _cased(change: Callable[[str], str], value: Any) -> Any:
    return change(value) if isinstance(value, str) else value


def _words(value: Any) -> Any:
    """In the environment a list is one text."""
    return [word.strip() for word in value.split(",") if word.strip()] if isinstance(value, str) else value


class Section(BaseModel):
    # What was given may be a secret in the wrong place: no error repeats it.
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class Cluster(Section):
    name: str = Field("local", pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$")


class Ports(Section):
    """0 lets the system choose."""

    server: int = Field(8080, ge=0, le=65535)
    broker: int = Field(9092, ge=0, le=65535)
    connect: int = Field(15002, ge=0, le=65535)


class OAuth(Section):
    """Tokens by the client credentials grant."""

    token_url: str | None = Field(None, pattern=r"^https?://[^@\s]+$")
    client_id: str | None = None
    client_secret: SecretStr | None = None
    client_secret_file: Path | None = None
    scope: str | None = None
    ca_file: Path | None = Field(None, description="Certificates that the token server is checked with.")

    def check(self) -> None:
        if self.token_url is None or self.client_id is None:
            raise ValueError("OAUTHBEARER needs oauth.token_url and oauth.client_id")
        if _count(self.client_secret, self.client_secret_file) != 1:
            raise ValueError("OAUTHBEARER needs one of oauth.client_secret and oauth.client_secret_file")


class Security(Section):
    protocol: Annotated[
        Literal["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"],
        BeforeValidator(partial(_cased, str.lower)),
    ] = "plaintext"
    mechanism: Annotated[
        Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] | None,
        BeforeValidator(partial(_cased, str.upper)),
    ] = None
    username: str | None = None
    password: SecretStr | None = None
    password_file: Path | None = None
    oauth: OAuth = OAuth()
    ca_file: Path | None = Field(None, description="Certificates that the brokers are checked with.")
    certificate_file: Path | None = Field(None, description="Headgate's own certificate, with its chain.")
    key_file: Path | None = Field(None, description="The certificate's key, in PKCS#8.")
    key_password: SecretStr | None = None
    key_password_file: Path | None = None
    check_hostname: bool = True

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        self._check_login()
        self._check_tls()
        return self

    def _check_login(self) -> None:
        if not self.protocol.startswith("sasl_"):
            given = (self.mechanism, self.username, self.password, self.password_file)
            if _count(*given) or self.oauth != OAuth():
                raise ValueError(f"protocol {self.protocol} takes no login; use sasl_ssl or sasl_plaintext")
        elif self.mechanism is None:
            raise ValueError(f"protocol {self.protocol} needs a mechanism")
        elif self.mechanism == "OAUTHBEARER":
            if _count(self.username, self.password, self.password_file):
                raise ValueError(
                    "OAUTHBEARER takes no username or password, but oauth.client_id and its secret"
                )
            self.oauth.check()
        elif self.username is None or _count(self.password, self.password_file) != 1:
            raise ValueError(f"{self.mechanism} needs a username and one of password and password_file")
        elif self.oauth != OAuth():
            raise ValueError("oauth is for the mechanism OAUTHBEARER")

    def _check_tls(self) -> None:
        if not self.protocol.endswith("ssl") and _count(self.ca_file, self.certificate_file, self.key_file):
            raise ValueError(f"protocol {self.protocol} takes no certificates; use ssl or sasl_ssl")
        if _count(self.certificate_file, self.key_file) == 1:
            raise ValueError("certificate_file and key_file belong together")
        if (given := _count(self.key_password, self.key_password_file)) and self.key_file is None:
            raise ValueError("a key_password needs a key_file")
        if given == 2:
            raise ValueError("give one of key_password and key_password_file")


class Kafka(Section):
    bootstrap: str | None = Field(None, description="Your own Kafka; none starts the embedded broker.")
    security: Security = Security()
    options: dict[str, int | str] = Field(default_factory=dict, description="Options of Kafka's clients.")

    @field_validator("options")
    @classmethod
    def _allowed(cls, options: dict[str, int | str]) -> dict[str, int | str]:
        for name, value in options.items():
            if name not in KAFKA_OPTIONS:
                raise ValueError(f"'{name}' cannot be set. Allowed are {', '.join(KAFKA_OPTIONS)}")
            limits = KAFKA_OPTIONS[name]
            if limits is None:
                if not _OPTION_TEXTS.get(name, _ANY_NAME).fullmatch(str(value)):
                    raise ValueError(f"'{name}' cannot have that value")
            elif not (str(value).isdecimal() and limits[0] <= int(value) <= limits[1]):
                raise ValueError(f"'{name}' must be a number from {limits[0]} to {limits[1]}")
        return options

    @model_validator(mode="after")
    def _is_yours(self) -> Self:
        if self.bootstrap is None and (self.security != Security() or self.options):
            raise ValueError("security and options are for your own Kafka: name it in kafka.bootstrap")
        return self


class RegistryAuth(Section):
    username: str | None = Field(None, pattern="^[^:]+$")
    password: SecretStr | None = None
    password_file: Path | None = None
    token: SecretStr | None = None
    token_file: Path | None = None
    logical_cluster: str | None = Field(None, description="Sent with a token, where the registry wants it.")
    identity_pool: str | None = Field(None, description="Sent with a token, where the registry wants it.")

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        passwords, tokens = _count(self.password, self.password_file), _count(self.token, self.token_file)
        if passwords + tokens > 1:
            raise ValueError("give one of password, password_file, token and token_file")
        if passwords != _count(self.username):
            raise ValueError("a username and a password (or password_file) belong together")
        if not tokens and _count(self.logical_cluster, self.identity_pool):
            raise ValueError("logical_cluster and identity_pool go with a token")
        return self


class Registry(Section):
    url: str | None = Field(None, description="Your own schema registry; none serves the embedded one.")
    auth: RegistryAuth = RegistryAuth()
    ca_file: Path | None = Field(None, description="Certificates that the registry is checked with.")
    certificate_file: Path | None = Field(None, description="Headgate's own certificate, with its chain.")
    key_file: Path | None = None
    key_password: SecretStr | None = None
    key_password_file: Path | None = None

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        given = _count(self.ca_file, self.certificate_file, self.key_file)
        if self.url is None and (given or self.auth != RegistryAuth()):
            raise ValueError("auth and certificates are for your own registry: name it in registry.url")
        if _count(self.certificate_file, self.key_file) == 1:
            raise ValueError("certificate_file and key_file belong together")
        if (given := _count(self.key_password, self.key_password_file)) and self.key_file is None:
            raise ValueError("a key_password needs a key_file")
        if given == 2:
            raise ValueError("give one of key_password and key_password_file")
        if self.url is not None and "@" in self.url and self.auth != RegistryAuth():
            raise ValueError("the user is in registry.url and in registry.auth; leave one out")
        return self


class Catalog(Section):
    uri: str | None = Field(None, description="Your own Iceberg REST catalog; none serves the embedded one.")
    warehouse: str | None = Field(
        None, description="Where tables are stored (embedded catalog), or the warehouse's name (your own)."
    )
    database: str | None = Field(
        None, description="SQLAlchemy URL of the embedded catalog's database; none is SQLite."
    )
    locations: Annotated[tuple[str, ...], BeforeValidator(_words)] = Field(
        (), description="Further places where tables may lie (embedded)."
    )
    properties: dict[str, str] = Field(default_factory=dict, description="Further properties for your own.")


class Spark(Section):
    master: str = "local[*]"
    memory: str = Field("3g", description="Heap of the engine's driver.")
    properties: dict[str, str] = Field(default_factory=dict)


class Connect(Section):
    enabled: bool = Field(False, description="Serve Spark Connect, to whoever has its token.")
    memory: str = Field("2g", description="Heap of the driver of Spark Connect.")


class Engine(Section):
    tick_seconds: float = Field(1.0, gt=0)
    workers: int = Field(4, ge=1, description="Tables that are written at the same time.")
    max_batch_rows: int = Field(4_000_000, ge=1)
    max_batch_bytes: int = Field(2 * 1024**3, ge=1)


def _seconds(value: Any) -> Any:
    try:
        return parse_duration(value) if isinstance(value, str) else value
    except ConfigError as error:
        raise ValueError(str(error)) from error


Duration = Annotated[float, BeforeValidator(_seconds)]


class Query(Section):
    memory: str = Field("2g", pattern=r"^\d+([kmgtKMGT][bB]?)?$", description="Heap of the query driver.")
    start: Literal["eager", "lazy"] = Field(
        "eager", description="Behind READY when there is memory for it, or when somebody asks."
    )
    keep: Duration = Field(30 * 86_400.0, ge=60, description="How long queries are remembered.")
    keep_count: int = Field(10_000, ge=1, description="How many queries are remembered.")


# Files younger than this may be of a commit under way, by this engine or another.
YOUNGEST_ORPHAN_SECONDS = 3600.0


class Maintenance(Section):
    enabled: bool = True
    every: Duration = Field(3600.0, gt=0, description="How often each table is looked at.")
    target_file_bytes: int = Field(128 * 1024**2, ge=1024)
    small_files: int = Field(50, ge=2, description="So many files under a quarter of that are packed.")
    deleted_ratio: float = Field(0.2, gt=0, le=1, description="Deleted rows that call for a rewrite.")
    snapshots_older_than: Duration = Field(5 * 86400.0, ge=0)
    keep_snapshots: int = Field(10, ge=1)
    orphans_older_than: Duration = Field(3 * 86400.0, ge=YOUNGEST_ORPHAN_SECONDS)


LOOPBACK_HOSTS = frozenset({"127.0.0.1", "::1", "localhost"})


class Public(Section):
    """A second address, for other machines: there a token is always asked for."""

    host: str | None = Field(None, description="Where to listen, 0.0.0.0 for everywhere; none does not.")
    port: int = Field(8443, ge=1, le=65535)
    url: str | None = Field(
        None,
        pattern=r"^https?://[^@\s?#]+$",
        description="What clients call it, behind a proxy for instance.",
    )
    certificate_file: Path | None = Field(None, description="The server's certificate, with its chain.")
    key_file: Path | None = None
    insecure: bool = Field(False, description="Without TLS: secrets and data can be read on the way.")

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        given = _count(self.certificate_file, self.key_file)
        if self.host is None and (given or self.insecure or self.url):
            raise ValueError("the rest is for an address to listen on: name it in public.host")
        if given == 1:
            raise ValueError("certificate_file and key_file belong together")
        if given and self.insecure:
            raise ValueError("with a certificate it is not insecure: leave one out")
        if self.host is not None and self.host not in LOOPBACK_HOSTS and not (given or self.insecure):
            raise ValueError(
                "an address that other machines reach needs certificate_file and key_file "
                "(or insecure: true, where something else encrypts or nothing has to)"
            )
        return self


class Oidc(Section):
    """Another issuer of tokens."""

    issuer: str | None = Field(None, description="As its tokens name it.")
    jwks_url: str | None = Field(None, description="Where it publishes its keys.")
    audience: str | None = Field(None, description="What its tokens for Headgate are for.")
    token_url: str | None = Field(None, description="Told to clients, which ask for tokens there.")
    claim: str = Field("groups", description="The claim that says what a token opens.")
    grants: dict[str, str] = Field(
        default_factory=dict, description="For values of that claim, a grant: `reader:local:*`."
    )
    ca_file: Path | None = Field(None, description="Certificates that the issuer is checked with.")

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        named = _count(self.issuer, self.jwks_url, self.audience)
        if named not in (0, 3):
            raise ValueError("issuer, jwks_url and audience belong together")
        if not named and (self.token_url or self.grants or self.ca_file):
            raise ValueError("the rest is for an issuer: name it in auth.oidc.issuer")
        for key in ("jwks_url", "token_url"):
            url = urlsplit(getattr(self, key) or "https://none")
            if url.scheme != "https" and not (url.scheme == "http" and url.hostname in LOOPBACK_HOSTS):
                raise ValueError(f"{key} must begin with https://")
        return self


class Auth(Section):
    required: bool = Field(
        False, description="Ask for a token on loopback too, of the service's own user as well."
    )
    token_lifetime: Duration = Field(3600.0, ge=60, le=86_400)
    session_lifetime: Duration = Field(
        12 * 3600.0, ge=60, le=7 * 86_400, description="How long a browser stays signed in."
    )
    key_lifetime: Duration = Field(30 * 86_400.0, ge=3600, description="How long a key signs tokens.")
    oidc: Oidc = Oidc()


class ReaderLimits(Section):
    """Of queries, by who asks. 0 is no limit."""

    rows: int = Field(1_000_000, ge=0, description="Rows that a query gives.")
    bytes: int = Field(1024**3, ge=0, description="Bytes that a query's rows take on the way.")
    scanned: int = Field(100 * 1024**3, ge=0, description="Bytes of the files that a query reads.")
    seconds: Duration = Field(600.0, ge=0, description="How long a query runs that has an end.")
    concurrent: int = Field(4, ge=0, description="Queries that one client runs at a time.")


class WriterLimits(ReaderLimits):
    rows: int = Field(10_000_000, ge=0, description="Rows that a query gives.")
    bytes: int = Field(10 * 1024**3, ge=0, description="Bytes that a query's rows take on the way.")
    scanned: int = Field(1024**4, ge=0, description="Bytes of the files that a query reads.")
    seconds: Duration = Field(3600.0, ge=0, description="How long a query runs that has an end.")
    concurrent: int = Field(8, ge=0, description="Queries that one client runs at a time.")


class AdminLimits(ReaderLimits):
    rows: int = Field(0, ge=0, description="Rows that a query gives.")
    bytes: int = Field(0, ge=0, description="Bytes that a query's rows take on the way.")
    scanned: int = Field(0, ge=0, description="Bytes of the files that a query reads.")
    seconds: Duration = Field(0.0, ge=0, description="How long a query runs that has an end.")
    concurrent: int = Field(0, ge=0, description="Queries that one client runs at a time.")


class Limits(Section):
    """What the server takes on. A request that passes one is refused with the name of the setting."""

    body_bytes: int = Field(16 * 1024**2, ge=65_536, description="The longest body of a request.")
    json_depth: int = Field(200, ge=16, le=500, description="How deep lists and objects nest in a body.")
    tokens: int = Field(120, ge=1, description="Tokens that one client is given in a minute.")
    failures: int = Field(
        10, ge=1, description="Wrong secrets for one client id from one address in a minute."
    )
    address_failures: int = Field(
        100, ge=1, description="Wrong secrets and tokens from one address in a minute."
    )
    streams: int = Field(50, ge=1, description="Live streams that one client keeps open.")
    reader: ReaderLimits = ReaderLimits()
    writer: WriterLimits = WriterLimits()
    admin: AdminLimits = AdminLimits()


class Audit(Section):
    keep: Duration = Field(90 * 86_400.0, ge=3600, description="How long the audit trail is kept.")


class Statements(Section):
    checkpoints: str | None = Field(
        None, description="Where statements keep their progress and state; none is the data folder."
    )
    interval: Duration = Field(1.0, ge=0.1, description="How often a statement looks for new records.")
    idle_timeout: Duration = Field(60.0, gt=0, description="Silence after which an input holds nothing up.")
    max_batch_rows: int = Field(1_000_000, ge=1)
    tasks: int = Field(4, ge=1, le=256, description="Tasks of a new statement; it keeps their number.")


class Publication(Section):
    interval: Duration = Field(5.0, ge=0.1, description="How often outside catalogs are brought up to date.")


class Smtp(Section):
    """The server that mails of exports are given to."""

    host: str | None = Field(None, pattern=r"^[A-Za-z0-9.:_-]+$", description="None sends no mail.")
    port: int = Field(587, ge=1, le=65535)
    security: Literal["starttls", "tls", "none"] = Field(
        "starttls", description="`tls` from the first byte (port 465), or `none`: readable on the way."
    )
    sender: str | None = Field(
        None, pattern=r"^[^@\s<>,;]+@[A-Za-z0-9.-]+$", description="The address that mails are from."
    )
    username: str | None = None
    secret: str | None = Field(None, description="The name of the secret, under `secrets`, that logs in.")
    ca_file: Path | None = Field(None, description="Certificates that the server is checked with.")

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if self.host is not None and self.sender is None:
            raise ValueError("mails need an address that they are from: sender")
        if _count(self.username, self.secret) == 1:
            raise ValueError("username and secret (the name of one) belong together")
        if self.host is None and _count(self.sender, self.username, self.ca_file):
            raise ValueError("the rest is for a server: name it in export.smtp.host")
        if self.security == "none" and _count(self.username, self.ca_file):
            raise ValueError("without TLS a password could be read on the way: use starttls or tls")
        return self


class Export(Section):
    folder: Path | None = Field(None, description="Where exports put their files; none is the data folder.")
    workers: int = Field(2, ge=1, le=32, description="Runs of exports at the same time.")
    retry: Duration = Field(
        30.0, gt=0, le=86_400, description="Wait before a failed run's second try; doubles each time."
    )
    link_lifetime: Duration = Field(
        7 * 86_400.0, ge=60, le=90 * 86_400, description="How long a mail's link opens the file."
    )
    smtp: Smtp = Smtp()


class Store(Section):
    url: str | None = Field(None, description="SQLAlchemy URL of the control state; none is SQLite.")


class Storage(Section):
    """How S3 is reached. Keys are AWS's own to find: in the environment, or by a profile."""

    endpoint: str | None = Field(
        None, pattern=r"^https?://[^@\s/?#]+/?$", description="A store that speaks like S3; none is AWS's."
    )
    region: str | None = Field(None, pattern=r"^[a-z0-9-]+$", description="None is what AWS_REGION says.")
    path_style: bool = Field(False, description="The bucket in the path, not in the host's name.")
    profile: str | None = Field(None, description="A profile of AWS's configuration files.")
    encryption: Literal["none", "s3", "kms"] = Field("none", description="What S3 is asked to encrypt with.")
    kms_key: str | None = Field(None, description="The key's ARN; none is the bucket's own.")
    role_arn: str | None = Field(None, description="A role to take on; clients get keys of it, too.")
    external_id: str | None = Field(None, description="What the role asks for.")

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if self.kms_key is not None and self.encryption != "kms":
            raise ValueError("kms_key needs encryption: kms")
        if self.external_id is not None and self.role_arn is None:
            raise ValueError("external_id is for a role: name it in storage.role_arn")
        return self


class TablePattern(TableOptions):
    """Topics that become tables by themselves, now and when they appear."""

    match: str = Field(min_length=1, description="A topic's name, with `*` and `?` for what may vary.")
    exclude: bool = Field(False, description="Those that match are left alone.")


class Settings(Section):
    """All of it, frozen: what passes between the parts."""

    data: Path = Path(".headgate")
    jars: Path | None = Field(None, description="Where `make setup` put the jars.")
    cluster: Cluster = Cluster()
    ports: Ports = Ports()
    kafka: Kafka = Kafka()
    registry: Registry = Registry()
    catalog: Catalog = Catalog()
    spark: Spark = Spark()
    query: Query = Query()
    connect: Connect = Connect()
    engine: Engine = Engine()
    maintenance: Maintenance = Maintenance()
    public: Public = Public()
    auth: Auth = Auth()
    limits: Limits = Limits()
    audit: Audit = Audit()
    statements: Statements = Statements()
    publication: Publication = Publication()
    export: Export = Export()
    store: Store = Store()
    storage: Storage = Storage()
    secrets: dict[str, SecretStr] = Field(
        default_factory=dict, description="By name: what masking functions of statements take for a key."
    )
    secrets_file: dict[str, Path] = Field(
        default_factory=dict, description="By name: a file that holds such a secret."
    )
    tables: tuple[TablePattern, ...] = ()

    def secret(self, name: str) -> str:
        """For statements; the name may be shown, the secret never."""
        found = secret(self.secrets.get(name), self.secrets_file.get(name), f"secrets.{name}")
        if found is None:
            raise ConfigError(
                f"There is no secret '{name}'.",
                f"Put it into the variable {PREFIX}SECRETS__{name.upper()}, or into a file that "
                f"`secrets_file: {{{name}: FILE}}` names.",
            )
        return found

    @property
    def store_url(self) -> str:
        return self.store.url or f"sqlite:///{self.data / 'control.db'}"

    @property
    def catalog_db(self) -> Path | str:
        return self.catalog.database or self.data / "catalog.db"

    @property
    def checkpoints(self) -> str:
        """Where statements keep their progress and state, as a URI."""
        return self.statements.checkpoints or (self.data / "statements").as_uri()

    @property
    def export_folder(self) -> Path:
        """Below it exports put their files."""
        return (self.export.folder or self.data / "exports").expanduser().absolute()

    @property
    def warehouse(self) -> str:
        """The embedded catalog's root."""
        return self.catalog.warehouse or (self.data / "warehouse").as_uri()

    @property
    def jars_folder(self) -> Path:
        # A class archive fits a class path by its text: not the name of a link, but what it leads to.
        return (self.jars or Path(__file__).resolve().parents[2] / ".jars").resolve()

    @property
    def namespace(self) -> str:
        return self.cluster.name


def load_settings(
    file: Path | None = None, environment: Mapping[str, str] | None = None, data: Path | None = None
) -> Settings:
    """File, then environment, then the command line's `--data`, each over the one before."""
    raw = _read_file(file)
    _refuse_secrets(raw, file)
    _overlay(raw, _from_environment(os.environ if environment is None else environment))
    if data is not None:
        raw["data"] = str(data)
    try:
        settings = Settings.model_validate(raw)
    except ValidationError as error:
        raise ConfigError(_explain(error, file)) from error
    return settings.model_copy(update={"data": settings.data.expanduser().absolute()})


def setting_sources(file: Path | None, environment: Mapping[str, str] | None = None) -> dict[str, Source]:
    """By dotted key, where a setting that was given comes from; sections of theirs are keys too."""
    given = _from_environment(os.environ if environment is None else environment)
    return {
        **dict.fromkeys(_keys_of(_read_file(file)), "file"),
        **dict.fromkeys(_keys_of(given), "environment"),
    }


def _keys_of(raw: Mapping[str, Any], within: str = "") -> Iterator[str]:
    for name, value in raw.items():
        yield f"{within}{name}"
        if isinstance(value, Mapping):
            yield from _keys_of(value, f"{within}{name}.")


def _read_file(file: Path | None) -> dict[str, Any]:
    if file is None:
        return {}
    try:
        raw = yaml.safe_load(file.read_text())
    except OSError as error:
        raise ConfigError(f"Cannot read the configuration file {file}: {error.strerror}.") from error
    except yaml.YAMLError as error:
        said = " ".join(str(error).split())
        raise ConfigError(f"{file} is not valid YAML: {said}.") from error
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        raise ConfigError(f"{file} must hold keys and values, for instance `ports: {{server: 8080}}`.")
    return raw


def _refuse_secrets(raw: Mapping[str, Any], file: Path | None) -> None:
    """A configuration file is passed round and checked in; what is secret does not belong there."""
    for path in secret_keys():
        found: Any = raw
        for part in path:
            found = found.get(part) if isinstance(found, Mapping) else None
        if found is not None:
            name = ".".join(path)
            raise ConfigError(
                f"{file} holds the secret '{name}'.",
                f"Put it into the variable {PREFIX}{'__'.join(path).upper()}, or into a file that "
                f"{name}_file names.",
            )


def secret_keys(section: type[BaseModel] | None = None) -> Iterator[tuple[str, ...]]:
    """The settings that are secrets, by their paths."""
    for name, field in (section or Settings).model_fields.items():
        kinds = (field.annotation, *get_args(field.annotation))
        if SecretStr in kinds:
            yield (name,)
        elif isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from ((name, *rest) for rest in secret_keys(field.annotation))


def secret(given: SecretStr | None, file: Path | None, key: str) -> str | None:
    """A secret that was given itself, or by a file that holds it and perhaps an end of line."""
    if given is None and file is None:
        return None
    text = given.get_secret_value() if given is not None else read_text(file, f"{key}_file").rstrip("\r\n")
    if not text:
        raise ConfigError(f"{key} is empty.", "Give it in the environment or in a file.")
    return text


def read_text(file: Path | None, key: str) -> str:
    """A file that a setting names."""
    assert file is not None
    try:
        return file.expanduser().read_text()
    except OSError as error:
        raise ConfigError(f"Cannot read {file}, which {key} names: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}, which {key} names, is not a text file.") from error


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in environment.items():
        if not name.startswith(PREFIX) or name in CLIENT_VARIABLES:
            continue
        *parents, leaf = name.removeprefix(PREFIX).lower().split("__")
        section = found
        for parent in parents:
            section = section.setdefault(parent, {})
        section[leaf] = value
    return found


def _overlay(below: dict[str, Any], above: Mapping[str, Any]) -> None:
    for key, value in above.items():
        if isinstance(value, dict) and isinstance(below.get(key), dict):
            _overlay(below[key], value)
        else:
            below[key] = value


def _explain(error: ValidationError, file: Path | None) -> str:
    where = str(file) if file else "the environment"
    lines = []
    for problem in error.errors():
        path = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            known = _keys_at(problem["loc"][:-1])
            near = difflib.get_close_matches(str(problem["loc"][-1]), known, n=1)
            hint = f"Did you mean '{near[0]}'?" if near else f"Known here: {', '.join(known)}."
            lines.append(f"unknown key '{path}'. {hint}")
        else:
            lines.append(f"'{path}': {problem['msg'].removeprefix('Value error, ')}")
    return f"Configuration ({where}): " + "; ".join(lines)


def _keys_at(path: tuple[int | str, ...]) -> list[str]:
    section: Any = Settings
    for part in path:
        annotation = section.model_fields[str(part)].annotation
        section = next((a for a in (annotation, *get_args(annotation)) if isinstance(a, type)), None)
        if not (isinstance(section, type) and issubclass(section, BaseModel)):
            return []
    return sorted(section.model_fields)
