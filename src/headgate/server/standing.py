"""Whether who reads an answer that goes on may still read it: a credential can be revoked meanwhile."""

import time
from collections.abc import Callable

from headgate.access import Principal

LOOK_SECONDS = 1.0
# Raises NotAuthorized where a caller's credential was revoked.
Stands = Callable[[Principal], None]


class Standing:
    """Of one caller; looked up now and then."""

    def __init__(self, stands: Stands, caller: Principal) -> None:
        self._stands = stands
        self._caller = caller
        self._looked_at = time.monotonic()

    @property
    def is_due(self) -> bool:
        return time.monotonic() - self._looked_at >= LOOK_SECONDS

    def check(self) -> None:
        """Raises NotAuthorized when it is due and the credential was revoked."""
        if self.is_due:
            self._stands(self._caller)
            self._looked_at = time.monotonic()
