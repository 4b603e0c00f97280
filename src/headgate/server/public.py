"""The public door: a second socket, with TLS, before the same application."""

import logging
import socket
import threading
from typing import Self

import uvicorn
from starlette.types import ASGIApp

from headgate.config import LOOPBACK_HOSTS, Public
from headgate.errors import ConfigError, PortTaken
from headgate.server.doors import PublicDoor

GRACE_SECONDS = 10
log = logging.getLogger("headgate.server")


class PublicServer:
    """Open while the block lasts; nothing when none is configured."""

    def __init__(self, settings: Public, app: ASGIApp) -> None:
        self._settings = settings
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None
        self._app = app

    def __enter__(self) -> Self:
        if self._settings.host is None:
            return self
        config = _config(self._settings, self._app)
        listening = _listen(self._settings.host, self._settings.port)
        if self._settings.insecure and self._settings.host not in LOOPBACK_HOSTS:
            log.warning(
                "public.insecure: secrets and data of clients at %s:%d can be read on the way",
                self._settings.host,
                self._settings.port,
            )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [listening]}, name="public-door", daemon=True
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._thread.join(GRACE_SECONDS + 5)


def _config(settings: Public, app: ASGIApp) -> uvicorn.Config:
    config = uvicorn.Config(
        PublicDoor(app),
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        # An address that a request names itself is not believed, not even of a program on this machine.
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
        ssl_certfile=settings.certificate_file and settings.certificate_file.expanduser(),
        ssl_keyfile=settings.key_file and settings.key_file.expanduser(),
    )
    try:
        config.load()
    except OSError as error:  # ssl.SSLError is one
        raise ConfigError(
            f"public.certificate_file and public.key_file cannot be used: {error}.",
            "They must be PEM files that belong together, and the key must have no password.",
        ) from error
    return config


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=2048)
    except socket.gaierror as error:
        raise ConfigError(f"public.host '{host}' is no address of this machine: {error}.") from error
    except OSError as error:
        raise PortTaken(
            f"{host}:{port} (public.host and public.port) cannot be listened on: {error.strerror}.",
            "Free it, or set public.port in headgate.yaml to another port.",
        ) from error
