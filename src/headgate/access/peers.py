"""Which user of this machine holds the other end of a connection on loopback.

Linux tells the user who owns a socket: for one connection by netlink (sock_diag) in microseconds, however
many sockets there are, else by the list of all in /proc/net/tcp. A connection that has no owner any more, as
its end was closed, is reported as root's there: what has no inode is nobody's.
"""

import os
import socket
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import Protocol

# Where a connection's other end is kept in the state of an ASGI scope.
PEER = "headgate.peer"
Address = tuple[str, int]

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, _NLMSG_ERROR = 20, 1, 2
_HEADER = struct.Struct("=IHHII")
_REQUEST = struct.Struct("=BBBBI")
_IDENTITY = struct.Struct("!HH16s16s")
_ANY_INTERFACE_AND_COOKIE = struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)
_COUNTERS = struct.Struct("=IIIII")
_COOKIE_BYTES = len(_ANY_INTERFACE_AND_COOKIE)
_LISTENING = 10
_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_UID_MAP, _OVERFLOW_UID = Path("/proc/self/uid_map"), Path("/proc/sys/kernel/overflowuid")


@dataclass(frozen=True)
class Owner:
    """Who owns a socket; `inode` is the socket's own number in the system."""

    uid: int
    inode: int


class Peer(Protocol):
    """The other end of a connection."""

    def uid(self) -> int | None:
        """The user who owns it; None when nobody can tell."""


class SocketPeer:
    """The other end of an accepted connection, looked up when first asked for and once."""

    def __init__(
        self,
        near: socket.socket,
        look: "Callable[[Address, Address], Owner | None] | None" = None,
    ) -> None:
        self._near = near
        self._look = look or owner_of
        self._uid: int | None = None

    def uid(self) -> int | None:
        """An answer is kept as long as the connection lives; that there is none is asked again."""
        if self._uid is None:
            self._uid = self._told()
        return self._uid

    def _told(self) -> int | None:
        if sys.platform != "linux":
            return None
        try:
            here, there = self._near.getsockname()[:2], self._near.getpeername()[:2]
            inode = os.fstat(self._near.fileno()).st_ino
            owner = self._look(there, here)
            # Our end after theirs: as long as it is this connection's, nobody else has had its addresses.
            ours = self._look(here, there)
        except OSError:
            return None
        if owner is None or ours is None or ours.inode != inode or owner.uid == unmapped_uid():
            return None
        return owner.uid


def owner_of(local: Address, remote: Address) -> Owner | None:
    """Who owns the socket of this machine that is at `local` and connected to `remote`."""
    return _by_netlink(local, remote) or _by_table(local, remote)


def tells_users() -> bool:
    """Whether this system says whose a connection is."""
    if sys.platform != "linux":
        return False
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()),
        server.accept()[0] as near,
    ):
        return SocketPeer(near).uid() == os.geteuid()


@cache
def unmapped_uid() -> int | None:
    """What stands for all users unknown in this process's user namespace; None where all are known."""
    try:
        known = sum(int(line.split()[2]) for line in _UID_MAP.read_text().splitlines())
        return None if known >= 2**32 - 1 else int(_OVERFLOW_UID.read_text())
    except OSError:
        return None


def _plain(address: Address) -> tuple[bytes, int]:
    """Address as bytes and port; one of IPv4 that is written as IPv6 is one of IPv4."""
    ip = ip_address(address[0].partition("%")[0])
    mapped = ip.ipv4_mapped if isinstance(ip, IPv6Address) else None
    return (mapped or ip).packed, address[1]


def _by_netlink(local: Address, remote: Address) -> Owner | None:
    near, far = _plain(local), _plain(remote)
    family = socket.AF_INET if len(near[0]) == 4 else socket.AF_INET6
    identity = _IDENTITY.pack(near[1], far[1], near[0], far[0])
    body = _REQUEST.pack(family, socket.IPPROTO_TCP, 0, 0, 0xFFFFFFFF) + identity + _ANY_INTERFACE_AND_COOKIE
    head = _HEADER.pack(_HEADER.size + len(body), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 1, 0)
    try:
        with socket.socket(
            socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_SOCK_DIAG
        ) as link:
            link.settimeout(1)
            link.send(head + body)
            answer = link.recv(4096)
    except OSError:
        return None
    if _HEADER.unpack_from(answer)[1] == _NLMSG_ERROR:
        return None
    at = _HEADER.size
    state = answer[at + 1]
    same = _IDENTITY.unpack_from(answer, at + 4)[:2] == (near[1], far[1])
    uid, inode = _COUNTERS.unpack_from(answer, at + 4 + _IDENTITY.size + _COOKIE_BYTES)[3:]
    # Without such a connection it answers with who listens there.
    return Owner(uid, inode) if same and inode and state != _LISTENING else None


def _by_table(local: Address, remote: Address, tables: tuple[Path, ...] = _TABLES) -> Owner | None:
    for table in tables:
        width = 16 if table.name.endswith("6") else 4
        wanted = f" {_written(local, width)} {_written(remote, width)} "
        try:
            text = table.read_text()
        except OSError:
            continue
        at = text.find(wanted)
        if at >= 0:
            fields = text[at + len(wanted) : text.find("\n", at)].split()
            # After both addresses: state, queues, timer, retransmits, uid, timeout, inode.
            if int(fields[6]) and int(fields[0], 16) != _LISTENING:
                return Owner(int(fields[4]), int(fields[6]))
    return None


def _written(address: Address, width: int) -> str:
    """As the tables write it: words in the machine's own byte order."""
    ip, port = _plain(address)
    if len(ip) < width:
        ip = bytes(10) + b"\xff\xff" + ip
    words = [ip[at : at + 4] for at in range(0, len(ip), 4)]
    return "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words) + f":{port:04X}"
