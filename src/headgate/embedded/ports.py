"""Ports: 0 lets the system choose, anything else must be free."""

import socket

from headgate.errors import PortTaken

LOOPBACK = "127.0.0.1"


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def claim_port(port: int, name: str) -> int:
    """`port` if it is free, one of the system's if it is 0; `name` is its key under `ports`."""
    if port == 0:
        return free_port()
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            raise PortTaken(
                f"Port {port} (ports.{name}) is taken by another process.",
                f"Stop that process, or set ports.{name} in headgate.yaml to another port or to 0.",
            ) from error
    return port
