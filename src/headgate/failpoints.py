"""Places where a test may have this process killed, to see that nothing is lost or doubled there.

With HEADGATE_FAILPOINTS naming a folder, a file in it with the name of a place kills the process there, once,
as SIGKILL from outside would. Without the variable, a place is one look at a constant.
"""

import os
import signal
from pathlib import Path

VARIABLE = "HEADGATE_FAILPOINTS"
POINTS = (
    "position-read",
    "batch-planned",
    "schemas-learned",
    "table-evolved",
    "dead-letters-staged",
    "dead-letters-committed",
    "dead-letters-published",
    "files-staged",
    "batch-committed",
    "index-written",
    "replay-taken-up",
    "replay-committed",
    "maintain-deleted",
    "maintain-compacting",
    "maintain-compacted",
    "maintain-tagged",
    "mirror-announced",
    "mirror-vectors-written",
    "mirror-committed",
    "mirror-checkpointed",
    "mirror-truncating",
    "mirror-removed",
    "statement-written",
)
_FOLDER = os.environ.get(VARIABLE)


def failpoint(name: str) -> None:
    if _FOLDER is None:
        return
    assert name in POINTS
    armed = Path(_FOLDER) / name
    if armed.exists():
        armed.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
