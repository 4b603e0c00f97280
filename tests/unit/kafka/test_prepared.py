"""The topic of markers is looked at once a minute, and again after what was refused."""

import pytest

from headgate.errors import ConfigError
from headgate.kafka import markers
from headgate.kafka.access import KafkaAccess
from headgate.kafka.client import Where

ACCESS = KafkaAccess("nowhere:1")


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []

    def prepare(where: Where, topic: str) -> None:
        found.append(topic)
        if topic == "forgets":
            raise ConfigError("it forgets")

    monkeypatch.setattr(markers, "prepare_markers", prepare)
    monkeypatch.setattr(markers, "_prepared", {})
    return found


def test_each_topic_is_looked_at_once_in_a_while(looks: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for topic in ("one", "one", "two", "one"):
        markers.keep_prepared(ACCESS, topic)
    assert looks == ["one", "two"]
    monkeypatch.setattr(markers, "PREPARED_SECONDS", -1.0)
    markers.keep_prepared(ACCESS, "one")
    assert looks == ["one", "two", "one"]


def test_a_topic_that_was_refused_is_refused_again(looks: list[str]) -> None:
    for _ in range(2):
        with pytest.raises(ConfigError):
            markers.keep_prepared(ACCESS, "forgets")
    assert looks == ["forgets", "forgets"]


def test_another_cluster_has_a_topic_of_its_own(looks: list[str]) -> None:
    markers.keep_prepared(ACCESS, "one")
    markers.keep_prepared(KafkaAccess("elsewhere:1"), "one")
    assert looks == ["one", "one"]
