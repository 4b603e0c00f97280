"""Clients that may ask for tokens."""

from typing import Any

from fastapi import APIRouter, status
from pydantic import BaseModel, ConfigDict, Field

from headgate.access.credentials import Credential, Credentials
from headgate.access.roles import ANY, Grant, Role
from headgate.errors import InvalidRequest
from headgate.server.access import Asking, needs
from headgate.server.answers import answers
from headgate.server.answers.credentials import CredentialAnswer, NewCredentialAnswer
from headgate.store import Store


class CredentialRequest(BaseModel):
    """A client, and what it may do: a role on what two patterns match, or several grants."""

    model_config = ConfigDict(extra="forbid")

    name: str
    role: str | None = Field(None, description="`reader`, `writer`, `admin` or `engine`")
    namespace: str = Field(ANY, description="With `*` and `?` for what may vary.")
    table: str = Field(ANY, description="With `*` and `?` for what may vary.")
    grants: list[str] = Field(default_factory=list, description="`ROLE:NAMESPACE:TABLE`")

    def all_grants(self) -> list[Grant]:
        if self.role is None and (self.namespace, self.table) != (ANY, ANY):
            raise InvalidRequest("Patterns of namespaces and tables need a role.", "Add --role reader.")
        given = [] if self.role is None else [Grant(Role.parse(self.role), self.namespace, self.table)]
        return [*given, *(Grant.parse(text) for text in self.grants)]


# None of it is a question of topics.
ADMINS = needs(Role.ADMIN, "everything")


def credentials_router(store: Store) -> APIRouter:
    router = APIRouter(prefix="/credentials", tags=["credentials"])
    credentials = Credentials(store.engine)

    @router.post(
        "",
        summary="Make a credential",
        status_code=status.HTTP_201_CREATED,
        **ADMINS,
        **answers(NewCredentialAnswer, 201),
    )
    def create(wanted: CredentialRequest, access: Asking) -> dict[str, Any]:
        """The secret is in this answer and nowhere else."""
        access.note(f"credential {wanted.name}")
        made, secret = credentials.create(wanted.name, wanted.all_grants())
        store.log(_subject(made), "created", f"{made.client_id}: {', '.join(map(str, made.grants))}")
        return _shown(made) | {"client_secret": secret}

    @router.get(
        "", summary="List the credentials, revoked ones too", **ADMINS, **answers(list[CredentialAnswer])
    )
    def list_credentials() -> list[dict[str, Any]]:
        return [_shown(found) for found in credentials.list()]

    @router.delete(
        "/{name}",
        summary="Revoke a credential, by its name or client id",
        **ADMINS,
        **answers(CredentialAnswer),
    )
    def revoke(name: str, access: Asking) -> dict[str, Any]:
        """Its secret and its tokens open nothing from now on."""
        revoked = credentials.revoke(name)
        # Whoever looks for it in the audit trail knows its name, whichever of the two was given here.
        access.note(_subject(revoked))
        store.log(_subject(revoked), "revoked", revoked.client_id)
        return _shown(revoked)

    return router


def _subject(credential: Credential) -> str:
    return f"credential {credential.name}"


def _shown(credential: Credential) -> dict[str, Any]:
    return {
        "name": credential.name,
        "client_id": credential.client_id,
        "grants": [str(grant) for grant in credential.grants],
        "created_at": credential.created_at,
        "revoked_at": credential.revoked_at,
    }
