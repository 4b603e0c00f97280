"""Ports with real sockets."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.embedded.folder import DataFolder
from headgate.embedded.ports import LOOPBACK, claim_port, claim_ports, free_port
from headgate.errors import PortTaken


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server((LOOPBACK, 0)) as server:
        yield server.getsockname()[1]


def test_a_port_that_is_taken_is_named_with_its_setting(taken: int) -> None:
    with pytest.raises(PortTaken, match=rf"Port {taken} \(ports.server\) is taken") as failure:
        claim_port(taken, "server")

    assert "ports.server" in failure.value.remedy


def test_a_free_port_is_claimed_as_it_is() -> None:
    port = free_port()

    assert claim_port(port, "server") == port


def test_one_port_for_two_names_is_refused() -> None:
    port = free_port()

    with pytest.raises(PortTaken, match=r"\(ports.broker\) is taken by ports.server"):
        claim_ports({"server": port, "broker": port}, {})


def test_ports_of_the_systems_choice_all_differ() -> None:
    names = [f"port{i}" for i in range(50)]

    assert len(set(claim_ports(dict.fromkeys(names, 0), {}).values())) == 50


def test_a_port_stays_what_it_was_as_long_as_it_is_free(taken: int) -> None:
    before = free_port()

    assert claim_ports({"broker": 0}, {"broker": before}) == {"broker": before}
    assert claim_ports({"broker": 0}, {"broker": taken})["broker"] != taken


def test_a_configured_port_wins_over_a_remembered_one() -> None:
    wanted, before = free_port(), free_port()

    assert claim_ports({"broker": wanted}, {"broker": before}) == {"broker": wanted}


def test_the_folder_remembers_ports(tmp_path: Path) -> None:
    with DataFolder.taken(tmp_path) as folder:
        assert folder.remembered_ports() == {}
        folder.remember_ports({"broker": 1234})

    with DataFolder.taken(tmp_path) as folder:
        assert folder.remembered_ports() == {"broker": 1234}
