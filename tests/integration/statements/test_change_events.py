"""Change events of Debezium in SQL: their after-images as rows, and tables by another key than theirs."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from headgate.errors import InvalidRequest
from headgate.model import StatementState
from headgate.statements.declared import DeclaredTables
from headgate.statements.execute import Executor, Outcome, job_of
from headgate.statements.tables import TopicTables
from headgate.store import SqlObjects, StatementRecord, Statements, Store
from tests.integration.statements.bench import Bench
from tests.integration.statements.events import Watched
from tests.support.services import wait_for

MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
NOON = 1_700_000_000_000
BIKES = {"id": "long", "frame": "string", "colour": ["null", "string"]}


class Shop:
    """Scripts over the bench's topics, with `@` for what makes names of this test alone; and an engine."""

    def __init__(self, bench: Bench, folder: Path) -> None:
        self.bench = bench
        self.store = Store.open(f"sqlite:///{folder / 'control.db'}")
        tables = DeclaredTables(SqlObjects(self.store.engine), TopicTables(bench.topics, bench.schemas))
        self.statements = Statements(self.store.engine)
        self._executor = Executor(tables, self.statements, bench.topics, bench.schemas, str)
        self.folder = folder / "checkpoints"

    def run(self, text: str) -> list[Outcome]:
        return self._executor.run(text.replace("@", self.bench.name))

    def columns(self, name: str) -> list[str]:
        return [row[0] for row in self.run(f"DESCRIBE `{name}`")[0].rows]

    def make(self, record: StatementRecord) -> Any:
        return job_of(record, str)

    def engine(self) -> Any:
        return self.bench.engine(self.statements, self.make, self.folder)

    def until(self, name: str, done: Callable[[StatementRecord], Any]) -> StatementRecord:
        def looked() -> StatementRecord | None:
            record = self.statements.get(f"{name}-{self.bench.name}")
            assert record.state is not StatementState.FAILED, record.reason
            return record if done(record) else None

        found: StatementRecord = wait_for(f"statement {name}", looked, 120)
        return found


@pytest.fixture
def shop(bench: Bench, tmp_path: Path) -> Iterator[Shop]:
    found = Shop(bench, tmp_path)
    yield found
    found.store.close()


def test_after_images_are_rows_and_events_without_one_are_counted(shop: Shop) -> None:
    bikes = Watched(shop.bench, "bikes", BIKES, ("id",))
    red, blue = ({"id": 1, "frame": "steel", "colour": colour} for colour in ("red", "blue"))
    for op, after, before in [
        ("r", {"id": 9, "frame": "alu", "colour": None}, None),
        ("c", red, None),
        ("u", blue, red),
        ("d", None, blue),
        ("t", None, None),
        ("m", None, None),
    ]:
        bikes.send(op, after, before)
    shop.bench.flush()
    (altered,) = shop.run(f"ALTER TABLE `{bikes.topic}` SET ('changelog.mode' = 'append')")
    assert "each record is a row from now on" in altered.warnings[0]
    shop.run(
        f"SET 'client.statement-name' = 'copy-@'; CREATE TABLE `copy.@` AS SELECT * FROM `{bikes.topic}`"
    )
    with shop.engine():
        record = shop.until("copy", lambda found: (found.detail.get("rows_in") or 0) >= 6)
        record = shop.until("copy", lambda found: found.detail["rows_out"] >= 3)
    assert (record.detail["rows_out"], record.detail["events_without_row"]) == (3, 3)
    found = [(row["id"], row["colour"]) for row in shop.bench.values(f"copy.{shop.bench.name}")]
    assert sorted(found, key=str) == [(1, "blue"), (1, "red"), (9, None)]


def test_a_topic_of_events_is_declared_where_it_is(shop: Shop) -> None:
    bikes = Watched(shop.bench, "bikes", BIKES, ("id",))
    with pytest.raises(InvalidRequest, match=r"about rows by \(`id`\).*AS SELECT"):
        shop.run(f"CREATE TABLE `{bikes.topic}` (id BIGINT, frame STRING, PRIMARY KEY (frame) NOT ENFORCED)")
    with pytest.raises(InvalidRequest, match="no column 'weight'"):
        shop.run(f"CREATE TABLE `{bikes.topic}` (id BIGINT, weight INT)")
    with pytest.raises(InvalidRequest, match=r"'frame' of topic .* is STRING"):
        shop.run(f"CREATE TABLE `{bikes.topic}` (id BIGINT, frame INT)")
    before = shop.bench.schemas.latest(f"{bikes.topic}-value")
    (made,) = shop.run(
        f"CREATE TABLE `{bikes.topic}` (id BIGINT, frame STRING) WITH ('changelog.mode' = 'append')"
    )
    assert "is declared" in made.message
    assert shop.columns(bikes.topic) == ["id", "frame"]
    assert shop.bench.schemas.latest(f"{bikes.topic}-value") == before
    assert (
        "is there already" in shop.run(f"CREATE TABLE IF NOT EXISTS `{bikes.topic}` (id BIGINT)")[0].message
    )
    shop.run(f"DROP TABLE `{bikes.topic}`")
    assert shop.bench.schemas.latest(f"{bikes.topic}-value") == before, "they are the connector's"


def test_events_without_a_key_are_rows_of_envelopes_until_declared(shop: Shop) -> None:
    log = Watched(shop.bench, "log", BIKES, ())
    assert shop.columns(log.topic) == ["before", "after", "source", "op"]
    shop.run(f"ALTER TABLE `{log.topic}` SET ('kafka.retention.time' = '1 d')")
    assert shop.columns(log.topic) == ["before", "after", "source", "op"]
    with pytest.raises(InvalidRequest, match="PRIMARY KEY"):
        shop.run(f"ALTER TABLE `{log.topic}` SET ('changelog.mode' = 'upsert')")
    shop.run(
        f"ALTER TABLE `{log.topic}` SET ('changelog.mode' = 'append'); "
        f"EXPLAIN SELECT frame FROM `{log.topic}`"
    )
    assert shop.columns(log.topic) == ["id", "frame", "colour"]


ONCE = """
SET 'client.statement-name' = 'once-@';
CREATE TABLE `once-@` (
  ride BIGINT NOT NULL, fare DOUBLE, paid TIMESTAMP_LTZ(3), WATERMARK FOR paid AS paid - INTERVAL '5' SECOND
) AS SELECT COALESCE(ride, 0) AS ride, fare, paid FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY ride ORDER BY paid ASC) AS n FROM `pays-@`
) WHERE n = 1;
SET 'client.statement-name' = 'done-@';
CREATE TABLE `done-@` AS SELECT p.ride, p.fare, p.paid FROM `once-@` p, `rides-@` r
WHERE p.ride = r.ride AND r.began BETWEEN p.paid - INTERVAL '96' HOUR AND p.paid;
"""
TOLD = """
SET 'client.statement-name' = 'known-@';
CREATE TABLE `known-@` (
  PRIMARY KEY (mail) NOT ENFORCED, WATERMARK FOR changed AS changed - INTERVAL '30' SECOND
) DISTRIBUTED BY HASH(mail) INTO 1 BUCKETS
WITH ('changelog.mode' = 'upsert', 'kafka.cleanup-policy' = 'compact')
AS SELECT mail, id, name, TO_TIMESTAMP(changed, 'yyyy-MM-dd''T''HH:mm:ss.SSS''Z''') AS changed
FROM `riders-@`;
SET 'client.statement-name' = 'told-@';
CREATE TABLE `told-@` (PRIMARY KEY (ride) NOT ENFORCED)
WITH ('changelog.mode' = 'upsert', 'kafka.cleanup-policy' = 'compact')
AS SELECT r.ride, k.name, v.stars FROM `rides-@` r
JOIN `known-@` FOR SYSTEM_TIME AS OF r.began AS k ON k.mail = r.mail
LEFT JOIN `reviews-@` v ON v.ride = r.ride;
"""
HOUR = 3_600_000


def iso(hours: float) -> str:
    return datetime.fromtimestamp(NOON / 1000 + hours * 3600, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def test_scripts_that_are_written_for_rows_run_over_events(shop: Shop) -> None:
    """The first payment of each ride, those paid in time, and each ride with its rider as of then."""
    pays = Watched(
        shop.bench, "pays", {"no": "long", "ride": "long", "fare": "double", "paid": MILLIS}, ["no"]
    )
    rides = Watched(shop.bench, "rides", {"ride": "long", "mail": "string", "began": MILLIS}, ["ride"])
    riders = Watched(
        shop.bench, "riders", {"id": "long", "mail": "string", "name": "string", "changed": "string"}, ["id"]
    )
    reviews = Watched(shop.bench, "reviews", {"no": "long", "ride": "long", "stars": "int"}, ["no"])
    for one in (pays, rides, riders, reviews):
        shop.run(f"ALTER TABLE `{one.topic}` SET ('changelog.mode' = 'append')")
    shop.run(
        "ALTER TABLE `pays-@` MODIFY WATERMARK FOR paid AS paid; "
        "ALTER TABLE `rides-@` MODIFY WATERMARK FOR began AS began"
    )
    for n in range(4):
        was = {"id": n, "mail": f"m{n}", "name": f"old {n}", "changed": iso(-1)}
        riders.send("r", was)
        riders.send("u", was | {"name": f"new {n}", "changed": iso(5)}, was)
    riders.send("d", before={"id": 3, "mail": "m3", "name": "", "changed": ""})
    for n in range(1, 13):
        rides.send("c", {"ride": n, "mail": f"m{n % 4}", "began": NOON + n * HOUR})
        # Every third is paid too late, every other twice, and all are deleted.
        late = 97 if n % 3 == 0 else 1
        pay = {"no": n, "ride": n, "fare": float(n), "paid": NOON + (n + late) * HOUR}
        pays.send("c", pay)
        if n % 2:
            pays.send("c", pay | {"no": 100 + n, "fare": 0.0, "paid": pay["paid"] + 1})
        pays.send("d", before=pay)
    reviews.send("r", {"no": 1, "ride": 1, "stars": 2})
    reviews.send("u", {"no": 1, "ride": 1, "stars": 5}, {"no": 1, "ride": 1, "stars": 2})
    # Event time passes all that is there.
    pays.send("c", {"no": 999, "ride": 999, "fare": 0.0, "paid": NOON + 900 * HOUR})
    rides.send("c", {"ride": 998, "mail": "nobody", "began": NOON + 900 * HOUR})
    riders.send("c", {"id": 99, "mail": "end", "name": "end", "changed": iso(900)})
    shop.bench.flush()
    shop.run(ONCE + TOLD)
    name = shop.bench.name
    with shop.engine():
        shop.until("once", lambda found: (found.detail.get("rows_out") or 0) >= 12)
        shop.until("done", lambda found: (found.detail.get("rows_out") or 0) >= 8)
        wait_for("the rides", lambda: len(_last(shop, "told")) >= 12, 120)
        wait_for("the review", lambda: _last(shop, "told")[1]["stars"] == 5, 60)
    done = [(row["ride"], row["fare"]) for row in shop.bench.values(f"done-{name}")]
    assert sorted(done) == [(n, float(n)) for n in range(1, 13) if n % 3]
    told = {n: (row["name"], row["stars"]) for n, row in _last(shop, "told").items()}
    assert told == {n: (f"{'new' if n >= 5 else 'old'} {n % 4}", 5 if n == 1 else None) for n in range(1, 13)}


def _last(shop: Shop, name: str) -> dict[int, Any]:
    return {row["ride"]: row for row in shop.bench.values(f"{name}-{shop.bench.name}")}


def test_a_table_by_another_key_deletes_where_a_row_was(shop: Shop) -> None:
    riders = Watched(shop.bench, "riders", {"id": "long", "mail": "string", "name": "string"}, ["id"])
    ann, bob = {"id": 1, "mail": "ann", "name": "Ann"}, {"id": 2, "mail": "bob", "name": "Bob"}
    for row in (ann, bob):
        riders.send("c", row)
    shop.bench.flush()
    (made,) = shop.run(
        "SET 'client.statement-name' = 'by-@'; "
        "CREATE TABLE `by-@` (PRIMARY KEY (mail) NOT ENFORCED) AS SELECT mail, id, name FROM `riders-@`"
    )[1:]
    assert "a row whose mail changes is deleted where it was" in made.warnings[0]
    output = f"by-{shop.bench.name}"

    def rows() -> list[tuple[str, int, str]]:
        """Of each key the last record, unless it deletes."""
        last = dict(shop.bench.records(output))
        there = [value for value in last.values() if value is not None]
        return sorted((value["mail"], value["id"], value["name"]) for value in there)

    with shop.engine():
        wait_for("both", lambda: rows() == [("ann", 1, "Ann"), ("bob", 2, "Bob")], 120)
        # Ann takes another address, then Bob takes hers; a third one is there and gone.
        riders.send("u", ann | {"mail": "anne", "name": "Anne"}, ann)
        riders.send("u", bob | {"mail": "ann"}, bob)
        riders.send("c", {"id": 3, "mail": "eve", "name": "Eve"})
        riders.send("d", before={"id": 3, "mail": "eve", "name": "Eve"})
        shop.bench.flush()
        shop.until("by", lambda found: found.detail["rows_in"] >= 6 and found.detail["lag"] == 0)
        wait_for("the changes", lambda: rows() == [("ann", 2, "Bob"), ("anne", 1, "Anne")], 120)
