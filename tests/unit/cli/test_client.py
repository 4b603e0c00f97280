"""The API's errors become ours again; no Headgate is a clear error too."""

from pathlib import Path

import httpx
import pytest

from headgate.cli.client import Client, connect, data_folder, error_of
from headgate.config import Settings
from headgate.embedded.ports import free_port
from headgate.embedded.process import Identity
from headgate.embedded.runtime import Runtime
from headgate.errors import (
    AlreadyExists,
    BadRecords,
    HeadgateError,
    InvalidRequest,
    KafkaUnavailable,
    NotFound,
    NotRunning,
    ServerUnavailable,
    TerminalError,
)

REQUEST = httpx.Request("GET", "http://127.0.0.1/api/v1/tables")


@pytest.mark.parametrize("kind", [NotFound, AlreadyExists, InvalidRequest, KafkaUnavailable, BadRecords])
def test_an_error_comes_back_as_what_it_was(kind: type[HeadgateError]) -> None:
    body = {"error": kind.__name__, "message": "It is so.", "remedy": "Do that."}

    error = error_of(httpx.Response(409, json=body, request=REQUEST))

    assert type(error) is kind
    assert (error.message, error.remedy) == ("It is so.", "Do that.")


@pytest.mark.parametrize("name", ["NoSuchError", "ClassVar", "__name__", ""])
def test_a_name_that_is_no_error_of_ours_is_terminal(name: str) -> None:
    error = error_of(httpx.Response(400, json={"error": name, "message": "Hm."}, request=REQUEST))

    assert type(error) is TerminalError
    assert error.message == "Hm."


@pytest.mark.parametrize(
    ("response", "kind"),
    [
        (httpx.Response(502, text="<html>", request=REQUEST), ServerUnavailable),
        (httpx.Response(404, text="not here", request=REQUEST), InvalidRequest),
        (httpx.Response(500, json=["surprise"], request=REQUEST), ServerUnavailable),
        (httpx.Response(400, json={"detail": "surprise"}, request=REQUEST), InvalidRequest),
    ],
)
def test_an_answer_that_is_not_ours_is_told_with_its_status(
    response: httpx.Response, kind: type[HeadgateError]
) -> None:
    error = error_of(response)

    assert type(error) is kind
    assert f"answered {response.status_code}" in error.message


def test_a_server_that_does_not_answer_is_unavailable() -> None:
    with (
        Client(f"http://127.0.0.1:{free_port()}", hint="See the log.") as client,
        pytest.raises(ServerUnavailable, match="does not answer") as failure,
    ):
        client.get("status")

    assert failure.value.remedy == "See the log."


def test_a_folder_without_a_headgate_is_not_running(tmp_path: Path) -> None:
    with pytest.raises(NotRunning, match=str(tmp_path)):
        connect(tmp_path)


def test_addresses_of_a_headgate_on_this_machine_are_read_from_its_folder(settings: Settings) -> None:
    settings.data.mkdir()
    runtime = Runtime.of(settings, server_port=1, connect_port=2, broker_port=3, supervisor=Identity.own())
    runtime.write()

    with connect(settings.data) as client:
        assert client.addresses() == runtime.addresses


def test_a_folder_is_named_by_option_or_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADGATE_DATA", raising=False)
    assert data_folder(None) is None

    monkeypatch.setenv("HEADGATE_DATA", str(tmp_path / "env"))
    assert data_folder(None) == tmp_path / "env"
    assert data_folder(tmp_path / "option") == tmp_path / "option"


def test_a_url_is_used_when_no_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADGATE_DATA", raising=False)
    monkeypatch.setenv("HEADGATE_URL", f"http://127.0.0.1:{free_port()}/")

    with connect() as client, pytest.raises(ServerUnavailable, match=r"/api/v1 does not answer"):
        client.get("status")
    with pytest.raises(NotRunning):
        connect(tmp_path)
