"""What a running Headgate is made of: its settings, and the addresses that came of them.

The supervisor writes them to `run.json` in the data folder; its children and the command line read it there.
The file has no secrets: settings are read anew from the configuration file and the environment.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit, urlunsplit

from headgate import __version__
from headgate.config import Settings, Source, load_settings, setting_sources
from headgate.embedded.broker import client_security
from headgate.embedded.ports import LOOPBACK
from headgate.embedded.process import Identity
from headgate.embedded.run_file import RUN_FILE, read_run, write_json
from headgate.embedded.secrets import BROKER_KEY, ENGINE_KEY, secret
from headgate.kafka.access import KafkaAccess
from headgate.kafka.registry import RegistryAccess


@dataclass(frozen=True)
class Runtime:
    """Settings with the ports that were really taken. Each address is ours, or the one that replaces it."""

    settings: Settings
    kafka: str
    registry: str
    iceberg: str
    api: str
    console: str
    server_port: int
    connect_port: int
    config: Path | None = None
    supervisor: Identity | None = None
    # By dotted key, where the settings come from that were given.
    sources: Mapping[str, Source] = field(default_factory=dict, compare=False)

    @classmethod
    def of(
        cls,
        settings: Settings,
        *,
        server_port: int,
        connect_port: int,
        broker_port: int,
        config: Path | None = None,
        supervisor: Identity | None = None,
    ) -> Self:
        server = f"http://{LOOPBACK}:{server_port}"
        return cls(
            settings,
            kafka=settings.kafka.bootstrap or f"{LOOPBACK}:{broker_port}",
            registry=settings.registry.url or f"{server}/registry",
            iceberg=settings.catalog.uri or f"{server}/iceberg",
            api=f"{server}/api/v1",
            console=f"{server}/",
            server_port=server_port,
            connect_port=connect_port,
            config=config,
            supervisor=supervisor,
        )

    @property
    def kafka_access(self) -> KafkaAccess:
        """What Kafka's clients are made with. Reads the files that the settings name."""
        if self.broker_asks:
            return KafkaAccess(self.kafka, client_security(secret(self.data, BROKER_KEY)))
        return KafkaAccess.of(self.settings.kafka, self.kafka)

    @property
    def broker_asks(self) -> bool:
        """Whether clients of the embedded broker must log in."""
        return self.settings.kafka.bootstrap is None and self.settings.auth.required

    @property
    def registry_access(self) -> RegistryAccess:
        """What the registry's clients are made with. Reads the files that the settings name."""
        access = RegistryAccess.of(self.settings.registry, self.registry)
        if self.settings.registry.url is not None:
            return access
        return replace(access, token=secret(self.data, ENGINE_KEY))

    @property
    def catalog_key(self) -> str | None:
        """What the engine shows to the embedded catalog; yours gets what the configuration says."""
        return secret(self.data, ENGINE_KEY) if self.settings.catalog.uri is None else None

    @property
    def data(self) -> Path:
        return self.settings.data

    @property
    def logs(self) -> Path:
        return self.data / "logs"

    @property
    def warehouse(self) -> str | None:
        """The embedded catalog's root, or the name of the warehouse in yours."""
        return (
            self.settings.warehouse if self.settings.catalog.uri is None else self.settings.catalog.warehouse
        )

    @property
    def spark_connect(self) -> str | None:
        """None where it is not served."""
        # Spark's client speaks without TLS to a host of this name only.
        return f"sc://localhost:{self.connect_port}" if self.settings.connect.enabled else None

    @property
    def addresses(self) -> dict[str, str]:
        """For people and their tools: passwords in URLs are left out."""
        public = self.settings.public
        scheme = "http" if public.certificate_file is None else "https"
        elsewhere = public.url or f"{scheme}://{public.host}:{public.port}"
        return {
            "kafka": self.kafka,
            "registry": without_password(self.registry),
            "iceberg": without_password(self.iceberg),
            "api": self.api,
            "console": self.console,
            **({} if self.spark_connect is None else {"spark_connect": self.spark_connect}),
            **({} if public.host is None else {"public": elsewhere}),
        }

    def write(self) -> None:
        """Put it into the data folder, whole or not at all."""
        found = {
            "version": __version__,
            "supervisor": None if self.supervisor is None else self.supervisor.to_dict(),
            "config": None if self.config is None else str(self.config),
            "data": str(self.data),
            "logs": str(self.logs),
            "cluster": self.settings.cluster.name,
            "warehouse": None if self.warehouse is None else without_password(self.warehouse),
            "addresses": self.addresses,
            "broker_asks": self.broker_asks,
            "ports": {"server": self.server_port, "connect": self.connect_port},
        }
        write_json(self.data / RUN_FILE, found)

    @classmethod
    def load(cls, data: Path, environment: Mapping[str, str] | None = None) -> Self:
        """The runtime of the Headgate on this data folder, for its own processes."""
        run = read_run(data)
        config = None if run["config"] is None else Path(run["config"])
        settings = load_settings(config, environment, data)
        supervisor = run["supervisor"]
        found = cls.of(
            settings,
            server_port=run["ports"]["server"],
            connect_port=run["ports"]["connect"],
            broker_port=0,
            config=config,
            supervisor=None if supervisor is None else Identity.from_dict(supervisor),
        )
        found = replace(found, sources=setting_sources(config, environment))
        return found if settings.kafka.bootstrap else replace(found, kafka=run["addresses"]["kafka"])


def without_password(url: str) -> str:
    """The URL without user and password."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
