"""A Headgate that asks everybody who they are: its own parts and commands go on, others need a credential."""

import json
import os
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import duckdb
import duckdb_extensions
import httpx
import psutil
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from headgate.embedded.ports import free_port
from headgate.embedded.process import group_members
from headgate.embedded.stack import CLIENT_FILE
from tests.e2e.commands import groups_of
from tests.support.stack import HEADGATE, Stack
from tests.support.trespass import loose, outcomes, showing
from tests.support.users import needs_root

ROWS = 200
IN_SPARK = "a canary among Spark's properties"


def certificate(folder: Path) -> tuple[Path, Path]:
    """One that signs itself, for 127.0.0.1."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "headgate.test")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    files = folder / "certificate.pem", folder / "key.pem"
    files[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return files


@dataclass(frozen=True)
class Guarded:
    """A stack behind locked doors, one of them public; `canaries` are the secrets that it has given out."""

    stack: Stack
    public: str
    certificate: Path
    canaries: list[str]

    def credential(self, name: str, *options: str) -> tuple[str, str]:
        made = self.stack.json("credentials", "create", name, *options)
        self.canaries.append(made["client_secret"])
        return made["client_id"], made["client_secret"]

    def token(self, client: tuple[str, str]) -> str:
        form = {"grant_type": "client_credentials"}
        url = f"{self.stack.runtime.iceberg}/v1/oauth/tokens"
        answer = httpx.post(url, data=form, auth=client, trust_env=False).raise_for_status()
        self.canaries.append(answer.json()["access_token"])
        return str(answer.json()["access_token"])

    def elsewhere(self, path: str, **shown: Any) -> httpx.Response:
        trusted = ssl.create_default_context(cafile=str(self.certificate))
        return httpx.get(f"{self.public}{path}", verify=trusted, trust_env=False, **shown)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    certificate_file, key_file = certificate(folder)
    port = free_port()
    environment = {
        "HEADGATE_AUTH__REQUIRED": "true",
        "HEADGATE_PUBLIC__HOST": "127.0.0.1",
        "HEADGATE_PUBLIC__PORT": str(port),
        "HEADGATE_PUBLIC__CERTIFICATE_FILE": str(certificate_file),
        "HEADGATE_PUBLIC__KEY_FILE": str(key_file),
        "HEADGATE_SPARK__PROPERTIES__spark.hadoop.canary.password": IN_SPARK,
    }
    with Stack(folder / "data", None, **environment) as stack:
        stack.run("datagen", "orders", "--limit", str(ROWS), "--seed", "7", "--prefix", "shop.")
        stack.run("table", "enable", "shop.payments", "--freshness", "1s")
        stack.run("table", "sync", "shop.payments", "--timeout", "180s")
        yield Guarded(stack, f"https://127.0.0.1:{port}", certificate_file, [IN_SPARK])


def test_its_own_parts_and_commands_go_on(guarded: Guarded) -> None:
    shown = guarded.stack.json("table", "show", "shop.payments")
    assert (shown["state"], shown["rows"] > 0) == ("Running", True)
    counted = guarded.stack.run(
        "query", "SELECT count(*) AS n FROM `shop.payments`", "--output", "csv"
    ).stdout.split()
    assert counted == ["n", str(shown["rows"])]
    assert guarded.stack.json("status")["addresses"]["public"] == guarded.public


def test_nobody_else_gets_in(guarded: Guarded) -> None:
    root = guarded.stack.runtime.console.rstrip("/")
    for path in ("/api/v1/status", "/metrics", "/registry/subjects", "/iceberg/v1/namespaces"):
        assert httpx.get(root + path, trust_env=False).status_code == 401
        assert guarded.elsewhere(path).status_code == 401
    assert httpx.get(f"{root}/healthz", trust_env=False).status_code == 200
    key = (guarded.stack.data / "secrets" / "operator").read_text()
    assert guarded.elsewhere("/api/v1/status", headers={"Authorization": f"Bearer {key}"}).status_code == 401
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{guarded.public}/healthz", trust_env=False)


@contextmanager
def private_files() -> Iterator[None]:
    """Files that this process makes are its user's alone."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def test_duckdb_reads_as_it_is_typed_and_writes_nothing(guarded: Guarded) -> None:
    client_id, secret = guarded.credential("duck", "--role", "writer")
    iceberg = guarded.stack.runtime.iceberg
    with duckdb.connect() as duck:
        for extension in ("avro", "httpfs", "iceberg"):
            duckdb_extensions.import_extension(extension, con=duck)
            duck.execute(f"LOAD {extension}")
        duck.execute(
            f"CREATE SECRET iceberg_secret (TYPE ICEBERG, CLIENT_ID '{client_id}', "
            f"CLIENT_SECRET '{secret}', ENDPOINT '{iceberg}', OAUTH2_SCOPE 'catalog')"
        )
        duck.execute(
            f"ATTACH 'warehouse' AS ice_cat (TYPE iceberg, SECRET iceberg_secret, ENDPOINT '{iceberg}')"
        )
        counted = duck.execute('SELECT count(*) FROM ice_cat."local"."shop.payments"').fetchall()
        assert counted == [(guarded.stack.json("table", "show", "shop.payments")["rows"],)]
        # What DuckDB writes before it is refused is left to it, and has the mode that its own user wants.
        with private_files(), pytest.raises(duckdb.Error, match="written by the engine alone"):
            duck.execute('DELETE FROM ice_cat."local"."shop.payments"')


def test_a_reader_sees_what_it_may_until_it_is_revoked(guarded: Guarded) -> None:
    narrow = guarded.credential("narrow", "--role", "reader", "--namespace", "local", "--table", "other.*")
    reader = guarded.credential("reader", "--role", "reader", "--namespace", "local", "--table", "shop.*")
    path = "/iceberg/v1/namespaces/local/tables"
    seen = guarded.elsewhere(path, headers={"Authorization": f"Bearer {guarded.token(narrow)}"}).json()
    assert seen["identifiers"] == []
    token = {"Authorization": f"Bearer {guarded.token(reader)}"}
    seen = guarded.elsewhere(path, headers=token).json()
    assert [one["name"] for one in seen["identifiers"]] == ["shop.payments"]
    guarded.stack.run("credentials", "revoke", "reader")
    assert guarded.elsewhere(path, headers=token).status_code == 401
    states = {one["name"]: one["revoked_at"] for one in guarded.stack.json("credentials", "list")}
    assert states["reader"] is not None
    assert states["narrow"] is None


def test_commands_from_elsewhere(guarded: Guarded, tmp_path: Path) -> None:
    def run(client: tuple[str, str], *command: str) -> "subprocess.CompletedProcess[str]":
        environment = {
            **os.environ,
            "HEADGATE_URL": guarded.public,
            "HEADGATE_CA_FILE": str(guarded.certificate),
            "HEADGATE_CLIENT_ID": client[0],
            "HEADGATE_CLIENT_SECRET": client[1],
        }
        arguments = [HEADGATE, *(command or ("table", "list", "--json"))]
        return subprocess.run(
            arguments, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
        )

    done = run(guarded.credential("boss", "--role", "admin"))
    assert done.returncode == 0, done.stderr
    assert [one["topic"] for one in json.loads(done.stdout)] == ["shop.payments"]
    guest = guarded.credential("guest", "--role", "reader", "--table", "shop.*")
    assert [one["topic"] for one in json.loads(run(guest).stdout)] == ["shop.payments"]
    stranger = guarded.credential("stranger", "--role", "admin", "--table", "other.*")
    assert json.loads(run(stranger).stdout) == []
    refused = run(guest, "table", "suspend", "shop.payments")
    assert refused.returncode == 1
    assert "may not do this" in refused.stderr
    wrong = run(("hg0000000000000000", "wrong"))
    assert wrong.returncode == 1
    assert len(wrong.stderr.splitlines()) == 1


@needs_root
def test_other_user_gets_nothing_not_even_from_the_broker(guarded: Guarded) -> None:
    told = outcomes(guarded.stack, broker_is_open=False)
    assert len(told) >= 40
    assert {name: what for name, what in told.items() if what.startswith("IN")} == {}
    names = [made["name"] for made in guarded.stack.json("credentials", "list")]
    assert not {"blind", "mine"} & set(names)


def test_kafkas_own_tools_log_in_by_the_file_of_the_data_folder(guarded: Guarded) -> None:
    text = (guarded.stack.data / "secrets" / CLIENT_FILE).read_text()
    options = dict(line.split("=", 1) for line in text.splitlines())
    assert options["bootstrap.servers"] == guarded.stack.runtime.kafka
    assert options["sasl.mechanism"] == "SCRAM-SHA-512"
    assert (guarded.stack.data / "secrets" / "broker").read_text() in options["sasl.jaas.config"]


def test_link_signs_a_browser_in(guarded: Guarded) -> None:
    link = guarded.stack.json("sign-in")["link"]
    with httpx.Client(trust_env=False, follow_redirects=True) as browser:
        assert browser.get(f"{guarded.stack.runtime.api}/status").status_code == 401
        assert browser.get(link).status_code == 200
        assert browser.get(f"{guarded.stack.runtime.api}/status").status_code == 200
    assert httpx.get(link, trust_env=False).status_code == 401


def test_no_secret_is_anywhere(guarded: Guarded) -> None:
    """After all of the above. Keys are in their files, and nothing is in logs, replies or command lines."""
    data = guarded.stack.data
    keys = [(data / "secrets" / name).read_text() for name in ("engine", "operator", "query", "broker")]
    canaries = [*keys, *guarded.canaries]
    assert len(canaries) >= 8
    files = [file for file in data.iterdir() if file.is_file()] + list((data / "logs").iterdir())
    files.append(data.parent / f"{data.name}.log")
    assert {"server.log", "engine.log", "control.db", "run.json"} <= {file.name for file in files}
    for file in files:
        text = file.read_bytes()
        assert not [canary for canary in canaries if canary.encode() in text], file
    admin = guarded.credential("last", "--role", "admin")
    of_table = "/iceberg/v1/namespaces/local/tables/shop.payments"
    for path in (
        "/", "/metrics", "/healthz", "/registry/subjects", "/registry/schemas/ids/1", "/api/v1/status",
        "/api/v1/events?limit=1000", "/api/v1/credentials", "/api/v1/tables", "/api/v1/tables/shop.payments",
        "/api/v1/catalogs", "/api/v1/storage", "/iceberg/v1/config", "/iceberg/v1/namespaces/local/tables",
        of_table, f"{of_table}/credentials", "/api/v1/audit?limit=1000",
    ):  # fmt: skip
        answer = guarded.elsewhere(path, auth=admin)
        assert answer.status_code == 200, path
        assert not [canary for canary in canaries if canary in answer.text + str(answer.headers)], path
    assert showing(data, canaries) == []
    assert loose(data) == []
    pids = [pid for group in groups_of(data).values() for pid in group_members(group)]
    lines = [" ".join(psutil.Process(pid).cmdline()) for pid in pids]
    assert any("SparkSubmit" in line for line in lines)
    assert not [line for line in lines if any(canary in line for canary in canaries)]
