"""What is SET in a script, and what it means for the jobs after it."""

from collections.abc import Sequence
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from headgate.errors import AlreadyExists, InvalidRequest, NotFound
from headgate.sql import statements as sql
from headgate.sql.durations import parse_duration_ms
from headgate.store.statements import check_name

NAME, TTL, ZONE = "client.statement-name", "sql.state-ttl", "sql.local-time-zone"
IDLE, TAKE_OVER, BAD = "sql.tables.scan.idle-timeout", "sql.tables.initial-offset-from", "sql.on-bad-record"
SNAPSHOT, FLUSH = "sql.snapshot.mode", "sql.idle-flush"
SETTINGS = (NAME, TTL, ZONE, IDLE, FLUSH, TAKE_OVER, BAD, SNAPSHOT)
# They hold for the next job of the script, and no longer.
ONCE = (NAME, TTL, TAKE_OVER)


def set_option(one: sql.SetOption | sql.Reset, session: dict[str, str]) -> str:
    key = one.key
    if key is not None and key not in SETTINGS:
        raise InvalidRequest(f"There is no setting '{key}'.", f"There are {', '.join(SETTINGS)}.")
    if isinstance(one, sql.Reset):
        if key is None:
            session.clear()
            return "nothing is set"
        session.pop(key, None)
        return f"{key} is not set"
    if key is None or one.value is None:
        return ""
    if key in (TTL, IDLE, FLUSH):
        milliseconds = parse_duration_ms(one.value)
        if key == FLUSH and not milliseconds:
            raise InvalidRequest(f"'{FLUSH}' cannot be 0.", f"Say how long, as '10 s'; or RESET '{FLUSH}'.")
    if key == BAD and one.value not in ("fail", "skip"):
        raise InvalidRequest(f"'{BAD}' cannot be '{one.value}'.", "It is fail or skip.")
    if key == SNAPSHOT and one.value != "now":
        raise InvalidRequest(f"'{SNAPSHOT}' cannot be '{one.value}'.", f"It is now, or RESET '{SNAPSHOT}'.")
    if key == ZONE:
        _check_zone(one.value)
    session[key] = one.value
    return f"{key} is {one.value}"


def forget_once(session: dict[str, str]) -> None:
    for key in ONCE:
        session.pop(key, None)


def check_job(
    session: dict[str, str],
    names: set[str],
    ends: Sequence[str] = ("",),
    hidden: frozenset[str] = frozenset(),
) -> None:
    """Whether a job can have the name that was set, and there is one to take over from. `names`: of the
    statements that there are, and then of this one too. `ends`: of names that are given together. `hidden`:
    of statements that who asks may not see."""
    said, before = session.get(NAME), session.get(TAKE_OVER)
    if SNAPSHOT in session and before is not None:
        raise InvalidRequest(
            f"With '{SNAPSHOT}' a job reads its topics from their beginning, and takes over from none.",
            f"RESET '{TAKE_OVER}', or RESET '{SNAPSHOT}'.",
        )
    if before is not None and (before not in names or before in hidden):
        raise NotFound(f"There is no statement '{before}' to take over from.", "SHOW STATEMENTS lists them.")
    if said is not None:
        for name in (said + end for end in ends):
            check_name(name)
            if name in names:
                raise AlreadyExists(
                    f"There is a statement '{name}' already.",
                    f"Set another '{NAME}', or delete it: `headgate statement delete {name}`.",
                )
            names.add(name)
    forget_once(session)


def _check_zone(name: str) -> None:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise InvalidRequest(
            f"There is no time zone '{name}'.", "Name one as 'Europe/Vienna' or 'UTC'."
        ) from error
