"""Places where a test may have this process killed, to see that nothing is lost or doubled there.

With HEADGATE_FAILPOINTS naming a folder, a file in it with the name of a place kills the process there, once,
as SIGKILL from outside would. A file `PLACE@TOPIC` does not kill: it holds that table's worker there, so that
one SIGKILL from outside finds several tables at a place each; `PLACE@TOPIC.held` says that it is there.
Without the variable, a place is one look at a constant.
"""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
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
    "rollback-planned",
    "rollback-committed",
    "rollback-marks-dropped",
    "rollback-letters-returned",
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
    "bounded-computed",
    "bounded-written",
    "statement-rebuilding",
    "export-taken",
    "export-chosen",
    "export-held",
    "export-writing",
    "export-written",
    "export-recorded",
    "export-moved",
    "export-manifest",
    "export-mailed",
    "export-told",
)
HELD = ".held"
_FOLDER = os.environ.get(VARIABLE)
_topic: ContextVar[str] = ContextVar("topic", default="")


@contextmanager
def working_on(topic: str) -> Iterator[None]:
    """The table whose places this thread passes while the block lasts."""
    token = _topic.set(topic)
    try:
        yield
    finally:
        _topic.reset(token)


def failpoint(name: str) -> None:
    if _FOLDER is None:
        return
    assert name in POINTS
    armed = Path(_FOLDER) / name
    if armed.exists():
        armed.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    hold = Path(_FOLDER) / f"{name}@{_topic.get()}"
    if hold.exists():
        hold.rename(f"{hold}{HELD}")
        # Nobody sets it: only SIGKILL goes on from here.
        threading.Event().wait()
