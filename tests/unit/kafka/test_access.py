"""How an access is made of settings, and rendered for librdkafka and for the Java client in Spark."""

import pickle
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from hypothesis import given
from hypothesis import strategies as st

from headgate.config import KAFKA_OPTIONS, Kafka, Security
from headgate.errors import ConfigError
from headgate.kafka.access import KafkaAccess, jaas_quoted
from headgate.kafka.client import configuration

CERTIFICATE = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"


def access(security: dict[str, Any], **options: int | str) -> KafkaAccess:
    settings = Kafka(bootstrap="b:1", security=Security.model_validate(security), options=options)
    return KafkaAccess.of(settings)


def key(password: bytes | None = None) -> bytes:
    protection = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    return rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, protection
    )


def test_an_address_alone_is_plaintext() -> None:
    found = KafkaAccess.at("b:1")
    assert found == KafkaAccess.of(Kafka(), "b:1")
    assert found.librdkafka() == {"bootstrap.servers": "b:1", "security.protocol": "plaintext"}
    assert found.spark_options() == {
        "kafka.bootstrap.servers": "b:1",
        "kafka.security.protocol": "PLAINTEXT",
    }
    assert KafkaAccess.at(found) is found
    assert str(found) == "b:1"


def test_a_login() -> None:
    found = access({"protocol": "SASL_SSL", "mechanism": "plain", "username": "u", "password": 'p"\\'})
    assert found.librdkafka() == {
        "bootstrap.servers": "b:1",
        "security.protocol": "sasl_ssl",
        "ssl.endpoint.identification.algorithm": "https",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "u",
        "sasl.password": 'p"\\',
    }
    assert found.spark_options()["kafka.sasl.jaas.config"] == (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        r'username="u" password="p\"\\";'
    )


def test_the_name_of_a_broker_may_go_unchecked() -> None:
    found = access({"protocol": "ssl", "check_hostname": False})
    assert found.librdkafka()["ssl.endpoint.identification.algorithm"] == "none"
    assert found.spark_options()["kafka.ssl.endpoint.identification.algorithm"] == ""


def test_options_have_the_names_of_each_client() -> None:
    given: dict[str, int | str] = {"fetch.max.wait.ms": 100, "request.timeout.ms": "9000", "client.id": "x"}
    found = access({}, **given)
    assert found.spark_options()["kafka.fetch.max.wait.ms"] == "100"
    assert found.librdkafka()["fetch.wait.max.ms"] == "100"
    settings = configuration(found)
    assert settings["socket.timeout.ms"] == "9000"
    assert settings["client.id"] == "x"


@pytest.mark.parametrize("name", sorted(KAFKA_OPTIONS))
def test_librdkafka_takes_every_option_at_both_ends_of_its_range(name: str) -> None:
    limits = KAFKA_OPTIONS[name]
    values: tuple[int | str, ...] = limits or (("use_all_dns_ips",) if "dns" in name else ("x",))
    for value in values:
        settings = configuration(access({}, **{name: value}))
        AdminClient(settings)
        Consumer(settings | {"group.id": "x"}).close()


def test_secrets_come_from_files_without_their_line_end(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text(" p \r\n")
    login = {"protocol": "sasl_plaintext", "mechanism": "SCRAM-SHA-512", "username": "u"}
    assert access({**login, "password_file": file}).librdkafka()["sasl.password"] == " p "
    file.write_text("\n")
    with pytest.raises(ConfigError, match=r"kafka\.security\.password is empty"):
        access({**login, "password_file": file})
    with pytest.raises(ConfigError, match=r"gone, which kafka\.security\.password_file names: No such file"):
        access({**login, "password_file": tmp_path / "gone"})


def test_certificates_are_taken_out_of_their_files(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text(f"Bag Attributes\n  a: b\n{CERTIFICATE}\nsubject=x\n{CERTIFICATE}\n")
    found = access({"protocol": "ssl", "ca_file": file})
    assert found.security.ca_pem == f"{CERTIFICATE}\n{CERTIFICATE}\n"
    assert found.spark_options()["kafka.ssl.truststore.certificates"] == found.security.ca_pem
    file.write_text("nothing")
    with pytest.raises(ConfigError, match=r"kafka\.security\.ca_file \(.*\) holds no certificate"):
        access({"protocol": "ssl", "ca_file": file})


def test_keys_of_any_form_become_the_one_that_java_reads(tmp_path: Path) -> None:
    certificate, file, password = tmp_path / "c.pem", tmp_path / "k.pem", tmp_path / "p"
    certificate.write_text(CERTIFICATE)
    own = {"protocol": "ssl", "certificate_file": certificate, "key_file": file}
    file.write_bytes(key())
    assert str(access(own).security.key_pem).startswith("-----BEGIN PRIVATE KEY-----")
    password.write_text("hush")
    file.write_bytes(key(b"hush"))
    found = access({**own, "key_password_file": password})
    assert str(found.security.key_pem).startswith("-----BEGIN PRIVATE KEY-----")
    assert found.spark_options()["kafka.ssl.keystore.key"] == found.security.key_pem
    with pytest.raises(ConfigError, match=r"is encrypted.*key_password"):
        access(own)
    password.write_text("wrong-hush")
    with pytest.raises(ConfigError, match="holds no private key that can be read") as caught:
        access({**own, "key_password_file": password})
    assert "hush" not in str(caught.value)
    file.write_bytes(key())
    with pytest.raises(ConfigError, match="not encrypted"):
        access({**own, "key_password_file": password})


def test_no_secret_is_in_its_text(tmp_path: Path) -> None:
    oauth = {"token_url": "https://t", "client_id": "me", "client_secret": "hush", "scope": "s"}
    for security in (
        {"protocol": "sasl_ssl", "mechanism": "PLAIN", "username": "me", "password": "hush"},
        {"protocol": "sasl_ssl", "mechanism": "OAUTHBEARER", "oauth": oauth},
    ):
        found = access(security)
        for text in (repr(found), str(found), f"{found}", repr(found.security)):
            assert "hush" not in text
        assert "hush" in str(found.spark_options())
        # Tasks on other machines get it whole.
        assert pickle.loads(pickle.dumps(found)) == found


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_jaas_reads_what_was_quoted(text: str) -> None:
    """By the rules of Java's StreamTokenizer, written down once more."""
    quoted = jaas_quoted(text)
    read, at = "", 1
    while quoted[at] != '"':
        assert quoted[at] not in "\r\n"
        if quoted[at] == "\\":
            at += 1
            read += {"n": "\n", "r": "\r"}.get(quoted[at], quoted[at])
        else:
            read += quoted[at]
        at += 1
    assert read == text
    assert at == len(quoted) - 1
