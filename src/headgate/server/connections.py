"""Connections as uvicorn takes them, each with its other end for the gate to ask about."""

from asyncio import Transport
from socket import socket
from typing import cast

from uvicorn.protocols.http.h11_impl import H11Protocol

from headgate.access.peers import PEER, SocketPeer


class Connection(H11Protocol):
    """An HTTP connection whose scopes carry its peer: looked up once, for all of its requests."""

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # asyncio's wrapper has the methods of a socket that are asked.
        near = cast(socket, transport.get_extra_info("socket"))
        self.app_state = {**self.app_state, PEER: SocketPeer(near)}
