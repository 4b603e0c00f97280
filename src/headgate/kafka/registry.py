"""How the schema registry beside a Kafka cluster is reached: its address, and who Headgate is to it.

One place for all that speak to it: the engine, `topic consume` and `datagen`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from urllib.parse import unquote, urlsplit, urlunsplit

from confluent_kafka.schema_registry import SchemaRegistryClient

from headgate import config
from headgate.errors import ConfigError

_TOKEN = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True)
class RegistryAccess:
    """A registry and how to reach it. No secret is in its text, so it may be logged.

    `url` may name several addresses of the same registry, with commas between. Tokens in a file are read
    again for each request: who issues them may replace them.
    """

    url: str
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    token_file: Path | None = None
    logical_cluster: str | None = None
    identity_pool: str | None = None
    ca_file: Path | None = None
    certificate_file: Path | None = None
    key_file: Path | None = None
    key_password: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, settings: config.Registry, url: str | None = None) -> Self:
        """As the configuration says; `url` is the embedded registry's, where none is configured."""
        address = settings.url or url
        if address is None:
            raise ConfigError("registry.url names no registry.")
        at = cls.at(address)
        auth = settings.auth
        if auth.token_file is not None:
            config.secret(None, auth.token_file, "registry.auth.token")
        at_key, key = "registry.key_password", (settings.key_password, settings.key_password_file)
        return cls(
            at.url,
            username=auth.username or at.username,
            password=config.secret(auth.password, auth.password_file, "registry.auth.password")
            or at.password,
            token=config.secret(auth.token, None, "registry.auth.token"),
            token_file=auth.token_file,
            logical_cluster=auth.logical_cluster,
            identity_pool=auth.identity_pool,
            ca_file=settings.ca_file,
            certificate_file=settings.certificate_file,
            key_file=settings.key_file,
            key_password=config.secret(*key, at_key),
        )

    @classmethod
    def at(cls, where: "RegistryAccess | str") -> Self:
        """An access as it is; of a text, the user and password in it are taken apart from the address."""
        if isinstance(where, RegistryAccess):
            assert isinstance(where, cls)
            return where
        addresses = [urlsplit(one.strip()) for one in where.split(",")]
        url = ",".join(urlunsplit(a._replace(netloc=a.netloc.rpartition("@")[2])) for a in addresses)
        named = [a for a in addresses if a.username and a.password]
        if not named:
            return cls(url)
        return cls(url, unquote(named[0].username or ""), unquote(named[0].password or ""))

    def __str__(self) -> str:
        return self.url

    def client(self, timeout: float, retries: int, wait_ms: int | None = None) -> SchemaRegistryClient:
        """Confluent's client for this registry."""
        for key in ("ca_file", "certificate_file", "key_file"):
            if (file := getattr(self, key)) is not None:
                config.read_text(file, f"registry.{key}")
        settings = {
            "url": self.url,
            "timeout": timeout,
            "max.retries": retries,
            **self._tls(),
            **self._login(),
        }
        if wait_ms is not None:
            settings["retries.wait.ms"] = wait_ms
        try:
            return SchemaRegistryClient(settings)
        except (ValueError, OSError) as error:
            # A bad certificate is an OSError of the ssl module.
            raise ConfigError(
                f"The schema registry at {self.url} cannot be reached as it is configured: {error}.",
                "Check registry.url and what stands beside it.",
            ) from error

    def _tls(self) -> dict[str, Any]:
        named = {
            "ssl.ca.location": self.ca_file,
            "ssl.certificate.location": self.certificate_file,
            "ssl.key.location": self.key_file,
        }
        found = {key: str(file.expanduser()) for key, file in named.items() if file is not None}
        return found if self.key_password is None else {**found, "ssl.key.password": self.key_password}

    def _login(self) -> dict[str, Any]:
        if self.username is not None:
            return {"basic.auth.user.info": f"{self.username}:{self.password}"}
        if self.token is None and self.token_file is None:
            return {}
        return {
            "bearer.auth.credentials.source": "CUSTOM",
            "bearer.auth.custom.provider.function": self._bearer(),
            "bearer.auth.custom.provider.config": {},
        }

    def _bearer(self) -> Callable[[dict[str, Any]], dict[str, str]]:
        fixed = {"bearer.auth.logical.cluster": self.logical_cluster or ""}
        if self.identity_pool is not None:
            fixed["bearer.auth.identity.pool.id"] = self.identity_pool

        def fields(_: dict[str, Any]) -> dict[str, str]:
            token = self.token or config.secret(None, self.token_file, "registry.auth.token")
            if token is None or not _TOKEN.fullmatch(token):
                # Said here: an HTTP client's own error would repeat it.
                raise ConfigError("registry.auth.token is no token: it has blanks or signs of other kinds.")
            return {"bearer.auth.token": token, **fixed}

        return fields
