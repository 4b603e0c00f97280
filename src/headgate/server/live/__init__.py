"""What the console is told as it happens: how all stands, and figures of the last hour."""

from headgate.server.live.hub import Live
from headgate.server.live.streams import EventStream

__all__ = ["EventStream", "Live"]
