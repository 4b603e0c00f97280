"""Who a request comes from, and what they may do: credentials, tokens, roles."""

from headgate.access.gate import Gate, LocalKeys
from headgate.access.roles import ENGINE, LOCAL, Grant, Principal, Role

__all__ = ["ENGINE", "LOCAL", "Gate", "Grant", "LocalKeys", "Principal", "Role"]
