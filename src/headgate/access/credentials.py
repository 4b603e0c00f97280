"""Clients and their secrets, in the control state. A secret is shown once; what is kept is its hash.

Secrets are 256 random bits, so a fast hash is enough: there is nothing to guess that a slow one would slow.
"""

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy import Engine, RowMapping
from sqlalchemy.exc import IntegrityError

from headgate.access.roles import Grant, Principal
from headgate.errors import AlreadyExists, InvalidRequest, NotFound
from headgate.store.database import reading

SECRET_BYTES = 32
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,99}")
_NOBODY = "0" * 64

_credentials = sa.Table(
    "credentials",
    sa.MetaData(),
    sa.Column("client_id", sa.String, primary_key=True),
    sa.Column("name", sa.String),
    sa.Column("live_name", sa.String),
    sa.Column("secret_hash", sa.String),
    sa.Column("grants", sa.JSON),
    sa.Column("created_at", sa.Float),
    sa.Column("revoked_at", sa.Float),
)


@dataclass(frozen=True)
class Credential:
    """A client that may ask for tokens, until it is revoked."""

    client_id: str
    name: str
    grants: tuple[Grant, ...]
    created_at: float
    revoked_at: float | None = None

    @property
    def principal(self) -> Principal:
        return Principal(f"'{self.name}'", self.grants, self.client_id)


class Credentials:
    """Every method is one transaction; nothing is cached, so a revocation holds from the next request on."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def create(self, name: str, grants: Sequence[Grant]) -> tuple[Credential, str]:
        """The credential, and its secret: nobody can show it again."""
        if not NAME.fullmatch(name):
            raise InvalidRequest(
                f"'{name}' cannot name a credential.",
                "Use letters, digits and _ . @ -, at most 100, beginning with a letter or digit.",
            )
        if not grants:
            raise InvalidRequest(
                f"The credential '{name}' would open nothing.", "Give it a role: reader, writer or admin."
            )
        secret = secrets.token_urlsafe(SECRET_BYTES)
        # Plain letters and digits: client ids are pasted into URLs, properties and SQL.
        made = Credential(f"hg{secrets.token_hex(8)}", name, tuple(sorted(set(grants))), time.time())
        row = {
            "client_id": made.client_id,
            "name": name,
            "live_name": name,
            "secret_hash": _hash(secret),
            "grants": [str(grant) for grant in made.grants],
            "created_at": made.created_at,
            "revoked_at": None,
        }
        try:
            with self._engine.begin() as connection:
                connection.execute(sa.insert(_credentials).values(row))
        except IntegrityError as error:
            raise AlreadyExists(
                f"There is a credential '{name}' already.",
                f"Revoke it first (`headgate credentials revoke {name}`), or choose another name.",
            ) from error
        return made, secret

    def list(self) -> list[Credential]:
        """Revoked ones too, the newest first."""
        found = sa.select(_credentials).order_by(_credentials.c.created_at.desc(), _credentials.c.client_id)
        with reading(self._engine) as connection:
            return [_credential(row) for row in connection.execute(found).mappings()]

    def change(self, name: str, grants: Sequence[Grant]) -> Credential:
        """One that is live, with other grants: they hold from the next request on."""
        mine = _credentials.c.live_name == name
        texts = [str(grant) for grant in sorted(set(grants))]
        with self._engine.begin() as connection:
            connection.execute(sa.update(_credentials).where(mine).values(grants=texts))
            row = connection.execute(sa.select(_credentials).where(mine)).mappings().first()
        if row is None:
            raise NotFound(f"There is no live credential '{name}'.", "See `headgate credentials list`.")
        return _credential(row)

    def revoke(self, name_or_id: str) -> Credential:
        """From now on neither its secret nor its tokens open anything."""
        live = _credentials.c.revoked_at.is_(None)
        named = sa.or_(_credentials.c.name == name_or_id, _credentials.c.client_id == name_or_id)
        with self._engine.begin() as connection:
            row = connection.execute(sa.select(_credentials).where(named, live)).mappings().first()
            if row is None:
                raise NotFound(
                    f"There is no live credential '{name_or_id}'.", "See `headgate credentials list`."
                )
            change = {"revoked_at": time.time(), "live_name": None}
            mine = _credentials.c.client_id == row["client_id"]
            connection.execute(sa.update(_credentials).where(mine).values(change))
        return _credential({**row, **change})

    def find(self, client_id: str) -> Credential | None:
        """One that is live."""
        row = self._row(client_id)
        return None if row is None else _credential(row)

    def is_revoked(self, client_id: str) -> bool:
        """Whether there was one of this id that is live no more."""
        found = sa.select(_credentials.c.revoked_at).where(_credentials.c.client_id == client_id)
        with reading(self._engine) as connection:
            return connection.scalar(found) is not None

    def verify(self, client_id: str, secret: str) -> Credential | None:
        """The live credential with this secret. It takes as long for a client that there is not."""
        row = self._row(client_id)
        kept = _NOBODY if row is None else str(row["secret_hash"])
        right = hmac.compare_digest(kept, _hash(secret))
        return _credential(row) if right and row is not None else None

    def _row(self, client_id: str) -> RowMapping | None:
        found = sa.select(_credentials).where(
            _credentials.c.client_id == client_id, _credentials.c.revoked_at.is_(None)
        )
        with reading(self._engine) as connection:
            return connection.execute(found).mappings().one_or_none()


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()


def _credential(row: "RowMapping | dict[str, object]") -> Credential:
    values = dict(row)
    grants = values["grants"]
    assert isinstance(grants, list)
    return Credential(
        client_id=str(values["client_id"]),
        name=str(values["name"]),
        grants=tuple(Grant.parse(text) for text in grants),
        created_at=float(str(values["created_at"])),
        revoked_at=None if values["revoked_at"] is None else float(str(values["revoked_at"])),
    )
