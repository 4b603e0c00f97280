import os
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from headgate.access import peers
from headgate.access.peers import Owner, SocketPeer, owner_of
from tests.support.users import NOBODY, as_user, needs_root

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells whose a connection is")
WAYS = {"netlink": peers._by_netlink, "table": peers._by_table}


@contextmanager
def connected(
    host: str = "127.0.0.1", bound: str = "127.0.0.1"
) -> Iterator[tuple[socket.socket, socket.socket]]:
    """Both ends: the server's, and the client's."""
    family = socket.AF_INET6 if ":" in bound else socket.AF_INET
    with socket.create_server((bound, 0), family=family) as server:
        far = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        far.connect((host, server.getsockname()[1]))
        near, _ = server.accept()
        with closing(near), closing(far):
            yield near, far


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("host", "bound"), [("127.0.0.1", "127.0.0.1"), ("::ffff:127.0.0.1", "127.0.0.1"), ("::1", "::1")]
)
def test_owner_of_a_connection_is_known_in_every_form_of_address(way: str, host: str, bound: str) -> None:
    with connected(host, bound) as (near, far):
        owner = WAYS[way](near.getpeername()[:2], near.getsockname()[:2])
        assert owner == Owner(os.geteuid(), os.fstat(far.fileno()).st_ino)
        assert SocketPeer(near).uid() == os.geteuid()


@pytest.mark.parametrize("way", WAYS)
def test_closed_end_is_nobodys_though_the_system_calls_it_roots(way: str) -> None:
    with connected() as (near, far):
        there = near.getpeername()
        far.close()
        assert WAYS[way](there, near.getsockname()) is None
        assert SocketPeer(near).uid() is None


def test_half_closed_end_is_still_its_users() -> None:
    with connected() as (near, far):
        far.shutdown(socket.SHUT_WR)
        assert SocketPeer(near).uid() == os.geteuid()


def test_reset_connection_is_nobodys() -> None:
    with connected() as (near, far):
        far.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        far.close()
        assert SocketPeer(near).uid() is None


@pytest.mark.parametrize("way", WAYS)
def test_who_listens_at_an_address_is_not_taken_for_who_connects_from_it(way: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert WAYS[way](server.getsockname(), ("127.0.0.1", 1)) is None


def test_later_connection_with_the_same_addresses_is_not_taken_for_this_one() -> None:
    """The other end would be looked up by addresses alone; ours tells that they are another connection's."""
    with connected() as (near, _), connected() as (other, _):
        swapped = {near.getpeername(): other.getpeername(), near.getsockname(): other.getsockname()}
        peer = SocketPeer(near, lambda local, remote: owner_of(swapped[local], swapped[remote]))
        assert peer.uid() is None


def test_lookup_is_made_once_for_a_connection_and_again_only_without_an_answer() -> None:
    asked: list[object] = []
    with connected() as (near, _):

        def look(local: peers.Address, remote: peers.Address) -> Owner | None:
            asked.append(local)
            return None if len(asked) <= 2 else owner_of(local, remote)

        peer = SocketPeer(near, look)
        assert [peer.uid() for _ in range(5)] == [None] + [os.geteuid()] * 4
    assert len(asked) == 4


def test_user_that_stands_for_all_unknown_ones_is_nobody(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In a user namespace all users from outside have one number, which a service may have too."""
    mapped = tmp_path / "uid_map"
    mapped.write_text("         0     100000      65536\n")
    monkeypatch.setattr(peers, "_UID_MAP", mapped)
    monkeypatch.setattr(peers, "unmapped_uid", peers.unmapped_uid.__wrapped__)
    unknown = int(Path("/proc/sys/kernel/overflowuid").read_text())
    with connected() as (near, _):
        inode = os.fstat(near.fileno()).st_ino
        assert SocketPeer(near, lambda *_: Owner(unknown, inode)).uid() is None
        assert SocketPeer(near).uid() == os.geteuid()


def test_system_says_whether_it_tells_users() -> None:
    assert peers.tells_users()


@needs_root
def test_other_user_is_told_from_ours() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(20)
        port = server.getsockname()[1]
        code = f"s = socket.create_connection(('127.0.0.1', {port})); s.recv(1)"
        with as_user(NOBODY, code):
            near, _ = server.accept()
            with near:
                assert SocketPeer(near).uid() == NOBODY != os.geteuid()
                near.send(b"x")
