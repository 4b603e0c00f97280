"""Scripts are carried out on real topics and schemas; nothing runs here."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import types as t

from headgate.errors import AlreadyExists, ConfigError, HeadgateError, InvalidRequest, NotFound
from headgate.kafka.records import committed_records
from headgate.statements.declared import DeclaredTables
from headgate.statements.execute import Executor, Outcome, job_of
from headgate.statements.query import StatementQuery
from headgate.statements.tables import TopicTables
from headgate.store import SqlObjects, Statements, Store
from tests.integration.statements.bench import Bench, event

Run = Callable[[str], list[Outcome]]


@pytest.fixture
def statements(tmp_path: Path) -> Iterator[Statements]:
    store = Store.open(f"sqlite:///{tmp_path / 'control.db'}")
    yield Statements(store.engine)
    store.close()


@pytest.fixture
def run(bench: Bench, statements: Statements, tmp_path: Path) -> Iterator[Run]:
    """Scripts, with `@` for what makes names of this test alone."""
    store = Store.open(f"sqlite:///{tmp_path / 'control.db'}")
    tables = DeclaredTables(SqlObjects(store.engine), TopicTables(bench.topics, bench.schemas))
    executor = Executor(tables, statements, bench.topics, bench.schemas, secret)
    yield lambda text: executor.run(text.replace("@", bench.name))
    store.close()


def secret(name: str) -> str:
    if name != "pepper":
        raise ConfigError(f"There is no secret '{name}'.")
    return "hush"


@pytest.fixture
def events(bench: Bench) -> str:
    return bench.events(partitions=1).name


def described(run: Run, name: str) -> dict[str, tuple[str, ...]]:
    return {row[0]: row[1:] for row in run(f"DESCRIBE `{name}`")[0].rows}


def test_a_table_is_a_topic_with_a_schema(run: Run, bench: Bench) -> None:
    run(
        """CREATE TABLE `made.@` (
             id BIGINT NOT NULL, who STRING, at TIMESTAMP_LTZ(3),
             PRIMARY KEY (id) NOT ENFORCED, WATERMARK FOR at AS at - INTERVAL '3' SECOND
           ) DISTRIBUTED BY HASH(id) INTO 3 BUCKETS
           WITH ('kafka.retention.time' = '2 days', 'kafka.cleanup-policy' = 'delete-compact')"""
    )
    name = f"made.{bench.name}"
    assert len(bench.topics.describe(name).partitions) == 3
    config = bench.topics.config_overrides(name)
    assert (config["retention.ms"], config["cleanup.policy"]) == ("172800000", "compact,delete")
    for part in ("key", "value"):
        assert bench.schemas.latest(f"{name}-{part}") is not None
    assert described(run, name) == {
        "id": ("BIGINT", "NOT NULL", "PRIMARY KEY"),
        "who": ("STRING", "NULL", ""),
        "at": ("TIMESTAMP_LTZ", "NULL", "WATERMARK"),
    }
    (text,) = run(f"SHOW CREATE TABLE `{name}`")[0].rows[0]
    run("DROP TABLE `made.@`")
    assert name not in bench.topics.describe_many([name])
    # What is shown makes the same table again.
    run(text)
    assert run(f"SHOW CREATE TABLE `{name}`")[0].rows[0] == (text,)
    # Another table may have its name when it is gone.
    run("DROP TABLE `made.@`; CREATE TABLE `made.@` (id STRING)")
    assert described(run, name) == {"id": ("STRING", "NULL", "")}
    with pytest.raises(AlreadyExists, match="IF NOT EXISTS"):
        run("CREATE TABLE `made.@` (id INT)")
    assert "already" in run("CREATE TABLE IF NOT EXISTS `made.@` (id INT)")[0].message


def test_a_table_is_altered(run: Run, bench: Bench, events: str) -> None:
    run(f"ALTER TABLE `{events}` MODIFY WATERMARK FOR ts AS ts")
    assert described(run, events)["ts"][-1] == "WATERMARK"
    run(f"ALTER TABLE `{events}` DROP WATERMARK")
    assert described(run, events)["ts"][-1] == ""
    run("CREATE TABLE `alter.@` (id INT)")
    name = f"alter.{bench.name}"
    run(f"ALTER TABLE `{name}` ADD (note STRING, amount DECIMAL(8, 2))")
    assert list(described(run, name)) == ["id", "note", "amount"]
    schema = bench.schemas.latest(f"{name}-value")
    assert schema is not None
    assert '"note"' in schema.text
    run(f"ALTER TABLE `{name}` SET ('kafka.retention.time' = '1 h', 'scan.startup.mode' = 'latest-offset')")
    assert bench.topics.config_overrides(name)["retention.ms"] == "3600000"
    assert ("scan.startup.mode", "latest-offset", "", "option") in run(f"DESCRIBE EXTENDED `{name}`")[0].rows
    run(f"ALTER TABLE `{name}` RESET ('kafka.retention.time')")
    assert "retention.ms" not in bench.topics.config_overrides(name)


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("ALTER TABLE `e` ADD (ID BIGINT)", AlreadyExists, "ID"),
        ("ALTER TABLE `e` SET ('value.format' = 'json-registry')", InvalidRequest, "cannot be altered"),
        ("ALTER TABLE `e` SET ('changelog.mode' = 'upsert')", InvalidRequest, "primary key"),
        ("ALTER TABLE `e` SET ('changelog.mode' = 'both')", InvalidRequest, "both"),
        ("ALTER TABLE `e` RESET ('changelog.mode')", InvalidRequest, "no default"),
        ("ALTER TABLE `e` SET ('kafka.retention.time' = 'long')", InvalidRequest, "long"),
        ("ALTER TABLE `e` MODIFY WATERMARK FOR nothing AS nothing", InvalidRequest, "nothing"),
        ("ALTER TABLE `nobody` DROP WATERMARK", NotFound, "nobody"),
        ("DROP TABLE nobody", NotFound, "nobody"),
        ("DROP VIEW nobody", NotFound, "nobody"),
        ("DROP STATEMENT nobody", NotFound, "nobody"),
        ("CREATE TABLE `not a topic` (a INT)", InvalidRequest, "not a topic"),
        ("CREATE TABLE t (`a b` INT)", HeadgateError, "a b"),
        ("SET 'sql.local-time-zone' = 'Mars/Olympus'", InvalidRequest, "Mars"),
        ("SET 'sql.on-bad-record' = 'guess'", InvalidRequest, "guess"),
        ("INSERT INTO `e` SELECT MASK_HASH(who, 'salt') AS who FROM `e`", HeadgateError, "who|salt"),
    ],
)
def test_what_is_refused(
    run: Run, bench: Bench, events: str, text: str, error: type[Exception], said: str
) -> None:
    topics = {topic.name for topic in bench.topics.list()}
    with pytest.raises(error, match=said):
        run(f"CREATE TABLE `first.@` (a INT); {text.replace('`e`', f'`{events}`')}")
    assert {topic.name for topic in bench.topics.list()} == topics, "a script with a mistake changes nothing"


def test_settings_hold_for_the_next_job(run: Run, statements: Statements, events: str) -> None:
    made = run(
        f"""SET 'client.statement-name' = 'one-@'; SET 'sql.state-ttl' = '1 hour';
        SET 'sql.tables.scan.idle-timeout' = '5 s'; SET 'sql.local-time-zone' = 'Europe/Vienna';
        SET 'sql.idle-flush' = '10 s';
        CREATE TABLE `one.@` AS SELECT DISTINCT id FROM `{events}`;
        CREATE TABLE `two.@` AS SELECT id, MASK_HASH(who, 'pepper') AS who FROM `{events}`"""
    )
    first, second = (statements.get(outcome.statement) for outcome in made if outcome.statement)
    assert (first.name.startswith("one-"), second.name.startswith("two.")) == (True, True)
    assert (first.options["state_ttl_ms"], first.options["idle_seconds"]) == (3_600_000, 5.0)
    assert [found.options["idle_flush_seconds"] for found in (first, second)] == [10.0, 10.0]
    assert "state_ttl_ms" not in second.options
    assert (second.options["idle_seconds"], second.options["zone"]) == (5.0, "Europe/Vienna")
    assert job_of(second, secret).runnable.columns.names == ["id", "who"]
    assert "hush" not in str(second)


def test_a_statement_keeps_the_tables_it_was_made_with(
    run: Run, bench: Bench, statements: Statements, events: str
) -> None:
    run(f"CREATE VIEW `big.@` AS SELECT id, ts FROM `{events}` WHERE amount > 10")
    (made,) = run(
        "CREATE TABLE `kept.@` AS SELECT id, ts FROM (SELECT *, ROW_NUMBER() OVER "
        "(PARTITION BY id ORDER BY ts) AS n FROM `big.@`) WHERE n = 1"
    )
    assert made.statement is not None
    assert any("MODIFY WATERMARK" in warning for warning in made.warnings)
    before = job_of(statements.get(made.statement), secret)
    run(
        f"""ALTER TABLE `{events}` MODIFY WATERMARK FOR ts AS ts;
        CREATE OR REPLACE VIEW `big.@` AS SELECT id, ts FROM `{events}` WHERE amount > 99;
        ALTER TABLE `kept.@` ADD (note STRING)"""
    )
    after = job_of(statements.get(made.statement), secret)
    assert after.output == before.output
    assert [source.watermark for source in after.runnable.sources] == [
        source.watermark for source in before.runnable.sources
    ]
    assert after.runnable.explain() == before.runnable.explain()  # type: ignore[attr-defined]
    assert "note" not in after.output.columns.names
    with pytest.raises(InvalidRequest, match=made.statement):
        run(f"DROP TABLE `{events}`")


def test_several_inserts_at_once(run: Run, statements: Statements, events: str) -> None:
    *_, made = run(
        f"""CREATE TABLE `a.@` (id BIGINT); CREATE TABLE `b.@` (id BIGINT, who STRING);
        CREATE TABLE `c.@` (id BIGINT, who STRING);
        SET 'client.statement-name' = 'both-@';
        EXECUTE STATEMENT SET BEGIN
          INSERT INTO `a.@` SELECT id FROM `{events}`;
          INSERT INTO `b.@` (who, id) SELECT who, id FROM `{events}`;
          INSERT INTO `c.@` SELECT who, id FROM `{events}`;
        END"""
    )
    found = {record.name.rpartition("-")[2]: record for record in statements.all()}
    assert set(found) == {"1", "2", "3"}
    assert [warning for warning in made.warnings if "by name, not by position" in warning]
    job = job_of(found["2"], secret)
    assert job.output.columns == t.StructType().add("id", "long").add("who", "string")


def test_what_there_is_to_see(run: Run, bench: Bench, events: str) -> None:
    run("CREATE VIEW `seen.@` AS SELECT 1 AS one FROM `" + events + "`")
    names = {row[0] for row in run("SHOW TABLES LIKE 'events-%'")[0].rows}
    assert events in names
    assert f"seen.{bench.name}" in {row[0] for row in run("SHOW VIEWS")[0].rows}
    assert "AS one" in run("SHOW CREATE VIEW `seen.@`")[0].rows[0][0]
    assert ("MASK_HASH",) in run("SHOW FUNCTIONS")[0].rows
    plan = "\n".join(
        row[0] for row in run(f"EXPLAIN SELECT id, COUNT(*) AS n FROM `{events}` GROUP BY id")[0].rows
    )
    assert "Aggregate by" in plan
    assert "kept for ever" in plan
    run(
        "SET 'sql.state-ttl' = '1 d'; RESET 'sql.state-ttl'; DROP VIEW `seen.@`; DROP VIEW IF EXISTS `seen.@`"
    )
    assert f"seen.{bench.name}" not in {row[0] for row in run("SHOW VIEWS")[0].rows}


def test_a_topic_of_others_is_written_by_their_schema(run: Run, bench: Bench, statements: Statements) -> None:
    source = bench.events()
    theirs = bench.topic("theirs")
    kinds = {"type": "enum", "name": "Kind", "symbols": ["big", "small"]}
    schema = {
        "type": "record",
        "name": "Thing",
        "namespace": "of.others",
        "fields": [
            {"name": "kind", "type": kinds},
            {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "id", "type": ["null", "long"], "default": None},
        ],
    }
    schema_id = bench.register(theirs, schema)
    bench.send(source.name, [event(1, "a", 5, seconds=3), event(2, "b", 50, seconds=4)])
    (made,) = run(
        f"INSERT INTO `{theirs}` SELECT id, CASE WHEN amount > 9 THEN 'big' ELSE 'small' END AS kind, ts "
        f"FROM `{source.name}`"
    )
    assert made.statement is not None
    job = job_of(statements.get(made.statement), secret)
    query = StatementQuery(bench.spark, bench.access, bench.schemas, job, bench.running())
    try:
        query.start()
        bench.until_read(query, 2)
    finally:
        query.stop()
    messages = committed_records(bench.access, theirs, {0: 0, 1: 0}, idle_seconds=None)
    marks = {bytes(message.value() or b"")[:5] for message in messages}
    assert marks == {b"\x00" + schema_id.to_bytes(4, "big")}
    assert sorted((row["id"], row["kind"]) for row in bench.values(theirs)) == [(1, "small"), (2, "big")]
    assert len(bench.schemas.versions(f"{theirs}-value")) == 1
