"""Peers as tests play them: the other end of a connection, held by a user of the test's choice."""

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class PeerOf:
    """The other end is this user's; None: nobody can tell."""

    user: int | None

    def uid(self) -> int | None:
        return self.user


def own_peer() -> PeerOf:
    """A peer of the user who runs the tests, and so the server in them."""
    return PeerOf(os.geteuid())
