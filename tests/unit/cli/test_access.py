"""Which Kafka and registry commands speak to, on the machine of Headgate and on another."""

from pathlib import Path

import pytest

from headgate.cli.access import kafka_access, registry_access
from headgate.cli.client import Client
from headgate.errors import InvalidRequest

HERE, ELSEWHERE = "http://127.0.0.1:8080", "https://lake.example:8443"
EMBEDDED = {
    "kafka": "127.0.0.1:9092",
    "registry": f"{HERE}/registry",
    "console": f"{HERE}/",
}


@pytest.fixture(autouse=True)
def nothing_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("HEADGATE_DATA", raising=False)
    monkeypatch.setenv("HEADGATE_CLIENT_ID", "hg1")
    monkeypatch.setenv("HEADGATE_CLIENT_SECRET", "hush")
    monkeypatch.chdir(tmp_path)


def test_broker_of_another_machine_is_not_looked_for_on_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever listens on this machine's port is somebody else's."""
    monkeypatch.setenv("HEADGATE_URL", ELSEWHERE)
    with Client(f"{ELSEWHERE}/api/v1", addresses=EMBEDDED) as client:
        for address in ("127.0.0.1:9092", "localhost:9092", "[::1]:9092", "10.0.0.1:9092,127.0.0.1:9093"):
            client._addresses = EMBEDDED | {"kafka": address}
            with pytest.raises(InvalidRequest, match=r"on lake\.example alone") as refused:
                kafka_access(client, None)
            assert "kafka.bootstrap" in refused.value.remedy
        client._addresses = EMBEDDED | {"kafka": "broker.example:9092"}
        assert kafka_access(client, None).bootstrap == "broker.example:9092"


def test_broker_of_this_machine_is_reached_by_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_URL", HERE)
    with Client(f"{HERE}/api/v1", addresses=EMBEDDED) as client:
        assert kafka_access(client, None).bootstrap == "127.0.0.1:9092"


@pytest.mark.parametrize("url", [HERE, ELSEWHERE])
def test_embedded_registry_is_asked_where_headgate_is_with_the_credential(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("HEADGATE_URL", f"{url}/")
    with Client(f"{url}/api/v1", addresses=EMBEDDED) as client:
        monkeypatch.setenv("HEADGATE_CA_FILE", "/etc/lake.pem")
        access = registry_access(client, None)
        client._addresses = EMBEDDED | {"registry": "http://registry.example"}
        other = registry_access(client, None)
    assert (access.url, access.username, access.password) == (f"{url}/registry", "hg1", "hush")
    assert access.ca_file == Path("/etc/lake.pem")
    assert (other.url, other.username, other.password) == ("http://registry.example", None, None)
