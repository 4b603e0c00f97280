"""Messages through Apprise, as a real server gets them."""

import json
import logging
from typing import Any

import pytest

from headgate.errors import OutsideRefused, OutsideUnavailable
from headgate.export import outlets
from headgate.store import RunState
from tests.unit.export.test_service import Place, place
from tests.unit.export.test_webhook import Receiver, receiver

__all__ = ["place", "receiver"]


def test_a_service_is_told_of_a_file_once_and_of_a_failure(place: Place, receiver: Receiver) -> None:
    place.secrets["chat"] = f"json://127.0.0.1:{receiver.server_port}/told"
    run = place.ask(mail=None, apprise=["chat"])
    receiver.code = 500
    place.work()
    assert "service of 'chat' has not taken" in place.exports.run(run.id).reason
    receiver.code = 200
    place.work()
    done = place.exports.run(run.id)
    assert (done.state, done.detail["told"]) == (RunState.DONE, {"apprise chat": "sent"})
    message = json.loads(receiver.posted[-1][1])
    assert message["title"].startswith("Export weekly: weekly_")
    assert "10 rows" in message["message"]
    assert "https://h.example/exports/files/" in message["message"]
    assert "example.org" not in message["message"]
    place.again()
    place.tables.current.clear()
    place.work(3)
    assert json.loads(receiver.posted[-1][1])["title"] == "Export weekly has failed"


def test_what_apprise_does_not_know_is_an_error_without_the_url(
    receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    receiver.code = 401
    with pytest.raises(OutsideRefused, match="secret 'chat' is no URL") as refused:
        outlets.send("chat", "nothing://token-of-mine", "t", "b")
    with pytest.raises(OutsideUnavailable) as unavailable:
        outlets.send("chat", f"json://token-of-mine@127.0.0.1:{receiver.server_port}/", "t", "b")
    said: list[Any] = [str(refused.value), str(unavailable.value), caplog.text]
    assert not [text for text in said if "token-of-mine" in text]
