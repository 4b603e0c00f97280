"""Links to files of exports: signed, expiring, and good for one run's file alone."""

import hashlib
import hmac
import re
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable

from headgate.embedded.runtime import Runtime
from headgate.errors import NotAuthorized

PATH = "/exports/files/"
_FORM = re.compile(r"(?P<run>[0-9a-f]{16})\.(?P<until>[0-9]{1,12})\.(?P<signature>[A-Za-z0-9_-]{43})")


class Links:
    """`key` signs them, `address` is that of the server as those who are told reach it."""

    def __init__(self, key: str, address: str, clock: Callable[[], float] = time.time) -> None:
        self._key = key.encode()
        self._address = address.rstrip("/")
        self._clock = clock

    def make(self, run_id: str, lifetime: float) -> str:
        until = int(self._clock() + lifetime)
        return f"{self._address}{PATH}{run_id}.{until}.{self._signature(run_id, until)}"

    def run_of(self, token: str) -> str:
        """The run that a link is for, or NotAuthorized."""
        form = _FORM.fullmatch(token)
        if form is None or not hmac.compare_digest(
            self._signature(form["run"], int(form["until"])), form["signature"]
        ):
            raise NotAuthorized(
                "This is no link to a file of an export.", "Take the whole of it from the mail."
            )
        if self._clock() > int(form["until"]):
            raise NotAuthorized("The link has expired.", "Ask for the export to be run again.")
        return form["run"]

    def _signature(self, run_id: str, until: int) -> str:
        digest = hmac.new(self._key, f"{run_id}.{until}".encode(), hashlib.sha256).digest()
        return urlsafe_b64encode(digest).decode().rstrip("=")


def address_of(runtime: Runtime) -> str:
    """The public address where there is one: mails are read on other machines."""
    return runtime.addresses.get("public", runtime.console)
