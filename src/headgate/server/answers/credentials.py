"""Clients that may ask for tokens."""

from headgate.server.answers.shape import Shape


class CredentialAnswer(Shape):
    """A client; grants are written `ROLE:NAMESPACE:TABLE`."""

    name: str
    client_id: str
    grants: list[str]
    created_at: float
    revoked_at: float | None


class NewCredentialAnswer(CredentialAnswer):
    """A client with its secret, which is nowhere else."""

    client_secret: str
