"""How the commands that speak to Kafka and the registry themselves reach them."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.cli.client import DEFAULT_DATA, URL_VARIABLE, Client, data_folder

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
    password = _broker_key(data)
    return KafkaAccess(address) if password is None else KafkaAccess(address, client_security(password))


def registry_access(client: Client, data: Path | None) -> "RegistryAccess":
    """The registry of a running Headgate; credentials go only to the one that they are configured for."""
    from headgate.kafka.registry import RegistryAccess

    address, settings = client.addresses()["registry"], _settings(data)
    own = None if settings.registry.url is None else RegistryAccess.at(settings.registry.url).url
    if own == address:
        return RegistryAccess.of(settings.registry)
    embedded = address.startswith(client.addresses()["console"])
    return RegistryAccess(address, token=_operator_key(data) if embedded else None)


def _operator_key(data: Path | None) -> str | None:
    """Of a Headgate on this machine."""
    from headgate.embedded.secrets import OPERATOR_KEY, known_secret

    folder = data_folder(data)
    if folder is None and os.environ.get(URL_VARIABLE):
        return None
    return known_secret(folder or DEFAULT_DATA.absolute(), OPERATOR_KEY)


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
