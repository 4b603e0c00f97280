"""Files of earlier runs, removed when their export keeps no more of them."""

import logging
import time
from collections.abc import Callable, Sequence

from headgate.errors import HeadgateError
from headgate.export.definition import ExportOptions, parse_options
from headgate.export.files import files_of, name_in
from headgate.export.names import MANIFEST
from headgate.export.places import Destination
from headgate.store import Exports, RunRecord, RunState

log = logging.getLogger(__name__)

# So many of an export's newest runs are looked at.
MOST_RUNS = 1000
REMOVED, LEFT = "removed", "left: it was changed"


def surplus(runs: Sequence[RunRecord], options: ExportOptions, now: float) -> list[RunRecord]:
    """Of runs with files, the newest first, those whose files are not kept. The newest always is."""
    older = list(enumerate(runs))[1:]
    return [
        run
        for place, run in older
        if (options.keep_files is not None and place >= options.keep_files)
        or (options.kept_for is not None and now - (run.ended_at or now) > options.kept_for.total_seconds())
    ]


def prune(
    exports: Exports,
    destination: Callable[[ExportOptions], Destination],
    export: str,
    options: ExportOptions,
    clock: Callable[[], float] = time.time,
) -> None:
    """What fails is tried again after the next run."""
    if options.keep_files is None and options.kept_for is None:
        return
    runs = [
        run
        for run in exports.runs(export, MOST_RUNS)
        if run.state is RunState.DONE and "pruned" not in run.detail and "file" in run.detail
    ]
    for run in surplus(runs, options, clock()):
        try:
            outcome = _remove(destination(parse_options(run.spec)), run)
        except HeadgateError as error:
            log.warning("the file of run %s of export %s stays: %s", run.id, export, error)
        else:
            exports.note_pruned(run.id, outcome)


def _remove(destination: Destination, run: RunRecord) -> str:
    """The files, if they still hold what the run has written, and their manifest."""
    files = files_of(run.detail)
    if any(destination.sha256(name_in(file)) not in (None, file["sha256"]) for file in files):
        return LEFT
    for file in files:
        destination.remove(name_in(file))
    destination.remove(run.detail.get("manifest") or f"{name_in(files[0])}{MANIFEST}")
    return REMOVED
