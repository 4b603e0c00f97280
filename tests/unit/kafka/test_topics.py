"""What Kafka's client, for which a zero is the end of a text, cannot be told is refused before it is."""

import pytest

from headgate.errors import InvalidRequest, NotFound
from headgate.kafka.topics import Topics

# Nobody answers there: what is answered at once was not asked.
NOWHERE = Topics("127.0.0.1:1", timeout=0.1)
UNSENDABLE = ["hr.salaries\0.public", "\0", "\ud893"]


@pytest.mark.parametrize("name", UNSENDABLE)
def test_name_that_would_be_cut_short_is_nobodys(name: str) -> None:
    """Who may read `*.public` would be shown hr.salaries."""
    with pytest.raises(NotFound):
        NOWHERE.describe(name)
    with pytest.raises(NotFound):
        NOWHERE.delete(name)
    assert NOWHERE.describe_many([name]) == {}


@pytest.mark.parametrize("text", UNSENDABLE)
def test_topic_that_cannot_be_told_is_not_made(text: str) -> None:
    with pytest.raises(InvalidRequest, match="name of a topic"):
        NOWHERE.create(text)
    for config in ({text: "1"}, {"retention.ms": text}):
        with pytest.raises(InvalidRequest, match="configuration"):
            NOWHERE.create("orders", config=config)
        with pytest.raises(InvalidRequest, match="configuration"):
            NOWHERE.configure("orders", config)
