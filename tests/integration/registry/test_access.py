"""A registry behind a door: basic and bearer authentication, TLS and both ways TLS.

The embedded registry answers; a small proxy before it lets in who may come in.
"""

import json
import ssl
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from headgate.config import Registry, RegistryAuth
from headgate.datagen.formats import Format, registered_schema
from headgate.datagen.registration import register
from headgate.embedded.ports import LOOPBACK
from headgate.errors import ConfigError, HeadgateError, RegistryUnavailable
from headgate.kafka.registry import RegistryAccess
from headgate.registry.client import SchemaSource
from tests.integration.kafka.secured import KEY_PASSWORD, Authority
from tests.integration.registry.running import RunningRegistry

USER, PASSWORD, TOKEN = "headgate", 'hush: "hush" é', "abc.DEF-123_~+/="
BASIC = "Basic " + b64encode(f"{USER}:{PASSWORD}".encode()).decode()
SCHEMA = {"type": "record", "name": "Access", "fields": [{"name": "a", "type": "string"}]}


class Door:
    """Passes requests on that carry `wanted`, and remembers what they carried."""

    def __init__(self, registry: str, wanted: str | None, tls: ssl.SSLContext | None = None) -> None:
        self.wanted = wanted
        self.heard: list[dict[str, str]] = []
        door = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                door.heard.append(dict(self.headers))
                if door.wanted is not None and self.headers.get("Authorization") != door.wanted:
                    self.answer(401, {"error_code": 401, "message": "Who are you?"})
                    return
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                kind = self.headers.get("Content-Type")
                headers = {"Content-Type": kind} if kind else {}
                passed = httpx.request(self.command, registry + self.path, content=body, headers=headers)
                self.answer(passed.status_code, passed.json())

            def do_POST(self) -> None:
                self.do_GET()

            def answer(self, status: int, body: Any) -> None:
                sent = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(sent)))
                self.end_headers()
                self.wfile.write(sent)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
        if tls is not None:
            self.server.socket = tls.wrap_socket(
                self.server.socket, server_side=True, do_handshake_on_connect=False
            )
        self.address = f"{LOOPBACK}:{self.server.server_port}"
        self.url = f"{'http' if tls is None else 'https'}://{self.address}"


@contextmanager
def door(
    registry: RunningRegistry, wanted: str | None = None, tls: ssl.SSLContext | None = None
) -> Iterator[Door]:
    found = Door(registry.url, wanted, tls)
    threading.Thread(target=found.server.serve_forever, daemon=True).start()
    try:
        yield found
    finally:
        found.server.shutdown()
        found.server.server_close()


def works(access: RegistryAccess | str, subject: str) -> None:
    """Both of what Headgate does with a registry: it registers (datagen), and it asks (all the others)."""
    schema_id = register(access, {subject: registered_schema(Format.AVRO, SCHEMA)})[subject]
    with SchemaSource(access) as source:
        assert source.schema(schema_id).id == schema_id
        assert source.latest(subject) == source.schema(schema_id)


def refused(access: RegistryAccess | str, subject: str, *secrets: str) -> None:
    with SchemaSource(access) as source:
        for call in (
            lambda: source.latest(subject),
            lambda: register(access, {subject: registered_schema(Format.AVRO, SCHEMA)}),
        ):
            with pytest.raises(ConfigError, match=r"401.*registry\.auth") as caught:
                call()
            assert not any(secret in str(caught.value) for secret in secrets)


def test_basic(shared_registry: RunningRegistry, subject: str, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text(PASSWORD + "\n")
    with door(shared_registry, BASIC) as here:
        for given in ({"password": SecretStr(PASSWORD)}, {"password_file": file}):
            auth = RegistryAuth(username=USER, **given)
            works(RegistryAccess.of(Registry(url=here.url, auth=auth)), subject)
        # As it was, and still is: in the URL, with what a URL needs.
        works(f"http://{USER}:hush%3A%20%22hush%22%20%C3%A9@{here.address}", subject)
        wrong = RegistryAuth(username=USER, password=SecretStr("wrong-hush"))
        refused(RegistryAccess.of(Registry(url=here.url, auth=wrong)), subject, "wrong-hush")
        refused(f"http://{USER}:wrong-hush@{here.address}", subject, "wrong-hush")
        refused(here.url, subject)


def test_bearer(shared_registry: RunningRegistry, subject: str, tmp_path: Path) -> None:
    with door(shared_registry, f"Bearer {TOKEN}") as here:
        auth = RegistryAuth(token=SecretStr(TOKEN), logical_cluster="lsrc-1", identity_pool="pool-1")
        works(RegistryAccess.of(Registry(url=here.url, auth=auth)), subject)
        assert here.heard[-1]["target-sr-cluster"] == "lsrc-1"
        assert here.heard[-1]["Confluent-Identity-Pool-Id"] == "pool-1"
        wrong = RegistryAuth(token=SecretStr("wrong-hush"))
        refused(RegistryAccess.of(Registry(url=here.url, auth=wrong)), subject, "wrong-hush")


def test_a_token_may_be_replaced_while_it_is_used(
    shared_registry: RunningRegistry, subject: str, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text("first\n")
    access = None
    with door(shared_registry, "Bearer first") as here:
        access = RegistryAccess.of(Registry(url=here.url, auth=RegistryAuth(token_file=file)))
        with SchemaSource(access) as source:
            assert source.latest(subject) is None
            here.wanted = "Bearer second"
            with pytest.raises(ConfigError):
                source.latest(subject)
            file.write_text("second\n")
            assert source.latest(subject) is None
            file.write_text("sec\nret-hush")
            with pytest.raises(ConfigError, match="is no token") as caught:
                source.latest(subject)
            assert "hush" not in str(caught.value)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


def server_tls(authority: Authority, client_too: bool = False) -> ssl.SSLContext:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(authority.server_certificate, authority.server_key)
    if client_too:
        tls.load_verify_locations(authority.ca)
        tls.verify_mode = ssl.CERT_REQUIRED
    return tls


def test_tls(shared_registry: RunningRegistry, subject: str, authority: Authority) -> None:
    with door(shared_registry, BASIC, server_tls(authority)) as here:
        auth = RegistryAuth(username=USER, password=SecretStr(PASSWORD))
        works(RegistryAccess.of(Registry(url=here.url, auth=auth, ca_file=authority.ca)), subject)
        with SchemaSource(RegistryAccess.of(Registry(url=here.url, auth=auth))) as source:
            with pytest.raises(HeadgateError, match="certificate") as caught:
                source.latest(subject)
            assert PASSWORD not in str(caught.value)


def test_tls_both_ways(shared_registry: RunningRegistry, subject: str, authority: Authority) -> None:
    with door(shared_registry, None, server_tls(authority, client_too=True)) as here:
        own: dict[str, Any] = {"ca_file": authority.ca, "certificate_file": authority.certificate}
        works(RegistryAccess.of(Registry(url=here.url, key_file=authority.key, **own)), subject)
        locked = {"key_file": authority.encrypted_key, "key_password": SecretStr(KEY_PASSWORD)}
        works(RegistryAccess.of(Registry(url=here.url, **own, **locked)), subject)
        bare = RegistryAccess.of(Registry(url=here.url, ca_file=authority.ca))
        with SchemaSource(bare) as source, pytest.raises(RegistryUnavailable):
            source.latest(subject)
        wrong = locked | {"key_password": SecretStr("wrong-hush")}
        with pytest.raises(ConfigError, match="cannot be reached as it is configured") as caught:
            SchemaSource(RegistryAccess.of(Registry(url=here.url, **own, **wrong)))
        assert "hush" not in str(caught.value)


def test_files_that_are_not_there_are_named(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    for settings, key in (
        (Registry(url="http://r", auth=RegistryAuth(token_file=missing)), r"registry\.auth\.token_file"),
        (Registry(url="http://r", ca_file=missing), r"registry\.ca_file"),
    ):
        with pytest.raises(ConfigError, match=f"{missing}, which {key} names"):
            SchemaSource(RegistryAccess.of(settings))
