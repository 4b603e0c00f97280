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
_FORM = re.compile(
    r"(?P<file>(?P<run>[0-9a-f]{16})(?:-(?P<part>[0-9]{1,6}))?)\.(?P<until>[0-9]{1,12})\.(?P<signature>[A-Za-z0-9_-]{43})"
)


class Links:
    """`key` signs them, `address` is that of the server as those who are told reach it."""

    def __init__(self, key: str, address: str, clock: Callable[[], float] = time.time) -> None:
        self._key = key.encode()
        self._address = address.rstrip("/")
        self._clock = clock

    def make(self, run_id: str, lifetime: float, part: int = 1) -> str:
        until = int(self._clock() + lifetime)
        file = run_id if part == 1 else f"{run_id}-{part}"
        return f"{self._address}{PATH}{file}.{until}.{self._signature(file, until)}"

    def file_of(self, token: str) -> tuple[str, int]:
        """The run that a link is for, and the number of its part; or NotAuthorized."""
        form = _FORM.fullmatch(token)
        if form is None or not hmac.compare_digest(
            self._signature(form["file"], int(form["until"])), form["signature"]
        ):
            raise NotAuthorized(
                "This is no link to a file of an export.", "Take the whole of it from the mail."
            )
        if self._clock() > int(form["until"]):
            raise NotAuthorized("The link has expired.", "Ask for the export to be run again.")
        return form["run"], int(form["part"] or 1)

    def _signature(self, file: str, until: int) -> str:
        digest = hmac.new(self._key, f"{file}.{until}".encode(), hashlib.sha256).digest()
        return urlsafe_b64encode(digest).decode().rstrip("=")


def address_of(runtime: Runtime) -> str:
    """The public address where there is one: mails are read on other machines."""
    return runtime.addresses.get("public", runtime.console)
