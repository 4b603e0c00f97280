"""Ports: 0 lets the system choose, anything else must be free.

Headgate listens on 127.0.0.1. `localhost` stands for ::1 too, and clients may try that first: nobody else is
to sit there at the same port, and be shown their tokens.
"""

import errno
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

from headgate.errors import PortTaken

LOOPBACK, IPV6_LOOPBACK = "127.0.0.1", "::1"
# A port that somebody has; what else keeps us from an address of IPv6 is that there is none.
_TAKEN = frozenset({errno.EADDRINUSE})


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
            try:
                found[name] = _claim(held, port or before.get(name, 0))
            except OSError as error:
                if port:
                    raise _taken(port, name, found) from error
                found[name] = _claim_any(held)
    return found


@contextmanager
def kept_from_others(ports: Mapping[str, int]) -> Iterator[None]:
    """While the block lasts nobody else has these ports at ::1, and nobody answers there."""
    with ExitStack() as held:
        for name, port in ports.items():
            try:
                _claim_other_address(held, port)
            except OSError as error:
                raise _taken(port, name, {}) from error
        yield


def _claim(held: ExitStack, port: int) -> int:
    bound = _bind(held.enter_context(socket.socket()), port)
    _claim_other_address(held, bound)
    return bound


def _claim_any(held: ExitStack) -> int:
    """One of the system's, which knows nothing of the other address."""
    while True:
        try:
            return _claim(held, 0)
        except OSError as error:
            if error.errno not in _TAKEN:
                raise


def _claim_other_address(held: ExitStack, port: int) -> None:
    try:
        probe = held.enter_context(socket.socket(socket.AF_INET6))
        # Not listened at: who comes is refused, and goes to 127.0.0.1.
        probe.bind((IPV6_LOOPBACK, port))
    except OSError as error:
        if error.errno in _TAKEN:
            raise


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
