"""Plans: what is created, changed, replaced and removed, in which order, and what is refused. No I/O."""

from typing import Any

import pytest

from headgate.apply.carry_out import Done, Ended, Stopped, carry_out
from headgate.apply.kinds.statements import base_name, version_of
from headgate.apply.memory import MemoryPart, memory_installation
from headgate.apply.model import ChangeInPlace, Create, Live, Plan, Ref, Release, Remove, Replace, Wishes
from headgate.apply.plan import consent_of, make_plan
from headgate.apply.ports import Installation
from headgate.apply.read import read_text
from headgate.apply.show import plan_dict, plan_id, plan_lines
from headgate.errors import InvalidRequest

SHOP = """\
world: shop
topics:
  raw: {partitions: 2, config: {retention.ms: "-1"}, watermark: {column: at, delay: 5 s}}
  clean: {sql: "CREATE TABLE clean (id BIGINT, at TIMESTAMP_LTZ(3))"}
statements:
  counted:
    sql: |
      CREATE TABLE counts (PRIMARY KEY (id) NOT ENFORCED)
      AS SELECT id, COUNT(*) AS n FROM clean GROUP BY id
  cleaned: {sql: "INSERT INTO clean SELECT id, at FROM raw", settings: {sql.state-ttl: 1 hour}}
tables:
  counts: {mode: upsert, freshness: 5s}
"""


def plan_of(installation: Installation, text: str, **wishes: bool) -> Plan:
    wanted = read_text(text)
    return make_plan(wanted, installation.observe(wanted), Wishes(**wishes))


def applied(installation: Installation, text: str, **wishes: bool) -> Plan:
    """The plan, once all of it is done."""
    wanted, plan = read_text(text), plan_of(installation, text, **wishes)
    kept = read_text("world: shop") if wishes.get("destroy") else wanted
    delete_data = wishes.get("delete_data", False)
    events = list(carry_out(plan, kept, installation, delete_data=delete_data, sleep=lambda _: None))
    assert isinstance(events[-1], Ended), events[-1]
    return plan


@pytest.fixture
def shop() -> Installation:
    """An installation on which SHOP stands."""
    installation = memory_installation()
    applied(installation, SHOP)
    return installation


def part(installation: Installation, kind: str) -> MemoryPart:
    found = installation.parts[kind]
    assert isinstance(found, MemoryPart)
    return found


def refused(installation: Installation, text: str, **wishes: bool) -> str:
    with pytest.raises(InvalidRequest) as caught:
        plan_of(installation, text, **wishes)
    return str(caught.value)


def test_everything_is_created_after_what_it_reads() -> None:
    plan = plan_of(memory_installation(), SHOP)
    assert all(isinstance(step, Create) for step in plan.steps)
    assert [str(step.ref) for step in plan.steps] == [
        "topic raw",
        "topic clean",
        "statement cleaned",
        "statement counted",
        "table counts",
    ]


def test_a_plan_after_apply_is_empty(shop: Installation) -> None:
    assert plan_of(shop, SHOP).steps == ()


def test_what_is_made_is_the_worlds_and_what_was_there_is_not() -> None:
    installation = memory_installation()
    applied(installation, "topics: {raw: }")
    applied(installation, SHOP.replace("raw: {partitions: 2, ", "raw: {"))
    owned = {str(ref) for ref in installation.owners.all()}
    assert owned == {"topic clean", "topic counts", "statement cleaned", "statement counted", "table counts"}


@pytest.mark.parametrize(
    ("old", "new", "ref", "fields"),
    [
        ('"-1"', '"1"', "topic raw", ["config.retention.ms"]),
        ('config: {retention.ms: "-1"}, ', "", "topic raw", ["config.retention.ms"]),
        ("delay: 5 s", "delay: 6 s", "topic raw", ["watermark"]),
        (", watermark: {column: at, delay: 5 s}", "", "topic raw", ["watermark"]),
        ("TIMESTAMP_LTZ(3))", "TIMESTAMP_LTZ(3), more STRING)", "topic clean", ["columns"]),
        ("1 hour", "2 hours", "statement cleaned", ["settings.sql.state-ttl"]),
        ("SELECT id, at FROM raw", "SELECT id + 1 AS id, at FROM raw", "statement cleaned", ["sql"]),
        ("COUNT(*) AS n", "COUNT(*) + 1 AS n", "statement counted", ["sql"]),
        ("sql.state-ttl: 1 hour}", "sql.state-ttl: 1 hour}, state: stopped", "statement cleaned", ["state"]),
        ("freshness: 5s", "freshness: 6s", "table counts", ["freshness"]),
        (", freshness: 5s", "", "table counts", ["freshness"]),
        ("freshness: 5s", "freshness: 5s, state: suspended", "table counts", ["state"]),
    ],
)  # fmt: skip
def test_a_changed_file_changes_what_it_says_and_nothing_else(
    shop: Installation, old: str, new: str, ref: str, fields: list[str]
) -> None:
    changed = SHOP.replace(old, new)
    assert changed != SHOP
    (step,) = applied(shop, changed).steps
    assert isinstance(step, ChangeInPlace)
    assert (str(step.ref), [change.field for change in step.changes]) == (ref, fields)
    assert plan_of(shop, changed).steps == ()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "INSERT INTO clean SELECT id, at FROM raw",
            "INSERT INTO clean  SELECT id,\\n at FROM raw -- as before",
        ),
        ("1 hour", "60 minutes"),
        ("delay: 5 s", "delay: 5 seconds"),
        ("freshness: 5s", "freshness: 5000ms"),
        ("clean (id BIGINT,", "clean ( id bigint ,"),
    ],
)
def test_the_same_in_other_words_is_no_change(shop: Installation, old: str, new: str) -> None:
    assert SHOP.replace(old, new) != SHOP
    assert plan_of(shop, SHOP.replace(old, new)).steps == ()


def test_another_sql_says_what_becomes_of_its_state_and_asks(shop: Installation) -> None:
    plan = plan_of(shop, SHOP.replace("SELECT id, at FROM raw", "SELECT id, at FROM raw WHERE id > 0"))
    assert list(consent_of(plan)) == [0]
    assert "the new one takes over where it stands" in consent_of(plan)[0]


@pytest.mark.parametrize(
    ("old", "new", "loses"),
    [
        ("mode: upsert", "mode: append", "its rows"),
        ("freshness: 5s", "freshness: 5s, from: latest", "its rows"),
    ],
)
def test_what_cannot_change_in_place_is_replaced_only_with_its_data_given_up(
    shop: Installation, old: str, new: str, loses: str
) -> None:
    changed = SHOP.replace(old, new)
    (step,) = plan_of(shop, changed).steps
    assert isinstance(step, Replace)
    assert loses in step.lost
    with pytest.raises(InvalidRequest, match="--delete-data"):
        applied(shop, changed)
    assert plan_of(shop, SHOP).steps == ()
    applied(shop, changed, delete_data=True)
    assert plan_of(shop, changed).steps == ()


@pytest.mark.parametrize(
    ("old", "new", "topic"),
    [("partitions: 2", "partitions: 3", "raw"), ("id BIGINT, at", "id STRING, at", "clean")],
)
def test_a_topic_is_not_replaced_under_who_reads_it(
    shop: Installation, old: str, new: str, topic: str
) -> None:
    said = refused(shop, SHOP.replace(old, new))
    assert f"topic {topic} would be replaced under statement cleaned" in said


def test_a_statement_does_not_declare_its_table_otherwise(shop: Installation) -> None:
    changed = SHOP.replace("counts (PRIMARY KEY (id) NOT ENFORCED)", "counts")
    assert "creates table 'counts' otherwise than before" in refused(shop, changed)


def test_what_the_file_names_no_longer_stays_until_it_is_pruned(shop: Installation) -> None:
    less = (
        SHOP[: SHOP.index("tables:")]
        .replace("counted:", "other: ")
        .replace("CREATE TABLE counts", "CREATE TABLE more")
    )
    less = less.replace("  other: ", "  renamed: ")
    plan = plan_of(shop, less)
    assert [str(step.ref) for step in plan.steps] == ["statement renamed"]
    assert any("table counts is in the file no longer" in note for note in plan.notes)
    pruned = applied(shop, less, prune=True)
    removed = [step for step in pruned.steps if isinstance(step, Remove)]
    assert [str(step.ref) for step in removed] == ["table counts", "statement counted"]
    assert [step.lost for step in removed] == ["", "its offsets and its state"]
    assert "topic counts stays, with all of its records: --delete-data removes it" in pruned.notes
    gone = applied(shop, less, prune=True, delete_data=True)
    assert [str(step.ref) for step in gone.steps] == ["topic counts"]
    assert plan_of(shop, less, prune=True).steps == ()


def test_destroy_removes_readers_before_what_they_read(shop: Installation) -> None:
    part(shop, "topics").things["foreign"] = part(shop, "topics").things["raw"]
    kept = applied(shop, SHOP, destroy=True)
    assert [str(step.ref) for step in kept.steps] == [
        "table counts",
        "statement counted",
        "statement cleaned",
    ]
    rest = applied(shop, SHOP, destroy=True, delete_data=True)
    assert [str(step.ref) for step in rest.steps] == ["topic counts", "topic clean", "topic raw"]
    assert set(part(shop, "topics").things) == {"foreign"}
    assert shop.owners.all() == {}


def test_a_statement_made_again_says_that_its_records_are_there(shop: Installation) -> None:
    applied(shop, SHOP, destroy=True)
    plan = plan_of(shop, SHOP)
    asked = consent_of(plan)
    counted = next(n for n, step in enumerate(plan.steps) if str(step.ref) == "statement counted")
    assert asked == {counted: asked[counted]}
    assert "topic counts is there, and keeps its records" in asked[counted]


def test_what_was_removed_by_hand_is_created_again_or_released(shop: Installation) -> None:
    del part(shop, "tables").things["counts"]
    (step,) = plan_of(shop, SHOP).steps
    assert isinstance(step, Create)
    less = SHOP[: SHOP.index("tables:")]
    (release,) = applied(shop, less, prune=True).steps
    assert isinstance(release, Release)


def test_drift_made_by_hand_is_shown_field_by_field(shop: Installation) -> None:
    tables = part(shop, "tables")
    spec = dict(tables.things["counts"].detail["spec"]) | {"on_error": "skip"}
    tables.things["counts"] = Live({}, detail={"spec": spec})
    (step,) = plan_of(shop, SHOP).steps
    assert isinstance(step, ChangeInPlace)
    assert [(c.field, c.before, c.after) for c in step.changes] == [("on_error", "skip", "suspend")]


def schema_file(*fields: str) -> str:
    columns = ", ".join(f"{{name: {name}, type: long}}" for name in fields)
    return f"schemas:\n  raw-value: {{schema: {{type: record, name: R, fields: [{columns}]}}}}\n"


def test_schema_that_a_producer_has_evolved_since_is_as_the_file_says() -> None:
    """A registry takes no text twice: a step that registers the file's schema again would stay for good."""
    installation = memory_installation()
    applied(installation, schema_file("id"))
    applied(installation, schema_file("id", "more"))
    plan = plan_of(installation, schema_file("id"))
    assert plan.steps == ()
    (note,) = plan.notes
    assert note == "schema raw-value has moved on: that of the file is version 1 of 2"
    newest = plan_of(installation, schema_file("id", "more"))
    assert (newest.steps, newest.notes) == ((), ())
    (step,) = plan_of(installation, schema_file("id", "other")).steps
    assert isinstance(step, ChangeInPlace)


def test_what_a_table_was_enabled_with_is_no_drift(shop: Installation) -> None:
    tables = part(shop, "tables")
    spec = dict(tables.things["counts"].detail["spec"]) | {
        "watermark": "at",
        "renames": {"a": "b"},
        "format_version": 3,
    }
    tables.things["counts"] = Live({}, detail={"spec": spec})
    assert plan_of(shop, SHOP).steps == ()


def test_a_failed_statement_is_started_and_its_predecessor_removed(shop: Installation) -> None:
    statements = part(shop, "statements")
    live = statements.things["cleaned"]
    detail = {"predecessors": ["cleaned"], "current": "cleaned.v2"}
    statements.things["cleaned"] = Live({**live.spec, "state": "failed"}, detail=detail)
    (step,) = plan_of(shop, SHOP).steps
    assert isinstance(step, ChangeInPlace)
    assert [change.field for change in step.changes] == ["state", "predecessor"]


def test_two_worlds_cannot_own_one_thing(shop: Installation) -> None:
    assert plan_of(shop, "world: other\ntopics: {raw: }").steps == ()
    said = refused(shop, "world: other\ntopics:\n  raw: {config: {a: b}}")
    assert said.startswith("the text:3: topic raw belongs to world 'shop'.")


def test_a_table_made_by_a_pattern_is_shown_and_left_alone(shop: Installation) -> None:
    tables = part(shop, "tables")
    tables.things["raw"] = Live({}, by_pattern=True, detail=live_spec("raw"))
    plan = plan_of(shop, SHOP, destroy=True)
    assert "table raw is made by a pattern of the configuration, and is left alone" in plan.notes
    assert Ref("tables", "raw") not in [step.ref for step in plan.steps]
    assert "is made by a pattern" in refused(shop, f"{SHOP}  raw: {{freshness: 7s}}\n")


def live_spec(topic: str) -> dict[str, Any]:
    from headgate.model import TableSpec

    return {"spec": TableSpec(topic).to_dict()}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tables:\n  rw: \n", "the text:2: table rw needs topic rw, which is neither in the file nor there."),
        ("statements:\n  s: {sql: INSERT INTO raw SELECT * FROM claen}\n", "statement s needs topic claen"),
        ("tables:\n  raw: {storage: attic}\n", "the text:2: table raw needs storage attic"),
        ("tables:\n  raw: {freshness: soon}\n", "the text:2: 'soon' is not a duration."),
        ("topics:\n  'a b': \n", "the text:2: 'a b' cannot be the name of a topic."),
        ("topics:\n  a: {options: {x: y}}\n", "the text:2: Table 'a' has no option 'x'."),
        ("topics:\n  a: {sql: 'CREATE TABLE b (x INT)'}\n", "the text:2: The sql of topic 'a' creates 'b'."),
        ("topics:\n  a: {sql: 'SELECT 1'}\n", "the text:2: The sql of topic 'a' is one CREATE TABLE"),
        ("topics:\n  a: {sql: 'CREATE TABLE a (x INT)', partitions: 2}\n", "which says its partitions too"),
        ("statements:\n  s: {sql: 'SELEC 1'}\n", "the text:2: "),
        ("statements:\n  s: {sql: 'SET a = 1'}\n", "the text:2: "),
        ("statements:\n  s: {sql: DROP TABLE x}\n", "The sql of statement 's' is not one job."),
        ("statements:\n  s: {sql: INSERT INTO raw SELECT * FROM raw}\n", "reads 'raw', which it writes."),
        ("statements:\n  s: {sql: \"SET 'client.statement-name' = 'x'; INSERT INTO raw SELECT * FROM a\"}\n",
         "Statement 's' sets 'client.statement-name'."),
        ("schemas:\n  s: {schema: '{'}\n", "the text:2: The schema of subject 's' is no JSON"),
        ("catalogs:\n  c: {type: rest}\n", "the text:2: A catalog of kind rest cannot be so: uri"),
        ("storage:\n  c: {uri: 'file:///x'}\n", "the text:2: "),
        ("topics: {x: , y: }\nstatements:\n  a: {sql: INSERT INTO x SELECT * FROM y}\n"
         "  b: {sql: INSERT INTO y SELECT * FROM x}\n",
         "the text:3: statement a reads statement b reads statement a: a circle. One of them must read"),
    ],
)  # fmt: skip
def test_a_mistake_changes_nothing_and_is_named_with_its_line(
    shop: Installation, text: str, said: str
) -> None:
    assert said in refused(shop, text)


def test_what_was_probably_meant_is_said(shop: Installation) -> None:
    said = refused(shop, "statements:\n  s: {sql: INSERT INTO raw SELECT * FROM claen}\n")
    assert said.endswith("Did you mean 'clean'?")


def test_a_plan_reads_as_a_difference(shop: Installation) -> None:
    plan = plan_of(
        shop, SHOP.replace("freshness: 5s", "freshness: 6s").replace("FROM raw", "FROM raw\\nWHERE id > 0")
    )
    shown = plan_dict(plan, consent_of(plan))
    assert shown["id"] == plan_id(plan)
    lines = list(plan_lines(shown))
    assert lines[0] == "~ change statement cleaned: it is not as the file says"
    assert "    freshness: 5.0 s → 6.0 s" in lines
    assert [step["asks"] != "" for step in shown["steps"]] == [True, False]


def test_the_id_of_a_plan_is_of_its_steps(shop: Installation) -> None:
    first, second = (plan_of(shop, SHOP.replace("freshness: 5s", f"freshness: {n}s")) for n in (6, 7))
    assert plan_id(first) != plan_id(second)
    assert plan_id(first) == plan_id(plan_of(shop, SHOP.replace("freshness: 5s", "freshness: 6s")))


def test_a_step_that_fails_is_the_last_and_says_so(shop: Installation) -> None:
    part(shop, "tables").create = failing  # type: ignore[method-assign]
    text = SHOP.replace("tables:\n", "tables:\n  raw: \n  clean: \n")
    wanted = read_text(text)
    plan = plan_of(shop, text)
    events = list(carry_out(plan, wanted, shop, sleep=lambda _: None))
    assert [event.number for event in events if isinstance(event, Done)] == []
    assert isinstance(events[-1], Stopped)
    assert str(events[-1].error) == "No."


def failing(name: str, spec: object) -> Any:
    raise InvalidRequest("No.")


def test_a_step_that_takes_too_long_is_given_up_with_what_it_waited_for() -> None:
    installation = memory_installation()
    wanted = read_text("topics: {a: }")
    plan = make_plan(wanted, installation.observe(wanted))
    times = iter([0.0, 1801.0])
    events = list(carry_out(plan, wanted, installation, sleep=lambda _: None, clock=lambda: next(times)))
    assert isinstance(events[-1], Stopped)
    assert "topic a does not stand after 1800 s: a is about to be there" in str(events[-1].error)


def test_successors_are_named_after_their_statement() -> None:
    assert [base_name(name) for name in ("a", "a.v2", "a.v2.v3", "v2")] == ["a", "a", "a.v2", "v2"]
    assert [version_of("a", name) for name in ("a", "a.v2", "b", "a.v0", "a.v12")] == [1, 2, None, None, 12]
