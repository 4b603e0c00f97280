"""Finds a running Headgate and speaks to its control API; its errors come back as the errors they were."""

import base64
import os
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self
from urllib.parse import quote

import typer

from headgate import errors
from headgate.errors import ConfigError, HeadgateError, InvalidRequest, ServerUnavailable, TerminalError

if TYPE_CHECKING:
    import httpx

DEFAULT_DATA = Path(".headgate")
URL_VARIABLE = "HEADGATE_URL"
CA_VARIABLE = "HEADGATE_CA_FILE"
ID_VARIABLE, SECRET_VARIABLE = "HEADGATE_CLIENT_ID", "HEADGATE_CLIENT_SECRET"
TIMEOUT_SECONDS = 30.0

DataOption = Annotated[
    Path | None,
    typer.Option(
        "--data", metavar="DIR", help="The data folder of the Headgate to use. [default: .headgate]"
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def data_folder(data: Path | None) -> Path | None:
    """`--data`, else what the environment says; none if nobody named one."""
    if data is None and os.environ.get("HEADGATE_DATA"):
        data = Path(os.environ["HEADGATE_DATA"])
    return None if data is None else data.expanduser().absolute()


def connect(data: Path | None = None) -> "Client":
    """The Headgate on this data folder. If none was named: at HEADGATE_URL, else in `.headgate`."""
    folder = data_folder(data)
    url = os.environ.get(URL_VARIABLE)
    if folder is None and url:
        hint = f"Is {URL_VARIABLE} right?"
        return Client(url.rstrip("/") + "/api/v1", hint=hint, login=_login_from_environment())

    from headgate.embedded.run_file import read_run, supervisor_of
    from headgate.embedded.secrets import OPERATOR_KEY, known_secret

    folder = folder or DEFAULT_DATA.absolute()
    supervisor_of(folder)
    run = read_run(folder)
    key = known_secret(folder, OPERATOR_KEY)
    return Client(
        run["addresses"]["api"],
        hint=f"See {run['logs']}/server.log.",
        addresses=run["addresses"],
        login=None if key is None else f"Bearer {key}",
    )


def _certificates() -> ssl.SSLContext | None:
    """Those that a Headgate elsewhere is checked with; none are the system's."""
    file = os.environ.get(CA_VARIABLE)
    if not file:
        return None
    try:
        return ssl.create_default_context(cafile=file)
    except OSError as error:  # ssl.SSLError is one
        raise ConfigError(f"{CA_VARIABLE} names {file}, which holds no certificates: {error}.") from error


def _login_from_environment() -> str | None:
    """Client id and secret, for a Headgate elsewhere."""
    client_id, secret = os.environ.get(ID_VARIABLE), os.environ.get(SECRET_VARIABLE)
    if not client_id and not secret:
        return None
    if not client_id or not secret:
        raise ConfigError(f"{ID_VARIABLE} and {SECRET_VARIABLE} belong together.", "Set both, or neither.")
    return "Basic " + base64.b64encode(f"{client_id}:{secret}".encode()).decode()


class Client:
    """The control API. A path is given in parts: `client.post("tables", topic, "sync")`."""

    def __init__(
        self, api: str, hint: str = "", addresses: dict[str, str] | None = None, login: str | None = None
    ) -> None:
        import httpx

        self._api = api
        self._hint = hint
        self._addresses = addresses
        headers = {} if login is None else {"Authorization": login}
        # Without TLS there is nothing to check, and reading the system's certificates takes its time.
        verify = (_certificates() or True) if api.startswith("https://") else False
        self._http = httpx.Client(timeout=TIMEOUT_SECONDS, trust_env=False, headers=headers, verify=verify)

    def addresses(self) -> dict[str, str]:
        """Where things are: kafka, registry, iceberg, api, console, spark_connect."""
        if self._addresses is None:
            self._addresses = dict(self.get("status")["addresses"])
        return self._addresses

    def get(self, *path: str, **parameters: Any) -> Any:
        return self._call("GET", path, parameters)

    def post(self, *path: str, body: Any = None, **parameters: Any) -> Any:
        return self._call("POST", path, parameters, body)

    def patch(self, *path: str, body: Any) -> Any:
        return self._call("PATCH", path, {}, body)

    def delete(self, *path: str, **parameters: Any) -> Any:
        return self._call("DELETE", path, parameters)

    @contextmanager
    def lines(self, *path: str, body: Any = None, **parameters: Any) -> Iterator[Iterator[str]]:
        """The lines of an answer that may never end, as they come; gone with the block. With a body it is
        posted."""
        with self._streamed(path, parameters, body) as answer:
            yield answer.iter_lines()

    @contextmanager
    def content(self, *path: str) -> Iterator[Iterator[bytes]]:
        """The same, of an answer that has no lines."""
        with self._streamed(path, {}, None) as answer:
            yield answer.iter_bytes()

    @contextmanager
    def _streamed(
        self, path: tuple[str, ...], parameters: dict[str, Any], body: Any
    ) -> "Iterator[httpx.Response]":
        import httpx

        url = "/".join([self._api, *(quote(part, safe="") for part in path)])
        try:
            limits = httpx.Timeout(TIMEOUT_SECONDS, read=None)
            method = "GET" if body is None else "POST"
            with self._http.stream(method, url, params=parameters, json=body, timeout=limits) as answer:
                if not answer.is_success:
                    answer.read()
                    raise error_of(answer)
                yield answer
        except httpx.TransportError as error:
            raise self._silent(error) from error

    def _silent(self, error: Exception) -> ServerUnavailable:
        reason = str(error) or type(error).__name__
        return ServerUnavailable(f"Headgate at {self._api} does not answer: {reason}.", self._hint)

    def _call(self, method: str, path: tuple[str, ...], parameters: dict[str, Any], body: Any = None) -> Any:
        import httpx

        url = "/".join([self._api, *(quote(part, safe="") for part in path)])
        try:
            answer = self._http.request(method, url, params=parameters, json=body)
        except httpx.TransportError as error:
            raise self._silent(error) from error
        if answer.is_success:
            return answer.json() if answer.content else None
        raise error_of(answer)

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def error_of(answer: "httpx.Response") -> HeadgateError:
    """The error that the server raised, by its name."""
    try:
        body = answer.json()
        return _error_class(body["error"])(str(body["message"]), str(body.get("remedy") or ""))
    except (ValueError, KeyError, TypeError):
        # Not an answer of ours: a proxy's page, or another program on that port.
        kind = ServerUnavailable if answer.status_code >= 500 else InvalidRequest
        return kind(f"{answer.request.url} answered {answer.status_code} {answer.reason_phrase}.")


def error_of_line(told: Mapping[str, Any]) -> HeadgateError:
    """The error that a stream of lines has ended with."""
    return _error_class(str(told["error"]))(str(told["message"]), str(told.get("remedy") or ""))


def _error_class(name: str) -> type[HeadgateError]:
    found = getattr(errors, name, None)
    return found if isinstance(found, type) and issubclass(found, HeadgateError) else TerminalError
