"""How the commands that speak to Kafka and the registry themselves reach them."""

import os
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from headgate.cli.client import (
    CA_VARIABLE,
    DEFAULT_DATA,
    ID_VARIABLE,
    SECRET_VARIABLE,
    URL_VARIABLE,
    Client,
    data_folder,
)
from headgate.errors import InvalidRequest

if TYPE_CHECKING:
    from headgate.config import Settings
    from headgate.kafka.access import KafkaAccess
    from headgate.kafka.registry import RegistryAccess


def kafka_access(client: Client, data: Path | None) -> "KafkaAccess":
    """The Kafka of a running Headgate; credentials go only to the brokers that they are configured for."""
    from headgate.embedded.broker import client_security
    from headgate.kafka.access import KafkaAccess

    address, settings = client.addresses()["kafka"], _settings(data)
    if settings.kafka.bootstrap == address:
        return KafkaAccess.of(settings.kafka)
    _check_reachable(address, data)
    password = _broker_key(data)
    return KafkaAccess(address) if password is None else KafkaAccess(address, client_security(password))


def registry_access(client: Client, data: Path | None) -> "RegistryAccess":
    """The registry of a running Headgate; credentials go only to the one that they are configured for."""
    from headgate.kafka.registry import RegistryAccess

    address, settings = client.addresses()["registry"], _settings(data)
    own = None if settings.registry.url is None else RegistryAccess.at(settings.registry.url).url
    if own == address:
        return RegistryAccess.of(settings.registry)
    if not address.startswith(client.addresses()["console"]):
        return RegistryAccess(address)
    url = _url(data)
    return RegistryAccess(address, token=_operator_key(data)) if url is None else _registry_at(url)


def _registry_at(url: str) -> "RegistryAccess":
    """That of a Headgate elsewhere, with the credential of this shell."""
    from headgate.kafka.registry import RegistryAccess

    file = os.environ.get(CA_VARIABLE)
    return RegistryAccess(
        f"{url}/registry",
        username=os.environ.get(ID_VARIABLE),
        password=os.environ.get(SECRET_VARIABLE),
        ca_file=Path(file) if file else None,
    )


def _url(data: Path | None) -> str | None:
    """Of the Headgate that is meant, where it is named by that and not by its folder."""
    url = os.environ.get(URL_VARIABLE) if data_folder(data) is None else None
    return url.rstrip("/") if url else None


def _check_reachable(brokers: str, data: Path | None) -> None:
    """An address on loopback is another machine's own: here it is whoever listens there."""
    host = urlsplit(_url(data) or "").hostname
    if host is None or _is_loopback(host):
        return
    for broker in brokers.split(","):
        if _is_loopback(broker.strip().rpartition(":")[0].strip("[]")):
            raise InvalidRequest(
                f"The broker of this Headgate is reached on {host} alone ({brokers}).",
                "Run this there; or give Headgate a Kafka that other machines reach (kafka.bootstrap).",
            )


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _operator_key(data: Path | None) -> str | None:
    """Of the Headgate on a data folder."""
    from headgate.embedded.secrets import OPERATOR_KEY, known_secret

    return known_secret(data_folder(data) or DEFAULT_DATA.absolute(), OPERATOR_KEY)


def _broker_key(data: Path | None) -> str | None:
    """What the embedded broker of a data folder asks for; None where it asks for nothing."""
    from headgate.embedded.run_file import read_run
    from headgate.embedded.secrets import BROKER_KEY, known_secret

    folder = data_folder(data)
    if folder is None and os.environ.get(URL_VARIABLE):
        return None
    folder = folder or DEFAULT_DATA.absolute()
    return known_secret(folder, BROKER_KEY) if read_run(folder).get("broker_asks") else None


def _settings(data: Path | None) -> "Settings":
    """The running Headgate's configuration file, if it is on this machine, with this shell's environment."""
    from headgate.config import load_settings
    from headgate.embedded.run_file import read_run

    folder = data_folder(data)
    if folder is None and os.environ.get(URL_VARIABLE):
        return load_settings()
    folder = folder or DEFAULT_DATA.absolute()
    config = read_run(folder)["config"]
    return load_settings(None if config is None else Path(config), data=folder)
