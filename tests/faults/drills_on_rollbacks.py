"""Tables that are put back, tagged and upgraded while records arrive, whose engine dies on the way.

What is read again is in the table once; what is kept out is in the ledger no more.
"""

import json
import os
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Protocol

from headgate.failpoints import POINTS
from headgate.model import BATCH_KEY, FROM_KEY, POSITION_KEY, OnError, TableFormat, TableMode, TableSpec
from scripts.readers import pyiceberg_on
from tests.faults.drills_on_upserts import check_delta
from tests.support.delta import read_delta_duckdb, read_delta_rs
from tests.support.keyed import Keyed
from tests.support.ledger import canonical, without_metadata
from tests.support.rounds import ENGINE_SECONDS, Drill, Rounds, nothing
from tests.support.services import Services, wait_for
from tests.support.stream import Stream

SOAK = os.environ.get("HEADGATE_SOAK") == "1"
ROUNDS = 30
AGAIN, KEEP_OUT, TAG, UPGRADE = "again", "keep-out", "tag", "upgrade"
OF_ROLLBACK = tuple(point for point in POINTS if point.startswith("rollback"))
# Places that a table comes by in any case, while records arrive.
OF_BATCHES = ("batch-planned", "files-staged", "batch-committed", "mirror-committed")
# What is done in a round, and where the engine is to die.
Round = tuple[str, str]
Ranges = Mapping[int, tuple[int, int]]
BOTH = (TableFormat.ICEBERG, TableFormat.DELTA)
PIECE, PAUSE = 20, 0.1


class Account(Protocol):
    """A topic under load, and what its table must hold."""

    topic: str

    def send(self) -> None: ...
    def keep_out(self, ranges: Ranges) -> None: ...
    def check(self, rounds: Rounds) -> None: ...


class Appended:
    """Rows, and bad records that are dead letters."""

    def __init__(self, services: Services, topic: str) -> None:
        self.topic = topic
        self.stream = Stream(services.runtime, topic)
        self.stream.register(1)
        self._closed = 0

    def send(self) -> None:
        self.stream.send(PIECE)
        self.stream.send_bad(self.stream.poison()[:2])

    def keep_out(self, ranges: Ranges) -> None:
        out = {n for n, at in self.stream.at.items() if _in(ranges, *at)}
        self.stream.rows = [row for row in self.stream.rows if row["n"] not in out]
        self._closed += sum(_in(ranges, one.partition, one.offset) for one in self.stream.dead)

    def check(self, rounds: Rounds) -> None:
        self.stream.check()
        self.stream.check_dead(replayed=self._closed)
        expected = sorted(canonical(row) for row in self.stream.rows)
        for read in (read_delta_duckdb, read_delta_rs):
            rows = [canonical(without_metadata(row)) for row in read(folder_of(rounds.services, self.topic))]
            assert sorted(rows) == expected, read.__name__
        rounds.verify(self.topic)


class Upserted:
    """Rows by key, changed and deleted."""

    def __init__(self, services: Services, topic: str) -> None:
        self.topic = topic
        self.keyed = Keyed(services.runtime, topic)
        self._seeds = iter(range(10**6))

    def send(self) -> None:
        self.keyed.random(PIECE, 30, seed=next(self._seeds))

    def keep_out(self, ranges: Ranges) -> None:
        self.keyed.forget(lambda partition, offset: _in(ranges, partition, offset))

    def check(self, rounds: Rounds) -> None:
        check_delta(rounds.services, self.keyed)
        rounds.verify(self.topic)


def _in(ranges: Ranges, partition: int, offset: int) -> bool:
    start, end = ranges.get(partition, (0, 0))
    return start <= offset < end


def folder_of(services: Services, topic: str) -> str:
    location = str(services.store.table(topic).status.detail["location"])
    return "/" + location.removeprefix("file:").lstrip("/")


@contextmanager
def load(account: Account) -> Iterator[None]:
    """Records arrive as long as the block lasts."""
    ended = threading.Event()
    failed: list[BaseException] = []

    def run() -> None:
        try:
            while not ended.wait(PAUSE):
                account.send()
        except BaseException as error:  # noqa: BLE001 - told below
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    assert not failed, failed


def kept_out(services: Services, topic: str, request: str) -> Ranges:
    """What a rollback has kept out, as its own snapshot says."""
    table = pyiceberg_on(services.runtime.iceberg).load_table(("local", topic))
    summaries = [one.summary.additional_properties for one in table.snapshots() if one.summary is not None]
    (said,) = [one for one in summaries if one.get(BATCH_KEY) == request]
    start, end = (json.loads(str(said[key]))["offsets"] for key in (FROM_KEY, POSITION_KEY))
    return {int(partition): (start.get(partition, 0), offset) for partition, offset in end.items()}


def chosen(seed: int, small: tuple[Round, ...], places: tuple[str, ...]) -> list[Round]:
    """The rounds of a drill."""
    if not SOAK:
        return list(small)
    chance = random.Random(seed)
    rounds: list[Round] = []
    for number in range(ROUNDS):
        # Every place of a rollback, in both ways; then what comes.
        what = chance.choice((AGAIN, KEEP_OUT, AGAIN, KEEP_OUT, TAG))
        place = chance.choice((*places, *OF_BATCHES))
        if number < 2 * len(places):
            what, place = (AGAIN, KEEP_OUT)[number % 2], places[number // 2]
        rounds.append((what if number != ROUNDS // 2 else UPGRADE, place))
    return [
        (what, place if what in (AGAIN, KEEP_OUT) else chance.choice(OF_BATCHES)) for what, place in rounds
    ]


def under_load(rounds: Rounds, account: Account, spec: TableSpec, plan: list[Round]) -> Drill:
    """Each round: records arrive, something is asked for, the engine dies; the next one ends it."""
    services, topic = rounds.services, account.topic
    account.send()
    rounds.enable(spec)
    rounds.sync(topic)
    for number, (what, place) in enumerate(plan):
        print(f"{topic}: {what}, killed at {place}", flush=True)
        good = str(services.store.table(topic).status.detail["snapshot_id"])
        with load(account):
            time.sleep(2 * PAUSE)
            rounds.sync(topic)
            rounds.arm(topic, (place,))
            request = ask(services, topic, spec, what, good, number)
            rounds.held(topic)
        yield nothing
        if request is not None:
            wait_until_done(services, topic, request)
        if what == KEEP_OUT:
            assert request is not None
            account.keep_out(kept_out(services, topic, request))
        account.send()
        rounds.sync(topic)
        account.check(rounds)
        if what == TAG:
            table = pyiceberg_on(services.runtime.iceberg).load_table(("local", topic))
            assert str(table.refs()[f"round-{number}"].snapshot_id) == good
    formats = {what: 3 for what, _ in plan if what == UPGRADE}
    if formats:
        assert services.store.table(topic).status.detail["format_version"] == 3


def ask(services: Services, topic: str, spec: TableSpec, what: str, good: str, number: int) -> str | None:
    """The request that it becomes; an upgrade is a wish, and none."""
    if what == UPGRADE:
        services.store.alter_table(replace(spec, format_version=3))
        return None
    if what == TAG:
        arguments: dict[str, Any] = {"name": f"round-{number}", "snapshot": good, "keep": "1h"}
        return services.store.ask(topic, "tag", arguments)
    return services.store.ask(topic, "rollback", {"to": good, "records": what})


def wait_until_done(services: Services, topic: str, request: str) -> None:
    def done() -> bool:
        found = services.store.request(request)
        assert found.state != "failed", found.result
        return found.state == "done"

    wait_for(f"what is asked of '{topic}'", done, ENGINE_SECONDS)


def rows_and_letters(rounds: Rounds) -> Drill:
    """An append table of version 2 with dead letters."""
    places = tuple(place for place in OF_ROLLBACK if place != "rollback-marks-dropped")
    plan = chosen(1, ((KEEP_OUT, "rollback-letters-returned"),), places)
    account = Appended(rounds.services, "rollback.rows")
    spec = TableSpec(account.topic, formats=BOTH, freshness_seconds=1, on_error=OnError.LOG, format_version=2)
    yield from under_load(rounds, account, spec, plan)


def rows_of_keys(rounds: Rounds) -> Drill:
    """An upsert table of version 2 that remembers its deletes, taken to version 3."""
    small = ((AGAIN, "rollback-marks-dropped"), (UPGRADE, "batch-committed"))
    account = Upserted(rounds.services, "rollback.keys")
    spec = TableSpec(
        account.topic,
        formats=BOTH,
        mode=TableMode.UPSERT,
        freshness_seconds=1,
        on_error=OnError.LOG,
        format_version=2,
    )
    yield from under_load(rounds, account, spec, chosen(2, small, OF_ROLLBACK))


DRILLS: dict[str, Callable[[Rounds], Drill]] = {
    "rollback_of_rows_and_letters": rows_and_letters,
    "rollback_of_rows_of_keys": rows_of_keys,
}
