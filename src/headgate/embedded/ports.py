"""Ports: 0 lets the system choose, anything else must be free."""

import socket
from collections.abc import Mapping
from contextlib import ExitStack

from headgate.errors import PortTaken

LOOPBACK = "127.0.0.1"


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        return _bind(probe, 0)


def claim_port(port: int, name: str) -> int:
    """`port` if it is free, one of the system's if it is 0; `name` is its key under `ports`."""
    return claim_ports({name: port}, {})[name]


def claim_ports(wanted: Mapping[str, int], before: Mapping[str, int]) -> dict[str, int]:
    """Ports for all names. One that is 0 is what it was `before`, if that is still free.

    All are held until all are found, so no two are the same.
    """
    found: dict[str, int] = {}
    with ExitStack() as held:
        for name, port in sorted(wanted.items(), key=lambda item: item[1] == 0):
            probe = held.enter_context(socket.socket())
            try:
                found[name] = _bind(probe, port or before.get(name, 0))
            except OSError as error:
                if port:
                    raise _taken(port, name, found) from error
                found[name] = _bind(held.enter_context(socket.socket()), 0)
    return found


def _bind(probe: socket.socket, port: int) -> int:
    if port:
        # A port whose last connections are still fading away is free to a server.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    probe.bind((LOOPBACK, port))
    if port:
        # Two sockets may share a port under that option, until one of them listens.
        probe.listen()
    bound: int = probe.getsockname()[1]
    return bound


def _taken(port: int, name: str, found: Mapping[str, int]) -> PortTaken:
    other = next((f"ports.{key}" for key, value in found.items() if value == port), "another process")
    return PortTaken(
        f"Port {port} (ports.{name}) is taken by {other}.",
        f"Free it, or set ports.{name} in headgate.yaml to another port or to 0.",
    )
