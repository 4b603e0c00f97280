"""Ports at both of the addresses that `localhost` stands for, with real sockets."""

import errno
import socket
from contextlib import suppress

import pytest

from headgate.embedded.ports import IPV6_LOOPBACK, claim_ports, free_port, kept_from_others
from headgate.errors import PortTaken
from tests.support.users import NOBODY, as_user, needs_root


def has_ipv6() -> bool:
    with suppress(OSError), socket.socket(socket.AF_INET6) as probe:
        probe.bind((IPV6_LOOPBACK, 0))
        return True
    return False


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="there is no IPv6 here")


@needs_ipv6
def test_port_that_somebody_has_at_localhosts_other_address_is_taken() -> None:
    with socket.create_server((IPV6_LOOPBACK, 0), family=socket.AF_INET6) as other:
        port = other.getsockname()[1]
        with pytest.raises(PortTaken, match=rf"Port {port} \(ports.server\) is taken by another process"):
            claim_ports({"server": port}, {})
        assert claim_ports({"server": 0}, {"server": port})["server"] != port
        with pytest.raises(PortTaken, match=r"\(ports.connect\)"), kept_from_others({"connect": port}):
            pass


@needs_ipv6
@needs_root
def test_no_other_user_sits_at_localhosts_other_address() -> None:
    """Clients of `localhost` would show them tokens."""
    port = free_port()
    code = f"""
for host in ("::1", "::"):
    link = socket.socket(socket.AF_INET6)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        link.bind((host, {port}))
        print("IN", host)
    except OSError as error:
        print(error.errno)
"""
    with kept_from_others({"server": port}):
        with as_user(NOBODY, code) as process:
            assert process.communicate(timeout=30)[0].split() == [str(errno.EADDRINUSE)] * 2
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((IPV6_LOOPBACK, port), timeout=5)
        with socket.create_server(("127.0.0.1", port)), socket.create_connection(("localhost", port)) as link:
            assert link.getpeername()[0] == "127.0.0.1"
    with socket.create_server((IPV6_LOOPBACK, port), family=socket.AF_INET6):
        pass


def test_machine_without_ipv6_has_one_address(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = socket.socket

    def made(family: int = socket.AF_INET, *rest: int) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(errno.EAFNOSUPPORT, "no IPv6")
        return plain(family, *rest)

    monkeypatch.setattr(socket, "socket", made)
    port = claim_ports({"server": 0}, {})["server"]
    with kept_from_others({"server": port}):
        pass
