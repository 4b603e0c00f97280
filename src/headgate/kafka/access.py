"""How a Kafka cluster is reached: its address, how Headgate proves who it is, and a few client options.

The same access is rendered twice, for librdkafka and for the Java client inside Spark. Files are read when an
access is made, and travel in it as text: a Spark task on another machine has no such files.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization

from headgate import config
from headgate.errors import ConfigError

PLAINTEXT = "plaintext"
# The option as users and the Java client write it, where librdkafka calls it otherwise.
LIBRDKAFKA_NAMES = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "request.timeout.ms": "socket.timeout.ms",
}
# What a session must hide in its logs and plans, over what Spark hides by itself.
SPARK_REDACTION = {
    "spark.redaction.regex": (
        "(?i)secret|password|token|access[.]?key|jaas|credential|keystore|truststore|[.]pem$"
    )
}

_LOGIN = "org.apache.kafka.common.security"
_LOGIN_MODULES = {
    "PLAIN": f"{_LOGIN}.plain.PlainLoginModule",
    "SCRAM-SHA-256": f"{_LOGIN}.scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{_LOGIN}.scram.ScramLoginModule",
    "OAUTHBEARER": f"{_LOGIN}.oauthbearer.OAuthBearerLoginModule",
}
_CERTIFICATE = re.compile("-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)


@dataclass(frozen=True)
class OAuthClient:
    """Where tokens come from, and who asks for them (the client credentials grant)."""

    token_url: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None = None
    ca_pem: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Security:
    """How the connection is protected, and by what Headgate is known."""

    protocol: str = PLAINTEXT
    mechanism: str | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    oauth: OAuthClient | None = None
    ca_pem: str | None = field(default=None, repr=False)
    certificate_pem: str | None = field(default=None, repr=False)
    key_pem: str | None = field(default=None, repr=False)
    check_hostname: bool = True

    @property
    def encrypted(self) -> bool:
        return self.protocol.endswith("ssl")


@dataclass(frozen=True)
class KafkaAccess:
    """A cluster and how to reach it. No secret is in its text, so it may be logged."""

    bootstrap: str
    security: Security = Security()
    options: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, settings: config.Kafka, bootstrap: str | None = None) -> Self:
        """As the configuration says; `bootstrap` is the embedded broker's, where none is configured."""
        address = settings.bootstrap or bootstrap
        if address is None:
            raise ConfigError("kafka.bootstrap names no broker.")
        options = tuple((name, str(value)) for name, value in sorted(settings.options.items()))
        return cls(address, _security(settings.security), options)

    @classmethod
    def at(cls, where: "KafkaAccess | str") -> "KafkaAccess":
        """An access as it is; a text is the address of brokers that ask for nothing."""
        return cls(where) if isinstance(where, str) else where

    def __str__(self) -> str:
        return self.bootstrap

    def librdkafka(self) -> dict[str, str | int | float | bool]:
        """For confluent_kafka's clients."""
        options = {LIBRDKAFKA_NAMES.get(name, name): value for name, value in self.options}
        return {"bootstrap.servers": self.bootstrap, **options, **_librdkafka(self.security)}

    def spark_options(self) -> dict[str, str]:
        """For Spark's Kafka source and sink: the Java client's keys, each with `kafka.` before it."""
        java = {"bootstrap.servers": self.bootstrap, **dict(self.options), **_java(self.security)}
        return {f"kafka.{name}": value for name, value in java.items()}


def _librdkafka(security: Security) -> dict[str, str | int | float | bool]:
    found: dict[str, str | int | float | bool] = {"security.protocol": security.protocol}
    if security.encrypted:
        found |= _given(
            {
                "ssl.ca.pem": security.ca_pem,
                "ssl.certificate.pem": security.certificate_pem,
                "ssl.key.pem": security.key_pem,
            }
        )
        found["ssl.endpoint.identification.algorithm"] = "https" if security.check_hostname else "none"
    if security.mechanism is not None:
        found["sasl.mechanism"] = security.mechanism
        found |= _given({"sasl.username": security.username, "sasl.password": security.password})
    if (oauth := security.oauth) is not None:
        found["sasl.oauthbearer.method"] = "oidc"
        found |= _given(
            {
                "sasl.oauthbearer.token.endpoint.url": oauth.token_url,
                "sasl.oauthbearer.client.id": oauth.client_id,
                "sasl.oauthbearer.client.secret": oauth.client_secret,
                "sasl.oauthbearer.scope": oauth.scope,
                "https.ca.pem": oauth.ca_pem,
            }
        )
    return found


def _java(security: Security) -> dict[str, str]:
    found = {"security.protocol": security.protocol.upper()}
    if security.encrypted:
        # Java takes an empty name for: do not compare.
        found["ssl.endpoint.identification.algorithm"] = "https" if security.check_hostname else ""
        if security.ca_pem is not None:
            found |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": security.ca_pem}
        if security.certificate_pem is not None and security.key_pem is not None:
            found |= {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.certificate.chain": security.certificate_pem,
                "ssl.keystore.key": security.key_pem,
            }
    if security.mechanism is not None:
        found |= {"sasl.mechanism": security.mechanism, "sasl.jaas.config": _jaas(security)}
    if (oauth := security.oauth) is not None:
        found |= {
            "sasl.oauthbearer.token.endpoint.url": oauth.token_url,
            "sasl.login.callback.handler.class": f"{_LOGIN}.oauthbearer.OAuthBearerLoginCallbackHandler",
        }
    return found


def _jaas(security: Security) -> str:
    assert security.mechanism is not None
    if (oauth := security.oauth) is not None:
        options = _given(
            {"clientId": oauth.client_id, "clientSecret": oauth.client_secret, "scope": oauth.scope}
        )
        if oauth.ca_pem is not None:
            options |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": oauth.ca_pem}
    else:
        options = _given({"username": security.username, "password": security.password})
    listed = " ".join(f"{name}={jaas_quoted(value)}" for name, value in options.items())
    return f"{_LOGIN_MODULES[security.mechanism]} required {listed};"


def jaas_quoted(text: str) -> str:
    """As Java's StreamTokenizer reads a string: a raw line end would end it, a backslash begins an escape."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'


def _given(values: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in values.items() if value is not None}


def _security(settings: config.Security) -> Security:
    at = "kafka.security"
    oauth = None
    if settings.mechanism == "OAUTHBEARER":
        said = settings.oauth
        assert said.token_url is not None
        assert said.client_id is not None
        secret = config.secret(said.client_secret, said.client_secret_file, f"{at}.oauth.client_secret")
        assert secret is not None
        authority = _certificates(said.ca_file, f"{at}.oauth.ca_file")
        oauth = OAuthClient(said.token_url, said.client_id, secret, said.scope, authority)
    return Security(
        protocol=settings.protocol,
        mechanism=settings.mechanism,
        username=settings.username,
        password=config.secret(settings.password, settings.password_file, f"{at}.password"),
        oauth=oauth,
        ca_pem=_certificates(settings.ca_file, f"{at}.ca_file"),
        certificate_pem=_certificates(settings.certificate_file, f"{at}.certificate_file"),
        key_pem=_key(
            settings.key_file,
            config.secret(settings.key_password, settings.key_password_file, f"{at}.key_password"),
        ),
        check_hostname=settings.check_hostname,
    )


def _certificates(file: Path | None, key: str) -> str | None:
    """The certificates in a PEM file, without the words that tools write around them."""
    if file is None:
        return None
    found = _CERTIFICATE.findall(config.read_text(file, key))
    if not found:
        raise ConfigError(
            f"{key} ({file}) holds no certificate.", "Give a file in PEM form: -----BEGIN CERTIFICATE-----."
        )
    return "\n".join(found) + "\n"


def _key(file: Path | None, password: str | None) -> str | None:
    """The private key, in the clear and in PKCS#8: Java reads no other, and not every encrypted one."""
    if file is None:
        return None
    what = f"kafka.security.key_file ({file})"
    text = config.read_text(file, "kafka.security.key_file").encode()
    try:
        key = serialization.load_pem_private_key(text, None if password is None else password.encode())
    except TypeError as error:
        remedy = "Set kafka.security.key_password." if password is None else "Leave the key_password out."
        raise ConfigError(f"{what} is {'' if password is None else 'not '}encrypted.", remedy) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ConfigError(
            f"{what} holds no private key that can be read.",
            "Give a file in PEM form: -----BEGIN PRIVATE KEY-----, and its password if it has one.",
        ) from error
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
